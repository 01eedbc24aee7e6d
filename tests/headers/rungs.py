#!/usr/bin/env python3
"""Checks the ladder of headers (docs/design.md): each header includes only what its rung may.

usage: rungs.py INCLUDE_FOLDER COMPILER

Our own headers are held to the rungs by their direct includes; third parties and heavy standard headers by everything
the preprocessor reads, because that is what a user pays for.
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

WORDS, OPERATORS, GRAPHS, PATTERNS, SETS = "words", "operators", "static graphs", "patterns", "sets"
CORE = (WORDS, OPERATORS, GRAPHS, PATTERNS, "bilinear", SETS, "networks")
ENGINE = (*CORE, "umbrella", "graph", "kernels", "oracle", "passes", "engine")

# name, files (the first that matches wins), the rungs its headers may include beside their own
RUNGS = [
    ("umbrella", r"collage\.hpp", CORE),
    (WORDS, r"(fwd|dtype|list_view|shape|layout|error|verdict)\.hpp|detail/.*", ()),
    (OPERATORS, r"ops\.hpp|op/.*", (WORDS,)),
    (GRAPHS, r"graph/(view|define|build)\.hpp|graph/detail/static_.*", (WORDS, OPERATORS)),
    ("networks", r"zoo\.hpp|zoo/.*", (WORDS, OPERATORS, GRAPHS)),
    (PATTERNS, r"pattern/.*", (WORDS, OPERATORS, GRAPHS)),
    ("bilinear", r"bilinear/.*", (WORDS,)),  # coefficients alone: no operator, no kernel
    (SETS, r"backend\.hpp|backend_set\.hpp|set/.*", (WORDS, OPERATORS, GRAPHS, PATTERNS)),
    ("graph for Boost", r"graph/boost\.hpp", (*CORE, "graph")),
    ("graph", r"graph/.*", CORE),
    ("kernels", r"run/(space|form|tensor|configuration|kernel|elements|layouts|node_group)\.hpp", (*CORE, "graph")),
    ("oracle", r"backends/reference\.hpp", (*CORE, "graph", "kernels")),
    ("passes", r"pass/.*", (*CORE, "graph", "kernels", "oracle")),
    ("engine", r"run/.*", ENGINE),
    ("measuring", r"measure/.*", ENGINE),
    ("search", r"search/.*", (WORDS,)),  # pure: it knows no operator and no library
    ("fusion", r"fuse/.*", (*CORE, "graph", "search")),
    ("place", r"place\.hpp|place/.*", (*ENGINE, "measuring", "search", "fusion", "graph for Boost")),
    ("implementations", r"backends/impl/.*", (*ENGINE, "fusion", "search", "backends")),
    ("adapters' door", r"adapter\.hpp", (*ENGINE, "backends")),
    ("every backend", r"every_backend\.hpp", (*ENGINE, "fusion", "search", "backends")),
    ("backends", r"backends/.*", (*ENGINE, "fusion", "search")),  # those that have a rule
    ("dot", r"io/dot\.hpp", (*ENGINE, "in and out", "graph for Boost")),
    ("in and out", r"io/.*", ENGINE),
]

# Third parties by a piece of their headers' paths, and the rungs that may read them.
THIRD_PARTIES = {
    "Boost": (r"/boost/", ("graph for Boost", "dot", "search", "fusion", "place")),
    "JSON": (r"/nlohmann/", ("in and out",)),
    "Eigen": (r"/Eigen/", ()),
    "Highway": (r"/hwy/", ()),
    "Xbyak": (r"/xbyak/", ()),
    "oneDNN": (r"/oneapi/|/dnnl", ()),
    "BLAS": (r"/cblas|/openblas", ()),
    "CUDA": (r"/cuda_runtime|include/cuda\.h", ()),
    "protobuf": (r"/google/protobuf/", ("in and out",)),
    "SQLite": (r"/sqlite3", ("measuring", "place")),
}

# What the umbrella and the rungs under it must not cost their includer.
HEAVY = {"vector", "string", "map", "unordered_map", "functional", "memory", "iostream"}


def rung_of(header: str) -> tuple[str, tuple[str, ...]] | None:
    for name, files, may in RUNGS:
        if re.fullmatch(files, header):
            return name, (name, *may)
    return None


def complaints(top: pathlib.Path, compiler: str, path: pathlib.Path) -> list[str]:
    header = path.relative_to(top / "collage").as_posix()
    found = rung_of(header)
    if found is None:
        return [f"{header} stands on no rung: name it in tests/headers/rungs.py"]
    rung, may = found

    wrong = []
    for line in path.read_text().splitlines():
        included = re.match(r'\s*#\s*include\s*[<"]collage/([^>"]+)', line)
        if included:
            other = rung_of(included[1])
            if other is not None and other[0] not in may:
                wrong.append(f"{header} ({rung}) includes {included[1]} ({other[0]}), which is not below it")

    if rung == "implementations" or header.endswith(".inl.hpp"):
        return wrong  # the one is compiled in src/ with the library that it may read, the other is its header's second half
    done = subprocess.run([compiler, "-std=c++20", "-fopenmp", "-M", "-x", "c++", "-I", str(top), str(path)], capture_output=True, text=True)
    if done.returncode != 0:
        return [*wrong, f"{header} cannot be preprocessed alone: {done.stderr}"]
    read = done.stdout.replace("\\\n", " ").split()[1:]
    for name, (piece, rungs) in THIRD_PARTIES.items():
        if rung not in rungs and any(re.search(piece, file) for file in read if not file.startswith(str(top))):
            wrong.append(f"{header} ({rung}) reads {name}'s headers")
    if rung in CORE or rung == "umbrella":
        for file in read:
            if "/c++/" in file and os.path.basename(file) in HEAVY and "/bits/" not in file:
                wrong.append(f"{header} ({rung}) reads <{os.path.basename(file)}>")
    return wrong


def main() -> int:
    top, compiler = pathlib.Path(sys.argv[1]), sys.argv[2]
    headers = sorted((top / "collage").rglob("*.hpp"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        wrong = [text for texts in pool.map(lambda path: complaints(top, compiler, path), headers) for text in texts]
    print("\n".join(wrong) or f"{len(headers)} headers in order")
    return 1 if wrong else 0


sys.exit(main())

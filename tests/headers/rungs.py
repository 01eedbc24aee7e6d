#!/usr/bin/env python3
"""Checks the ladder of headers (docs/design.md): each header includes only what its rung may.

usage: rungs.py INCLUDE_FOLDER COMPILER

Our own headers are held to the rungs by their direct includes; third parties and heavy standard headers by everything
that is read through them, because that is what a user pays for.
"""
import concurrent.futures
import functools
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
    ("kernels", r"run/(space|form|tensor|value_scales|configuration|kernel|elements|layouts|node_group)\.hpp", (*CORE, "graph")),
    ("oracle", r"backends/reference\.hpp", (*CORE, "graph", "kernels")),
    ("passes", r"pass/.*", (*CORE, "graph", "kernels", "oracle")),
    ("engine", r"run/.*", ENGINE),
    ("calibrate", r"calibrate/.*", ENGINE),
    ("measuring", r"measure/.*", ENGINE),
    ("tune", r"tune/.*", (WORDS,)),  # as the search: it knows no operator and no library
    ("search", r"search/.*", (WORDS,)),  # pure: it knows no operator and no library
    ("fusion", r"fuse/.*", (*CORE, "graph", "search")),
    ("place", r"place\.hpp|place/.*", (*ENGINE, "calibrate", "measuring", "tune", "search", "fusion", "graph for Boost")),
    ("implementations", r"backends/impl/.*", (*ENGINE, "fusion", "search", "backends")),
    ("adapters' door", r"adapter\.hpp", (*ENGINE, "backends")),
    ("every backend", r"every_backend\.hpp", (*ENGINE, "fusion", "search", "backends")),
    ("backends", r"backends/.*", (*ENGINE, "fusion", "search")),  # those that have a rule
    ("dot", r"io/dot\.hpp", (*ENGINE, "in and out", "graph for Boost")),
    ("in and out", r"io/.*", (*ENGINE, "calibrate")),
]

# Third parties by a piece of their headers' paths, and the rungs that may read them.
THIRD_PARTIES = {
    "Boost": (r"/boost/", ("graph for Boost", "dot", "fusion", "place")),
    "JSON": (r"/nlohmann/", ("in and out",)),
    "Eigen": (r"/Eigen/", ()),
    "Highway": (r"/hwy/", ()),
    "Xbyak": (r"/xbyak/", ()),
    "oneDNN": (r"/oneapi/|/dnnl", ()),
    "BLAS": (r"/cblas|/openblas", ()),
    "CUDA": (r"/cuda_runtime|include/cuda\.h", ()),
    "protobuf": (r"/google/protobuf/", ("in and out",)),
    "XGBoost": (r"/xgboost/", ()),
    "SQLite": (r"/sqlite3", ("measuring", "place")),
}

# What the umbrella and the rungs under it must not cost their includer.
HEAVY = {"vector", "string", "map", "unordered_map", "functional", "memory", "iostream"}


def rung_of(header: str) -> tuple[str, tuple[str, ...]] | None:
    for name, files, may in RUNGS:
        if re.fullmatch(files, header):
            return name, (name, *may)
    return None


OWN = "collage/"
INCLUDE = re.compile(r'\s*#\s*include\s*[<"]([^>"]+)[>"]')


@functools.cache
def includes_of(path: pathlib.Path) -> tuple[str, ...]:
    """What a header of ours includes itself, under whatever condition."""
    return tuple(found[1] for line in path.read_text().splitlines() if (found := INCLUDE.match(line)))


def others_read(top: pathlib.Path, path: pathlib.Path) -> set[str]:
    """The headers of others that a header includes, itself or through ours."""
    others, seen, waiting = set(), {path}, [path]
    while waiting:
        for name in includes_of(waiting.pop()):
            if not name.startswith(OWN):
                others.add(name)
            elif (own := top / name) not in seen and own.is_file():
                seen.add(own)
                waiting.append(own)
    return others


def files_of(compiler: str, name: str) -> list[str]:
    """The files that the preprocessor reads for a header of others."""
    done = subprocess.run([compiler, "-std=c++20", "-fopenmp", "-M", "-x", "c++", "-"], input=f"#include <{name}>\n",
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"<{name}> cannot be preprocessed alone: {done.stderr}")
    return done.stdout.replace("\\\n", " ").split()[1:]


def is_compiled_alone(top: pathlib.Path, path: pathlib.Path) -> bool:
    """Not an implementation, which is compiled in src/ with the library that it may read, nor the second half of a header."""
    found = rung_of(path.relative_to(top / OWN).as_posix())
    return not (found is not None and found[0] == "implementations" or path.name.endswith(".inl.hpp"))


def complaints(top: pathlib.Path, path: pathlib.Path, files: dict[str, list[str]]) -> list[str]:
    header = path.relative_to(top / OWN).as_posix()
    found = rung_of(header)
    if found is None:
        return [f"{header} stands on no rung: name it in tests/headers/rungs.py"]
    rung, may = found

    wrong = []
    for included in includes_of(path):
        other = rung_of(included.removeprefix(OWN)) if included.startswith(OWN) else None
        if other is not None and other[0] not in may:
            wrong.append(f"{header} ({rung}) includes {included} ({other[0]}), which is not below it")

    if not is_compiled_alone(top, path):
        return wrong
    read = {file for name in others_read(top, path) for file in files[name]}
    for name, (piece, rungs) in THIRD_PARTIES.items():
        if rung not in rungs and any(re.search(piece, file) for file in read):
            wrong.append(f"{header} ({rung}) reads {name}'s headers")
    if rung in CORE or rung == "umbrella":
        for file in sorted(read):
            if "/c++/" in file and os.path.basename(file) in HEAVY and "/bits/" not in file:
                wrong.append(f"{header} ({rung}) reads <{os.path.basename(file)}>")
    return wrong


def main() -> int:
    top, compiler = pathlib.Path(sys.argv[1]), sys.argv[2]
    headers = sorted((top / "collage").rglob("*.hpp"))
    # The same headers of others are read by many of ours: the preprocessor sees each once.
    others = sorted({name for path in headers if is_compiled_alone(top, path) for name in others_read(top, path)})
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        files = dict(zip(others, pool.map(lambda name: files_of(compiler, name), others)))
    wrong = [text for path in headers for text in complaints(top, path, files)]
    print("\n".join(wrong) or f"{len(headers)} headers in order")
    return 1 if wrong else 0


sys.exit(main())

#!/usr/bin/env python3
"""Checks that the documentation is true: every C++ block compiles, and every marked command runs.

usage: check_docs.py --project FOLDER --build FOLDER --built FILE... -- COMPILER ARGUMENT...

A C++ block (```cpp) in README.md or docs/ either follows the line `<!-- file: examples/foo.cpp -->` and is then a
contiguous excerpt of that file, which is one of the files that the build compiles or its tests run (--built), or it
compiles as it stands. A block in C or Python (```c, ```python) always is such an excerpt. A shell block (```sh) that
follows `<!-- run -->` is run with the build folder's programs on the path, in an empty folder. One that follows
`<!-- run on -->` is run after the block before it, in the same folder. Other blocks (```sh unmarked, ```text, ```json
...) are only text. tools/pages/links.py checks the links.
"""
import argparse
import concurrent.futures
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tempfile


@dataclasses.dataclass
class Block:
    page: pathlib.Path
    line: int
    language: str
    marker: str
    lines: list[str]

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    @property
    def where(self) -> str:
        return f"{self.page.name}:{self.line}"


# Languages whose blocks can be excerpts of files that the build compiles or its tests run.
EXCERPTS = ("cpp", "c", "python")


def blocks_of(page: pathlib.Path) -> list[Block]:
    blocks, current, marker = [], None, ""
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if current is not None:
            if line.startswith("```"):
                blocks.append(current)
                current, marker = None, ""
            else:
                current.lines.append(line)
        elif line.startswith("```"):
            current = Block(page, number, line[3:].strip(), marker, [])
        elif comment := re.fullmatch(r"<!--\s*(.*?)\s*-->", line.strip()):
            marker = comment[1]
        elif line.strip():
            marker = ""
    if current is not None:
        raise SystemExit(f"{current.where}: the code block is never closed")
    return blocks


def is_excerpt(block: list[str], file: list[str]) -> bool:
    """Whether the block's lines stand in the file one after another, all indented by the same amount."""
    filled = [line for line in block if line]
    for start in range(len(file) - len(block) + 1):
        part = file[start:start + len(block)]
        first = next(line for line in block if line)
        at = part[block.index(first)]
        indent = at[:len(at) - len(at.lstrip())]
        indent = indent[:max(0, len(indent) - (len(first) - len(first.lstrip())))]
        if all(have == (indent + want if want else "") for have, want in zip(part, block)):
            return True
    return not filled


def check_excerpt(block: Block, project: pathlib.Path, built: set[pathlib.Path]) -> str:
    name = block.marker.removeprefix("file:").strip()
    path = project / name
    if not path.is_file():
        return f"{block.where}: there is no file {name}"
    if path.resolve() not in built:
        return f"{block.where}: nothing compiles {name}"
    if not is_excerpt(block.lines, path.read_text().splitlines()):
        return f"{block.where}: this is not an excerpt of {name} any more"
    return ""


def check_compiles(block: Block, compiler: list[str], room: pathlib.Path) -> str:
    source = room / f"{block.page.stem}_{block.line}.cpp"
    source.write_text(f'#line {block.line + 1} "{block.page.name}"\n{block.text}')
    done = subprocess.run([*compiler, "-fsyntax-only", str(source)], capture_output=True, text=True)
    return "" if done.returncode == 0 else f"{block.where}: this block does not compile\n{done.stderr}"


def check_runs(block: Block, build: pathlib.Path, room: pathlib.Path) -> str:
    place = room / f"{block.page.stem}_{block.line}"
    place.mkdir()
    environment = {**os.environ, "PATH": f"{build}{os.pathsep}{os.environ['PATH']}", "XDG_CACHE_HOME": str(room / "caches")}
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", block.text], cwd=place, env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return "" if done.returncode == 0 else f"{block.where}: exit {done.returncode} from\n{block.text}{done.stdout}"


def runs_of(blocks: list[Block]) -> list[Block]:
    """The blocks, each `run on` as a part of the `run` before it on its page."""
    together = []
    for block in blocks:
        before = next((b for b in reversed(together) if b.marker == "run" and b.page == block.page), None)
        if block.language == "sh" and block.marker == "run on":
            if before is None:
                raise SystemExit(f"{block.where}: no block is run before this one")
            before.lines += block.lines
        else:
            together.append(block)
    return together


def main() -> int:
    arguments, compiler = sys.argv[1:], []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, compiler = arguments[:at], arguments[at + 1:]
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--project", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--built", type=pathlib.Path, nargs="*", default=[])
    options = parser.parse_args(arguments)
    built = {path.resolve() for path in options.built}

    pages = [page for page in [options.project / "README.md", *sorted((options.project / "docs").rglob("*.md"))] if page.exists()]
    blocks = runs_of([block for page in pages for block in blocks_of(page)])

    with tempfile.TemporaryDirectory() as folder:
        room = pathlib.Path(folder)

        def check(block: Block) -> str:
            if block.language in EXCERPTS and block.marker.startswith("file:"):
                return check_excerpt(block, options.project, built)
            if block.language in EXCERPTS and block.language != "cpp":
                return f"{block.where}: a block of {block.language} is an excerpt of a file: say of which"
            if block.language == "cpp":
                return check_compiles(block, compiler, room)
            if block.language == "sh" and block.marker == "run":
                return check_runs(block, options.build, room)
            return ""

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            wrong = [text for text in pool.map(check, blocks) if text]
    counted = sum(block.language in EXCERPTS or block.marker == "run" for block in blocks)
    print("\n".join(wrong) or f"{counted} blocks on {len(pages)} pages in order")
    return 1 if wrong else 0


sys.exit(main())

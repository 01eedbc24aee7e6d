#!/usr/bin/env python3
"""Compares the binary interface of the C library with a baseline: abi.py LIBRARY COMPILER BASELINE [--write]

The baseline has every function and public type of the headers in include/, as abidw (Debian's abigail-tools) writes them. Additions
are allowed: functions, enumerators, and members at the end of structs that begin with struct_size. All else is a fault. A library as
users build it has no debug information. So the types come from a stub with the same functions, compiled from the headers, which the
C++ compiler holds the library's own functions to; c.exports compares the symbols. `--write` writes the baseline anew.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

INCLUDE = pathlib.Path(__file__).resolve().parents[2] / "include"
MAP = pathlib.Path(__file__).resolve().parents[2] / "src" / "c" / "collage.map"
HEADERS = ("collage.h", "collage_precision.h", "collage_session.h", "collage_trace.h")
SKIPPED = 77
FAILED, CHANGED = 1 | 2, 4 | 8  # bits of abidiff's exit status


def headers_of(include: pathlib.Path) -> dict[str, str]:
    found = {p.name: p.read_text() for p in sorted(include.glob("collage*.h"))}
    if not set(HEADERS) <= set(found):
        sys.exit(f"{include} lacks a header of {', '.join(HEADERS)}")
    return found


def growing(headers: dict[str, str]) -> list[str]:
    """Structs that begin with struct_size: members may be added at their end."""
    return [name for text in headers.values()
            for name in re.findall(r"typedef struct (\w+) \{\s*size_t struct_size;", text)]


def stub(headers: dict[str, str], compiler: str, folder: pathlib.Path) -> pathlib.Path:
    """A shared object with the functions of the headers, which do nothing, and debug information."""
    include = folder / "include"
    include.mkdir(parents=True)
    sources = []
    for name, text in headers.items():
        (include / name).write_text(text)
        source = folder / (name[:-2] + ".c")
        source.write_text(re.sub(r"(?m)^(COLLAGE_API [^;]*?\)) COLLAGE_NOEXCEPT;", r"\1 { __builtin_trap(); }", text))
        sources.append(source)
    library = folder / "libcollage.so.0"
    subprocess.run([compiler, "-x", "c", "-std=c11", "-g", "-O0", "-shared", "-fPIC", f"-I{include}", *sources, "-o", library,
                    "-Wl,-soname,libcollage.so.0", f"-Wl,--version-script={MAP}"], check=True)
    return library


def write(library: pathlib.Path, target: pathlib.Path) -> None:
    subprocess.run(["abidw", "--no-show-locs", "--no-corpus-path", "--no-comp-dir-path", "--no-elf-needed", "--type-id-style", "hash",
                    library, "--out-file", target], check=True)
    # The folder of the stub is another one each time.
    target.write_text(re.sub(r"(<abi-instr [^>]*path=')[^']*/", r"\1", target.read_text()))


GROWTH = re.compile(r"'struct (?P<name>\w+)' changed:\n  type size changed from (?P<old>\d+) to \d+ \(in bits\)\n"
                    r"  \d+ data member insertions?:\n(?P<added>(?:    '[^\n]*', at offset \d+ \(in bits\)\n)+)(?! )")


def without_growth(report: str, may_grow: list[str]) -> str:
    """abidiff's report without its sums, and without structs that have more members at their end, if they may."""
    def kept(found: re.Match) -> str:
        offsets = map(int, re.findall(r"at offset (\d+)", found["added"]))
        is_allowed = found["name"] in may_grow and all(offset >= int(found["old"]) for offset in offsets)
        return "" if is_allowed else found[0]
    text = re.sub(r"(?m)^[^\n]*summary: .*\n", "", report)
    return GROWTH.sub(kept, text).strip()


def difference(baseline: pathlib.Path, headers: dict[str, str], compiler: str) -> str:
    """What has changed that may not; empty if nothing has."""
    with tempfile.TemporaryDirectory() as name:
        now = pathlib.Path(name) / "now.abi"
        write(stub(headers, compiler, pathlib.Path(name) / "stub"), now)
        # Only the types that changed themselves, not those that point to them.
        done = subprocess.run(["abidiff", "--no-added-syms", "--leaf-changes-only", baseline, now], capture_output=True, text=True)
    if done.returncode & FAILED:
        sys.exit(f"abidiff failed: {done.stdout}{done.stderr}")
    return without_growth(done.stdout, growing(headers)) if done.returncode & CHANGED else ""


def changed(headers: dict[str, str], before: str, after: str) -> dict[str, str]:
    assert any(before in text for text in headers.values()), before
    return {name: text.replace(before, after, 1) for name, text in headers.items()}


def self_test(baseline: pathlib.Path, headers: dict[str, str], compiler: str) -> None:
    """Additions pass, and every other change is found."""
    declared = "COLLAGE_API const char* collage_version(void) COLLAGE_NOEXCEPT;"
    last_member = re.search(r"  double planned_ms;[^\n]*\n", headers["collage.h"])[0]
    first_member = re.search(r"  const char\* backend;[^\n]*\n", headers["collage.h"])[0]
    allowed = {
        "a function more": (declared, declared + "\nCOLLAGE_API int collage_more(void) COLLAGE_NOEXCEPT;"),
        "a member at the end": (last_member, last_member + "  double later;\n"),
        "a member at the end of a struct to which others point": ("} collage_place_options;", "  double later;\n} collage_place_options;"),
        "an enumerator more": ("COLLAGE_MISUSE = 2,", "COLLAGE_MISUSE = 2, COLLAGE_LATER = 9,"),
    }
    refused = {
        "a function less": (declared, ""),
        "another parameter": ("collage_version(void)", "collage_version(int which)"),
        "another result": ("COLLAGE_API size_t collage_dtype_size", "COLLAGE_API int collage_dtype_size"),
        "a member in the middle": (last_member, "  double earlier;\n" + last_member),
        "a member less": (last_member, ""),
        "another type of a member": ("  double planned_ms;", "  float planned_ms;"),
        "a member more in a struct that does not grow": (first_member, first_member + "  int more;\n"),
        "another number of an enumerator": ("COLLAGE_MISUSE = 2", "COLLAGE_MISUSE = 5"),
    }
    for name, change in allowed.items():
        told = difference(baseline, changed(headers, *change), compiler)
        if told:
            sys.exit(f"{name} is allowed, but was refused:\n{told}")
    for name, change in refused.items():
        if not difference(baseline, changed(headers, *change), compiler):
            sys.exit(f"{name} was not found")


def main() -> None:
    library, compiler, baseline, *option = sys.argv[1:]
    if shutil.which("abidw") is None or shutil.which("abidiff") is None:
        print("skipped: abidw and abidiff are not installed (Debian: abigail-tools)")
        sys.exit(SKIPPED)
    headers = headers_of(INCLUDE)
    if option == ["--write"]:
        with tempfile.TemporaryDirectory() as folder:
            write(stub(headers, compiler, pathlib.Path(folder) / "stub"), pathlib.Path(baseline))
        return
    told = difference(pathlib.Path(baseline), headers, compiler)
    if told:
        sys.exit(f"{told}\nPrograms that were compiled before would break. Undo the change, or raise COLLAGE_ABI_VERSION and renew the\n"
                 f"baseline: python3 tests/c/abi.py {library} {compiler} {baseline} --write")
    shown = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    kept = set(re.findall(r"elf-symbol name='(\w+)' version='COLLAGE_1'", pathlib.Path(baseline).read_text()))
    gone = sorted(kept - {line.split()[-1].split("@")[0] for line in shown.splitlines()})
    if gone or not kept:
        sys.exit(f"{library} lacks symbols of the baseline: {', '.join(gone)}" if kept else f"{baseline} has no symbols")
    self_test(pathlib.Path(baseline), headers, compiler)
    print(f"{len(kept)} functions, and nothing that they or their types had has changed")


if __name__ == "__main__":
    main()

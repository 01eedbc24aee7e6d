#!/usr/bin/env python3
"""Checks CHANGELOG.md: changelog.py PROJECT

The first version is that of include/collage/fwd.hpp. Versions and dates only go back in time, and every version says something.
Debian's form of the file can be written from it.
"""
import datetime
import gzip
import pathlib
import re
import subprocess
import sys
import tempfile


def faults(text: str, version: str) -> list[str]:
    headings = re.findall(r"^## (.*)$", text, flags=re.MULTILINE)
    found = [re.fullmatch(r"(\d+)\.(\d+)\.(\d+) \((\d{4}-\d\d-\d\d)\)", h) for h in headings]
    wrong = [f"'{h}' is no version with a date, as in '1.2.3 (2026-01-31)'" for h, f in zip(headings, found) if not f]
    if wrong or not found:
        return wrong or ["there is no version"]
    first = ".".join(found[0].groups()[:3])
    if first != version:
        wrong.append(f"the first version is {first}, and include/collage/fwd.hpp has {version}")
    numbers = [tuple(map(int, f.groups()[:3])) for f in found]
    dates = [datetime.date.fromisoformat(f[4]) for f in found]
    if numbers != sorted(set(numbers), reverse=True):
        wrong.append("versions are not in order, the newest first")
    if dates != sorted(dates, reverse=True):
        wrong.append("dates are not in order, the newest first")
    for heading, part in zip(headings, re.split(r"^## .*$", text, flags=re.MULTILINE)[1:], strict=True):
        if not re.search(r"^- ", part, flags=re.MULTILINE):
            wrong.append(f"{heading} lists no change")
    return wrong


def self_test() -> None:
    """Each fault is found."""
    good = "# Changes\n\n## 1.1.0 (2026-02-01)\n\n- A.\n\n## 1.0.0 (2026-01-01)\n\n- B.\n"
    assert faults(good, "1.1.0") == []
    for change in (("1.1.0", "1.2.0"), ("1.0.0", "1.1.1"), ("2026-02-01", "2025-02-01"), ("- B.", "B."), (" (2026-01-01)", "")):
        assert faults(good.replace(*change), "1.1.0"), change
    assert faults("# Changes\n", "1.1.0")


def main() -> None:
    self_test()
    project = pathlib.Path(sys.argv[1])
    header = (project / "include/collage/fwd.hpp").read_text()
    version = ".".join(re.search(rf"#define COLLAGE_VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH"))
    wrong = faults((project / "CHANGELOG.md").read_text(), version)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, project / "cmake/packages/changelog.py", project / "CHANGELOG.md", "A <a@b.c>", "1", folder],
                       check=True)
        with gzip.open(pathlib.Path(folder) / "changelog.Debian.gz", "rt") as file:
            debian = file.read()
    if not debian.startswith(f"collage ({version}-1) unstable; ") or "\n -- A <a@b.c>  " not in debian:
        wrong.append("Debian's changelog is not as it should be:\n" + debian)
    wrong += [f"Debian's changelog has a line of more than 80 characters: {line}" for line in debian.splitlines() if len(line) > 80]
    sys.exit("\n".join(f"CHANGELOG.md: {w}" for w in wrong) if wrong else 0)


if __name__ == "__main__":
    main()

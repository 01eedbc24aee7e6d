#!/usr/bin/env python3
"""Writes CHANGELOG.md as Debian has it: changelog.py CHANGELOG.md MAINTAINER RELEASE FOLDER

FOLDER/changelog.Debian.gz has an entry for each version, in Debian's form. FOLDER/changelog.gz is the file itself.
"""
import datetime
import gzip
import pathlib
import re
import sys
import textwrap

HEADING = re.compile(r"^## (\d+\.\d+\.\d+) \((\d{4}-\d\d-\d\d)\)$", flags=re.MULTILINE)


def versions(text: str) -> list[tuple[str, str, str]]:
    """Each version with its date and its text, the newest first."""
    found = list(HEADING.finditer(text))
    ends = [f.start() for f in found[1:]] + [len(text)]
    return [(f[1], f[2], text[f.end():end].strip()) for f, end in zip(found, ends, strict=True)]


def entry(version: str, date: str, text: str, maintainer: str, release: str) -> str:
    lines = [f"collage ({version}-{release}) unstable; urgency=medium", ""]
    for item in re.findall(r"^- ((?:.|\n  )+)", text, flags=re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", item).replace("`", "").replace("**", "")
        lines += textwrap.wrap(" ".join(plain.split()), 76, initial_indent="  * ", subsequent_indent="    ")
    when = datetime.datetime.fromisoformat(date).strftime("%a, %d %b %Y 12:00:00 +0000")
    return "\n".join([*lines, "", f" -- {maintainer}  {when}", ""])


def main() -> None:
    source, maintainer, release, folder = sys.argv[1:]
    text = pathlib.Path(source).read_text()
    list_of = versions(text)
    if not list_of:
        sys.exit(f"{source} has no version; a heading is '## 1.2.3 (2026-01-31)'")
    debian = "\n".join(entry(*v, maintainer, release) for v in list_of)
    for name, contents in (("changelog.Debian.gz", debian), ("changelog.gz", text)):
        with gzip.GzipFile(pathlib.Path(folder) / name, "wb", 9, mtime=0) as file:
            file.write(contents.encode())


if __name__ == "__main__":
    main()

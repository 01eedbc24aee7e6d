#!/usr/bin/env python3
"""Copies the public headers as Doxygen should read them.

usage: headers.py FROM TO

Headers in folders `detail` and `impl` are left out. The comment that begins a file becomes the text of its page. Comments are
plain text outside of code spans, so signs that Doxygen takes for its own or for HTML are escaped.
"""
import pathlib
import re
import sys

# Lines of comments that follow each other, because a code span may go over several of them; or the comment at the end of a line.
COMMENT = re.compile(r"^[ \t]*///(?!<).*(?:\n[ \t]*///(?!<).*)*|///<.*$", re.MULTILINE)
LEAD = re.compile(r"(^[ \t]*///<?)", re.MULTILINE)
TOP = re.compile(r"\A(?://(?!/).*\n)+")
# Doxygen 1.9.4 cannot read specialisations of templates of the standard library.
SPECIALISED = re.compile(r"^template <>\nstruct std::\w+<[^{]*\{.*?^\};", re.MULTILINE | re.DOTALL)


def escaped(text: str) -> str:
    return re.sub(r"([<>&#%@\\]|::)", r"\\\1", text)


def plain(comment: str) -> str:
    """A comment without signs that mean something to Doxygen. Code spans with two colons, which would be a link, become HTML."""
    parts = re.split(r"(`[^`]*`)", comment)
    for at, part in enumerate(parts):
        if part.startswith("`") and "::" not in part:
            continue
        text = "".join(words if LEAD.fullmatch(words) else escaped(words) for words in LEAD.split(part.strip("`")))
        parts[at] = f"<code>{text}</code>" if part.startswith("`") else text
    return "".join(parts)


def for_doxygen(text: str) -> str:
    has_top = TOP.match(text)
    text = TOP.sub(lambda top: re.sub(r"^//", "///", top[0], flags=re.MULTILINE), text)
    text = COMMENT.sub(lambda comment: plain(comment[0]), text)
    text = text.replace("namespace collage::inline v0", "namespace collage")  # it would leave out `collage`
    text = SPECIALISED.sub(r"/// \\cond\n\g<0>\n/// \\endcond", text)
    return "/// \\file\n" + text if has_top else re.sub(r"\A/\*\n", r"/** \\file\n", text)


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    source, copy = map(pathlib.Path, sys.argv[1:])
    for path in sorted(source.rglob("*.h*")):
        name = path.relative_to(source)
        if not {"detail", "impl"} & set(name.parts):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_text(for_doxygen(path.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


sys.exit(main())

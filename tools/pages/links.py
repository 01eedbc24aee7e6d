#!/usr/bin/env python3
"""Checks that every link between pages leads to a file and a heading, and that the site's navigation has each page once.

usage: links.py PROJECT               checks README.md, docs/, the pages to which they link, and mkdocs.yml
       links.py PROJECT --self-test   checks that the check finds each kind of fault

It needs nothing but Python, so it runs with every test. Also checked is what code hosts show and the site would not: lists
within lists that are indented by less than four spaces, and lists and tables that follow a paragraph without a blank line.
"""
from __future__ import annotations

import collections
import pathlib
import posixpath
import re
import sys
import tempfile

# A block of code, or a code span, which may go over several lines of one paragraph.
CODE = re.compile(r"^(?P<fence>```+)(?!`).*?^(?P=fence)$|(?<!`)(?P<tick>`+)(?!`)(?:(?!\n\s*\n).)+?(?<!`)(?P=tick)(?!`)",
                  re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+\s+(.*?)\s*$", re.MULTILINE)
ANCHOR = re.compile(r'<a id="([^"]+)">')
ENTRY = re.compile(r"^ +- (?:[^:\n]+: )?(\S+\.md)$", re.MULTILINE)
ITEM = re.compile(r"( *)([-*]|\d+\.) ")


def outside_of_code(text: str, change) -> str:
    """The text, with all of it that is not code replaced by `change` of it."""
    parts, at = [], 0
    for found in CODE.finditer(text):
        parts += [change(text[at:found.start()]), found[0]]
        at = found.end()
    return "".join([*parts, change(text[at:])])


def without_code(text: str) -> str:
    """The text without code, on as many lines."""
    return CODE.sub(lambda code: "\n" * code[0].count("\n"), text)


def links_of(text: str) -> list[tuple[int, str]]:
    """(line, target) of each link that is not in code."""
    return [(number, target) for number, line in enumerate(without_code(text).splitlines(), 1) for target in LINK.findall(line)]


def leads_to(page: str, target: str) -> tuple[str, str] | None:
    """The path in the project and the anchor to which a link of a page leads; None if it leads out of the project."""
    path, _, anchor = target.partition("#")
    if "://" in path or path.startswith("mailto:"):
        return None
    return (posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page), anchor


def slug(heading: str) -> str:
    """The anchor of a heading as code hosts make it; markup and links count by their text."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors_of(text: str) -> set[str]:
    """The anchors of a page: its headings, the second of a name with `-1`, and each `<a id="...">`."""
    anchors, seen = set(ANCHOR.findall(text)), collections.Counter()
    blocks = re.sub(r"^(```+)(?!`).*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    for heading in HEADING.findall(blocks):
        name = slug(heading)
        anchors.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return anchors


def faults_of_links(project: pathlib.Path, page: str, text: str):
    for line, target in links_of(text):
        there = leads_to(page, target)
        if not there:
            continue
        path, anchor = project / there[0], there[1]
        if there[0].startswith("..") or not path.exists():
            yield f"{page}:{line}: the link to {target} leads nowhere"
        elif anchor and path.suffix == ".md" and anchor not in anchors_of(path.read_text(encoding="utf-8")):
            yield f"{page}:{line}: the link to {target} leads to a page without this heading"


def faults_of_form(page: str, text: str):
    """What code hosts show as a list or a table, and the site as text."""
    before, in_list = "", False
    blocks = re.sub(r"^(```+)(?!`).*?^\1$", lambda code: "\n" * code[0].count("\n"), text, flags=re.MULTILINE | re.DOTALL)
    for number, line in enumerate(blocks.splitlines(), 1):
        item = ITEM.match(line)
        if item and 0 < len(item[1]) < 4:
            yield f"{page}:{number}: a list within a list is indented by four spaces"
        elif item and before.strip() and not in_list:
            yield f"{page}:{number}: a list needs a blank line before it"
        elif line.startswith("|") and before.strip() and not before.startswith("|"):
            yield f"{page}:{number}: a table needs a blank line before it"
        in_list = bool(item) or (in_list and (line.startswith("  ") or not line.strip()))
        before = line


def faults_of_navigation(project: pathlib.Path):
    file = project / "mkdocs.yml"
    if not file.exists():
        yield "mkdocs.yml: there is no such file"
        return
    navigation = re.sub(r"^.*?^nav:\n", "", file.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    named = collections.Counter(ENTRY.findall(navigation))
    pages = {path.relative_to(project / "docs").as_posix() for path in (project / "docs").rglob("*.md")}
    for page in sorted(pages - set(named)):
        yield f"mkdocs.yml: nav does not have docs/{page}"
    for page in sorted(set(named) - pages - {"index.md"}):  # README.md is index.md there
        yield f"mkdocs.yml: nav has {page}, and there is no docs/{page}"
    for page in sorted(page for page, count in named.items() if count > 1):
        yield f"mkdocs.yml: nav has {page} more than once"


def check(project: pathlib.Path) -> list[str]:
    todo = ["README.md", *sorted(path.relative_to(project).as_posix() for path in (project / "docs").rglob("*.md"))]
    seen, wrong = set(todo), []
    for page in todo:  # grows by the pages elsewhere to which these lead
        text = (project / page).read_text(encoding="utf-8")
        wrong += faults_of_links(project, page, text)
        wrong += faults_of_form(page, text)
        for there in filter(None, (leads_to(page, target) for _, target in links_of(text))):
            if there[0].endswith(".md") and there[0] not in seen and (project / there[0]).is_file():
                seen.add(there[0])
                todo.append(there[0])
    return wrong + list(faults_of_navigation(project))


def self_test() -> list[str]:
    """What does not hold of the check: each project must have the one fault that is given, or none."""
    good = {"README.md": "# A\n\n[b](docs/b.md#one-more-c) `[x](nowhere)`\n", "docs/b.md": "# B\n\n## One more: `c`\n",
            "mkdocs.yml": "nav:\n  - Home: index.md\n  - Part:\n      - B: b.md\n"}
    cases = [
        ({}, ""),
        ({"README.md": "[b](docs/c.md)\n"}, "README.md:1: the link to docs/c.md leads nowhere"),
        ({"README.md": "\n[b\nb](docs/b.md#two)\n"}, "README.md:3: the link to docs/b.md#two leads to a page without"),
        ({"README.md": "```text\n[b](docs/c.md)\n```\n[b](../other.md)\n"}, "README.md:4: the link to ../other.md"),
        ({"README.md": "[b](https://example.org/c.md) [b](docs/b.md#one-more-c-1)\n"}, "README.md:1: the link to docs/b.md#one"),
        ({"README.md": "[b](docs/b.md#c-1)\n", "docs/b.md": "# C\n# C\n"}, ""),
        ({"README.md": "[x](other/x.md)\n", "other/x.md": "[y](y.md)\n"}, "other/x.md:1: the link to y.md leads nowhere"),
        ({"docs/b.md": "## One more: c\n\nText\n- item\n"}, "docs/b.md:4: a list needs"),
        ({"docs/b.md": "## One more: c\n\n- item\n  more\n- item\n  - item\n"}, "docs/b.md:6: a list within"),
        ({"docs/b.md": "## One more: c\n\nText\n| a |\n|---|\n"}, "docs/b.md:4: a table needs"),
        ({"docs/c.md": "# C\n"}, "mkdocs.yml: nav does not have docs/c.md"),
        ({"mkdocs.yml": "nav:\n  - B: b.md\n  - D: d.md\n"}, "mkdocs.yml: nav has d.md, and"),
        ({"mkdocs.yml": "nav:\n  - B: b.md\n  - C: b.md\n"}, "mkdocs.yml: nav has b.md more"),
    ]
    wrong = []
    for change, expected in cases:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (good | change).items():
                path = pathlib.Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            found = check(pathlib.Path(folder))
        if not (len(found) == 1 and found[0].startswith(expected) if expected else not found):
            wrong.append(f"{change}: expected {expected or 'nothing'}, found {found}")
    return wrong


def main() -> int:
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--self-test"]):
        print(__doc__, file=sys.stderr)
        return 2
    wrong = self_test() if sys.argv[2:] else check(pathlib.Path(sys.argv[1]))
    print("\n".join(wrong) or "in order")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

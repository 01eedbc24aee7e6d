"""Makes the site from the Markdown that code hosts show, as it stands there.

On a code host, a page links to any file of the project. The site has only pages. So every file to which a page links becomes one:
README.md is the first, and other files are under source/. A drawing in Mermaid becomes a picture by Graphviz, because Mermaid
itself is a program that browsers would fetch.
"""
import os
import pathlib
import posixpath
import re
import shutil
import subprocess
import sys

from mkdocs.structure.files import File

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tools/pages"))
import links  # noqa: E402

LANGUAGES = {".cpp": "cpp", ".hpp": "cpp", ".h": "c", ".c": "c", ".py": "python", ".json": "json"}
PICTURES = (".png", ".svg")
NOT_FOUND_BY_SEARCH = "---\nsearch:\n  exclude: true\n---\n"
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
DRAWING = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BAR_IN_CODE = re.compile(r"`[^`]*\\\|[^`]*`")


def page_of(path: str) -> str:
    """Where a file of the project, such as `docs/a.md`, is among the sources of the site."""
    if path == "README.md":
        return "index.md"
    if path.startswith("docs/"):
        return path[len("docs/"):]
    if (TOP / path).is_dir():
        return f"source/{path}/index.md"
    return f"source/{path}" if path.endswith((".md", *PICTURES)) else f"source/{path}.md"


def between_pages(path: str, text: str) -> str:
    """The Markdown of a file, with links between files of the project turned into links between pages of the site."""
    here = posixpath.dirname(page_of(path)) or "."

    def link(found):
        there = links.leads_to(path, found[2])
        if not there or there[0] == path or not (TOP / there[0]).exists():
            return found[0]
        return f"{found[1]}{posixpath.relpath(page_of(there[0]), here)}{'#' + there[1] if there[1] else ''}{found[3]}"

    return links.outside_of_code(text, lambda part: LINK.sub(link, part))


def page_from(path: str) -> str:
    """The Markdown of a page for a file or a folder that is not in docs/."""
    if (TOP / path).is_dir():
        names = sorted(f"{file.name}/" if file.is_dir() else file.name for file in (TOP / path).iterdir())
        return "\n".join([NOT_FOUND_BY_SEARCH, f"# {path}\n", *(f"- `{name}`" for name in names if name != "__pycache__/")])
    text = (TOP / path).read_text(encoding="utf-8")
    if path.endswith(".md"):
        text = for_site(path, text)
        return f"---\nhide: [navigation]\n---\n\n{text}" if path == "README.md" else text
    language = LANGUAGES.get(pathlib.PurePath(path).suffix, "text")
    return f"{NOT_FOUND_BY_SEARCH}\n# {path}\n\n````{language}\n{text.rstrip()}\n````\n"


def linked_files() -> list:
    """Every file and folder outside docs/ to which a page leads, also over several links."""
    todo = ["README.md", *sorted(path.relative_to(TOP).as_posix() for path in (TOP / "docs").rglob("*.md"))]
    for page in todo:  # grows
        if page.endswith(".md"):
            for _, target in links.links_of((TOP / page).read_text(encoding="utf-8")):
                there = links.leads_to(page, target)
                if there and there[0] not in todo and (TOP / there[0]).exists():
                    todo.append(there[0])
    return [path for path in todo if not path.startswith("docs/")]


def drawn(found) -> str:
    """A flow chart in Mermaid as a picture, or as text if Graphviz is not there."""
    if not shutil.which("dot"):
        return f"```text\n{found[1]}```"
    done = subprocess.run(["dot", "-Tsvg"], input=in_dot(found[1]), capture_output=True, text=True, check=True)
    picture = re.sub(r"<!--.*?-->", "", done.stdout[done.stdout.index("<svg"):], flags=re.DOTALL)
    return f'<div class="drawing">{"".join(picture.splitlines())}</div>'


def in_dot(chart: str) -> str:
    """A flow chart for Graphviz. It may have boxes, groups of boxes, and chains of arrows between lists of boxes."""
    dot = ['digraph { bgcolor=transparent; fontname="sans-serif"; ranksep=0.3; nodesep=0.2;',
           'node [shape=box style=filled fillcolor=white fontname="sans-serif" fontsize=13];']
    for line in map(str.strip, chart.splitlines()[1:]):
        if group := re.fullmatch(r'subgraph (\w+) \["(.*)"\]', line):
            dot.append(f'subgraph cluster_{group[1]} {{ label="{group[2]}"; style=filled; color="#e8eaf6";')
        elif line == "end":
            dot.append("}")
        elif box := re.fullmatch(r'(\w+)\["(.*)"\]', line):
            dot.append(f'{box[1]} [label="{box[2]}"];')
        elif "-->" in line:
            ends = [[box.strip() for box in end.split("&")] for end in line.split("-->")]
            dot += [f"{a} -> {b};" for left, right in zip(ends, ends[1:]) for a in left for b in right]
        elif line:
            raise ValueError(f"tools/pages/hooks.py: cannot draw this line of a flow chart: {line}")
    return "\n".join([*dot, "}"])


def for_site(path: str, text: str) -> str:
    """The Markdown of a page as the site needs it."""
    text = between_pages(path, text)
    # In tables, code hosts need a backslash before a bar in code. Here it would show.
    text = re.sub(r"^\|.*$", lambda row: BAR_IN_CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0]), text, flags=re.M)
    return DRAWING.sub(drawn, text)


def on_config(config):
    config.mdx_configs.setdefault("toc", {})["slugify"] = lambda heading, _: links.slug(heading)
    return config


def on_files(files, config):
    for name in ("site.css", "iframe-worker.js"):
        files.append(File.generated(config, f"assets/{name}", abs_src_path=str(TOP / "tools/pages" / name)))
    for path in linked_files():
        if path.endswith(PICTURES):
            files.append(File.generated(config, page_of(path), abs_src_path=str(TOP / path)))
        else:
            files.append(File.generated(config, page_of(path), content=page_from(path)))
    return files


def on_page_markdown(markdown, page, config, files):
    if page.file.generated_by:
        return markdown
    markdown = for_site(f"docs/{page.file.src_uri}", markdown)
    there = os.environ.get("COLLAGE_SITE_HEADERS") == "yes"
    return re.sub(r"^<!-- site: (.*) -->$", r"\1" if there else "", markdown, flags=re.MULTILINE)

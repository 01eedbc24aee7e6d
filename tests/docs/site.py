#!/usr/bin/env python3
"""Builds the site and checks it: every link in it leads to a page and an anchor, it fetches nothing from elsewhere, and its search
works from files. The search is tried in Chromium, if that is installed.

usage: site.py PROJECT
       site.py PROJECT --check FOLDER   checks a site that is built already

Ends with status 77 if the site generator cannot be installed, as without a network.
"""
from __future__ import annotations

import html.parser
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

# What makes a browser fetch something, by element.
FETCHED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
FETCHING_LINKS = {"stylesheet", "icon", "preconnect", "preload", "modulepreload", "manifest"}


class Page(html.parser.HTMLParser):
    """The anchors of a page, the targets of its links, and what it makes a browser fetch."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = {"", "top"}
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in FETCHED and FETCHED[tag] in values and (tag != "link" or FETCHING_LINKS & set(values.get("rel", "").split())):
            self.fetched.append(values[FETCHED[tag]])


def faults(site: pathlib.Path) -> list[str]:
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    wrong = []
    for path, page in pages.items():
        name = path.relative_to(site).as_posix()
        for target in page.fetched:
            if urllib.parse.urlsplit(target).netloc:
                wrong.append(f"{name}: fetches {target} from elsewhere")
        for target in page.links + page.fetched:
            parts = urllib.parse.urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            # The page for addresses that do not exist has absolute ones, because it may be shown anywhere.
            start = site if parts.path.startswith("/") else path.parent
            there = (start / urllib.parse.unquote(parts.path).lstrip("/")).resolve() if parts.path else path
            there = there / "index.html" if there.is_dir() else there
            if not there.is_file():
                wrong.append(f"{name}: the link to {target} leads nowhere")
            # Doxygen 1.9.4 itself links to anchors that it leaves out.
            elif "reference/cpp" not in name and there in pages and urllib.parse.unquote(parts.fragment) not in pages[there].anchors:
                wrong.append(f"{name}: the link to {target} leads to a page without this anchor")
    return wrong if pages else ["there is no page"]


def faults_of_search(site: pathlib.Path) -> list[str]:
    """Looks for a word in the site, opened from its folder."""
    browser = shutil.which("chromium")
    if not browser:
        print("chromium is not installed, so the search is not tried")
        return []
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}",
                               "--virtual-time-budget=20000", "--dump-dom", f"{(site / 'index.html').as_uri()}?q=fusion"],
                              capture_output=True, text=True, timeout=120)
    found = re.search(r'md-search-result__meta">([^<]*)', done.stdout)
    says = found[1].strip() if found else "nothing"
    return [] if re.fullmatch(r"\d+ matching documents", says) else [f"index.html: the search for 'fusion' shows: {says}"]


def built(project: pathlib.Path, out: pathlib.Path) -> str | None:
    """Builds the site; returns why it was not built, or None."""
    done = subprocess.run([str(project / "tools/site"), "--out", str(out)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(done.stdout, end="")
    if done.returncode == 0:
        return None
    if "could not be installed" in done.stdout or "virtual environment" in done.stdout:
        sys.exit(77)
    return "the site was not built"


def main() -> int:
    if len(sys.argv) == 4 and sys.argv[2] == "--check":
        site = pathlib.Path(sys.argv[3]).resolve()
        wrong = faults(site) + faults_of_search(site)
    elif len(sys.argv) == 2:
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder).resolve() / "site"
            why = built(pathlib.Path(sys.argv[1]), out)
            wrong = [why] if why else faults(out) + faults_of_search(out)
    else:
        print(__doc__, file=sys.stderr)
        return 2
    print("\n".join(wrong[:100]) or "in order")
    return 1 if wrong else 0


sys.exit(main())

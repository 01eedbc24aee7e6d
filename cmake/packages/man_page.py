#!/usr/bin/env python3
"""Writes the manual page of the program from its own help pages: man_page.py PROGRAM PAGE.gz"""
import gzip
import os
import re
import subprocess
import sys


def help_of(program: str, *words: str) -> str:
    done = subprocess.run([program, *words, "--help"], capture_output=True, text=True, check=True,
                          env={**os.environ, "NO_COLOR": "1"})
    return done.stdout.strip()


def verbatim(text: str) -> str:
    """Lines as they are. A line that begins with a point or a quote would be a request."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return ".nf\n" + re.sub(r"^([.'])", r"\\&\1", escaped, flags=re.MULTILINE) + "\n.fi\n"


def page_of(program: str) -> str:
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    main = help_of(program)
    commands = re.findall(r"^  ([a-z]+) ", main.partition("\nCommands:\n")[2].partition("\n\n")[0], flags=re.MULTILINE)
    if not commands:
        sys.exit("man_page.py: the help page lists no commands under 'Commands:'")
    page = f'.TH COLLAGE 1 "" "{version}" "User Commands"\n'
    page += ".SH NAME\ncollage \\- measure which library runs which part of a neural network\n"
    page += ".SH SYNOPSIS\n.B collage\nCOMMAND [OPTION...] [NET]\n.SH DESCRIPTION\n" + verbatim(main)
    page += ".SH COMMANDS\n"
    for command in commands:
        page += f".SS collage {command}\n" + verbatim(help_of(program, command))
    return page


if __name__ == "__main__":
    program, target = sys.argv[1:]
    with gzip.GzipFile(target, "wb", 9, mtime=0) as file:  # no name and no time: the same page each time
        file.write(page_of(program).encode())

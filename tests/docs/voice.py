#!/usr/bin/env python3
"""Checks the prose of comments and pages by the rules of docs/voice.md.

usage: voice.py PROJECT               checks every file; files in docs/decisions/prose-left.txt may fail, and must
       voice.py PROJECT FILE...       prints every fault of these files
       voice.py PROJECT --write       writes docs/decisions/prose-left.txt anew
       voice.py PROJECT --self-test   checks that the check finds each kind of fault
"""
import pathlib
import re
import sys
import tempfile

RULES = "docs/voice.md"
LEFT = "docs/decisions/prose-left.txt"
MOST_WORDS = 25
COMMENTED = ("include", "src", "tools", "examples")
C_ENDINGS = (".hpp", ".cpp", ".h", ".c")

ABBREVIATIONS = re.compile(r"\b(e\.g|i\.e|cf|vs|etc|approx)\.", re.IGNORECASE)
SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+")
OPENING = re.compile(r"^\W*(Of|What) ")
# Comment lines that are for programs, not for readers.
FOR_PROGRAMS = re.compile(r"\s*(clang-format |NOLINT|(needs|run|expect|file):|namespace |#line)")
# A string or character that may hold two slashes, or the comment that ends a line.
COMMENT_OF_LINE = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)\'|(//+[!<]*)(.*)$')


def words_of_list(rules: str) -> list[tuple[re.Pattern, str]]:
    """The rows of the table of words: what matches a word, and what to use instead."""
    words = []
    for left, right in re.findall(r"^\| (`.*?`) \| (.*?) \|$", rules, re.MULTILINE):
        alternatives = "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in re.findall("`(.*?)`", left))
        words.append((re.compile(rf"(?<![\w-])(?:{alternatives})(?![\w-])", re.IGNORECASE), right))
    return words


def plain(text: str) -> str:
    """Prose without code spans, markup and targets of links."""
    text = re.sub(r"(`+).*?\1", "code", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"<[^>\s][^>]*>|https?://\S+", " ", text)
    return ABBREVIATIONS.sub(r"\1", text.replace("*", "").replace("...", "…"))


def paragraphs_of_page(text: str):
    """(line, text) of each paragraph, list item, heading and table cell."""
    lines, start = [], 0
    fenced = False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        stripped = line.strip()
        if stripped.startswith("```"):
            fenced = not fenced
        table = stripped.startswith("|")
        begins = re.match(r"([-*]|\d+\.)\s+|#+\s+", stripped)
        if lines and (fenced or not stripped or begins or table or stripped.startswith(("```", "<!--"))):
            yield start, " ".join(lines)
            lines = []
        if fenced or not stripped or stripped.startswith(("```", "<!--")):
            continue
        if table:
            for cell in re.sub(r"`[^`]*`", lambda code: code[0].replace("|", " "), stripped).replace("\\|", " ").strip("|").split("|"):
                yield number, cell
        elif stripped.startswith("#"):
            yield number, stripped.lstrip("# ")
        else:
            if not lines:
                start = number
            lines.append(re.sub(r"^([-*]|\d+\.)\s+", "", stripped) if begins else stripped)


def paragraphs_of_code(text: str):
    """(line, text) of each paragraph of comments."""
    lines, start, block = [], 0, False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        stripped = line.strip()
        comment, alone = None, True
        if block or stripped.startswith("/*"):
            block = "*/" not in stripped
            comment = re.sub(r"^(/\*+|\*(?!/))|\*/$", "", stripped)
        elif "//" in line:
            for found in COMMENT_OF_LINE.finditer(line):
                if found[1]:
                    comment, alone = found[2], found.start() == len(line) - len(line.lstrip())
        if comment is not None and FOR_PROGRAMS.match(comment):
            comment = None
        filled = comment is not None and comment.strip() and not comment.startswith("   ")  # further in: an example
        item = filled and re.match(r"\s*([-*]|\d+\.)\s", comment)
        if lines and (not filled or not alone or item):
            yield start, " ".join(lines)
            lines = []
        if filled and not alone:
            yield number, comment
        elif filled:
            if not lines:
                start = number
            lines.append(re.sub(r"^([-*]|\d+\.)\s+", "", comment.strip()))


def faults_of(path: pathlib.Path, words: list[tuple[re.Pattern, str]]):
    """(line, sentence about it) of each fault in a file."""
    text = path.read_text(encoding="utf-8")
    for line, paragraph in (paragraphs_of_page if path.suffix == ".md" else paragraphs_of_code)(text):
        paragraph = plain(paragraph).strip()
        for sentence in SENTENCE_END.split(paragraph):
            count = sum(any(c.isalnum() for c in word) for word in sentence.split())
            begin = " ".join(sentence.split()[:6])
            if count > MOST_WORDS:
                yield line, f"a sentence of {count} words, and {MOST_WORDS} are the most: '{begin} ...'"
            if opening := OPENING.match(sentence):
                yield line, f"a sentence opens with '{opening[1]}': '{begin} ...'"
        for word, instead in words:
            if found := word.search(paragraph):
                yield line, f"'{found[0]}' is not used here; use: {instead}"


def files_of(project: pathlib.Path) -> list[pathlib.Path]:
    found = [project / "README.md", *(project / "docs").rglob("*.md")]
    for folder in COMMENTED:
        found += [path for path in (project / folder).rglob("*") if path.suffix in C_ENDINGS]
    return sorted(path for path in found if path.exists())


def check(project: pathlib.Path) -> list[str]:
    words = words_of_list((project / RULES).read_text())
    listed = {}
    if (project / LEFT).exists():
        for number, line in enumerate((project / LEFT).read_text().splitlines(), 1):
            if line and not line.startswith("#"):
                listed[line] = number
    wrong = []
    for path in files_of(project):
        name = path.relative_to(project).as_posix()
        first = next(faults_of(path, words), None)
        if first and name not in listed:
            wrong.append(f"{name}:{first[0]}: {first[1]}; {RULES} has the rules")
        if not first and name in listed:
            wrong.append(f"{LEFT}:{listed[name]}: {name} passes now: remove this line")
        listed.pop(name, None)
    return wrong + [f"{LEFT}:{number}: there is no file {name}: remove this line" for name, number in listed.items()]


def write(project: pathlib.Path) -> None:
    words = words_of_list((project / RULES).read_text())
    failing = [path.relative_to(project).as_posix() for path in files_of(project) if next(faults_of(path, words), None)]
    (project / LEFT).write_text(f"# Files whose prose does not pass {RULES} yet. Only ever remove lines.\n" +
                                "".join(f"{name}\n" for name in failing))
    print(f"{len(failing)} files in {LEFT}")


def self_test(project: pathlib.Path) -> list[str]:
    """What does not hold of the check: each text, alone in a project, must have a fault in the line given, or none for 0."""
    long = "word " * 26
    cases = [
        ("docs/a.md", "A short sentence.\n", 0, ""),
        ("docs/a.md", f"Fine.\n\n{long}end.\n", 3, "27 words"),
        ("docs/a.md", f"- Fine.\n- {long}\n  end.\n", 2, "27 words"),
        ("docs/a.md", f"```text\n{long}\n```\n", 0, ""),
        ("docs/a.md", f"`{long}` is one word. Code `is_nobody` is free.\n", 0, ""),
        ("docs/a.md", "Fine. Of these, two.\n", 1, "opens with 'Of'"),
        ("docs/a.md", "| a | What it does |\n|---|---|\n", 1, "opens with 'What'"),
        ("docs/a.md", "It is **handed\nout**.\n", 1, "'handed out'"),
        ("docs/decisions/a.md", "Nobody reads it.\n", 1, "'Nobody'"),
        ("README.md", "It answers a value.\n", 1, "'answers'"),
        ("include/a.hpp", '/// Returns it.\nconst char* a = "nobody // nobody";  ///< a name\n', 0, ""),
        ("include/a.hpp", "int a;\n/// Fine.\n/// What it is.\n", 2, "opens with 'What'"),
        ("include/a.hpp", "int a;  ///< nobody reads it\n", 1, "'nobody'"),
        ("include/a.h", "/* Fine.\n *\n * It is told.\n */\nint a;\n", 3, "'told'"),
        ("src/a.cpp", f"// {long}\n// end.\n", 1, "27 words"),
        ("src/a.cpp", "// needs: nobody\nnamespace a {}  // namespace nobody\n", 0, ""),
        ("tests/a.cpp", "// Nobody.\n", 0, ""),
    ]
    wrong = []
    for name, text, line, says in cases:
        with tempfile.TemporaryDirectory() as folder:
            top = pathlib.Path(folder)
            for path, content in ((RULES, (project / RULES).read_text()), (name, text)):
                (top / path).parent.mkdir(parents=True, exist_ok=True)
                (top / path).write_text(content)
            found = check(top)
            good = (len(found) == 1 and found[0].startswith(f"{name}:{line}: ") and says in found[0]) if line else not found
            if not good:
                wrong.append(f"{name} with {text!r}: {found or 'nothing found'}")
            # The list of files that are left: it excuses a fault, and must not hold what passes or is not there.
            (top / LEFT).parent.mkdir(parents=True, exist_ok=True)
            (top / LEFT).write_text(f"# files\n{name}\n")
            excused = check(top)
            if not (excused == [] if line else len(excused) == 1 and excused[0].startswith(f"{LEFT}:2: ")):
                wrong.append(f"{name} with {text!r}, listed: {excused}")
    return wrong


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    project, arguments = pathlib.Path(sys.argv[1]), sys.argv[2:]
    if arguments == ["--write"]:
        write(project)
        return 0
    if arguments == ["--self-test"]:
        wrong = self_test(project)
    elif arguments:
        words = words_of_list((project / RULES).read_text())
        wrong = [f"{name}:{line}: {says}" for name in arguments for line, says in faults_of(project / name, words)]
    else:
        wrong = check(project)
    print("\n".join(wrong) or "in order")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

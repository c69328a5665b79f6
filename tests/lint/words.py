"""Checks the wording of documentation, comments, docstrings and messages against words.tsv.

python -m tests.lint.words [FILE...]      prints `file:line: word -> what to write instead` for each finding

Text in backquotes is code and is not checked, and neither are fenced blocks of Markdown, recorded data, patches of
the kernel, and strings of tests. A string of the code is a message when three words in lower case follow each other.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORDS = Path(__file__).with_name("words.tsv")

LEFT_OUT = re.compile(
    r"""
    ^tests/data/.*(?<!\.md)$ | ^tests/golden/ | ^tests/lint/(words\.(tsv|py)|test_\w+\.py)$
    | ^kernel-patch/(samples/|config/|COPYING|.*\.patch$) | package-lock\.json$ | ^LICENSE$ | NOTICES\.md$
    """,
    re.X,
)
MESSAGE = re.compile(r"\b[a-z]+ [a-z]+ [a-z']+\b")
CODE_SPAN = re.compile(r"``.*?``|`[^`\n]*`")

# A line's number and its text.
Lines = Iterator[tuple[int, str]]


def rules() -> list[tuple[re.Pattern[str], str]]:
    """The patterns of words.tsv, and what to write instead."""
    found = []
    for line in WORDS.read_text().splitlines():
        if line and not line.startswith("#"):
            pattern, instead = line.split("\t")
            found.append((re.compile(rf"\b(?:{pattern})(?!\w)", re.I), instead))
    return found


def numbered(text: str, first: int = 1) -> Lines:
    """The lines of a text that begins at line `first`."""
    yield from enumerate(text.split("\n"), first)


def markdown(text: str) -> Lines:
    """What is outside fenced blocks, without the targets of links."""
    fence = None
    for number, line in numbered(text):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark and fence is None:
            fence = mark[1]
        elif mark and mark[1].startswith(fence or "") and not line.strip().strip("`~"):
            fence = None
        elif fence is None:
            yield number, re.sub(r"\]\([^)]*\)", "]", line)


def c_like(text: str, *, messages: bool, tests: str | None = None) -> Lines:
    """Comments of Rust, JavaScript and bpftrace, and on request messages.

    `tests` is the pattern that begins the tests at the end of a file. Their strings are not checked.
    """
    found = re.search(tests, text, re.M) if tests else None
    end = found.start() if found else len(text)
    token = r"""(?P<comment>//[^\n]*|/\*.*?\*/)
        |(?P<raw>b?r(?P<hashes>\#*)".*?"(?P=hashes))
        |(?P<string>b?"(?:\\.|[^"\\])*")
        |(?P<char>'(?:\\.|[^'\\\n])'|'(?=\w+\b(?!')))"""
    for match in re.finditer(token, text, re.S | re.X):
        first = text.count("\n", 0, match.start()) + 1
        if match["comment"]:
            yield from numbered(match["comment"].lstrip("/*!"), first)
        elif messages and match["string"] and match.start() < end and not match[0].startswith("b"):
            # A backslash at the end of a line continues the string.
            string = re.sub(r"\{[^{}]*\}", "{}", match["string"][1:-1])
            if MESSAGE.search(re.sub(r"\\\n\s*", "", string)):
                yield from numbered(string, first)


def python(text: str, *, messages: bool) -> Lines:
    """Comments and docstrings, and on request messages."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith("#!"):
            yield token.start[0], token.string[1:]
    tree = ast.parse(text)
    docstrings = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                docstrings.add(first.value)
                yield from numbered(first.value.value, first.value.lineno)
    if not messages:
        return
    parts = {
        part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            string = "".join(
                part.value if isinstance(part, ast.Constant) else "{}" for part in node.values
            )
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node not in docstrings | parts
        ):
            string = node.value
        else:
            continue
        # Strings with line ends are SQL, pages and tables.
        if "\n" not in string and MESSAGE.search(string):
            yield node.lineno, string


def marked(text: str, mark: str) -> Lines:
    """What follows the mark of a comment, at the start of a line or after a space."""
    for number, line in numbered(text):
        found = re.search(rf"(?:^|\s){mark}(?!!)(.*)", line)
        if found:
            yield number, found[1]


def prose(path: str, text: str) -> Lines:
    """The text of a file that people read as prose. Nothing for other files."""
    name = path.rsplit("/", 1)[-1]
    ending = name.rsplit(".", 1)[-1] if "." in name else name
    if ending == "md":
        return markdown(text)
    if ending == "rs":
        return c_like(text, messages="/fuzz/" not in path, tests=r"^#\[cfg\(test\)\]")
    if ending == "py":
        return python(text, messages=not path.startswith(("tests/", "tools/")))
    if (
        ending in ("js", "mjs", "bt", "css")
        or name.endswith(".bt.in")
        or path.startswith("bpf/parts/")
    ):
        return c_like(text, messages=False)
    if ending == "sql":
        return marked(text, "--")
    if ending in ("sh", "toml", "yml", "Makefile", "run", "in", "gitignore"):
        return marked(text, "#")
    return iter(())


def check(path: str, text: str) -> list[str]:
    """The findings in a file, one a line."""
    findings = []
    for number, line in sorted(prose(path, text)):
        line = CODE_SPAN.sub("` `", line)
        hits = [
            (*match.span(), instead)
            for pattern, instead in RULES
            for match in pattern.finditer(line)
        ]
        for begin, end, instead in sorted(hits, key=lambda hit: hit[:2]):
            # If a hit is part of a longer one, only the longer one is reported.
            if not any(a <= begin and end <= b and (a, b) != (begin, end) for a, b, _ in hits):
                findings.append(f"{path}:{number}: {line[begin:end]} -> {instead}")
    return findings


def sources() -> list[str]:
    """The files of the repository, also those that are not committed yet."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for path in sorted(set(listed.split("\0"))) if path and (ROOT / path).is_file()]


RULES = rules()


def main() -> int:
    """Prints the findings in the named files, or in all of the repository."""
    findings = []
    for path in sys.argv[1:] or [path for path in sources() if not LEFT_OUT.search(path)]:
        try:
            text = (ROOT / path).read_text()
        except UnicodeDecodeError:
            continue
        findings += check(path, text)
    print("\n".join(findings))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

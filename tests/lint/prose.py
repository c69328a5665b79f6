"""Finds sentences in Markdown that are hard to read.

python -m tests.lint.prose [FILE...]           `file:line: what -> what to do` for each finding; without FILE, in all pages
python -m tests.lint.prose --figures FILE...   words a sentence, and the shares of short sentences and of those that give a reason

Code, headings, links and text in backquotes are left out. A finding is advice: if the sentence is better unchanged, write it otherwise
and compare.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.lint.words import sources

ROOT = Path(__file__).parents[2]

REASON = re.compile(
    r"\b(because|so|since|while|although|though|unless|instead|therefore|for example|otherwise|rather than|which is why|when|if|but)\b",
    re.I,
)
LONGEST = 50
SHORT = 8
# As many short sentences in a row read as a telegram.
TELEGRAM = 4
# A paragraph of so many sentences should say why at least once.
UNREASONED = 5
CELL_WORDS = 30
OFS = 5


def paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """The paragraphs and items of lists, each with the number of its first line and in one line."""
    lines: list[str] = []
    first = 0
    is_code = False
    for number, line in enumerate([*text.split("\n"), ""], 1):
        if re.match(r"\s*(```|~~~)", line):
            is_code = not is_code
        if is_code or not line.strip() or re.match(r"\s*(```|~~~|\||#|>|<|!\[)", line):
            if lines:
                yield first, " ".join(lines)
            lines = []
            continue
        if lines and re.match(r"\s*([-*]|\d+\.)\s", line):
            yield first, " ".join(lines)
            lines = []
        if not lines:
            first = number
        lines.append(re.sub(r"^\s*(([-*]|\d+\.)\s+)?", "", line).strip())


def sentences(paragraph: str) -> list[str]:
    """The sentences of a paragraph, with code as one word and without the targets of links."""
    plain = re.sub(r"`[^`]*`", "X", paragraph)
    plain = re.sub(r"\]\([^)]*\)", "]", plain)
    found = re.split(r"(?<=[.!?])[*_]*\s+(?=[A-Z\"*\[])", plain)
    return [
        one for one in found if len(one.split()) >= 3 and one.rstrip("*_)").endswith(tuple(".!?:"))
    ]


def of_sentence(sentence: str) -> Iterator[str]:
    words = len(sentence.split())
    if words > LONGEST:
        yield f"{words} words in a sentence -> split it where a reader would breathe"
    if re.match(r"(\**(Of|That of|Those of)|What) ", sentence) and not sentence.endswith(
        ("?", ":")
    ):
        yield f"begins with `{sentence.split()[0]}` -> begin with the subject"
    if len(re.findall(r"\b(that|those|the one|the ones) of\b", sentence)) > 1:
        yield "several `that of` -> repeat the noun"
    if len(re.findall(r"\bof\b", sentence)) > OFS:
        yield "a pile of `of` -> make two sentences of it, or use verbs"


def of_paragraph(paragraph: str) -> Iterator[str]:
    found = sentences(paragraph)
    for sentence in found:
        for finding in of_sentence(sentence):
            yield f"{finding}: {' '.join(sentence.split()[:6])} ..."
    in_a_row = 0
    for sentence in found:
        in_a_row = (
            in_a_row + 1 if len(sentence.split()) <= SHORT and not REASON.search(sentence) else 0
        )
        if in_a_row == TELEGRAM:
            yield f"{TELEGRAM} short sentences in a row -> say how they follow from each other"
    if len(found) >= UNREASONED and not any(map(REASON.search, found)):
        yield f"{len(found)} sentences and no reason -> say why, or make a table of it"


def check(path: str, text: str) -> list[str]:
    """The findings in a page, one a line."""
    found = [
        (line, finding)
        for line, paragraph in paragraphs(text)
        for finding in of_paragraph(paragraph)
    ]
    for number, line in enumerate(text.split("\n"), 1):
        if not line.lstrip().startswith("|"):
            continue
        for cell in re.sub(r"`[^`]*`", "X", line).split("|"):
            if len(cell.split()) > CELL_WORDS and len(re.findall(r"[.!?](\s|$)", cell)) > 1:
                found.append((number, "a paragraph in a cell -> put it below the table"))
    return [f"{path}:{line}: {finding}" for line, finding in sorted(found)]


def figures(path: str, text: str) -> str:
    """How a page reads, in numbers. They count, they do not judge."""
    found = [one for _, paragraph in paragraphs(text) for one in sentences(paragraph)]
    if not found:
        return f"{path}: no sentences"
    words = [len(one.split()) for one in found]
    short = sum(number <= SHORT for number in words) / len(words)
    reason = sum(bool(REASON.search(one)) for one in found) / len(found)
    return f"{path}: {sum(words) / len(words):.1f} words a sentence, {short:.0%} short, {reason:.0%} with a reason"


def main() -> int:
    """Prints findings or figures."""
    names = sys.argv[1:]
    if names[:1] == ["--figures"]:
        print("\n".join(figures(name, Path(name).read_text()) for name in names[1:]))
        return 0
    pages = names or [name for name in sources() if name.endswith(".md")]
    found = [finding for name in pages for finding in check(name, (ROOT / name).read_text())]
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

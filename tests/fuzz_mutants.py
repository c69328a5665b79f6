"""Mutates the seeds of the fuzzers: `python -m tests.fuzz_mutants SEEDS OUT COUNT [SEED]`.

Writes COUNT inputs for each target, each a seed with a few changes. The inputs are the same on every
run and machine, so a run over them fails only because of a change in the code. Another SEED gives
other inputs.

OUT/TARGET holds all inputs of a target, each after its length in four bytes, least significant first,
because making a file for each would take longer than making the inputs.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable
from pathlib import Path

MAX_CHANGES = 4
NUMBER = re.compile(rb"\d+")
# Limits of integer types, and texts that are not integers.
NUMBERS = (
    b"0",
    b"1",
    b"-1",
    b"65536",
    b"4294967295",
    b"4294967296",
    b"9223372036854775807",
    b"9223372036854775808",
    b"18446744073709551615",
    b"18446744073709551616",
    b"99999999999999999999999",
    b"1.5",
    b"0x",
    b"",
)
BYTES = (
    b"\n",
    b"\r\n",
    b"\n\n",
    b" ",
    b"\t",
    b"\0",
    b"\xff",
    b"\xc3",
    b'"',
    b"\\",
    b"[",
    b"{",
    b"(",
    b"#",
    b"@",
    b":",
    b",",
    b"=",
)

Change = Callable[[random.Random, bytes, list[bytes]], bytes]


def _span(rng: random.Random, text: bytes) -> tuple[int, int]:
    first = rng.randrange(len(text) + 1)
    return first, min(len(text), first + rng.choice((1, 2, 4, 8, 30, 200)))


def lines(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    """Deletes, duplicates, moves or truncates a line."""
    parts = text.split(b"\n")
    at, target = rng.randrange(len(parts)), rng.randrange(len(parts))
    match rng.randrange(4):
        case 0:
            del parts[at]
        case 1:
            parts.insert(target, parts[at])
        case 2:
            parts.insert(target, parts.pop(at))
        case _:
            parts[at] = parts[at][: rng.randrange(len(parts[at]) + 1)]
    return b"\n".join(parts)


def number(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    """Replaces a number by another number of the text or by one of `NUMBERS`."""
    numbers = list(NUMBER.finditer(text))
    if not numbers:
        return text
    at = rng.choice(numbers)
    new = rng.choice(numbers).group() if rng.random() < 0.5 else rng.choice(NUMBERS)
    return text[: at.start()] + new + text[at.end() :]


def binary_number(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    """Overwrites one, two, four or eight bytes with a binary number."""
    width = rng.choice((1, 2, 4, 8))
    value = rng.choice(
        (0, 1, 2 ** (8 * width) - 1, 2 ** (8 * width - 1), rng.getrandbits(8 * width))
    )
    at = rng.randrange(len(text) + 1)
    order = "little" if rng.random() < 0.8 else "big"
    return text[:at] + value.to_bytes(width, order) + text[at + width :]


def insert(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    """Inserts one of `BYTES`."""
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(BYTES) + text[at:]


def cut(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    """Deletes a span, or everything from its start."""
    first, end = _span(rng, text)
    return text[:first] if rng.random() < 0.3 else text[:first] + text[end:]


def copy(rng: random.Random, text: bytes, others: list[bytes]) -> bytes:
    """Copies a span of this or another seed: inserts it, or overwrites as many bytes."""
    source = rng.choice(others) if rng.random() < 0.5 else text
    first, end = _span(rng, source)
    at = rng.randrange(len(text) + 1)
    span = source[first:end]
    return text[:at] + span + text[at + (len(span) if rng.random() < 0.5 else 0) :]


def splice(rng: random.Random, text: bytes, others: list[bytes]) -> bytes:
    """Joins the head of this seed and the tail of another one, in whole lines."""
    other = rng.choice(others)
    head = text.rfind(b"\n", 0, rng.randrange(len(text) + 1)) + 1
    return text[:head] + other[other.rfind(b"\n", 0, rng.randrange(len(other) + 1)) + 1 :]


def options(rng: random.Random, text: bytes, _: list[bytes]) -> bytes:
    """Replaces the options that a target reads from the last two bytes."""
    return text[:-2] + rng.randbytes(2)


CHANGES: tuple[Change, ...] = (lines, number, binary_number, insert, cut, copy, splice, options)


def main() -> int:
    seeds, out, count = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    seed = "".join(sys.argv[4:])
    out.mkdir(parents=True)
    for folder in sorted(path for path in seeds.iterdir() if path.is_dir()):
        rng = random.Random(folder.name + seed)
        texts = [path.read_bytes() for path in sorted(folder.iterdir())]
        with (out / folder.name).open("wb") as file:
            for i in range(count):
                text = texts[i % len(texts)]
                for _ in range(rng.randint(1, MAX_CHANGES)):
                    text = rng.choice(CHANGES)(rng, text, texts)
                file.write(len(text).to_bytes(4, "little") + text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

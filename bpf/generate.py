#!/usr/bin/env python3
"""Writes the recorders, bpf/*.bt, from the pieces in bpf/parts: bpftrace has no way to include one script in another.

bpf/generate.py            writes them
bpf/generate.py --check    says which are not up to date, and ends with 1 if there are any

A recorder is parts/NAME.bt.in. Lines in it that begin with `//:` are for this program:

//: include PART        the lines of parts/PART
//: each call           the lines up to `//: end`, once for each sync call, whose name takes the place of CALL
//: each N in 0 1 2     the same for other words; `each A:B in x:y` sets two
//: for 0.17            the lines up to `//: end`, in the variant for bpftrace 0.17 only
//: for new             the same for the variant for 0.23 and later

A recorder with lines for a version becomes two files, NAME.bt for 0.23 and later, and NAME-0.17.bt.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
CALLS = ["fsync", "fdatasync", "msync", "sync", "syncfs", "sync_file_range"]
OLD, NEW = "0.17", "new"


def block(lines: list[str], at: int) -> tuple[list[str], int]:
    """The lines from `at` to the matching `//: end`, and where it goes on after it."""
    depth, body = 1, []
    while True:
        line = lines[at]
        at += 1
        words = line.split()
        if words[:1] == ["//:"] and words[1] in ("each", "for"):
            depth += 1
        elif words == ["//:", "end"]:
            depth -= 1
            if depth == 0:
                return body, at
        body.append(line)


def expand(lines: list[str], values: dict[str, str]) -> list[str]:
    """The lines with what they ask for put in."""
    out: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        words = line.split()
        if words[:1] != ["//:"]:
            for name, value in values.items():
                line = line.replace(name, value)
            out.append(line)
        elif words[1] == "include":
            out += expand((HERE / "parts" / words[2]).read_text().splitlines(), values)
        elif words[1] == "each":
            body, at = block(lines, at)
            name, each = ("CALL", CALLS) if words[2] == "call" else (words[2], words[4:])
            for value in each:
                # Of `A:B in x:y` each half has its own value.
                pairs = dict(zip(name.split(":"), value.split(":"), strict=True))
                out += expand(body, values | pairs)
        elif words[1] == "for":
            body, at = block(lines, at)
            if words[2] == values["@VERSION@"]:
                out += expand(body, values)
        else:
            raise ValueError(f"what is {line!r}?")
    return out


def recorders() -> dict[Path, str]:
    """The text of each recorder."""
    made = {}
    for template in sorted((HERE / "parts").glob("*.bt.in")):
        name = template.name.removesuffix(".bt.in")
        text = template.read_text()
        has_old = any(line.startswith("//: for ") for line in text.splitlines())
        for version, suffix in [(NEW, ""), (OLD, "-0.17")] if has_old else [(NEW, "")]:
            # Where paths are not escaped in the kernel, bpftrace does it as with names of threads.
            paths = "" if name in ("patched", "stacks") else "# path hex\\n"
            values = {"@VERSION@": version, "@SCRIPT@": name, "@PATHS@": paths}
            head = f"// Written by bpf/generate.py from parts/{template.name}.\n"
            made[HERE / f"{name}{suffix}.bt"] = (
                head + "\n".join(expand(text.splitlines(), values)) + "\n"
            )
    return made


def main() -> int:
    """Writes or checks; returns the exit code."""
    stale = [
        path for path, text in recorders().items() if not path.exists() or path.read_text() != text
    ]
    if sys.argv[1:] == ["--check"]:
        for path in stale:
            sys.stdout.write(f"{path.name} is not what bpf/generate.py makes of parts/\n")
        return 1 if stale else 0
    if sys.argv[1:]:
        sys.stderr.write(__doc__ or "")
        return 2
    for path in stale:
        path.write_text(recorders()[path])
        sys.stdout.write(f"{path.name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

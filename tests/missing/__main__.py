"""`python -m tests.missing [--all] [--seed N] [RECORDING...]`: violations by what is missing, with an example of each."""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
from collections import defaultdict
from pathlib import Path

from tests.missing import lists
from tests.missing.drops import Loss
from tests.missing.oracle import Violation
from tests.missing.recordings import recordings
from tests.missing.run import ALL, MEMORY, QUICK, Result, try_all

Found = list[tuple[Loss, Violation]]


def described(found: Found, tried: int) -> str:
    """How often, and an example."""
    runs = len({(loss.recording.name, loss.detail) for loss, _ in found})
    silent = sum(violation.silent for _, violation in found)
    loss, violation = found[0]
    names = sorted({loss.recording.name for loss, _ in found})
    return (
        f"{runs} of {tried} losses, {len(found)} values, {silent} without a reason: {', '.join(names)}\n"
        f"      {loss.recording.name} without {loss.detail}, at {violation.where}: "
        f"{violation.expected!r} became {violation.actual!r}"
    )


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.missing", description=__doc__)
    parser.add_argument(
        "--all", action="store_true", help="each single event, and many random losses"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("recording", nargs="*")
    arguments = parser.parse_args()
    plan = dataclasses.replace(ALL if arguments.all else QUICK, seed=arguments.seed)
    result = Result()
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        for name, recording in recordings().items():
            if not arguments.recording or name in arguments.recording:
                try_all(recording, plan, Path(folder), result)
    tried: dict[tuple[str, str], int] = defaultdict(int)
    for loss in result.tried:
        tried[loss.recording.facts, loss.what] += 1
    groups: dict[tuple[str, str, str], Found] = defaultdict(list)
    for loss, violation in result.violations:
        groups[loss.recording.facts, loss.what, violation.column].append((loss, violation))
    out = []
    for (facts, what, column), found in sorted(groups.items()):
        out.append(f"{facts} | {what} | {column}: {described(found, tried[facts, what])}")
    for title, entries in (("cannot be shown", lists.limits()), ("known", lists.known())):
        out.append(f"\n{title}:")
        for entry in entries:
            found = result.covered.get(entry, [])
            head = f"  {', '.join(entry.facts)} | {' + '.join(entry.missing)} ({entry.scope}) | {', '.join(entry.columns)}"
            total = sum(
                entry.is_of(loss)
                for loss in result.tried
                if not {loss.recording.facts, loss.recording.name}.isdisjoint(entry.facts)
            )
            out.append(f"{head}: {described(found, total) if found else 'NOT SEEN'}")
    unexplained = len({(loss.recording.name, loss.detail) for loss, _ in result.violations})
    out.append(
        f"\n{len(result.tried)} losses, {len(result.refused)} logs refused,"
        f" {unexplained} losses with {len(result.violations)} violations that no list covers"
    )
    print("\n".join(out))


if __name__ == "__main__":
    main()

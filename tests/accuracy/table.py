#!/usr/bin/env python3
"""How far `report neighbours` is from what recordings with and without a neighbour differ by.

    .venv/bin/python -m tests.accuracy.table FOLDER [--set work|held] [--md]

FOLDER has the folders that job.sh made. The truth of a case is the wait of the log's syncs next to the neighbour, less that of as many syncs
without one. Each was measured twice, so it has four values, from which `noise` says how far the most distant one is from it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from syncline.inputs import Reading, opened
from syncline.report import neighbours, run_report
from syncline.report.run import run_query
from syncline.report.tables import SqlEngine

GROUP = "/neigh-{}"
# The neighbours whose bios the recorder leaves out: reads.
UNRECORDED = ("read", "nocache")
CASES = Path(__file__).parent / "cases.tsv"


@dataclass(frozen=True)
class Case:
    """Times are in s. `low_s`, `high_s`: the interval of the report, None without one."""

    name: str
    truth_s: float
    noise_s: float
    wait_s: float
    cost_s: float
    low_s: float | None
    high_s: float | None
    compared_s: float | None

    @property
    def is_close(self) -> bool:
        """Within a fifth of the truth; where the neighbour costs less than what the truth is uncertain by, within that."""
        return abs(self.cost_s - self.truth_s) <= max(0.2 * abs(self.truth_s), self.noise_s)

    @property
    def is_held(self) -> bool:
        """Whether the interval has the truth, or comes as near to it as the truth is certain."""
        if self.low_s is None or self.high_s is None:
            return False
        return self.low_s - self.noise_s <= self.truth_s <= self.high_s + self.noise_s

    @property
    def width(self) -> float | None:
        """That of the interval, as a part of the truth."""
        if self.low_s is None or self.high_s is None or self.truth_s <= 0:
            return None
        return (self.high_s - self.low_s) / self.truth_s

    @property
    def is_accepted(self) -> bool:
        narrow = self.is_held and self.width is not None and self.width <= 0.5
        return self.is_close or narrow


def rows_of_cases() -> Iterator[tuple[str, str, str]]:
    """Recording, neighbour and set of each case."""
    for line in CASES.read_text().splitlines():
        if not line.startswith("#"):
            name, _, _, kinds, held, _, _ = line.split("\t")
            for kind in kinds.split(","):
                yield name, kind, "held" if kind in held.split(",") else "work"


def truth(folder: Path, kind: str) -> tuple[float, float, float]:
    """What the neighbour cost all syncs next to it, how uncertain that is, and how long these waited."""
    phases: dict[int, list[int]] = {}
    neighbour_of: dict[int, str | None] = {}
    for call in calls_of(folder):
        if call["phase"]:
            phases.setdefault(call["phase"], []).append(call["end_ns"] - call["start_ns"])
            neighbour_of[call["phase"]] = call["neighbour"]
    means = {phase: sum(waits) / len(waits) for phase, waits in phases.items()}
    its = [phase for phase in phases if neighbour_of[phase] == kind]
    syncs = sum(len(phases[phase]) for phase in its)
    # The phase without a neighbour before each of its phases counts; all of them say how much it varies.
    costs = [means[phase] - means[phase - 1] for phase in its]
    cost = sum(costs) / len(costs)
    without = [means[phase] for phase in phases if neighbour_of[phase] is None]
    spread = max(without) - min(without)
    noise = max(spread, max(costs) - min(costs)) / 2
    wait = sum(sum(phases[phase]) for phase in its)
    return cost * syncs / 1e9, noise * syncs / 1e9, wait / 1e9


def calls_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "waits.jsonl").read_text().splitlines()]


def syncs_of(engine: SqlEngine, folder: Path, kind: str | None) -> list[int]:
    """The syncs of the log in the phases of a neighbour, or without one."""
    phases: dict[int, list[int]] = {}
    for call in calls_of(folder):
        if call["phase"] and call["neighbour"] == kind:
            phases.setdefault(call["phase"], []).extend((call["start_ns"], call["end_ns"]))
    during = " OR ".join(
        f"ts_ns BETWEEN {min(times)} AND {max(times)}" for times in phases.values()
    )
    sql = f"SELECT sync_id FROM syncline_sync WHERE cgroup = '/wal' AND ({during or 'FALSE'})"
    return [row[0] for row in run_query(engine, sql).rows]


def costs_of(engine: SqlEngine, folder: Path, kind: str | None) -> list[dict[str, Any]]:
    """The rows of the report for these syncs."""
    return neighbours.of_meant(engine, syncs_of(engine, folder, kind)).as_dicts()


def judged(folder: Path, kind: str, engine: SqlEngine) -> Case:
    its = GROUP.format(kind)
    chosen = [row for row in run_report(engine, "neighbours").as_dicts() if row["cgroup"] == its]
    if kind in UNRECORDED and not chosen:
        # One row has them all, so that of the syncs next to this one is taken.
        rows = costs_of(engine, folder, kind)
        chosen = [row for row in rows if row["kind"] == "unrecorded"]

    def total(*names: str) -> float | None:
        values: list[Any] = [row[name] for row in chosen for name in names if name in row]
        known = [value for value in values if value is not None]
        return sum(known) / 1e9 if known else None

    return Case(
        f"{folder.name} {kind}",
        *truth(folder, kind),
        total("cost_ns") or 0.0,
        total("low_ns"),
        total("high_ns"),
        total("compared_ns"),
    )


def shown(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="+")
    parser.add_argument("--set", choices=("work", "held"))
    options = parser.parse_args()
    names = ["case", "wait s", "truth s", "noise s", "cost s", "of truth", "low s", "high s", "width", "compared s", "close", "holds", "accepted"]  # fmt: skip
    print("| " + " | ".join(names) + " |")
    print("|---|" + "--:|" * 9 + "---|---|---|")
    accepted = cases = 0
    for name, kind, chosen in rows_of_cases():
        for parent in options.folder:
            folder = parent / name
            if options.set not in (None, chosen) or not (folder / "waits.jsonl").exists():
                continue
            with opened(str(folder), Reading()) as engine:
                case = judged(folder, kind, engine)
            cases, accepted = cases + 1, accepted + case.is_accepted
            ratio = f"{case.cost_s / case.truth_s:.2f}" if case.truth_s > 0 else "-"
            width = "-" if case.width is None else f"{case.width:.2f}"
            marks = ["yes" if one else "no" for one in (case.is_close, case.is_held, case.is_accepted)]  # fmt: skip
            values = [case.name, shown(case.wait_s), shown(case.truth_s), shown(case.noise_s), shown(case.cost_s), ratio, shown(case.low_s), shown(case.high_s), width, shown(case.compared_s), *marks]  # fmt: skip
            print("| " + " | ".join(values) + " |", flush=True)
    print(f"\n{accepted} of {cases} accepted. What it says of the log without a neighbour:\n")
    for name in dict.fromkeys(name for name, _, _ in rows_of_cases()):
        for parent in options.folder:
            folder = parent / name
            if (folder / "waits.jsonl").exists():
                with opened(str(folder), Reading()) as engine:
                    rows = costs_of(engine, folder, None)
                wait = sum(
                    call["end_ns"] - call["start_ns"]
                    for call in calls_of(folder)
                    if call["phase"] and call["neighbour"] is None
                )
                costs = [f"{row['process'] or row['kind']} {row['cgroup'] or ''} {row['cost_ns'] / 1e9:.2f} s" for row in rows if row["cost_ns"] > 0.01 * wait]  # fmt: skip
                print(f"- {name}, {wait / 1e9:.2f} s: {'; '.join(costs) or 'nobody'}", flush=True)


if __name__ == "__main__":
    main()

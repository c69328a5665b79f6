"""How far `syncline whatif` is off on simulated devices: recorded at some depths, predicted at others, where the truth is simulated too.

    python -m tests.accuracy.whatif [--seed N ...] [--device NAME ...]

Rows that are refused are rows too. The exit code is 1 if a figure is off by more than `WRONG`, because then `whatif` was
certain of what is not so.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.accuracy.devices import DEVICES, Load, simulate
from tests.test_commands import run

__all__ = ["WRONG", "Row", "rows"]

# Seeds below 100 were used while the models were built. The figures in the documentation are those of others.
SEEDS = (101, 102)
# (depth of the recording, depths of others that are fitted with it)
RECORDED = ((32, ()), (4, ()), (32, (1,)))
ASKED = (1, 2, 4, 8, 32)
# A figure that is further off than this is a fault.
WRONG = 0.3


@dataclass(frozen=True)
class Row:
    """One prediction: the average sync in ns, and the truth; None if `whatif` gives no figure, with the reason."""

    device: str
    seed: int
    recorded: str
    model: str
    asked: int
    truth_ns: float
    told_ns: float | None
    reason: str | None

    @property
    def error(self) -> float | None:
        """Returns the relative error."""
        return None if self.told_ns is None else self.told_ns / self.truth_ns - 1


def rows(seeds: Iterable[int] = SEEDS, names: Iterable[str] = tuple(DEVICES)) -> Iterator[Row]:
    """Yields a row for each device, seed, recording and depth."""
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            for seed in seeds:
                yield from _of(name, DEVICES[name], seed, Path(folder))


def _of(name: str, load: Load, seed: int, folder: Path) -> Iterator[Row]:
    truth: dict[int, float] = {}
    for depth in ASKED:
        truth[depth] = statistics.fmean(simulate(load, depth, seed).latencies_ns)
    logs = {}
    for depth in {one for own, also in RECORDED for one in (own, *also)}:
        logs[depth] = folder / f"{depth}.txt"
        logs[depth].write_text(simulate(load, depth, seed).text)
    for depth, also in RECORDED:
        more = [word for one in also for word in ("--also", str(logs[one]))]
        asked = ",".join(map(str, ASKED))
        done = run("whatif", logs[depth], *more, "--queue-depth", asked, "--dispatch", load.dispatch, "--format", "json")  # fmt: skip
        if done.returncode not in (0, 5):
            raise RuntimeError(done.stderr)
        found = json.loads(done.stdout)
        told = {one["setting"]: one for one in found["settings"] if one["kind"] == "what if"}
        used = [one["name"] for one in found["device_models"] if one["is_used"]]
        for one in ASKED:
            own = told.get(f"depth {one}", {})
            reason = own.get("unknown") or found["unknown"]
            recorded = " and ".join(map(str, (depth, *also)))
            yield Row(name, seed, recorded, used[0] if used else "none", one, truth[one], own.get("avg_ns"), reason)  # fmt: skip


def _text(all_rows: list[Row]) -> str:
    """Returns a table: a line for each device and recording, a column for each depth, the worst seed in each cell."""
    lines = [
        "| device | recorded at | found | " + " | ".join(f"depth {one}" for one in ASKED) + " |",
        "|---|--:|---|" + "--:|" * len(ASKED),
    ]
    for device, recorded in dict.fromkeys((one.device, one.recorded) for one in all_rows):
        own = [one for one in all_rows if (one.device, one.recorded) == (device, recorded)]
        models = ", or ".join(dict.fromkeys(one.model for one in own))
        cells = []
        for asked in ASKED:
            here = [one for one in own if one.asked == asked]
            errors = [one.error for one in here if one.error is not None]
            refused = len(here) - len(errors)
            worst = f"{100 * max(errors, key=abs):+.0f} %" if errors else ""
            cells.append(
                worst if not refused else f"{worst}{', ' if worst else ''}-" if errors else "-"
            )
        lines.append(f"| {device} | {recorded} | {models} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    """Prints the table, and how many figures there are and how far off they are."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--device", nargs="+", default=list(DEVICES), choices=list(DEVICES))
    given = parser.parse_args()
    found = list(rows(given.seed, given.device))
    sys.stdout.write(_text(found) + "\n\n")
    errors = sorted(abs(one.error) for one in found if one.error is not None)
    wrong = [one for one in found if one.error is not None and abs(one.error) > WRONG]
    sys.stdout.write(
        f"{len(errors)} of {len(found)} have a figure; median error {statistics.median(errors):.1%},"
        f" 90th percentile {errors[int(0.9 * (len(errors) - 1))]:.1%}, largest {errors[-1]:.1%}; wrong by more than {WRONG:.0%}: {len(wrong)}\n"
    )
    for one in wrong:
        sys.stdout.write(f"wrong: {one}\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

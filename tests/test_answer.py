"""What `syncline report INPUT` says first: its figures against the tables, in both engines, and its words."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syncline import _core
from syncline.inputs import Reading, opened
from syncline.recordings import Filter
from syncline.render import answer as rendered
from syncline.report import answer
from syncline.report.answer import LAST, RESIDUE, UNKNOWN, Answer

from tests.coretools import ROOT, Rows, tables
from tests.test_commands import ok

DATA = ROOT / "tests" / "data"
RECORDINGS = [
    *("thesis/parallel4.log", "thesis/small4.log", "thesis/empty.log", "thesis/rename.log"),
    *("dynamic-events/ext4.dat.gz", "dynamic-events/btrfs.txt.gz", "tracecmd/small4.dat"),
    *("strace/small4.log", "blktrace/small4.blkparse.txt.gz"),
]
Item = tuple[str | None, str | None]


def read(path: Path | str, engine: str) -> Answer:
    with opened(str(path), Reading(), engine=engine) as opened_engine:
        return answer.read(opened_engine)


def covered(spans: list[tuple[int, int]]) -> int:
    """The time that at least one of the spans covers."""
    total, until = 0, None
    for start, end in sorted(spans):
        if until is None or start > until:
            total, until = total + end - start, end
        elif end > until:
            total, until = total + end - until, end
    return total


def by_item(syncs: Rows, *, folders: bool) -> dict[Item, Rows]:
    found: dict[Item, Rows] = defaultdict(list)
    for row in syncs:
        path = row["path"]
        if folders and path is not None:
            path = path[: path.rfind("/") + 1]
        found[path, row["comm"]].append(row)
    return found


def times(items: dict[Item, Rows]) -> list[int]:
    return sorted((sum(row["dur_ns"] for row in rows) for rows in items.values()), reverse=True)


def check_total(total: Any, syncs: Rows) -> None:
    known = [row for row in syncs if row["dur_ns"] is not None]
    spans = [(row["ts_ns"], row["ts_ns"] + row["dur_ns"]) for row in known]
    assert (total["syncs"], total["known"]) == (len(syncs), len(known))
    if not known:
        assert (total["time_ns"], total["wall_ns"]) == (None, None)
        return
    assert total["runs"] == 1
    # As `unique_files` of the summary has it: a file without a path counts by its inode.
    names = {row["path"] or (row["ino"] and f"{row['dev']}:{row['ino']}") for row in syncs}
    assert total["files"] == len(names - {None})
    assert total["threads"] == len({row["tid"] for row in syncs} - {None})
    assert total["time_ns"] == sum(end - start for start, end in spans)
    assert total["wall_ns"] == covered(spans)
    # A sync whose end is not known reaches from its begin to an unknown time.
    ends = [row["ts_ns"] + (row["dur_ns"] or 0) for row in syncs]
    assert total["span_ns"] == max(ends) - min(row["ts_ns"] for row in syncs)


def check_worst(worst: list[Any], known: Rows, phases: dict[int, Counter[str]]) -> None:
    items = by_item(known, folders=False)
    whole = sum(row["dur_ns"] for row in known)
    if 4 * sum(times(items)[:3]) < whole:
        items = by_item(known, folders=True)
    assert [row["time_ns"] for row in worst] == times(items)[:3]
    for row in worst:
        rows = items[row["path"], row["comm"]]
        assert row["time_ns"] == sum(one["dur_ns"] for one in rows)
        assert row["max_ns"] == max(one["dur_ns"] for one in rows)
        assert (row["syncs"], row["files"]) == (
            len(rows),
            len({one["path"] for one in rows} - {None}),
        )
        assert row["threads"] == len({one["tid"] for one in rows} - {None})
        sums: Counter[str] = Counter()
        for one in rows:
            sums.update(phases.get(one["sync_id"], {}))
        assert row["phase_ns"] == (max(sums.values()) if sums else None)
        assert row["phase"] is None or sums[row["phase"]] == row["phase_ns"]


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_figures_are_those_of_the_tables(tmp_path: Path, name: str) -> None:
    _core.convert([str(DATA / name)], f"{tmp_path}/tables/")
    _core.convert([str(DATA / name)], f"{tmp_path}/out.pftrace")
    found = read(tmp_path / "tables", "duckdb")
    assert read(tmp_path / "out.pftrace", "embedded") == found
    of_run = tables(tmp_path / "tables")
    known = [row for row in of_run["sync"] if row["dur_ns"] is not None]
    phases: dict[int, Counter[str]] = defaultdict(Counter)
    for row in of_run["phase"]:
        phases[row["sync_id"]][row["phase"]] += row["dur_ns"]
    check_total(found.total, of_run["sync"])
    check_worst(found.worst, known, phases)
    sums = sum(phases.values(), Counter())
    unknown = sum(row["dur_ns"] for row in known) - sums.total()
    parts = {**sums, UNKNOWN: unknown} if sums else {}
    assert found.phases == {phase: ns for phase, ns in parts.items() if ns}
    last = [phase for phase in LAST if phase in found.phases]
    assert not last or list(found.phases)[-len(last) :] == last
    if not known:
        assert found.slowest is None
        return
    slowest = found.slowest
    assert slowest is not None
    assert slowest["dur_ns"] == max(row["dur_ns"] for row in known)
    assert slowest["sync_id"] in {r["sync_id"] for r in known if r["dur_ns"] == slowest["dur_ns"]}
    its = phases.get(slowest["sync_id"])
    assert slowest["phase_ns"] == (max(its.values()) if its else None)


def test_two_runs_add_up(tmp_path: Path) -> None:
    for run, name in (("a", "thesis/parallel4.log"), ("b", "thesis/empty.log")):
        _core.convert([str(DATA / name)], f"{tmp_path}/runs/{run}/")
    both = read(tmp_path / "runs", "duckdb")
    parts = [read(tmp_path / "runs" / run, "duckdb") for run in "ab"]
    for column in ("runs", "syncs", "known", "threads", "time_ns", "wall_ns", "span_ns"):
        assert both.total[column] == sum(part.total[column] for part in parts), column
    for phase, ns in both.phases.items():
        assert ns == sum(part.phases.get(phase, 0) for part in parts)
    assert "in 2 runs" in ok("report", tmp_path / "runs")


SHARES = st.dictionaries(
    st.sampled_from(["device", "queue", "commit wait", "flush", "cpu wait", *LAST]),
    st.integers(1, 10**12),
    min_size=1,
)


@given(SHARES, st.integers(20, 200))
def test_the_bar_is_to_scale(sums: dict[str, int], width: int) -> None:
    order = sorted(
        sums, key=lambda phase: (LAST.index(phase) if phase in LAST else -1, -sums[phase])
    )
    bar = rendered.bar({phase: sums[phase] for phase in order}, width)
    assert len(bar) <= width
    parts = bar.strip("|").split("|")
    whole = sum(sums.values())
    shown = [phase for phase in order if sums[phase] * (width - 2) >= 2 * whole]
    names = [part.rstrip() for part in parts]
    others = len(parts) - len(shown)
    assert others in (0, 1)
    for phase in shown:
        name = "not explained" if phase == RESIDUE else phase
        size = next(len(p) + 1 for p, n in zip(parts, names, strict=True) if name.startswith(n))
        # What has no room is spread over the others, or is one part of its own.
        assert abs(size - sums[phase] / whole * (width - 2)) <= 4


def test_the_words(tmp_path: Path) -> None:
    text = ok("report", DATA / "thesis" / "parallel4.log")
    lines = text[text.index("80 syncs") :].splitlines()
    assert lines[0].startswith("80 syncs of 1 file by 4 threads waited 751 ms.")
    assert re.match(
        r"Where 751 ms went: 82\.3 % after completion, .*; 8\.4 % is not explained;"
        r" 2\.6 % is unknown\.",
        lines[2],
    )
    assert "  1. /run/mnt/parallel.dat, wl (4 threads): 751 ms (100.0 %) in 80 syncs" in lines[6]
    assert lines[8].startswith("Slowest: fsync of /run/mnt/parallel.dat by wl: 41.8 ms")
    assert lines[9] == "Others at the device: not recorded."
    small = ok("report", DATA / "thesis" / "small4.log")
    assert "by folder and name" in small
    assert "/run/mnt/s4/ (100 files), wl (4 threads)" in small
    calls = ok("report", DATA / "strace" / "small4.log")
    assert "What they waited for is not recorded" in calls
    nothing = ok("report", DATA / "blktrace" / "small4.blkparse.txt.gz")
    assert "The input has no sync request." in nothing
    # Programs get the summary, as with its name.
    log = DATA / "thesis" / "parallel4.log"
    assert ok("report", log, "--format", "csv") == ok("report", log, "summary", "--format", "csv")


def test_a_return_that_comes_late_is_named() -> None:
    """The summary's latency is that of the call, which ends later than the sync if the thread waits for a CPU."""
    whole = read(DATA / "thesis" / "small4.log", "duckdb")
    assert whole.slowest
    assert "until the call returned" not in rendered.sentences(whole)["slowest"]
    late = whole.slowest | {"syscall_ns": whole.slowest["dur_ns"] + 30_000_000}
    said = rendered.sentences(replace(whole, slowest=late))["slowest"]
    assert ", and 30 ms more until the call returned (sync_id " in said
    unknown = whole.slowest | {"syscall_ns": None}
    assert "until the call" not in rendered.sentences(replace(whole, slowest=unknown))["slowest"]


def test_a_filter_hides_others_at_the_device(tmp_path: Path) -> None:
    """It leaves out the bios of other syncs, so that nobody was ahead cannot be said."""
    recording = DATA / "dynamic-events" / "ext4.dat.gz"
    every = "Others at the device: python3, for .../x/a/b/f0-4, was ahead of 2 of the 10 slowest"
    assert every in ok("report", recording)
    _core.convert([str(recording)], f"{tmp_path}/tables/")
    syncs = tables(tmp_path / "tables")["sync"]
    slowest = max(row["dur_ns"] for row in syncs if row["dur_ns"] is not None)
    one = ok("report", recording, "--min-latency", f"{slowest}ns")
    assert "1 sync of 1 file" in one
    assert "nobody" not in one
    assert (
        "Others at the device: not known for other syncs, because the filter leaves out their bios;"
        " without it: syncline report INPUT bystanders\n"
    ) in one
    # A bystander among the syncs that pass is named, and may not be all.
    most = ok("report", recording, "--comm", "python3")
    assert every in most
    assert " The filter leaves out the bios of other syncs; without it:" in most
    nothing = ok("report", recording, "--path", "/nope")
    assert f"No sync passes the filter; the input has {len(syncs)}, calls" in nothing
    assert "no sync request" not in nothing
    # A trace that was converted with a filter says the same, in both engines.
    Reading(filter=Filter(path="/nope")).convert([str(recording)], f"{tmp_path}/x.pftrace")
    for engine in ("duckdb", "embedded"):
        found = read(tmp_path / "x.pftrace", engine)
        assert (found.is_filtered, found.left_out) == (True, len(syncs))


def test_a_name_cannot_move_the_cursor() -> None:
    found = read(DATA / "thesis" / "parallel4.log", "duckdb")
    bad = {**found.worst[0], "path": "/a\x1b[2J", "comm": "w\n1"}
    text = rendered.render(replace(found, worst=[bad]), ["summary"])
    assert "/a\\x1b[2J, w\\n1" in text

"""What `syncline report INPUT` says first: its figures against the tables, in both engines, and its words."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syncline import _core, terminal
from syncline.advice import with_advice
from syncline.inputs import Reading, opened
from syncline.recordings import Filter
from syncline.render import answer as rendered
from syncline.render.human import text
from syncline.render.phase_words import meaning
from syncline.report import answer, catalogue
from syncline.report.answer import LAST, RESIDUE, UNKNOWN, Answer
from syncline.ui import view

from tests import known_truth
from tests.coretools import ROOT, Rows, tables
from tests.test_advice import Log
from tests.test_commands import ok, run

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
    for folder, name in (("a", "thesis/parallel4.log"), ("b", "thesis/empty.log")):
        _core.convert([str(DATA / name)], f"{tmp_path}/runs/{folder}/")
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
    said = ok("report", DATA / "thesis" / "parallel4.log")
    lines = said[said.index("80 syncs") :].splitlines()
    assert lines[0].startswith("80 syncs of 1 file by 4 threads waited 751 ms.")
    assert re.match(
        r"Where 751 ms went: 82\.3 % after completion, .*; 8\.4 % is not explained;"
        r" 2\.6 % is unknown\.",
        lines[2],
    )
    # The thesis has no events of commits and flushes, so they are in what came after the last bio.
    assert lines[4] == (
        "  after completion: the commit of the file system and the cache flush, which this recording does not separate"
    )
    (first,) = (line for line in lines if line.startswith("  1."))
    assert "/run/mnt/parallel.dat, wl (4 threads): 751 ms (100.0 %) in 80 syncs" in first
    (slowest,) = (line for line in lines if line.startswith("Slowest: "))
    assert slowest.startswith("Slowest: fsync of /run/mnt/parallel.dat by wl: 41.8 ms")
    assert "Neighbours: not recorded." in lines
    small = ok("report", DATA / "thesis" / "small4.log")
    assert "by folder and name" in small
    assert "/run/mnt/s4/ (100 files), wl (4 threads)" in small
    calls = ok("report", DATA / "strace" / "small4.log")
    assert "What they waited for is not recorded" in calls
    nothing = ok("report", DATA / "blktrace" / "small4.blkparse.txt.gz")
    assert (
        "has no event of a sync or a sync call, so it does not show whether there were" in nothing
    )
    assert "no sync request" not in nothing
    # CSV holds one table.
    log = DATA / "thesis" / "parallel4.log"
    assert ok("report", log, "--format", "csv") == ok("report", log, "summary", "--format", "csv")


def test_every_phase_has_words() -> None:
    """The phases are those of the core, as sql/phase_colours.json has them; a test of the core compares these."""
    phases = json.loads((ROOT / "sql" / "phase_colours.json").read_text())
    assert len(phases) > 20
    for phase in (*phases, *LAST):
        assert meaning(phase, list(phases)), phase
    # Where commits and flushes are phases of their own, nothing of them hides after the last bio.
    assert "separate" not in meaning("after completion", list(phases))
    assert meaning("after completion", ["commit wait"]).startswith("the cache flush, which")


@pytest.mark.parametrize("name", ["thesis/small4.log", "dynamic-events/ext4.dat.gz", "blktrace/small4.blkparse.txt.gz"])  # fmt: skip
def test_the_answer_ends_with_commands_that_run(name: str) -> None:
    log = DATA / name
    said = ok("report", log)
    commands = re.findall(r"^  syncline (.*?)   ", said.partition("Go on with\n")[2], re.M)
    assert len(commands) == 2
    for command in commands:
        words = command.split()
        if words[0] == "open":
            with opened(str(log), Reading()) as engine:
                assert engine.query(view.select(int(words[-1]))).rows
            assert "--sync" in ok("open", "--help")
        else:
            ok(*words)
    # No command names a placeholder where the input has a name.
    assert "INPUT" not in said


def test_the_answer_as_data_and_as_markdown() -> None:
    log = DATA / "thesis" / "small4.log"
    data = json.loads(ok("report", log, "--format", "json"))
    assert data["input"] == str(log)
    assert data["total"]["syncs"] == 100
    assert sum(data["phases_ns"].values()) == data["total"]["time_ns"]
    # The workload writes and syncs 100 files of 4 KiB, one after the other.
    assert data["advice"]["finding"] == "small-files"
    assert (data["advice"]["syncs"], data["advice"]["of_syncs"]) == (100, 100)
    assert data["sentences"]["advice"].startswith("To change in the program: 100 of 100 syncs")
    assert [step["command"].split()[1] for step in data["next"]] == ["open", "report"]
    markdown = ok("report", log, "--format", "md")
    assert markdown.count("```") == 4
    assert data["caveats"]
    assert f"> **Warning:** {data['caveats'][0]}" in markdown
    assert data["sentences"]["total"] in markdown


def test_causes_are_data(tmp_path: Path) -> None:
    """Who the neighbour was is known, because the recording started it."""
    case = known_truth.unpacked("postgres-neighbour", tmp_path)
    data = json.loads(ok("report", case, "--format", "json"))
    first = data["causes"][0]
    assert (first["finding"], first["process"], first["cgroup"]) == ("neighbour", "neighbour", "/neighbour.slice")  # fmt: skip
    assert first["share"] == pytest.approx(data["neighbours"][0]["share"])
    assert data["next"][1]["command"].endswith(" neighbours")


def test_lines_on_a_terminal_break_between_words() -> None:
    line = "  1. /a/very/long/path/that/is/longer/than/the/terminal/is/wide, wl: 751 ms in 80 syncs"
    broken = terminal.wrapped(line, 40)
    assert "".join(broken).replace(" ", "") == line.replace(" ", "")
    assert [one.strip() for one in broken] == ["1.", line.split()[1], "wl: 751 ms in 80 syncs"]
    assert terminal.wrapped(line, None) == [line]


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


def test_a_filter_hides_no_neighbour(tmp_path: Path) -> None:
    recording = DATA / "dynamic-events" / "ext4.dat.gz"
    # All syncs are of one program, so one sync of it has no neighbour either.
    assert (
        "Neighbours: nobody who is recorded delayed these syncs at the device or in the journal by 1 % of their time."
        in ok("report", recording)
    )
    _core.convert([str(recording)], f"{tmp_path}/tables/")
    syncs = tables(tmp_path / "tables")["sync"]
    slowest = max(row["dur_ns"] for row in syncs if row["dur_ns"] is not None)
    one = ok("report", recording, "--min-latency", f"{slowest}ns")
    assert "1 sync of 1 file" in one
    assert "The filter chose whose wait is meant; it hides no neighbour." in one
    nothing = ok("report", recording, "--path", "/nope")
    assert f"No sync passes the filter; the input has {len(syncs)}, calls" in nothing
    assert "no sync request" not in nothing
    # A trace that was converted with a filter does not have the others, which it says in both engines.
    Reading(filter=Filter(path="/nope")).convert([str(recording)], f"{tmp_path}/x.pftrace")
    for engine in ("duckdb", "embedded"):
        found = read(tmp_path / "x.pftrace", engine)
        assert (found.is_filtered, found.has_others) == (True, False)
        assert found.left_out == len(syncs)
    Reading(filter=Filter(min_latency_ns=slowest)).convert(
        [str(recording)], f"{tmp_path}/one.pftrace"
    )
    assert "the filter left out are not in this input" in ok("report", tmp_path / "one.pftrace")


BLOCK_ONLY = """\
writer  910 [000]   100.000100: block:block_rq_insert: 259,0 WS 4096 () 1000 + 8 [writer]
writer  910 [000]   100.000110: block:block_rq_issue: 259,0 WS 4096 () 1000 + 8 [writer]
swapper     0 [000]   100.010110: block:block_rq_complete: 259,0 WS () 1000 + 8 [0]
kworker/1:1   333 [001]   100.020100: block:block_rq_insert: 259,0 W 65536 () 9000 + 128 [kworker/1:1]
kworker/1:1   333 [001]   100.020110: block:block_rq_issue: 259,0 W 65536 () 9000 + 128 [kworker/1:1]
swapper     0 [000]   100.050110: block:block_rq_complete: 259,0 W () 9000 + 128 [0]
"""
FLUSH = """\
259,0    1        1     0.000000000  1234  Q FWS [jbd2/dm-4-8]
259,0    1        2     0.000001000  1234  G FWS [jbd2/dm-4-8]
259,0    1        3     0.000010000  1234  D  FN [jbd2/dm-4-8]
259,0    1        4     0.100010000     0  C  FN 0 [0]
259,0    1        5     0.200000000  1234  Q WFS 1000 + 8 [jbd2/dm-4-8]
259,0    1        6     0.200010000  1234  D WFS 1000 + 8 [jbd2/dm-4-8]
259,0    1        7     0.300010000     0  C WFS 1000 + 8 [0]
"""


@pytest.mark.parametrize("engine", ["duckdb", "embedded"])
@pytest.mark.parametrize("recorded", [BLOCK_ONLY, FLUSH], ids=["perf", "blkparse"])
def test_figures_of_syncs_are_null_where_no_sync_can_be_recorded(
    tmp_path: Path, recorded: str, engine: str
) -> None:
    """The block layer does not say who waits, so 0 syncs, or bios of the background, would be a guess."""
    log = tmp_path / "log.txt"
    log.write_text(recorded)
    rows = json.loads(ok("report", log, "summary", "--format", "json", "--engine", engine))["rows"]
    assert rows
    of_block_layer = {"runs", "failed_bios", "losses"}
    known = {row["metric"] for row in rows if row["value"] is not None}
    assert known == of_block_layer
    assert {row["metric"] for row in rows if row["known"] is not None} == {"failed_bios"}
    reports = ok("report", log, "amount", "empty", "threads", "--engine", engine)
    assert reports.count("No rows: it has no event of a sync or a sync call, so whether") == 3


def test_an_input_of_two_runs_counts_the_syncs_of_the_one_that_shows_them(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text(BLOCK_ONLY)
    _core.convert([f"{tmp_path}/log.txt"], f"{tmp_path}/runs/block/")
    _core.convert([str(DATA / "thesis" / "parallel4.log")], f"{tmp_path}/runs/syncs/")
    rows = json.loads(ok("report", tmp_path / "runs", "summary", "--format", "json"))["rows"]
    values = {(row["metric"], row["scope"]): row["value"] for row in rows}
    assert values["runs", "all"] == 2
    assert values["syncs", "all"] == 80
    # Whose the bios of the other run are is not known, so neither is their sum.
    assert values["background_bios", "all"] is None


def test_an_input_of_the_block_layer_says_what_took_longest(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text(BLOCK_ONLY)
    requests = ok("report", log)
    # From the insert to the completion: 100.05011 s - 100.0201 s. block_rq_* events are of requests, which may hold several bios.
    assert (
        "with 2 requests of the block layer, 68 KiB; longest for kworker/1:1 (30 ms)." in requests
    )
    assert "The longest request took 30 ms: a write of 64 KiB by kworker/1:1" in requests
    assert "bio," not in requests
    assert " flush" not in requests
    log.write_text(FLUSH)
    flushes = ok("report", log)
    # The flush took 100.01 ms, and both bios together 200.02 ms.
    assert "The longest bio took 100 ms: a flush by jbd2/dm-4-8" in flushes
    assert "1 flush took 100 ms, which is 50.0 % of the time from submit to completion" in flushes


ONE_END = """\
# tracer: nop
              wl-100   [000] .....    20.500000: ext4_sync_file_enter: dev 254,16 ino 13 parent 2 datasync 0
              wl-100   [000] .....    30.500000: ext4_sync_file_enter: dev 254,16 ino 14 parent 2 datasync 0
              wl-100   [000] .....    30.502000: ext4_sync_file_exit: dev 254,16 ino 14 ret 0
"""


def test_a_sync_of_unknown_length_may_be_the_slowest(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text(ONE_END)
    one = ok("report", log)
    assert "Slowest: a sync of inode 14 on 254,16 by wl: 2 ms" in one
    assert " The sync of unknown length may have been slower.\n" in one
    two = log.read_text().replace("ino 13", "ino 12", 1).splitlines(keepends=True)
    log.write_text("".join([*two[:2], two[1].replace("wl-100", "wl-101"), *two[2:]]))
    assert " Any of the 2 of unknown length may have been slower.\n" in ok("report", log)
    assert "unknown length" not in ok("report", DATA / "thesis" / "parallel4.log")


def test_without_bios_waits_and_calls_nothing_is_attributed(tmp_path: Path) -> None:
    """A share of 100 % would praise a recording that has nothing to attribute."""
    log = tmp_path / "log.txt"
    log.write_text(ONE_END)
    for input in (log, DATA / "strace" / "small4.log"):
        rows = json.loads(ok("report", input, "summary", "--format", "json"))["rows"]
        found = [row for row in rows if row["metric"] == "attribution_share"]
        syncs = 2 if input == log else 100
        assert [(row["value"], row["known"], row["syncs"]) for row in found] == [
            (None, 0, syncs)
        ] * 3


def test_the_example_of_a_loss_is_the_first_one_and_has_its_time(tmp_path: Path) -> None:
    """Two requests lose their end. That of thread 101 is noticed when its next one begins, the other one at the end of the log."""
    enter = (
        "wl-{}   [000] .....    {}: ext4_sync_file_enter: dev 254,16 ino {} parent 2 datasync 0\n"
    )
    exit = "wl-{}   [000] .....    {}: ext4_sync_file_exit: dev 254,16 ino {} ret 0\n"
    lines = [
        enter.format(99, "19.000000", 11) + exit.format(99, "19.100000", 11),
        enter.format(100, "20.000000", 12),
        enter.format(101, "21.000000", 13),
        enter.format(101, "22.000000", 14) + exit.format(101, "22.500000", 14),
    ]
    log = tmp_path / "log.txt"
    log.write_text("# tracer: nop\n" + "".join(lines))
    rows = json.loads(ok("report", log, "losses", "--format", "json"))["rows"]
    (loss,) = (row for row in rows if row["reason"] == "end_missing")
    assert (loss["count"], loss["first_ts_ns"], loss["after_ns"]) == (2, 20 * 10**9, 10**9)
    assert loss["example"].startswith(f"{log}:4: ")


def test_what_failed_comes_first() -> None:
    said = ok("report", DATA / "strace" / "failed.log")
    assert said.startswith("FAILED: 11 of 21 syncs failed (ENOSPC 6, EIO 3, EINVAL 2): their data")
    assert said.count("11 of 21 syncs failed") == 1
    assert "FAILED" not in ok("report", DATA / "thesis" / "parallel4.log")


def test_a_wall_clock_time_is_a_date() -> None:
    # The line of the slowest sync begins at 1795196964.542266 s of the epoch.
    assert "at 2026-11-20 17:49:24.542266 UTC)" in ok("report", DATA / "strace" / "small4.log")
    assert text(999_999_999_999_999_999, "time") == "1,000,000,000.000000 s"
    assert text(10**18, "time") == "2001-09-09 01:46:40.000000 UTC"
    assert text(1_795_196_964_999_999_600, "time") == "2026-11-20 17:49:25.000000 UTC"
    assert text(20_500_000_000, "time") == "20.500000 s"


def test_a_name_cannot_move_the_cursor() -> None:
    found = read(DATA / "thesis" / "parallel4.log", "duckdb")
    bad = {**found.worst[0], "path": "/a\x1b[2J", "comm": "w\n1"}
    text = rendered.render(replace(found, worst=[bad]), "x.log", can_be_shown=True)
    assert "/a\\x1b[2J, w\\n1" in text


def log_of(tmp_path: Path, log: Log, name: str = "x.txt") -> list[Answer]:
    """The answer of a log, from both engines."""
    (tmp_path / name).write_text(log.text())
    _core.convert([str(tmp_path / name)], f"{tmp_path}/tables/")
    _core.convert([str(tmp_path / name)], f"{tmp_path}/out.pftrace")
    return [read(tmp_path / "tables", "duckdb"), read(tmp_path / "out.pftrace", "embedded")]


@pytest.mark.parametrize(
    ("busy_until", "idle_us"),
    [
        # The device does nothing while each bio is queued for 2000 us, and takes 100 us for it: 6000 - 300 in three syncs.
        (None, 5700),
        # A neighbour keeps it busy for 1900 us of each queue: 6000 - 300 - 5700.
        (1950, None),
    ],
)
def test_a_queue_at_an_idle_device_is_not_the_device(
    busy_until: int | None, idle_us: int | None, tmp_path: Path
) -> None:
    log = Log()
    for number in range(3):
        at = 1_000_000 + 10_000 * number
        log.sync(at, "d/a", 5, (number,), length=2100)
        # The bio was submitted at 10, at this sector.
        sector = 8 * (500 + number)
        log.add(at + 2010, "kworker/0:1-50", f"block_rq_issue: 254,16 WS 4096 () {sector} + 8 [kworker/0:1]")  # fmt: skip
        if busy_until:
            log.bio(at + 40, "dd-20", 2049, "iomap_dio_bio_end_io", length=busy_until - 40)
            sector = 900_000 + 8 * log.bios
            log.add(at + 50, "dd-20", f"block_rq_issue: 254,16 WS 4096 () {sector} + 8 [dd]")
    first, second = log_of(tmp_path, log)
    assert first.idle_queue == second.idle_queue
    assert first.phases["queue"] == 3 * 2_000_000
    if idle_us is None:
        assert first.idle_queue is None
        return
    assert first.idle_queue is not None
    assert (first.idle_queue["queue_ns"], first.idle_queue["idle_ns"]) == (6_000_000, idle_us * 1000)  # fmt: skip
    said = rendered.sentences(first)["phases"]
    assert "no recorded bio for at least 5.7 ms of the 6 ms that app was queued" in said
    assert "io.max" in said
    # The recording has no reads, which may keep the device busy.
    assert "reads, which are not in this recording" in said


def test_the_first_line_names_the_cause_and_the_next_step(tmp_path: Path) -> None:
    """A sync of 2990 us waits for 700 us until a CPU runs it, and has one bio of 100 us."""
    log = Log()
    for number in range(10):
        at = 1_000_000 + 10_000 * number
        log.sync(at, "d/a", 5, (number,))
        log.switches(at + 300, "app-10", blocked_us=1000, ready_us=700)
    whole = log_of(tmp_path, log)[0]
    # That is 23 % of the time, and no other cause has more.
    assert whole.phases["cpu wait"] == 10 * 700_000
    seen = ["before submit", "after completion", "cpu wait", "commit wait", "flush"]
    assert "cause" not in rendered.sentences(replace(whole, phases_seen=seen))
    # The commit may be in the 2 ms after its bio, and a recording that cannot show commits says so instead.
    assert "which this recording does not separate" in rendered.sentences(whole)["cause"]

    def cause(phases: dict[str, int], rows: list[dict[str, Any]] | None = None) -> str:
        said = rendered.sentences(replace(whole, phases=phases, neighbours=rows or []))
        return said.get("cause", "")

    zeros: dict[str, Any] = dict.fromkeys((one.name for one in catalogue.load("neighbours").columns), 0)  # fmt: skip
    row = zeros | {"process": "dd", "cgroup": "/neigh", "kind": "writes", "syncs": 7, "of_syncs": 9, "cost_ns": 2_000_000}  # fmt: skip
    nobody = {**row, "kind": "unrecorded", "process": None, "cgroup": None}
    work = {"commit logging": 60, "commit locking": 10, "device": 30}
    assert cause(work).startswith(
        "Mostly commits of the journal: 70.0 % of the time. No neighbour that is recorded had a quarter of it."
    )
    for committing, what in (
        (["", "ext4", "xfs"], "commits of the journal"),
        (["btrfs"], "commits of btrfs"),
        (["f2fs"], "checkpoints of f2fs"),
        (["btrfs", "ext4", "xfs"], "commits of btrfs and commits of the journal"),
    ):
        said = rendered.sentences(replace(whole, phases=work, neighbours=[], committing=committing))
        assert said["cause"].startswith(f"Mostly {what}: 70.0 % of the time.")
    parts = {"commit logging": 35, "device": 25, "flush": 20, "before submit": 20}
    assert cause(parts).startswith(
        "No single cause: commits of the journal had 35.0 % of the time. No neighbour"
    )
    assert cause({"before submit": 90, "device": 10}) == ""
    assert cause({"cpu wait": 30, "device": 70}).startswith(
        "In part the CPUs: threads that sync were ready to run for 30 ns, 30.0 % of the time, and got none"
    )
    # Below a quarter, a neighbour is not the cause; above, the larger one of two is first.
    assert "No neighbour that is recorded" in cause(work, [{**row, "share": 0.24}])
    assert cause(work, [{**row, "share": 0.4}]) == (
        "In part a neighbour (inferred): dd in control group /neigh, which writes, delayed 7 of 9 syncs of others for 2 ms,"
        " 40.0 % of the time of all 9. Next: put its files on another device, or limit its bandwidth (io.max)."
    )
    both = cause(work, [{**row, "share": 0.3}, {**nobody, "share": 0.6}])
    assert both.startswith("Mostly something that is not recorded, which held bios of syncs and of their commits in the queue for 2 ms, 60.0 % of the time.")  # fmt: skip
    assert "Then a neighbour (inferred): dd" in both
    # A device that has two bios serves one first, so a small estimate with a large upper bound is no all-clear.
    unsure = {**row, "kind": "reads", "share": 0.01, "high_ns": 60}
    assert cause({"device": 100}, [unsure]).startswith(
        "Mostly bios in the queue and at the device, 100.0 % of the time. It is not certain whose they were: dd in control"
        " group /neigh, which reads, may have delayed these syncs by up to 60 ns."
    )
    assert "No neighbour that is recorded" in cause({"device": 100}, [{**unsure, "high_ns": 20}])
    assert cause({"commit logging": 30, RESIDUE: 70}) == ""
    # From a quarter of the time on, what is not explained may matter as much as what is.
    assert cause({"commit logging": 51, RESIDUE: 20, UNKNOWN: 24, "device": 5}).startswith(
        "Commits of the journal had 51.0 % of the time. Nothing that is recorded explains 44.0 % of the time. No neighbour"
    )
    assert cause({"commit logging": 51, RESIDUE: 24, "device": 25}).startswith("Mostly commits")
    beside = cause({"commit logging": 70, RESIDUE: 30}, [{**row, "share": 0.4}])
    assert (
        "40.0 % of the time of all 9. Nothing that is recorded explains 30.0 % of the time. Next: put"
        in beside
    )
    # Two programs sync, and each may have delayed the other for most of the time.
    assert (
        "By estimate, no neighbour that is recorded had a quarter of it, but dd in control group /neigh, which syncs, may have had more."
        in cause(work, [{**unsure, "kind": "syncs"}])
    )
    # The bios of a program that only took CPUs from these syncs are at another device.
    unbound = {**row, "kind": "reads", "low_ns": 7, "high_ns": None}
    assert rendered._certainty(unbound) == "at least 7 ns, with no known bound above"
    assert "added to commits" in rendered._certainty({**unbound, "kind": "metadata"})
    # Where the blocks that it changed are known, it is a neighbour as others.
    assert cause(work, [{**row, "kind": "metadata", "share": 0.4}]) == (
        "In part a neighbour (inferred): dd in control group /neigh, which changes metadata, delayed 7 of 9 syncs of others for"
        " 2 ms, 40.0 % of the time of all 9. Next: give it a file system of its own."
    )
    # Changes of metadata make commits longer, and nothing says by how much.
    assert (
        "dd in control group /neigh, whose changes of metadata are not recorded, may have made these commits longer by more than the recording"
        " shows. Nobody else who is recorded had a quarter of it."
        in cause(work, [{**row, "kind": "metadata", "share": 0.035, "high_ns": None}])
    )


@pytest.mark.parametrize(
    ("high_ns", "said"),
    [
        (0, "Neighbours: nobody who is recorded delayed these syncs at the device or in the journal by 1 % of their time."),
        (
            18,
            "Neighbours: by estimate, nobody who is recorded delayed these syncs at the device or in the journal by 1 % of their time. But sync"
            " in control group /backup, which syncs, may have delayed those that met it by up to 18 ns of 100 ns.",
        ),
    ],
)  # fmt: skip
def test_a_small_estimate_is_said_with_its_upper_bound(high_ns: int, said: str) -> None:
    zeros: dict[str, Any] = dict.fromkeys((one.name for one in catalogue.load("neighbours").columns), 0)  # fmt: skip
    row = zeros | {"process": "sync", "cgroup": "/backup", "kind": "syncs", "share": 0.004, "high_ns": high_ns}  # fmt: skip
    assert rendered._neighbours(made(neighbours=[row])) == said
    # A thread of the kernel meets the syncs that it works for.
    of_kernel = row | {"kind": "kernel", "high_ns": min(high_ns, 9)}
    assert "up to" not in rendered._neighbours(made(neighbours=[of_kernel]))


@pytest.mark.parametrize(
    ("wall_ns", "whole_ns", "said"),
    [
        (100, 100, "50.0 % of the wall time in sync."),
        # Two processes wait at the same time, so the time of both is more than that in which one waits.
        (180, 100, "50.0 % of the 180 ns wall time in sync, each process by itself."),
        (None, 100, "50.0 % of the time of all syncs."),
    ],
)
def test_the_share_of_an_advice_says_what_it_is_of(wall_ns: int | None, whole_ns: int, said: str) -> None:  # fmt: skip
    row = {"inferred": None, "seen": "x.", "cost_ns": 50, "share": 0.5, "instead": "y", "wall_ns": wall_ns}  # fmt: skip
    assert said in rendered._advice(row, {"wall_ns": whole_ns})


def test_sync_file_range_makes_nothing_durable(tmp_path: Path) -> None:
    """16 calls of sync_file_range and one fdatasync, which is the only one that asks for a flush."""
    lines = [
        f"100 1700000000.{number:06d} sync_file_range(3</data/a>, 0, 4096, SYNC_FILE_RANGE_WRITE) = 0 <0.000010>"
        for number in range(0, 1600, 100)
    ]
    lines.append("100 1700000000.900000 fdatasync(3</data/a>) = 0 <0.000010>")
    log = tmp_path / "x.strace"
    for some, said in ((lines, "16 of these are"), (lines[:1], "All of these is"), (lines[-1:], None)):  # fmt: skip
        log.write_text("\n".join(some) + "\n")
        total = rendered.sentences(read(log, "duckdb"))["total"]
        assert ("sync_file_range" in total) == (said is not None)
        assert (
            said is None
            or f"{said} sync_file_range, which asks for no flush and no commit, so it makes nothing durable."
            in total
        )


def test_calls_without_a_request_are_said(tmp_path: Path) -> None:
    assert rendered.sentences(made(total={"syncs": 0}, unmatched=10))["total"].startswith(
        "The input has 10 sync calls and no sync request: their file system has no function that syncs a file, as tmpfs"
    )
    assert rendered.sentences(made(total={"syncs": 0}))["total"] == "The input has no sync request."


def made(**values: Any) -> Answer:
    """An answer on a recording of one run, with these values and nothing else."""
    none = dict.fromkeys(("total", "slowest", "neighbours", "runs"))
    empty: dict[str, Any] = {"phases": {}, "worst": [], "failures": [], "devices": [], "lengths": [], "left_out": 0}  # fmt: skip
    facts = {"is_device_seen": True, "has_reads": True, "has_others": True, "shows_syncs": True}
    total = {"syncs": 40, "requests": 40, "known": 40, "runs": 1, "time_ns": 100}
    facts |= {"infers_waits": False, "is_filtered": False}
    return Answer(**none | empty | facts | {"total": total, "neighbours": []} | values)  # type: ignore[arg-type]


LIMITED = {"limits": {"/a": "cpu.max of /a: 20000 100000"}, "cpu_wait": {"cgroup": "/a", "wait_ns": 60}}  # fmt: skip


@pytest.mark.parametrize(
    ("values", "what", "next_step"),
    [
        # Nobody had the CPU while the threads of a limited group were ready: the limit held them.
        (LIMITED | {"cpu_idle_ns": 40, "cpu_before": [(20, "burn")]}, "Mostly a limit on CPU time (cpu.max of /a: 20000 100000): ", "raise the limit"),
        # Somebody always had it, so it need not have been the limit.
        (LIMITED | {"cpu_idle_ns": 5, "cpu_before": [(55, "burn")]}, "Mostly the CPUs, or a limit (cpu.max of /a: 20000 100000): ", "give these threads more CPU"),
        # The group has no limit, and that is recorded.
        (LIMITED | {"limits": {"/a": ""}, "cpu_before": [(60, "burn")]}, "Mostly the CPUs: ", "give these threads more CPU"),
        (LIMITED | {"limits": {}, "cpu_before": [(60, "burn")]}, "Mostly the CPUs: ", "look for a limit (cpu.max)"),
    ],
)  # fmt: skip
def test_a_wait_for_a_cpu_has_a_limit_or_somebody_else_as_its_cause(
    values: dict[str, Any], what: str, next_step: str
) -> None:
    said = rendered._cause(made(phases={"cpu wait": 60, "device": 40}, **values))
    assert said.startswith(what)
    assert "burn (" in said
    assert f"Next: {next_step}" in said


def test_who_had_the_cpu_is_said_even_if_that_is_not_the_cause() -> None:
    """A fifth of the time is cpu wait, so the CPUs are no cause. An idle CPU of less than a hundredth of it is left out."""
    had = {"cpu_wait": {"cgroup": "/", "wait_ns": 200}, "cpu_before": [(150, "burn"), (40, "dd")]}
    phases = {"device": 800, "cpu wait": 200}

    def said(**values: Any) -> str:
        return rendered._cpu_wait(made(**{"phases": phases, **had, **values}))

    ran = "ran burn (150 ns), dd (40 ns)."
    assert said(cpu_idle_ns=1) == f" During cpu wait, the CPU that a thread got next {ran}"
    assert said(cpu_idle_ns=10).endswith(f" got next was idle for 10 ns, and {ran}")
    # The times are of all syncs, and the first sentence has them if the CPUs are the cause.
    assert said(is_filtered=True) == said(phases={"device": 700, "cpu wait": 300}) == ""


QUEUED = {"kind": "unrecorded", "share": 0.9, "syncs": 12, "cost_ns": 90, "process": None, "cgroup": None}  # fmt: skip


@pytest.mark.parametrize(
    ("held", "limits", "what"),
    [
        # Bios of /a wait 100 ns each, those of the journal 1 ns: only a limit distinguishes them.
        ([("/a", 12, 1200), ("/", 100, 100)], {"/a": "io.max of /a: 8:0 wbps=1"}, "Mostly a limit on the I/O of the control group /a (io.max of /a: 8:0 wbps=1)"),
        ([("/a", 12, 1200), ("/", 100, 100)], {}, "Mostly a limit on the I/O of the control group /a (inferred)"),
        # All wait alike, so a limit of one group is not why, even though there is one.
        ([("/a", 12, 1200), ("/", 100, 6000)], {"/a": "io.max of /a: 8:0 wbps=1"}, "Mostly something that is not recorded"),
        # Four bios of others, or a factor below ten, say nothing.
        ([("/a", 12, 1200), ("/", 4, 4)], {}, "Mostly something that is not recorded"),
        ([("/a", 12, 1200), ("/", 100, 2000)], {}, "Mostly something that is not recorded"),
    ],
)  # fmt: skip
def test_whose_bios_were_held_distinguishes_a_limit_from_a_busy_device(
    held: list[tuple[str, int, int]], limits: dict[str, str], what: str
) -> None:
    rows = [{"cgroup": group, "bios": bios, "queue_ns": ns} for group, bios, ns in held]
    whole = made(phases={"queue": 90, "device": 10}, neighbours=[QUEUED], held=rows, limits=limits)
    said = rendered._cause(whole)
    assert said.startswith(what)
    assert ("the bios of all control groups" in said) == (held[1][2] == 6000)
    # The last sentence does not take that back.
    assert ("limit" in rendered._neighbours(whole)) == (held[1][2] != 6000)


def test_no_change_is_proposed_while_something_unrecorded_had_most_of_the_time(
    tmp_path: Path,
) -> None:
    """Whether it would help depends on what that is. Eight small files in a row are a finding otherwise."""
    log = Log()
    for number in range(8):
        log.sync(1_000_000 + 20_000 * number, f"d/{number}", 7 + number, (0,))
    (tmp_path / "a.txt").write_text(log.text())
    with opened(str(tmp_path / "a.txt"), Reading()) as engine:
        found = answer.read(engine)
        held = replace(found, phases={"queue": 90, "device": 10}, neighbours=[QUEUED])
        in_part = replace(held, neighbours=[{**QUEUED, "share": 0.4}])
        assert with_advice(engine, held).advice is None
        assert with_advice(engine, in_part).advice is not None


def test_two_syncs_are_too_few_for_a_cause_that_is_not_recorded() -> None:
    """`advise` finds it from three syncs on."""
    of = {"queue": 90, "device": 10}
    assert "not recorded" in rendered._cause(made(phases=of, neighbours=[{**QUEUED, "syncs": 3}]))
    assert "not recorded" not in rendered._cause(made(phases=of, neighbours=[{**QUEUED, "syncs": 2}]))  # fmt: skip


@pytest.mark.parametrize(
    ("known", "inside_ns", "said"),
    [
        (10, 80, "The 10 bios of these syncs and their commits waited inside of the device mapper (dm-0) for 80 ns of 100 ns"),
        (10, 40, None),
        (9, 80, "The bios of these syncs and their commits went to a device mapper (dm-0), and what they waited for inside of it is not recorded."),
    ],
)  # fmt: skip
def test_bios_that_wait_inside_of_a_mapper_are_named(
    known: int, inside_ns: int, said: str | None
) -> None:
    row = {"device": "dm-0", "bios": 10, "known": known, "dur_ns": 100, "inside_ns": inside_ns}
    works = [("commit logging", "commits of the journal"), ("writeback", "bios in the queue and at the device")]  # fmt: skip
    for phase, what in works:
        cause = rendered._cause(made(phases={phase: 90, "flush": 10}, mappers=[row]))
        assert f"Mostly {what}" in cause
        assert (said or "No neighbour") in cause
        assert ("mapper" in cause) == (said is not None)
    # Flushes are no bios that the mapper may hold.
    assert "mapper" not in rendered._cause(made(phases={"flush": 90, "device": 10}, mappers=[row]))


@pytest.mark.parametrize("case", ["delay-ext4", "delay-xfs"])
def test_a_mapper_is_named_where_commits_have_no_number(case: str, tmp_path: Path) -> None:
    """dm-delay holds every bio for 20 ms. On xfs, no bio has the number of its commit."""
    said = rendered.sentences(read(known_truth.unpacked(case, tmp_path), "duckdb"))["cause"]
    assert "went to a device mapper (dm-0), and what they waited for inside of it is not recorded" in said  # fmt: skip


def test_data_that_were_lost_before_are_in_the_first_report(tmp_path: Path) -> None:
    """One write fails, its sync says so, and two more syncs of the file return 0 without writing it again."""
    log = Log()
    log.sync(1_000_000, "d/a", 5, (0,), ret=-5, status=10)
    for number in (1, 2):
        log.sync(1_000_000 + 10_000 * number, "d/a", 5)
    log.sync(1_050_000, "d/b", 6, (0,))
    for one in log_of(tmp_path, log):
        # The bio that failed had one page.
        assert one.lost_before == {"syncs": 2, "lost_bytes": 4096}
        assert "2 syncs returned 0 although the device had refused up to 4 KiB of the file of each before" in rendered.sentences(one)["failed"][-1]  # fmt: skip


def test_what_the_edges_of_a_recording_cut_off_is_no_warning(tmp_path: Path) -> None:
    log = Log()
    # The log lacks what the first thread did before 1000 us, and what the last one did after 500 us.
    log.sync(1_000_000, "d/a", 5, (0,), task="first-10")
    log.lines = [(at, line) for at, line in log.lines if at > 1_000_100]
    for number in range(3):
        log.sync(1_000_200 + 10_000 * number, "d/b", 6, (number,), task="other-11")
    log.sync(1_040_000, "d/c", 7, (0,), task="last-12")
    log.lines = [(at, line) for at, line in log.lines if at < 1_040_500]
    log_of(tmp_path, log)
    for path in ("x.txt", "tables", "out.pftrace"):
        assert "warning" not in run("report", tmp_path / path, "latency").stdout
        reasons = ok("report", tmp_path / path, "losses", "--format", "csv")
        assert "start_missing" in reasons
        assert "end_missing" in reasons
    # An end in the middle was lost.
    log.lines = [(at, line) for at, line in log.lines if not 1_012_000 < at < 1_015_000]
    (tmp_path / "y.txt").write_text(log.text())
    assert "end_missing" in run("report", tmp_path / "y.txt", "latency").stdout


def test_a_log_of_calls_alone_is_no_surprise() -> None:
    done = run("report", DATA / "strace" / "small4.log", "latency")
    assert "call_only" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("thread", "of_kernel"),
    [
        # A loop device syncs its file in a worker, and nfsd the files of its clients.
        ("kworker/u8:1-50", True),
        ("loop0-51", True),
        ("nfsd-52", True),
        # Workers of io_uring are threads of their program, and a similar name makes no thread one of the kernel.
        ("iou-wrk-7-53", False),
        ("loop-54", False),
    ],
)
def test_syncs_of_the_kernel_are_counted_apart(
    thread: str, of_kernel: bool, tmp_path: Path
) -> None:
    def lines(at: int, task: str, call: bool) -> list[str]:
        what = 'dev=266338320 ino=7 gen=1 datasync=0 fs="ext4" n0="image" n1="/"'
        events = [f"fsync_enter: (ext4_sync_file+0x4/0x90) {what}", "fsync_exit: (f+0x4/0x90 <- ext4_sync_file) ret=0"]  # fmt: skip
        if call:
            events = ["sys_fsync(fd: 3)", *events, "sys_fsync -> 0x0"]
        return [f"{task} [000] ..... {at}.{n:06}: {event}" for n, event in enumerate(events, 1)]

    text = [*lines(1, "app-5", True), *lines(2, "app-5", True)]
    for at in (3, 4, 5):
        text += lines(at, thread, False)
    (tmp_path / "x.txt").write_text("\n".join(["# tracer: nop", "#", *text]) + "\n")
    for output, engine in (("tables/", "duckdb"), ("out.pftrace", "embedded")):
        _core.convert([str(tmp_path / "x.txt")], f"{tmp_path}/{output}")
        said = rendered.sentences(read(tmp_path / output, engine))["total"]
        name = thread.partition("/")[0].rpartition("-")[0] or "kworker"
        if of_kernel:
            # The two of the program took 2 us each, from the call to its end, and the others 1 us.
            assert said.startswith("2 syncs (and 3 by threads of the kernel) of 1 file by 1 thread waited 4 µs.")  # fmt: skip
            assert f"These 3 by threads of the kernel, such as {name}, all of .../image, waited 3 µs:" in said  # fmt: skip
            assert said.endswith("What follows covers both.")
        else:
            assert said.startswith("5 syncs of 1 file by 2 threads waited 7 µs.")

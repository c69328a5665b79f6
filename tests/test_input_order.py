"""Several inputs: their order changes no number, and an event that several of them hold counts once."""

from __future__ import annotations

import gzip
import itertools
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from syncline import _core
from syncline.reading import Reading
from syncline.recordings import InputHints

from tests.coretools import ROOT, recording, tables

RUN = ROOT / "tests" / "data" / "several-recorders"
FTRACE = ROOT / "tests" / "data" / "ftrace"
# Recordings of one run.
RECORDINGS = [
    RUN / "run",
    RUN / "ring.dat",
    RUN / "perf.txt.gz",
    RUN / "disk.blktrace.0",
    RUN / "strace.log",
]

Rows = list[dict[str, Any]]
Tables = dict[str, Rows]


def convert(folder: Path, *inputs: Path, **options: Any) -> Tables:
    out = folder / "out"
    _core.convert([str(path) for path in inputs], f"{out}/", **options)
    return tables(out)


def losses(result: Tables) -> dict[str, int]:
    return {row["reason"]: row["count"] for row in result["loss"]}


def rows(result: Tables) -> dict[str, Rows]:
    """The rows of requests, bios, calls and waits, and without what names an input or says where it is."""
    return {name: result[name] for name in ("sync", "bio", "call", "wait")}


def assert_order_is_free(folder: Path, *inputs: Path, **options: Any) -> Tables:
    """Checks that all orders of the inputs give the same tables and the same trace. Returns the tables."""
    found = []
    for order in itertools.permutations(inputs):
        result = convert(folder, *order, **options)
        trace = folder / "out.pftrace"
        _core.convert([str(path) for path in order], str(trace), **options)
        found.append((rows(result), result["loss"], result["meta"], trace.read_bytes(), result))
    first = found[0]
    for other in found[1:]:
        assert other[:4] == first[:4]
    return first[4]


def read_tables(folder: Path, inputs: tuple[Path, ...]) -> tuple[Any, ...]:
    """The tables and the trace of `syncline convert`."""
    paths = [str(path) for path in inputs]
    Reading().convert(paths, f"{folder}/out/")
    Reading().convert(paths, f"{folder}/out.pftrace")
    result = tables(folder / "out")
    return rows(result), result["loss"], result["meta"], (folder / "out.pftrace").read_bytes()


@pytest.mark.parametrize("size", [2, 3])
def test_the_order_of_recordings_changes_nothing(size: int, tmp_path: Path) -> None:
    for inputs in itertools.combinations(RECORDINGS, size):
        # trace-cmd does not record the offset of its clock from the time of day.
        if {path.name for path in inputs} == {"ring.dat", "strace.log"}:
            continue
        first, *others = (read_tables(tmp_path, order) for order in itertools.permutations(inputs))
        assert {row["reason"] for row in first[1]} <= {"duplicate", "call_only"}
        for other in others:
            assert other == first


# Texts of one ring buffer.


def ring_lines(name: str) -> tuple[list[str], list[str]]:
    """The header and the other lines of a recording."""
    text = gzip.decompress((FTRACE / name).read_bytes()).decode().splitlines(True)
    return [line for line in text if line.startswith("#")], [
        line for line in text if not line.startswith("#")
    ]


def write_text(path: Path, head: list[str], lines: list[str]) -> Path:
    path.write_text("".join(head + lines))
    return path


def is_block(line: str) -> bool:
    return ": block_" in line


def without_ids(table: Rows) -> Rows:
    """Rows without the numbers that rows get in the order of their events."""
    dropped = {"sync_id", "bio_id", "call_id", "request_id", "number"}
    return sorted(({k: v for k, v in row.items() if k not in dropped} for row in table), key=repr)


def assert_same_rows(found: Tables, expected: Tables) -> None:
    for name in ("sync", "bio", "call", "wait"):
        assert without_ids(found[name]) == without_ids(expected[name]), name


@pytest.mark.parametrize("name", ["small1.trace.txt.gz", "small4.trace.txt.gz"])
def test_texts_of_different_events_give_the_tables_of_the_whole(name: str, tmp_path: Path) -> None:
    """Times are cut to µs, so a bio enters the block layer when the file system submits it."""
    head, lines = ring_lines(name)
    whole = convert(tmp_path, write_text(tmp_path / "whole.txt", head, lines))
    for first, second in (("a", "b"), ("b", "a")):
        block = write_text(tmp_path / f"{first}.txt", head, [x for x in lines if is_block(x)])
        rest = write_text(tmp_path / f"{second}.txt", head, [x for x in lines if not is_block(x)])
        found = assert_order_is_free(tmp_path, block, rest)
        assert_same_rows(found, whole)
        assert losses(found) == losses(whole)


def test_texts_of_the_cpus_give_the_tables_of_the_whole(tmp_path: Path) -> None:
    head, lines = ring_lines("small4.trace.txt.gz")
    whole = convert(tmp_path, write_text(tmp_path / "whole.txt", head, lines))
    parts = [
        write_text(tmp_path / f"cpu{cpu}.txt", head, [x for x in lines if f" [00{cpu}] " in x])
        for cpu in (0, 1)
    ]
    found = assert_order_is_free(tmp_path, *parts)
    assert_same_rows(found, whole)
    assert losses(found) == losses(whole)


def test_consecutive_texts_give_the_tables_of_the_whole(tmp_path: Path) -> None:
    head, lines = ring_lines("small4.trace.txt.gz")
    whole = convert(tmp_path, write_text(tmp_path / "whole.txt", head, lines))
    for at in (len(lines) // 3, len(lines) // 2):
        parts = [
            write_text(tmp_path / "1.txt", head, lines[:at]),
            write_text(tmp_path / "2.txt", head, lines[at:]),
        ]
        found = assert_order_is_free(tmp_path, *parts)
        assert_same_rows(found, whole)
        assert losses(found) == losses(whole)


def test_texts_of_two_instances_that_both_have_the_calls_count_each_call_once(
    tmp_path: Path,
) -> None:
    """Each instance reads the clock itself, so its times differ by some µs."""
    head, lines = ring_lines("small4.trace.txt.gz")
    whole = convert(tmp_path, write_text(tmp_path / "whole.txt", head, lines))

    def later(line: str) -> str:
        return re.sub(
            r" (\d+)\.(\d{6}): ", lambda m: f" {m[1]}.{(int(m[2]) + 2) % 10**6:06}: ", line, count=1
        )

    calls = [line for line in lines if ": sys_" in line]
    for shift in (str, later):
        second = [shift(line) for line in calls + [x for x in lines if is_block(x)]]
        second.sort(key=lambda line: float(re.search(r" (\d+\.\d{6}): ", line)[1]))  # type: ignore[index]
        found = assert_order_is_free(
            tmp_path,
            write_text(tmp_path / "1.txt", head, [x for x in lines if not is_block(x)]),
            write_text(tmp_path / "2.txt", head, second),
        )
        assert len(found["call"]) == len(whole["call"])
        assert len(found["sync"]) == len(whole["sync"])
        assert not {"call_only", "unmatched_exit", "unmatched_call"} & (
            set(losses(found)) - set(losses(whole))
        )
        assert losses(found)["duplicate"] >= 2 * len(whole["call"])
        assert sum(row["bytes"] for row in found["sync"]) == sum(
            row["bytes"] for row in whole["sync"]
        )


# Copies of a part of a log.

EVENT_LINE = re.compile(rb"\d")


def event_lines(name: str) -> tuple[list[bytes], list[list[bytes]]]:
    """The lines before the first event, and each event with its stack."""
    lines = recording(name).splitlines(True)
    first = next(n for n, line in enumerate(lines) if EVENT_LINE.match(line))
    events: list[list[bytes]] = []
    for line in lines[first:]:
        if EVENT_LINE.match(line):
            events.append([line])
        else:
            events[-1].append(line)
    return lines[:first], events


def joined(events: list[list[bytes]]) -> bytes:
    return b"".join(line for event in events for line in event)


def assert_only_duplicates_differ(found: Tables, whole: Tables, repeats: int) -> None:
    assert rows(found) == rows(whole)
    assert losses(found) == losses(whole) | {
        "duplicate": losses(whole).get("duplicate", 0) + repeats
    }


@pytest.mark.parametrize(
    "name", ["small1.log", "small4.log", "sqlite_rj_full.log", "parallel4.log"]
)
@pytest.mark.parametrize("window_ns", [5_000_000_000, 1_000_000])
def test_a_log_with_an_excerpt_of_itself_counts_each_event_once(
    name: str, window_ns: int, tmp_path: Path
) -> None:
    """With the short window, the excerpt begins long before the end of what may wait."""
    head, events = event_lines(name)
    log, excerpt = tmp_path / "whole.log", tmp_path / "excerpt.log.gz"
    log.write_bytes(b"".join(head) + joined(events))
    whole = convert(tmp_path, log, window_ns=window_ns)
    for begin, end in ((len(events) // 3, len(events) // 2), (0, 40), (len(events) - 50, None)):
        part = events[begin:end]
        excerpt.write_bytes(gzip.compress(joined(part)))
        found = assert_order_is_free(tmp_path, log, excerpt, window_ns=window_ns)
        if window_ns == 5_000_000_000:
            assert_only_duplicates_differ(found, whole, len(part))
        else:
            # Late events of the whole log are late here, too.
            assert_same_rows(found, whole)


def test_a_log_with_some_of_its_lines_gives_the_tables_of_the_log(tmp_path: Path) -> None:
    """Both begin with the same event, and every second line of one thread is in both."""
    text = gzip.decompress((FTRACE / "small4.trace.txt.gz").read_bytes()).splitlines(keepends=True)
    head = [line for line in text if line.startswith(b"#")]
    events = [line for line in text if not line.startswith(b"#")]
    whole, some = tmp_path / "whole.txt", tmp_path / "some.txt"
    whole.write_bytes(b"".join(text))
    some.write_bytes(b"".join([b"# tracer: nop\n", events[0], *events[2::2]]))
    expected = convert(tmp_path, whole)
    for some_of in (some, compressed(some)):
        found = assert_order_is_free(tmp_path, whole, some_of)
        assert rows(found) == rows(expected)
        assert losses(found).keys() - losses(expected).keys() <= {"duplicate"}
    assert len(head) > 1


def compressed(log: Path) -> Path:
    path = log.with_name(f"{log.name}.gz")
    path.write_bytes(gzip.compress(log.read_bytes()))
    return path


def test_pieces_that_overlap_give_the_tables_of_the_whole(tmp_path: Path) -> None:
    for name in ("small1.log", "sqlite_rj_full.log"):
        head, events = event_lines(name)
        log = tmp_path / "whole.log"
        log.write_bytes(b"".join(head) + joined(events))
        whole = convert(tmp_path, log)
        at = len(events) // 2
        for overlap in (0, 1, 7, 60):
            first, second = tmp_path / "b.log", tmp_path / "a.log"
            first.write_bytes(b"".join(head) + joined(events[: at + overlap]))
            second.write_bytes(joined(events[at:]))
            found = assert_order_is_free(tmp_path, first, second)
            if overlap:
                assert_only_duplicates_differ(found, whole, overlap)
            else:
                assert (rows(found), losses(found)) == (rows(whole), losses(whole))


def test_a_changed_copy_of_a_log_adds_only_duplicates(tmp_path: Path) -> None:
    head, events = event_lines("rename.log")
    log, copy = tmp_path / "whole.log", tmp_path / "copy.log"
    log.write_bytes(b"".join(head) + joined(events))
    copy.write_bytes(b"".join(head) + joined(events) + b"\n\n")
    whole = convert(tmp_path, log)
    found = assert_order_is_free(tmp_path, log, copy)
    assert_only_duplicates_differ(found, whole, len(events))


def test_the_low_level_log_has_each_event_once(tmp_path: Path) -> None:
    head, events = event_lines("small1.log")
    log, excerpt = tmp_path / "whole.log", tmp_path / "excerpt.log"
    log.write_bytes(b"".join(head) + joined(events))
    excerpt.write_bytes(joined(events[30:90]))
    out = tmp_path / "x.events.jsonl"
    _core.convert([str(excerpt), str(log)], str(out))
    assert rows(convert(tmp_path, out)) == rows(convert(tmp_path, log))


# A log in the format of the thesis, which has no sectors, next to the block layer's events.

RING_LINE = re.compile(r"\s*(.+)-(\d+)\s+\[\d+\] \S+\s+(\d+)\.(\d{6}): (\w+): (.*)")


def as_thesis(line: str) -> str | None:
    """A line of the ring buffer as the thesis's script would have printed it."""
    match = RING_LINE.match(line)
    if match is None:
        return None
    comm, tid, seconds, micros, event, data = match.groups()
    fields = dict(pair.split("=", 1) for pair in data.split() if "=" in pair)
    match event:
        case "sync_start":
            path = data.split(" path=", 1)[1]
            text = f"start id {fields['id']} start {fields['start']} end {fields['end']} datasync {fields['datasync']} path {path}"
        case "bio_add_folio":
            text = f"bio_add_folio id {fields['id']} bio 0x{fields['bio']} start {fields['start']} len {fields['len']}"
        case "bio_submit":
            text = f"bio_submit id {fields['id']} bio 0x{fields['bio']}"
        case "bio_complete":
            text = f"bio_complete bio 0x{fields['bio']}"
        case "sync_end":
            text = f"exit id {fields['id']} ret {fields['ret']}"
        case _:
            return None
    return f"{int(seconds) * 10**9 + int(micros) * 1000} {tid} {comm.strip()} {text}\n"


def test_completions_of_bios_that_are_set_aside_are_no_losses(tmp_path: Path) -> None:
    head, lines = ring_lines("small4.trace.txt.gz")
    thesis = tmp_path / "thesis.log"
    thesis.write_text("".join(text for line in lines if (text := as_thesis(line))))
    block = write_text(tmp_path / "block.txt", head, [line for line in lines if is_block(line)])
    alone = convert(tmp_path, thesis)
    on_its_clock = {str(block): InputHints(offset_ns=0)}
    found = assert_order_is_free(tmp_path, thesis, block, hints=on_its_clock)
    assert set(losses(found)) - set(losses(alone)) <= {"superseded_bio", "duplicate"}
    assert losses(found)["superseded_bio"] > 50
    assert Counter(row["bytes"] for row in found["sync"]) == Counter(
        row["bytes"] for row in alone["sync"]
    )


def test_logs_with_headers_are_recordings_of_their_own(tmp_path: Path) -> None:
    """Two runs after each other, in the format of the thesis, are not joined, and that is reported."""
    logs = [ROOT / "tests/data/thesis" / name for name in ("small1.log", "small4.log")]
    summary = _core.convert([str(log) for log in logs], str(tmp_path / "x.events.jsonl"))
    ((first, second, gap),) = summary["disjoint"]
    assert (first, second) == (str(logs[0]), str(logs[1]))
    starts = [int(line.split()[0]) for log in logs for line in log.read_text().splitlines()[2:3]]
    last = int(logs[0].read_text().splitlines()[-1].split()[0])
    assert gap == starts[1] - last
    joined = assert_order_is_free(tmp_path, *logs)
    each = [convert(tmp_path, log) for log in logs]
    for table in ("sync", "bio"):
        assert len(joined[table]) == sum(len(one[table]) for one in each)
        for column in ("bytes", "dur_ns"):
            values = [row[column] for one in each for row in one[table]]
            assert Counter(row[column] for row in joined[table]) == Counter(values)


# Ids.


@pytest.mark.parametrize("name", ["small1.log", "sqlite_rj_full.log", "msync.log", "append.log"])
def test_a_damaged_id_leaves_its_request_whole(name: str, tmp_path: Path) -> None:
    """One line within a request has lost a digit of its id, or has another one."""
    head, events = event_lines(name)
    whole = convert(tmp_path, write(tmp_path, head, events))
    inside = [
        n
        for n, event in enumerate(events)
        if b" bio_add_folio " in event[0] or b" bio_submit " in event[0]
    ]
    for at in inside[1 :: max(1, len(inside) // 8)]:
        for damaged in (rb" id \1", rb" id \1\g<2>7"):
            line = re.sub(rb" id (\d+)(\d)\b", damaged, events[at][0])
            if line == events[at][0]:
                continue
            changed = [*events[:at], [line], *events[at + 1 :]]
            found = convert(tmp_path, write(tmp_path, head, changed))
            assert losses(found) == losses(whole) | {"damaged_id": 1}, line
            assert_same_figures(found, whole, "inferred")


@pytest.mark.parametrize("name", ["small1.log", "small4.log", "sqlite_rj_full.log", "empty.log"])
def test_a_damaged_id_of_a_start_or_an_end_leaves_its_request_whole(
    name: str, tmp_path: Path
) -> None:
    """A start or an end has lost a digit of its id, or has one too many. The first request of the log has no earlier one to go by."""
    head, events = event_lines(name)
    whole = convert(tmp_path, write(tmp_path, head, events))
    starts = [n for n, event in enumerate(events) if b" start id " in event[0]]
    ends = [n for n, event in enumerate(events) if b" exit id " in event[0]]
    after_first_end = [n for n in starts if n > ends[0]]
    for at in [*after_first_end[:: max(1, len(starts) // 8)], *ends[:: max(1, len(ends) // 8)]]:
        for damaged in (rb" id \1", rb" id \1\g<2>7"):
            line = re.sub(rb" id (\d+)(\d)\b", damaged, events[at][0])
            if line == events[at][0]:
                continue
            changed = [*events[:at], [line], *events[at + 1 :]]
            found = convert(tmp_path, write(tmp_path, head, changed))
            assert losses(found) == losses(whole) | {"damaged_id": 1}, line
            assert_same_figures(found, whole, "inferred")


def test_a_submit_that_was_held_back_is_of_no_bio_that_was_begun_after_it(tmp_path: Path) -> None:
    log = tmp_path / "in.log"
    log.write_text(
        "TIME PID COMM EVENT DATA\n"
        "1000 3 a start id 1 start 0 end 9 datasync 0 path /a\n"
        "2000 3 a bio_submit id 2 bio 0x0\n"
        "3000 4 b start id 2 start 0 end 9 datasync 0 path /b\n"
        "4000 4 b bio_add_folio id 2 bio 0x0 start 0 len 4096\n"
        "5000 4 b exit id 2 ret 0\n"
    )
    result = convert(tmp_path, log)
    bios = {row["bio_id"]: (row["sync_id"], row["ts_ns"], row["bytes"]) for row in result["bio"]}
    requests = {row["sync_id"]: (row["path"], row["start_ns"]) for row in result["sync"]}
    # The submit has opened a request of its own.
    assert sorted(requests.values(), key=str) == [("/a", 1000), ("/b", 3000), (None, None)]
    assert sorted((*requests[sync], *bio) for sync, *bio in bios.values() if requests[sync][0]) == [
        ("/b", 3000, 4000, 4096)
    ]
    assert losses(result)["never_submitted"] == losses(result)["never_completed"] == 1


def write(folder: Path, head: list[bytes], events: list[list[bytes]]) -> Path:
    log = folder / "in.log"
    log.write_bytes(b"".join(head) + joined(events))
    return log


def assert_same_figures(found: Tables, whole: Tables, confidence: str) -> None:
    """Requests differ in their confidence only, and some of them in that."""
    for row, expected in zip(found["sync"], whole["sync"], strict=True):
        assert row["confidence"] in (expected["confidence"], confidence)
        assert row | {"confidence": None} == expected | {"confidence": None}
    assert Counter(row["confidence"] for row in found["sync"]) != Counter(
        row["confidence"] for row in whole["sync"]
    )


@pytest.mark.parametrize("name", ["small1.log", "small4.log", "sqlite_wal_full.log"])
def test_a_file_system_that_does_not_pass_the_id_on_is_attributed_by_thread(
    name: str, tmp_path: Path
) -> None:
    """The kernel of these recordings has the id in a writeback_control, and ext4 without a journal makes its own."""
    head, events = event_lines(name)
    whole = convert(tmp_path, write(tmp_path, head, events))
    without = [
        [re.sub(rb" (bio_add_folio|bio_submit) id \d+", rb" \1 id 0", event[0]), *event[1:]]
        for event in events
    ]
    found = convert(tmp_path, write(tmp_path, head, without))
    assert_same_figures(found, whole, "inferred")
    assert {row["confidence"] for row in found["sync"] if row["bios"]} == {"inferred"}
    assert {row["confidence"] for row in found["bio"] if row["sync_id"]} == {"inferred"}
    # Background writeback of other threads has no request.
    assert sum(row["sync_id"] is None for row in found["bio"]) == sum(
        row["sync_id"] is None for row in whole["bio"]
    )

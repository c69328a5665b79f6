"""Columns that a trace leaves out: each fact is there once, and nothing is derived where the row has no value."""

from __future__ import annotations

from pathlib import Path

import pytest
from syncline.engine import open_trace
from syncline.reading import Reading

from tests.coretools import DATA
from tests.test_trace import assert_same_tables

HEAD = "TIME PID COMM EVENT DATA\nAttaching 8 probes...\n"


def sync(number: int, tid: int, comm: str, *, call: bool = True, id_: int | None = None) -> str:
    """A request with one bio, as the thesis format prints it."""
    if id_ is None:
        id_ = 100 + number
    ts, bio = 10**9 + number * 10**6, f"0xff{number:014x}"
    lines = [
        f"{ts} {tid} {comm} fsync" if call else "",
        f"{ts + 10} {tid} {comm} start id {id_} start 0 end 9 datasync 0 path /d/f{number}",
        f"{ts + 20} {tid} {comm} bio_add_folio id {id_} bio {bio} start 0 len 4096",
        f"{ts + 30} {tid} {comm} bio_submit id {id_} bio {bio}",
        f"{ts + 40} 1 kworker bio_complete bio {bio}",
        f"{ts + 50} {tid} {comm} exit id {id_} ret 0",
    ]
    return "".join(f"{line}\n" for line in lines if line)


LOGS = {
    "a thread takes another name": [(1, 5, "a"), (2, 5, "b"), (3, 5, "a")],
    "two threads have the same name and number in their names": [(1, 5, "a 5"), (2, 5, "a")],
    "a name ends with the number of another thread": [(1, 7, "x"), (2, 8, "x 7"), (3, 7, "x")],
    "numbers that do not fit a rank": [(1, 2**31 - 1, "a"), (2, 2**31 - 2, "a")],
    "many threads": [(n, 1000 + n, f"t{n % 3}") for n in range(1, 60)],
}


@pytest.mark.parametrize("name", LOGS)
def test_threads_are_never_confused(name: str, tmp_path: Path) -> None:
    (tmp_path / "in.log").write_text(HEAD + "".join(sync(*one) for one in LOGS[name]))
    assert_same_tables(tmp_path / "in.log", Reading(source="bpftrace"))


def test_a_jump_of_ids_and_requests_without_a_call(tmp_path: Path) -> None:
    ids = [7, 8, 2**63 - 1, 2**64 - 2, 9]
    text = "".join(sync(n, 5, "a", call=n % 2 == 0, id_=id_) for n, id_ in enumerate(ids, 1))
    (tmp_path / "in.log").write_text(HEAD + text)
    assert_same_tables(tmp_path / "in.log", Reading(source="bpftrace"))


def test_a_trace_says_each_fact_once(tmp_path: Path) -> None:
    trace = tmp_path / "t.pftrace"
    Reading().convert([str(DATA / "small4.log")], str(trace))
    with open_trace(trace) as engine:
        rows = engine.query(
            "SELECT category, args.key, COUNT(*) FROM slice JOIN args USING (arg_set_id)"
            " WHERE category IN ('syncline.sync', 'syncline.phase', 'syncline.call')"
            " GROUP BY 1, 2"
        ).rows
        requests = engine.query("SELECT COUNT(*) FROM slice WHERE category = 'syncline.sync'")
    found: dict[str, dict[str, int]] = {}
    for category, key, count in rows:
        found.setdefault(category, {})[key] = count
    # What a person looks for; everything else of a usual request is on its track, in its call and its bios.
    usual = {key for key, count in found["syncline.sync"].items() if count > 20}
    assert requests.rows[0][0] > 20
    names = ("amount", "time", "path", "bytes", "bios", "syscall_ns", "stack")
    shown = {f"debug.{name}" for name in names}
    assert shown <= usual <= shown | {"debug.sync_id", "debug.id"}
    # A phase has only the mark that its colour is not that of its name.
    assert found["syncline.phase"].keys() == {"correlation_id"}

"""The text of babeltrace2: recordings against what else recorded the same run, generated texts against a second reader, and damaged ones."""

from __future__ import annotations

import gzip
import random
import re
from pathlib import Path

import pytest
from syncline import _core

from tests.coretools import ROOT, Rows, core, syncs
from tests.reference import babeltrace

DATA = ROOT / "tests/data/babeltrace"
TABLES = ("sync", "bio", "call", "phase", "journal", "wait")


def text_of(name: str) -> bytes:
    path = DATA / name
    return gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()


def rows(tables: dict[str, Rows], table: str, without: tuple[str, ...] = ()) -> list[str]:
    left_out = {"example", "meaning", *without}
    kept = (
        {key: value for key, value in row.items() if key not in left_out} for row in tables[table]
    )
    return sorted(map(str, kept))


def losses(tables: dict[str, Rows]) -> dict[str, int]:
    return {row["reason"]: row["count"] for row in tables["loss"] if row["severity"] == "loss"}


def test_perf_data_and_its_ctf_give_the_same_rows(tmp_path: Path) -> None:
    """perf converted its own recording. Its CTF has no name of a thread, and no name of a function in a stack."""
    data = gzip.decompress((ROOT / "tests/data/perf/stacks.data.gz").read_bytes())
    expected = core(tmp_path, data, name="perf.data", to="data/")
    found = core(tmp_path, text_of("perf-stacks.txt.gz"))
    assert len(found["sync"]) == 40
    for table in TABLES:
        without = ("comm", "process", "stack", "bio_id")
        assert rows(found, table, without) == rows(expected, table, without), table
    assert losses(found) == losses(expected) == {}


def generated(rng: random.Random) -> str:
    """A text of LTTng: threads sync files, and the block layer writes for them."""
    lines: list[tuple[int, str]] = []
    dev, sector, transaction = 8 << 20 | 16, 2048, 7
    for tid in range(201, 201 + rng.randrange(1, 5)):
        comm = rng.choice(["wal", "a b", 'q\\"uote', "{x}, [1]"])
        at = 3_600 * 10**9 + rng.randrange(10**6)
        context = f'{{ cpu_id = {tid % 2} }}, {{ procname = "{comm}", pid = 200, tid = {tid} }}'
        for _ in range(rng.randrange(1, 6)):
            op, ret = rng.choice(["fsync", "fdatasync"]), rng.choice([0, 0, -5])
            ino = rng.randrange(12, 99)

            def add(name: str, fields: str, context: str = context) -> None:
                nonlocal at
                at += rng.randrange(1, 10**7)
                lines.append((at, f"{name}: {context}, {{ {fields} }}"))

            add(f"syscall_entry_{op}", "fd = 3")
            add(
                "ext4_sync_file_enter",
                f"dev = {dev}, ino = {ino}, parent = 2, datasync = {int(op == 'fdatasync')}",
            )
            for _ in range(rng.randrange(3)):
                sectors, rwbs = (
                    8 * rng.randrange(1, 9),
                    rng.choice([1 | 1 << 5, 1 | 1 << 5 | 1 << 10 | 1 << 9]),
                )
                where = f"dev = {dev}, sector = {sector}, nr_sector = {sectors}"
                issuer = f'tid = {tid}, comm = "{comm}"'
                add("block_bio_queue", f"{where}, rwbs = {rwbs}, {issuer}")
                issuer = f'tid = {tid}, rwbs = {rwbs}, comm = "{comm}"'
                add("block_rq_issue", f"{where}, bytes = {sectors * 512}, {issuer}")
                idle = '{ cpu_id = 0 }, { procname = "swapper/0", pid = 0, tid = 0 }'
                add("block_rq_complete", f"{where}, error = 0, rwbs = {rwbs}", idle)
                sector += 128
            if rng.random() < 0.4:
                journal = '{ cpu_id = 1 }, { procname = "jbd2/sdb-8", pid = 90, tid = 90 }'
                of = f"dev = {dev}, sync_commit = 1, transaction = {transaction}"
                add("jbd2_start_commit", of, journal)
                add("jbd2_end_commit", f"{of}, head = {transaction - 1}", journal)
                transaction += 1
            add(
                "sched_switch",
                f'prev_comm = "{comm}", prev_tid = {tid}, prev_prio = 20, prev_state = {rng.choice([0, 2, 256])}, next_comm = "x", next_tid = 9, next_prio = 20',
            )
            add("ext4_sync_file_exit", f"dev = {dev}, ino = {ino}, ret = {ret}")
            add(f"syscall_exit_{op}", f"ret = {ret}")
    form, before, text = rng.choice(["day", "date", "seconds", "cycles"]), None, []
    for at, line in sorted(lines):
        clock = f"{at // 3600 // 10**9:02}:{at // 60 // 10**9 % 60:02}:{at // 10**9 % 60:02}.{at % 10**9:09}"
        time = {
            "day": clock,
            "date": f"1970-01-01 {clock}",
            "seconds": f"{at // 10**9}.{at % 10**9:09}",
            "cycles": f"{at:020}",
        }[form]
        between = at - (before if before is not None else at)
        delta = (
            f"+{between // 10**9}.{between % 10**9:09}" if before is not None else "+?.?????????"
        )
        before = at
        text.append(f"[{time}] ({delta}) db-1.lan {line}\n")
    return "".join(text)


@pytest.mark.parametrize("seed", range(40))
def test_a_generated_text_gives_the_rows_of_the_text_of_perf(seed: int, tmp_path: Path) -> None:
    text = generated(random.Random(seed))
    events = babeltrace.read(text)
    assert len(events) == text.count("\n")
    expected = core(tmp_path, babeltrace.as_perf(events).encode(), source="perf", to="perf/")
    found = core(tmp_path, text.encode())
    assert found["sync"]
    for table in TABLES:
        assert rows(found, table) == rows(expected, table), table
    assert losses(found) == losses(expected)


FORMS = {
    "day": ("[10:11:12.000000001]", "[10:11:12.500000001]"),
    "date": ("[2026-11-30 10:11:12.000000001]", "[2026-11-30 10:11:12.500000001]"),
    "seconds": ("[1795318181.000000001]", "[1795318181.500000001]"),
    "counter": ("[00000016587000000001]", "[00000016587500000001]"),
}


def call(begin: str, end: str, *, delta: str = "(+0.000000001) ", host: str = "db1 ") -> str:
    context = '{ cpu_id = 1 }, { procname = "wal", pid = 7, tid = 8 }'
    return (
        f"{begin} {delta}{host}syscall_entry_fsync: {context}, {{ fd = 3 }}\n"
        f"{end} {delta}{host}syscall_exit_fsync: {context}, {{ ret = 0 }}\n"
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("delta", ["", "(+?.?????????) "])
@pytest.mark.parametrize("host", ["", "db1 ", "db1:kernel "])
def test_times_hosts_and_deltas_have_several_forms(
    form: str, delta: str, host: str, tmp_path: Path
) -> None:
    tables = core(tmp_path, call(*FORMS[form], delta=delta, host=host).encode())
    found = [
        (row["op"], row["syscall_ns"], row["tid"], row["pid"], row["comm"])
        for row in tables["sync"]
    ]
    assert found == [("fsync", 500_000_000, 8, 7, "wal")]
    meta = {row["key"]: row["value"] for row in tables["meta"]}
    clocks = {"day": "time_of_day", "date": "time_of_day", "seconds": "realtime"}
    assert meta["clock"] == clocks.get(form, "unknown")
    assert meta.get("host") == (host.strip().partition(":")[0] or None)
    assert losses(tables) == {}


def test_a_call_over_midnight_is_short(tmp_path: Path) -> None:
    tables = core(tmp_path, call("[23:59:59.900000000]", "[00:00:00.100000000]").encode())
    assert [row["syscall_ns"] for row in tables["sync"]] == [200_000_000]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            'WARNING: Tracer discarded 12 events between [10:11:12.1] and [10:11:12.2] in trace "x"',
            {"lost_by_tracer": 12},
        ),
        (
            "[warning] Tracer discarded 1 event between [10:11:12.1] and [10:11:12.2] in trace UUID 00",
            {"lost_by_tracer": 1},
        ),
        (
            'WARNING: Tracer may have discarded events (unknown time range) in trace "x"',
            {"lost_by_tracer": 1},
        ),
        (
            'WARNING: Tracer discarded 3 packets between [10:11:12.1] and [10:11:12.2] in trace "x"',
            {"lost_by_tracer": 1},
        ),
        (
            "You should consider recording a new trace with larger buffers or with fewer events enabled.",
            {},
        ),
        (
            "[10:11:12.300000000] (+0.1) db1 syscall_entry_fsync: { cpu_id = 1 }, { fd = 3 }",
            {"unparsed_line": 1},
        ),
        (
            "[10:11:12.300000000] (+0.1) db2 syscall_exit_fsync: { cpu_id = 1 }, { tid = 8 }, { ret = 0 }",
            {"unparsed_line": 1},
        ),
        (
            "[1795318181.300000000] (+0.1) db1 syscall_exit_fsync: { cpu_id = 1 }, { tid = 8 }, { ret = 0 }",
            {"unparsed_line": 1},
        ),
        (
            "[10:11:12,300000000] (+0,1) db1 syscall_exit_fsync: { cpu_id = 1 }, { tid = 8 }, { ret = 0 }",
            {"unparsed_line": 1},
        ),
    ],
)
def test_what_is_not_used_is_counted(line: str, expected: dict[str, int], tmp_path: Path) -> None:
    begin, end = call(*FORMS["day"]).splitlines()
    tables = core(tmp_path, f"{begin}\n{line}\n{end}\n".encode())
    assert losses(tables) == expected
    [row] = tables["sync"]
    # A line whose thread nobody knows may have been of this call.
    assert row["syscall_ns"] in (
        [500_000_000, None] if "unparsed_line" in expected else [500_000_000]
    )


def test_calls_without_their_threads_are_refused_with_the_command_that_adds_them(
    tmp_path: Path,
) -> None:
    text = re.sub(r", \{ procname.*?\}", "", call(*FORMS["day"]))
    with pytest.raises(_core.CoreError) as caught:
        core(tmp_path, text.encode())
    assert "lttng add-context --kernel --type tid" in str(caught.value)


def test_a_text_that_is_cut_anywhere_gives_no_wrong_call(tmp_path: Path) -> None:
    text = generated(random.Random(7)).encode()[:3000]
    whole = {(row["tid"], row["op"], row["ts_ns"]): row for row in syncs(tmp_path, text)}
    exact = ("dur_ns", "ret", "dev", "ino", "writeback_ns", "bytes", "bios")
    for end in range(200, len(text)):
        for row in syncs(tmp_path, text[:end]):
            full = whole[row["tid"], row["op"], row["ts_ns"]]
            if row["incomplete"] is None:
                # A call without its exit is taken to last as long as its request.
                assert row["syscall_ns"] in (None, full["syscall_ns"], full["dur_ns"]), end
                for column in exact:
                    assert row[column] in (None, full[column]), (end, column)


def test_a_text_without_a_byte_gives_no_wrong_time(tmp_path: Path) -> None:
    """A line that lost a byte is not used, or it says what it said before: names of threads and sizes have no check."""
    text = call(*FORMS["day"]).encode()
    for at in range(len(text)):
        try:
            found = syncs(tmp_path, text[:at] + text[at + 1 :], source="babeltrace")
        except _core.CoreError as error:
            assert error.args[2] == "input"
            continue
        for row in found:
            assert row["syscall_ns"] in (None, 500_000_000), at


def test_lttng_and_ftrace_give_the_same_rows_of_one_run(tmp_path: Path) -> None:
    """Both recorded each event, one after the other, so only times differ, by what the other one took."""
    lttng = core(tmp_path, text_of("lttng.txt.gz"))
    ftrace = core(tmp_path, text_of("lttng.ftrace.txt.gz"), to="ftrace/")

    def of_program(tables: dict[str, Rows]) -> list[dict[str, object]]:
        found = [row for row in tables["sync"] if row["comm"] == "python3"]
        return sorted(found, key=lambda row: (row["ts_ns"], row["tid"]))

    # Debian's build of LTTng has no tracepoints of ext4, so its text has calls, and no requests of the file system.
    pairs = list(zip(of_program(lttng), of_program(ftrace), strict=True))
    assert len(pairs) == 12
    for mine, theirs in pairs:
        for column in ("op", "tid", "comm", "ret"):
            assert mine[column] == theirs[column]
        assert abs(mine["syscall_ns"] - theirs["syscall_ns"]) < 1_000_000  # type: ignore[operator]

    def bios(tables: dict[str, Rows]) -> list[tuple[object, ...]]:
        columns = ("dev", "sector", "bytes", "rwbs", "error", "tid", "comm")
        of_file = [row for row in tables["bio"] if row["dev"] == "254,16"]
        return sorted((tuple(row[column] for column in columns) for row in of_file), key=str)

    assert bios(lttng) == bios(ftrace)
    assert len(bios(lttng)) > 20
    commits = [
        {row["transaction_id"] for row in tables["journal"] if row["dev"] == "254,16"}
        for tables in (lttng, ftrace)
    ]
    assert commits[0] == commits[1] != set()


def test_the_calls_of_a_program_are_those_that_it_made(tmp_path: Path) -> None:
    tables = core(tmp_path, text_of("lttng.txt.gz"))
    made = [line.split() for line in text_of("lttng.truth").decode().splitlines()]
    found = sorted(
        (row for row in tables["sync"] if row["comm"] == "python3"), key=lambda row: row["ts_ns"]
    )
    for tid in {tid for tid, *_ in made}:
        of_thread = [(call, int(end) - int(begin)) for of, call, begin, end in made if of == tid]
        calls = [(row["op"], row["syscall_ns"]) for row in found if row["tid"] == int(tid)]
        assert [op for op, _ in calls] == [call for call, _ in of_thread]
        # The clock is read around the call, on an emulated CPU.
        assert all(
            0 <= whole - inside < 10**7
            for (_, inside), (_, whole) in zip(calls, of_thread, strict=True)
        )


def test_a_session_without_contexts_gives_bios_and_counts_calls(tmp_path: Path) -> None:
    text = text_of("lttng-bare.txt.gz").decode()
    tables = core(tmp_path, text.encode())
    needs_thread = re.compile(r" (?:syscall_e\w+_|ext4_sync_file_e)")
    assert losses(tables)["unparsed_line"] == len(
        [line for line in text.splitlines() if needs_thread.search(line)]
    )
    assert tables["sync"] == []
    submitted = [line for line in text.splitlines() if " block_bio_queue: " in line]
    assert len(tables["bio"]) >= len(submitted) > 0


def test_what_lttng_discarded_is_counted(tmp_path: Path) -> None:
    text = text_of("lttng-lost.txt.gz")
    said = re.findall(rb"Tracer discarded (\d+) events? between", text)
    tables = core(tmp_path, text)
    assert losses(tables)["lost_by_tracer"] == sum(map(int, said)) > 10_000
    assert "unparsed_line" not in losses(tables)

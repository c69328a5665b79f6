"""strace: recordings and generated logs against what the workload did and against a second reader; bad input."""

from __future__ import annotations

import gzip
import json
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from syncline import _core
from syncline.recordings import InputHints
from syncline.report import catalogue

from tests.coretools import DATA as THESIS
from tests.coretools import RECORDINGS, convert, core, recording, tables
from tests.reference import strace, stracegen
from tests.test_commands import fails, ok, run

DATA = Path(__file__).parent / "data" / "strace"
LOGS = sorted(path.name for path in DATA.glob("*.log"))
# Logs that the second reader understands. It supports neither relative times, logs without times, nor lines that strace
# broke in two on a terminal. It does not follow the working directory.
COMPARED = sorted(
    {*LOGS}
    - {"odd-relative.log", "odd-terminal.log", "uring.log"}
    - {"cwd-plain.log", "cwd-untimed.log", "cwd-bare.log"}
)
KEYS = ("ts_ns", "tid", "op", "dur_ns", "pid", "comm", "path", "ret", "incomplete")
# Columns for work of the file system, which strace does not record.
UNKNOWN = [
    "process",
    "datasync",
    "dev",
    "ino",
    "fs",
    "id",
    "writeback_ns",
    "before_submit_ns",
    "after_complete_ns",
    "bytes",
    "folios",
    "bios",
    "ranges",
    "first_offset",
    "last_offset",
    "start_ns",
]

Rows = list[dict[str, Any]]


def log(name: str) -> bytes:
    return (DATA / name).read_bytes()


def syncs(folder: Path, data: bytes, **options: Any) -> Rows:
    return core(folder, data, **options)["sync"]


def compared(rows: Rows, keys: tuple[str, ...] = KEYS) -> list[str]:
    return sorted(str([row[key] for key in keys]) for row in rows)


def losses(result: dict[str, Rows]) -> dict[str, int]:
    return {row["reason"]: row["count"] for row in result["loss"]}


# Recordings.


@pytest.mark.parametrize("name", COMPARED)
def test_a_second_reader_finds_the_same_calls(name: str, tmp_path: Path) -> None:
    expected, result = strace.Reader().read(log(name)), core(tmp_path, log(name))
    assert compared(result["sync"]) == compared(expected.rows)
    assert expected.unparsed == []
    assert losses(result).keys() <= {"call_only", "duration_missing"}


@pytest.mark.parametrize(
    ("name", "calls", "files"),
    [
        ("small4.log", {"fsync": 100}, 100),
        # 20 new files, and 20 syncs of their directory.
        ("rename.log", {"fsync": 40}, 21),
        ("msync.log", {"msync": 30}, 0),
    ],
)
def test_calls_are_those_of_the_workload(
    name: str, calls: dict[str, int], files: int, tmp_path: Path
) -> None:
    rows = syncs(tmp_path, log(name))
    assert Counter(row["op"] for row in rows) == calls
    assert len({row["path"] for row in rows if row["path"]}) == files
    assert all(row["ret"] == 0 and row["dur_ns"] > 0 for row in rows)


def odd(decorated: bool) -> Counter[tuple[str, str | None, int]]:
    """What odd.py does: (op, path, ret)."""
    folder = "/tmp/odd (x) > y"
    relative = f"{folder}/" if decorated else ""
    done: Counter[tuple[str, str | None, int]] = Counter()
    for n in range(3):
        path = f'{folder}/a <{n}>\n"q\\ é) = 3'
        done["fsync", path, 0] += 1
        done["fdatasync", path + (" (deleted)" if decorated else ""), 0] += 1
    done["write", f"{relative}rel", 3] += 1
    done["write", f"{relative}rel", 1] += 1
    done["write", f"{relative}plain", 1] += 1
    done["fsync", None, -9] += 1
    done["fdatasync", f"{relative}plain", 0] += 1
    done["sync", None, 0] += 1
    return done


@pytest.mark.parametrize("name", ["yy", "plain", "day", "relative", "terminal"])
def test_odd_names_are_read_in_every_form(name: str, tmp_path: Path) -> None:
    result = core(tmp_path, log(f"odd-{name}.log"))
    rows = result["sync"]
    decorated = name in ("yy", "relative")
    assert Counter((row["op"], row["path"], row["ret"]) for row in rows) == odd(decorated)
    (child,) = [row for row in rows if row["op"] == "sync"]
    assert child["comm"] == "a b>) ="
    assert child["pid"] == child["tid"]
    (main,) = {row["pid"] for row in rows} - {child["pid"]}
    assert len({row["tid"] for row in rows if row["pid"] == main}) == 4
    assert {row["comm"] for row in rows} == {"a b>) =", "python3.11"}
    # Without -T, only calls that other threads interrupt have a duration.
    unknown = [row for row in rows if row["dur_ns"] is None]
    assert bool(unknown) == (name == "day")
    assert losses(result).get("duration_missing", 0) == len(unknown)


def test_a_file_for_each_thread_is_one_recording(tmp_path: Path) -> None:
    files = sorted(map(str, DATA.glob("odd-each.*")))
    assert len(files) == 5
    _core.convert(files, f"{tmp_path}/out/")
    rows = tables(tmp_path / "out")["sync"]
    assert Counter((row["op"], row["ret"]) for row in rows) == Counter(
        (op, ret) for op, _, ret in odd(False).elements() if op != "write"
    ) + Counter({("write", 3): 1, ("write", 1): 2})
    # The file of a thread does not have the opens of descriptors by other threads.
    assert {row["tid"] for row in rows} == {int(name.rpartition(".")[2]) for name in files}
    assert [row["ts_ns"] % 1000 for row in rows] != [0] * len(rows)


def test_stacks_have_function_names(tmp_path: Path) -> None:
    rows = syncs(tmp_path, log("odd-stacks.log"))
    assert len(rows) == 8
    for row in rows:
        frames = row["stack"].split(";")
        assert frames[-1] == row["op"]
        assert any("PyEval" in frame for frame in frames)
        assert not any("+0x" in frame or "[0x" in frame for frame in frames)


def test_what_strace_cannot_know_is_null(tmp_path: Path) -> None:
    result = core(tmp_path, log("odd-yy.log"))
    for row in result["sync"]:
        assert [row[column] for column in UNKNOWN] == [None] * len(UNKNOWN)
        assert row["confidence"] == "unknown"
        assert row["syscall_ns"] == row["dur_ns"]
    assert result["bio"] == []
    assert losses(result) == {"call_only": 12}
    calls = {call["call_id"]: call for call in result["call"]}
    assert len(calls) == 12
    assert {call["sync_id"] for call in calls.values()} == {
        row["sync_id"] for row in result["sync"]
    }
    assert not any(call["unmatched"] for call in calls.values())
    assert {row["key"]: row["value"] for row in result["meta"]}["clock"] == "realtime"


@pytest.mark.parametrize("name", ["odd-yy.log", "odd-day.log", "small4.log"])
def test_reports_are_the_same_on_both_engines(name: str, tmp_path: Path) -> None:
    trace = tmp_path / "x.pftrace"
    shutil.copy(DATA / name, tmp_path / name)
    ok("convert", tmp_path / name, "-o", trace)
    by_columns = run("report", "--format", "json", tmp_path / name, *catalogue.names())
    by_trace = run("report", "--format", "json", "--engine", "embedded", trace, *catalogue.names())
    assert by_columns.returncode == 0, by_columns.stderr
    reports, theirs = json.loads(by_columns.stdout), json.loads(by_trace.stdout)
    assert [*reports] == [*theirs] == catalogue.names()
    for report, found in reports.items():
        assert found["rows"] == theirs[report]["rows"], report
        if report in ("empty", "amount", "scatter"):
            assert found["rows"] == []
    # The message says what is null and which route records it.
    assert "the column bytes is not recorded. The routes ring-buffer" in by_columns.stderr
    assert "the column bytes is not recorded. The routes ring-buffer" in by_trace.stderr
    assert "ring-buffer" in by_columns.stderr


def test_reports_show_null_for_unknown_values() -> None:
    rows = json.loads(ok("report", "--format", "json", DATA / "small4.log", "summary"))["rows"]
    found = {(row["metric"], row["scope"]): row for row in rows}
    assert found["syncs", "op:fsync"]["value"] == 100
    assert found["syscall_latency_avg", "all"]["known"] == 100
    for metric in ("empty_share", "writeback_latency_avg", "writeback_amount_sum"):
        row = found[metric, "all"]
        assert (row["value"], row["known"], row["syncs"]) == (None, 0, 100), metric
    for report in ("files", "threads", "over-time"):
        rows = json.loads(ok("report", "--format", "json", DATA / "small4.log", report))["rows"]
        for row in rows:
            if row["syncs"]:
                assert row["bytes"] is None
                assert row.get("empty") is None


@pytest.mark.parametrize("name", ["odd-yy.log", "odd-day.log", "odd-stacks.log", "odd-each.*"])
def test_the_low_level_log_gives_the_same_requests(name: str, tmp_path: Path) -> None:
    (source, *_) = sorted(DATA.glob(name))
    first, second = tmp_path / "a.events.jsonl", tmp_path / "b.events.jsonl"
    _core.convert([str(source)], str(first))
    _core.convert([str(first)], str(second))
    as_first = second.read_text().replace('"source":"events-jsonl"', '"source":"strace"')
    assert as_first == first.read_text()
    for output, inputs in (("0/", source), ("1/", first), ("2/", second)):
        _core.convert([str(inputs)], f"{tmp_path}/{output}")
    expected = tables(tmp_path / "0")
    for number in ("1", "2"):
        found = tables(tmp_path / number)
        for table in ("sync", "call"):
            assert found[table] == expected[table]
        assert losses(found) == losses(expected)


def test_the_low_level_log_has_every_line(tmp_path: Path) -> None:
    out = convert(tmp_path, log("odd-yy.log"), "out.events.jsonl")
    events = [json.loads(line) for line in out.read_text().splitlines()]
    lines = log("odd-yy.log").decode("latin-1").splitlines()
    # A sync call on one line gives two events.
    whole = [e for e in events if e["event"].endswith("_exit")]
    unfinished = [e for e in events if e.get("unfinished") and e.get("call_only")]
    assert len(events) == len(lines) + len(whole) - len(unfinished)
    opened = [e for e in events if e["event"] == "openat" and e.get("path", "").endswith("/rel")]
    assert opened[-1]["ret"] == 3
    assert "O_DSYNC" in opened[0]["args"]
    assert {e["event"] for e in events} >= {"execve", "write", "pwritev2_exit", "ended", "signal"}
    assert {e["text"] for e in events if e["event"] == "ended"} >= {"killed by SIGTERM"}


# Generated logs.


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    style=st.builds(
        stracegen.Style,
        clock=st.sampled_from(["ttt", "tt", "r", "ns"]),
        lengths=st.booleans(),
        decorate=st.booleans(),
        bracket=st.booleans(),
        hex=st.booleans(),
        exits=st.booleans(),
    ),
)
def test_generated_logs_give_their_calls(
    seed: int, style: stracegen.Style, tmp_path_factory: pytest.TempPathFactory
) -> None:
    generated = stracegen.generate(random.Random(seed), style)
    if not generated.rows:
        return
    keys = KEYS[:-1]
    text_columns = ("comm", "path")
    expected = [
        {k: strace.text_of(v) if k in text_columns and v is not None else v for k, v in row.items()}
        for row in generated.rows
    ]
    found = core(tmp_path_factory.mktemp("log"), generated.text)
    assert compared(found["sync"], keys) == compared(expected, keys)
    assert losses(found).keys() <= {"call_only", "duration_missing"}
    if style.clock != "r":
        assert compared(strace.rows(generated.text), keys) == compared(expected, keys)


def test_a_long_log_is_read_in_chunks(tmp_path: Path) -> None:
    data = b"".join(stracegen.bulk(6_000_000))
    rows = syncs(tmp_path, data)
    assert len(rows) == data.count(b" fsync(")
    for number, row in enumerate(sorted(rows, key=lambda row: row["ts_ns"]), 1):
        assert row["path"] == f"/run/mnt/s4/small-{number % stracegen.FILES:08}"
        assert (row["dur_ns"], row["ret"]) == (89_000, 0)


def test_a_chunk_does_not_end_between_a_call_and_a_stack_after_a_message(tmp_path: Path) -> None:
    """A chunk is 1 MiB. The message is at its end, and the stack in the next one."""
    call = "7  100.000001 fsync(3</a>) = 0 <0.000010>\n"
    message = "[ Process PID=7 runs in 32 bit mode. ]\n"
    stack = " > /lib/libc.so.6(fsync+0x7) [0x1]\n"
    for after in (30, 40):
        # `after` bytes of the chunk follow the call.
        filling = (1 << 20) - len(call) - after
        short = "7  100.000000 getpid() = 7 <0.000001>\n"
        pad = short.replace("getpid()", "getpid()" + " " * (filling % len(short)))
        head = pad + short * (filling // len(short) - 1)
        assert len(head) == filling
        data = (head + call + message + stack).encode()
        result = tables(convert(tmp_path, data))
        assert "unparsed_line" not in losses(result), after
        assert "fsync" in result["sync"][0]["stack"]


def lines(*texts: str) -> bytes:
    return "".join(text + "\n" for text in texts).encode()


T = 1_700_000_000


def test_times_of_day_pass_midnight(tmp_path: Path) -> None:
    data = lines(
        "7 23:59:59.900000 fsync(3 <unfinished ...>",
        "8 00:00:00.100000 fsync(4) = 0 <0.000010>",
        # A clock that is set back a little does not pass midnight.
        "8 23:59:59.950000 fsync(5) = 0 <0.000010>",
        "7 00:00:00.200000 <... fsync resumed>) = 0",
        "7 13:00:00.000000 fsync(6) = 0 <0.000010>",
        "7 02:00:00.000000 fsync(7) = 0 <0.000010>",
    )
    day, second = 86_400 * 10**9, 10**9
    rows = sorted(syncs(tmp_path, data), key=lambda row: row["ts_ns"])
    assert [row["ts_ns"] for row in rows] == [
        day - second // 10,
        day - second // 20,
        day + second // 10,
        day + 13 * 3600 * second,
        2 * day + 2 * 3600 * second,
    ]
    assert rows[0]["dur_ns"] == 3 * second // 10


def test_a_call_that_never_returns_is_incomplete(tmp_path: Path) -> None:
    result = core(
        tmp_path,
        lines(
            f"7 {T}.1 fsync(3 <unfinished ...>",
            f"8 {T}.2 fsync(4) = ?",
            f"8 {T}.3 +++ killed by SIGKILL +++",
            f"9 {T}.4 <... fsync resumed>) = 0 <0.2>",
            f"9 {T}.5 fdatasync(5 <detached ...>",
        ),
    )
    assert [(row["tid"], row["incomplete"], row["dur_ns"]) for row in result["sync"]] == [
        (7, "end", None),
        (8, "end", None),
        (9, "end", None),
    ]
    assert losses(result) == {"call_only": 3, "end_missing": 3, "unmatched_exit": 1}


def test_the_return_of_another_call_ends_no_sync(tmp_path: Path) -> None:
    """The return of the first fsync is missing, and so is the entry of the write that returns."""
    rows = syncs(
        tmp_path,
        lines(
            f"7 {T}.1 fsync(3 <unfinished ...>",
            f'8 {T}.2 openat(AT_FDCWD, "/a", O_WRONLY|O_SYNC) = 4 <0.01>',
            f"7 {T}.3 <... write resumed>) = 9 <0.1>",
            f"7 {T}.4 fsync(3) = 0 <0.02>",
        ),
    )
    found = [(row["op"], row["incomplete"], row["dur_ns"]) for row in rows]
    assert sorted(found, key=str) == [("fsync", "end", None), ("fsync", None, 2 * 10**7)]


def test_other_calls_identify_the_thread_of_lines_without_a_pid(tmp_path: Path) -> None:
    data = lines(
        f"{T}.1 clone(child_stack=NULL, flags=SIGCHLD) = 8 <0.01>",
        f"[pid 7] {T}.2 getppid() = 1 <0.00001>",
        f"[pid 8] {T}.3 fsync(3) = 0 <0.01>",
        f"[pid 8] {T}.4 +++ exited with 0 +++",
        f"{T}.5 fsync(4) = 0 <0.02>",
    )
    assert [row["tid"] for row in syncs(tmp_path, data)] == [8, 7]


def test_a_restarted_call_is_a_second_call(tmp_path: Path) -> None:
    rows = syncs(
        tmp_path,
        lines(
            f"7 {T}.1 msync(0x7f, 4096, MS_SYNC) = ? ERESTARTSYS (To be restarted if SA_RESTART is set) <0.01>",
            f"7 {T}.2 --- SIGALRM {{si_signo=SIGALRM, si_code=SI_KERNEL}} ---",
            f"7 {T}.3 rt_sigreturn({{mask=[]}}) = 0 <0.00001>",
            f"7 {T}.4 msync(0x7f, 4096, MS_SYNC) = 0 <0.02>",
        ),
    )
    assert [(row["ret"], row["dur_ns"]) for row in rows] == [(-512, 10**7), (0, 2 * 10**7)]


EXEC = '7 {t}.7 execve("/bin/x", ["x"], 0x7f /* 3 vars */) = 0 <0.01>'
SYNC = "7 {t}.8 fsync(3) = 0 <0.01>"
RECEIVED = (
    "7 {t}.2 recvmsg(4, {msg_name=NULL, msg_namelen=0, msg_control=[{cmsg_len=20, cmsg_level=SOL_SOCKET,"
    " cmsg_type=SCM_RIGHTS, cmsg_data=FD}], msg_controllen=24, msg_flags=0}, 0) = 1 <0.01>"
)
OPENED = f'7 {T}.01 openat(AT_FDCWD, "/old", O_RDWR|O_DSYNC|O_CREAT, 0644) = 3 <0.01>'


@pytest.mark.parametrize(
    ("between", "rows"),
    [
        # The path or type that strace prints with a descriptor has precedence over earlier calls.
        (["7 {t}.2 fsync(3<pipe:[17]>) = -1 EINVAL (Invalid argument) <0.01>"], [("fsync", None)]),
        (
            ['7 {t}.2 write(3<pipe:[17]>, "a", 1) = 1 <0.01>', "7 {t}.8 fsync(5) = 0 <0.01>"],
            [("fsync", None)],
        ),
        (['7 {t}.2 write(3</new>, "a", 1) = 1 <0.01>'], [("write", "/new")]),
        # Descriptors that exec closes.
        (
            ["7 {t}.2 close_range(3, 4294967295, CLOSE_RANGE_CLOEXEC) = 0 <0.01>", EXEC, SYNC],
            [("fsync", None)],
        ),
        (["7 {t}.2 ioctl(3, FIOCLEX) = 0 <0.01>", EXEC, SYNC], [("fsync", None)]),
        (
            [
                "7 {t}.2 ioctl(3, FIOCLEX) = 0 <0.01>",
                "7 {t}.3 ioctl(3, FIONCLEX) = 0 <0.01>",
                EXEC,
                SYNC,
            ],
            [("fsync", "/old")],
        ),
        (
            ["7 {t}.2 ioctl(3, FIOCLEX) = 0 <0.01>", "7 {t}.3 dup2(3, 3) = 3 <0.01>", EXEC, SYNC],
            [("fsync", None)],
        ),
        # Descriptors that a call returns in memory.
        (["7 {t}.2 close(3) = 0", "7 {t}.3 pipe2([3, 4], O_CLOEXEC) = 0", SYNC], [("fsync", None)]),
        (
            ["7 {t}.2 pipe( <unfinished ...>", "7 {t}.3 <... pipe resumed>[3, 4]) = 0", SYNC],
            [("fsync", None)],
        ),
        (["7 {t}.2 socketpair(AF_UNIX, SOCK_STREAM, 0, [5, 3]) = 0", SYNC], [("fsync", None)]),
        (["7 {t}.2 pipe([3, 4]) = -1 EMFILE (Too many open files)", SYNC], [("fsync", "/old")]),
        (
            [RECEIVED.replace("FD", "[3]"), SYNC],
            [("fsync", None)],
        ),
        (
            [RECEIVED.replace("FD", "[9<socket:[5]>, 3</passed>]"), SYNC],
            [("fsync", "/passed")],
        ),
        # A thread with its own table of descriptors.
        (
            [
                "7 {t}.2 clone(child_stack=0x7f, flags=CLONE_VM|CLONE_FILES|CLONE_THREAD) = 8 <0.01>",
                "8 {t}.3 unshare(CLONE_FILES) = 0 <0.01>",
                "8 {t}.4 close(3) = 0 <0.01>",
                SYNC,
            ],
            [("fsync", "/old")],
        ),
        (
            [
                "7 {t}.2 clone(child_stack=0x7f, flags=CLONE_VM|CLONE_FILES|CLONE_THREAD) = 8 <0.01>",
                "8 {t}.3 close_range(3, 3, CLOSE_RANGE_UNSHARE) = 0 <0.01>",
                SYNC,
            ],
            [("fsync", "/old")],
        ),
        # A thread that appears during a clone may not be its child.
        (
            [
                "7 {t}.2 vfork( <unfinished ...>",
                "9 {t}.3 fsync(3) = 0 <0.01>",
                "8 {t}.4 fdatasync(3) = 0 <0.01>",
                "7 {t}.5 <... vfork resumed>) = 8 <0.3>",
                "8 {t}.6 fdatasync(3) = 0 <0.01>",
            ],
            [("fsync", None), ("fdatasync", None), ("fdatasync", "/old")],
        ),
        # A name may contain `[->`.
        (["7 {t}.2 fsync(3</b[2->) = 0 <0.01>"], [("fsync", "/b[2-")]),
    ],
)
def test_paths_follow_descriptors(
    between: list[str], rows: list[tuple[str, str | None]], tmp_path: Path
) -> None:
    data = lines(OPENED, *(line.replace("{t}", str(T)) for line in between))
    found = sorted(syncs(tmp_path, data), key=lambda row: row["ts_ns"])
    assert [(row["op"], row["path"]) for row in found] == rows
    assert not losses(core(tmp_path, data)).get("unparsed_line")


def test_a_child_may_run_before_its_clone_returns(tmp_path: Path) -> None:
    """If the log begins with the program, a new thread is the child of the only clone in progress.

    During two clones, its parent is unknown.
    """
    data = lines(
        f'7 {T}.00 execve("/bin/x", ["x"], 0x7f /* 3 vars */) = 0 <0.01>',
        OPENED,
        f"7 {T}.2 vfork( <unfinished ...>",
        f"8 {T}.3 fsync(3) = 0 <0.01>",
        f"8 {T}.4 vfork( <unfinished ...>",
        f"9 {T}.5 fsync(3) = 0 <0.01>",
        f"8 {T}.6 <... vfork resumed>) = 9 <0.3>",
        f"9 {T}.7 fdatasync(3) = 0 <0.01>",
    )
    ordered = sorted(syncs(tmp_path, data), key=lambda row: row["ts_ns"])
    found = [(row["tid"], row["op"], row["path"]) for row in ordered]
    assert found == [(8, "fsync", "/old"), (9, "fsync", None), (9, "fdatasync", "/old")]


def test_flags_printed_as_numbers_are_unparsed(tmp_path: Path) -> None:
    """With `-X raw` and `-e verbose=none`, the log does not show which writes are durable and what threads share."""
    data = lines(
        f'7 {T}.1 openat(-100, "/a", 0x1042, 0644) = 3 <0.01>',
        f"7 {T}.2 clone3(0x7ffd, 88) = 8 <0.01>",
        f'7 {T}.3 pwritev2(3, [{{iov_base="x", iov_len=1}}], 1, 0, 0x2) = 1 <0.01>',
        f"7 {T}.4 fsync(3) = 0 <0.01>",
    )
    result = core(tmp_path, data)
    assert [(row["op"], row["path"]) for row in result["sync"]] == [("fsync", None)]
    assert losses(result)["unparsed_line"] == 3


def test_the_thread_of_lines_without_a_pid_is_known_without_messages(tmp_path: Path) -> None:
    """With `-q`, strace prints neither attaches nor exits, but the result of clone and exit_group."""
    data = lines(
        f"{T}.1 vfork() = 8 <0.01>",
        f"{T}.2 fsync(3) = 0 <0.01>",
        f"[pid 8] {T}.3 fsync(4) = 0 <0.01>",
        f"[pid 7] {T}.4 fdatasync(3) = 0 <0.01>",
        f"[pid 7] {T}.5 exit_group(0) = ?",
        f"{T}.6 fdatasync(4) = 0 <0.01>",
    )
    found = [
        (row["op"], row["tid"])
        for row in sorted(syncs(tmp_path, data), key=lambda row: row["ts_ns"])
    ]
    assert found == [("fsync", 7), ("fsync", 8), ("fdatasync", 7), ("fdatasync", 8)]


def test_threads_return_from_calls_after_exit_group(tmp_path: Path) -> None:
    """strace prints exit_group before it has ended the other threads."""
    data = lines(
        f'7 {T}.00 execve("/bin/x", ["x"], 0x7f /* 3 vars */) = 0 <0.01>',
        OPENED,
        f"7 {T}.1 clone(child_stack=0x7f, flags=CLONE_VM|CLONE_FILES|CLONE_THREAD) = 8 <0.01>",
        f'8 {T}.2 write(3, "a", 1 <unfinished ...>',
        f"7 {T}.3 exit_group(0 <unfinished ...>",
        f"8 {T}.4 <... write resumed>) = 1 <0.15>",
        f"8 {T}.5 fdatasync(3) = 0 <0.01>",
        f"8 {T}.6 +++ exited with 0 +++",
        f"7 {T}.7 <... exit_group resumed>) = ?",
        f"7 {T}.8 +++ exited with 0 +++",
    )
    result = core(tmp_path, data)
    found = [
        (row["tid"], row["pid"], row["op"], row["path"], row["ret"], row["syscall_ns"])
        for row in result["sync"]
    ]
    assert found == [
        (8, 7, "write", "/old", 1, 15 * 10**7),
        (8, 7, "fdatasync", "/old", 0, 10**7),
    ]
    assert losses(result) == {"call_only": 2}


def test_failed_calls_close_no_descriptor(tmp_path: Path) -> None:
    failed = "= -1 ENOSYS (Function not implemented) <0.01>"
    data = lines(
        OPENED,
        f"7 {T}.2 close_range(3, 4294967295, 0) {failed}",
        f"7 {T}.3 close_range(3, 4294967295, CLOSE_RANGE_CLOEXEC) {failed}",
        f"7 {T}.4 fsync(3) = 0 <0.01>",
        f"7 {T}.5 close(3) = -1 EIO (Input/output error) <0.01>",
        f"7 {T}.6 fsync(3) = 0 <0.01>",
    )
    assert [row["path"] for row in syncs(tmp_path, data)] == ["/old", None]


def test_exec_by_a_thread_in_a_file_of_its_own(tmp_path: Path) -> None:
    data = lines(
        f'8 {T}.1 execve("/bin/x", ["x"], 0x7f /* 3 vars */ <pid changed to 7 ...>',
        f"7 {T}.2 +++ superseded by execve in pid 8 +++",
        f"7 {T}.3 <... execve resumed>) = 0 <0.01>",
        f"7 {T}.4 fsync(3) = 0 <0.01>",
    )
    result = core(tmp_path, data)
    assert [(row["tid"], row["pid"], row["comm"]) for row in result["sync"]] == [(7, 7, "x")]
    assert "unparsed_line" not in losses(result)


def test_a_child_in_another_namespace_has_the_id_that_strace_uses(tmp_path: Path) -> None:
    data = lines(
        OPENED,
        f"7 {T}.2 clone(child_stack=NULL, flags=SIGCHLD) = 2 /* 26513 in strace's PID NS */ <0.01>",
        f"26513 {T}.3 fsync(3) = 0 <0.01>",
    )
    assert [(row["tid"], row["path"]) for row in syncs(tmp_path, data)] == [(26513, "/old")]


def test_the_summary_at_the_end_is_no_loss(tmp_path: Path) -> None:
    data = lines(
        f"7 {T}.4 fsync(3) = 0 <0.01>",
        "% time     seconds  usecs/call     calls    errors syscall",
        "------ ----------- ----------- --------- --------- ----------------",
        " 99.92    0.003699           1         3         1 fsync",
        "  0.08    0.000003           1         3           gettid",
        "------ ----------- ----------- --------- --------- ----------------",
        "100.00    0.003702          14       253        25 total",
    )
    assert losses(core(tmp_path, data)) == {"call_only": 1}


@pytest.mark.parametrize(
    ("length", "ns"),
    [
        ("<0>", None),
        ("<0.000>", None),
        ("<0.012>", 12 * 10**6),
        ("<0.000000>", 0),
        ("<2>", 2 * 10**9),
    ],
)
def test_a_duration_that_is_too_coarse_is_unknown(
    length: str, ns: int | None, tmp_path: Path
) -> None:
    (row,) = syncs(tmp_path, lines(f"7 {T}.4 fsync(3) = 0 {length}"))
    assert row["syscall_ns"] == ns


def test_a_long_name_is_cut_as_in_the_kernel(tmp_path: Path) -> None:
    data = lines(
        f'7 {T}.1 prctl(PR_SET_NAME, "a very long thr"...) = 0 <0.01>',
        f"7 {T}.4 fsync(3) = 0 <0.01>",
    )
    assert [row["comm"] for row in syncs(tmp_path, data)] == ["a very long thr"]


def test_syncs_by_aio_are_a_loss(tmp_path: Path) -> None:
    data = lines(
        f"7 {T}.1 io_submit(0x7f, 1, [{{aio_data=0, aio_lio_opcode=IOCB_CMD_FDSYNC, aio_fildes=3}}]) = 1 <0.01>",
        f"7 {T}.2 io_submit(0x7f, 1, [{{aio_data=0, aio_lio_opcode=IOCB_CMD_PREAD, aio_fildes=3}}]) = 1 <0.01>",
        f"7 {T}.4 fsync(3) = 0 <0.01>",
    )
    assert losses(core(tmp_path, data))["io_uring"] == 1


def test_times_relative_to_lines_of_other_files_are_refused(tmp_path: Path) -> None:
    """With -ff, -r counts from the last line of any file. Here a line follows a call of 100 ms after only 12 ms."""
    begin = "     0.000000 fsync(3) = 0 <0.100000>"
    assert len(syncs(tmp_path, lines(begin, "     0.100020 fsync(3) = 0 <0.01>"))) == 2
    with pytest.raises(_core.CoreError, match="with -ff, -r counts from the lines of other files"):
        core(tmp_path, lines(begin, "     0.012000 fsync(3) = 0 <0.01>"))


def test_syncs_by_io_uring_are_a_loss(tmp_path: Path) -> None:
    data = log("uring.log")
    uses = data.count(b" io_uring_enter(")
    assert uses > 100
    with pytest.raises(_core.CoreError) as raised:
        convert(tmp_path, data, to="out.jsonl")
    message, hint, kind = raised.value.args
    assert f"uses io_uring or Linux AIO, whose syncs strace does not see ({uses} times)" in message
    assert kind == "input"
    assert "syncline record" in hint
    result = core(tmp_path, data + lines(f"2708  {T}.1 fsync(8) = 0 <0.1>"))
    assert losses(result)["io_uring"] == uses
    (row,) = [row for row in result["loss"] if row["reason"] == "io_uring"]
    assert row["severity"] == "loss"
    assert row["example"].endswith(":126: io_uring")


# Together with other inputs.

BOOT = 5_000_000_000_000
# strace stops a thread before and after the work of the kernel.
KERNEL = f"""{BOOT + 1_000_100} 7 wl fsync
{BOOT + 1_000_900} 7 wl start id 1 start 0 end 9 datasync 0 path /a/b
{BOOT + 1_500_000} 7 wl exit id 1 ret 0
{BOOT + 1_500_100} 7 wl fsync_exit ret 0
{BOOT + 9_000_100} 7 wl fsync
{BOOT + 9_500_100} 7 wl fsync_exit ret -22
""".encode()
STRACE = lines(
    f"7 {T}.001000 fsync(3</a/b>) = 0 <0.000502>",
    f"7 {T}.003000 fsync(4</proc/x>) = 0 <0.000100>",
    f"7 {T}.009000 fsync(5</c>) = -1 EINVAL (Invalid argument) <0.000502>",
)


def convert_inputs(folder: Path, *inputs: tuple[str, bytes], **options: Any) -> dict[str, Rows]:
    for name, data in inputs:
        (folder / name).write_bytes(data)
    _core.convert([str(folder / name) for name, _ in inputs], f"{folder}/out/", **options)
    return tables(folder / "out")


@pytest.mark.parametrize("order", [1, -1])
def test_a_call_in_two_inputs_is_one(order: int, tmp_path: Path) -> None:
    ends = [T * 10**9, BOOT, (T + 1) * 10**9, BOOT + 10**9]
    inputs = [("kernel.log", KERNEL), ("strace.log", STRACE)][::order]
    hints = {f"{tmp_path}/strace.log": InputHints(clocks=ends)}
    result = convert_inputs(tmp_path, *inputs, hints=hints)
    assert losses(result) == {"duplicate": 4, "call_only": 1, "unmatched_call": 1}
    first, second = result["sync"]
    # No event of a bio is in either log.
    assert (first["path"], first["bytes"], first["op"]) == ("/a/b", None, "fsync")
    # The times are those of the kernel's log.
    assert (first["ts_ns"], first["syscall_ns"]) == (BOOT + 1_000_100, 500_000)
    # A call that only strace recorded has only the columns of a call.
    assert (second["path"], second["bytes"], second["ts_ns"]) == ("/proc/x", None, BOOT + 3_000_000)
    # A call that both logs recorded, without a request in the kernel's log, gives no request.
    assert [call["unmatched"] for call in sorted(result["call"], key=lambda c: c["ts_ns"])] == [
        False,
        False,
        True,
    ]


def test_different_clocks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(_core.CoreError) as raised:
        convert_inputs(tmp_path, ("kernel.log", KERNEL), ("strace.log", STRACE))
    message, hint, kind = raised.value.args
    for text in ("kernel.log", "strace.log", "boottime", "realtime"):
        assert text in message
    assert kind == "input"
    assert hint
    relative = lines("     0.000100 fsync(3) = 0 <0.00001>")
    with pytest.raises(_core.CoreError, match="not on one clock"):
        convert_inputs(tmp_path, ("a.1", relative), ("a.2", relative + relative))


def test_times_of_a_run_directory_are_on_the_boot_clock(tmp_path: Path) -> None:
    (tmp_path / "strace.log").write_bytes(STRACE)
    clocks = [
        {"clocks_ns": {"realtime": (T + s) * 10**9, "boottime": BOOT + s * 10**9, "monotonic": 0}}
        for s in (0, 1)
    ]
    manifest = {"route": "strace", "inputs": [{"file": "strace.log", "source": "strace"}]}
    manifest |= dict(zip(("before", "after"), clocks, strict=True))
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    output = ok("query", tmp_path, "SELECT ts_ns FROM syncline_sync ORDER BY 1", "--format", "csv")
    assert output.split()[1:] == [str(BOOT + n) for n in (1_000_000, 3_000_000, 9_000_000)]
    output = ok("query", tmp_path, "SELECT value FROM syncline_meta WHERE key = 'clock'")
    assert "boottime" in output
    # A warning reports that the clock was set during the recording.
    manifest["after"]["clocks_ns"]["realtime"] += 7200 * 10**9  # type: ignore[index]
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    assert "was set by 7200.000 s" in run("report", tmp_path).stderr


# Other formats, and bad input.


@pytest.mark.parametrize("name", RECORDINGS)
def test_logs_of_the_thesis_are_not_detected_as_strace(name: str, tmp_path: Path) -> None:
    data = recording(name)[:50_000]
    source = tmp_path / "x.log"
    source.write_bytes(data[: data.rindex(b"\n") + 1])
    assert _core.convert([str(source)], f"{tmp_path}/out/")["source"] == "bpftrace"


@pytest.mark.parametrize(
    "text",
    [
        "# Notes\n\nfsync(2) flushes a file; close(2) does not.\n\n    fsync(3) = 0\n",
        "int main(void)\n{\n    int fd = open(path, O_RDWR);\n    return fsync(fd);\n}\n",
        '1783 1700000000.1 fopen("/a", "r") = 0x55\n1783 1700000000.2 malloc(24) = 0x77\n',
        "--- a/x.c\n+++ b/x.c\n@@ -1 +1 @@\n-fsync(3);\n+fdatasync(3);\n",
        "2026-11-21 20:10:12 server: fsync(3) = 0\n2026-11-21 20:10:13 server: ready\n",
    ],
)
def test_other_text_is_not_detected_as_strace(text: str, tmp_path: Path) -> None:
    source = tmp_path / "x.txt"
    source.write_text(text)
    assert "is in no format that Syncline reads" in fails(
        3, "convert", source, "-o", tmp_path / "x.csv"
    )


@pytest.mark.parametrize(
    ("data", "end"),
    [(b"", b""), (b"\n\n", b"\r")],
)
def test_unparsed_lines_are_shown_with_their_places(
    data: bytes, end: bytes, tmp_path: Path
) -> None:
    bad = [
        f"7 {T}.2 fsync(3",
        f"7 {T}.3 fsync(x) = 0",
        f"7 {T}.4 fsync(3) = -1 ENONSENSE (Nonsense)",
        "7 12:00:00 fsync(3) = 0",
        "7 fsync(3) = 0",
        "hello",
        f"99999999 {T}.5 fsync(3) = 0",
        f'7 {T}.6 openat(AT_FDCWD, "/a) = 3',
        f"7 {T}.7 <... fsync",
    ]
    text = [f"7 {T}.1 fsync(3) = 0 <0.1>", *bad, f"7 {T}.9 fsync(3) = 0 <0.1>"]
    source = tmp_path / "bad.log"
    source.write_bytes(data + b"".join(line.encode() + end + b"\n" for line in text))
    summary = _core.convert([str(source)], f"{tmp_path}/out/", source="strace")
    assert len(tables(tmp_path / "out")["sync"]) == 2
    (unparsed,) = [loss for loss in summary["losses"] if loss["reason"] == "unparsed_line"]
    assert unparsed["count"] == len(bad)
    first = 2 + data.count(b"\n")
    assert summary["unparsed"][0] == f"{source}:{first}: {bad[0]} (the call has no end)"
    message = fails(
        4, "convert", source, "-o", tmp_path / "x.csv", "--from", "strace", "--max-loss", "1"
    )
    assert f"{len(bad)} unparsed_line" in message


# Working directories, and logs without times: cwd.py.


def synced(rows: Rows, keys: tuple[str, ...] = ("op", "path", "ret")) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row[key] for key in keys) for row in rows)


@pytest.mark.parametrize("name", ["cwd-plain.log", "cwd-bare.log", "cwd-untimed.log"])
def test_relative_names_follow_the_working_directory(name: str, tmp_path: Path) -> None:
    """Syncline derives from the calls what `-yy` prints."""
    expected = synced(syncs(tmp_path, log("cwd-yy.log")))
    assert expected["fsync", "/data/sub/deep/e", 0] == 1
    assert expected["fdatasync", "/data/sub/g", 0] == expected["fdatasync", "/data/h", 0] == 3
    assert synced(syncs(tmp_path, log(name))) == expected


FORK = "7 {t}.2 clone(child_stack=NULL, flags=SIGCHLD) = 8 <0.01>"
THREAD = "7 {t}.2 clone(child_stack=0x7f, flags=CLONE_VM|CLONE_FS|CLONE_THREAD) = 8 <0.01>"
SHARED_FS = "7 {t}.2 clone(child_stack=0x7f, flags=CLONE_FS|SIGCHLD) = 8 <0.01>"


@pytest.mark.parametrize(
    ("between", "path"),
    [
        (['7 {t}.2 chdir("/d") = 0'], "/d/new"),
        (['7 {t}.2 chdir("/d") = -1 ENOENT (No such file or directory)'], "new"),
        (['7 {t}.2 chdir("d") = 0', '7 {t}.3 chdir("e/") = 0'], "d/e/new"),
        (["7 {t}.2 chdir( <unfinished ...>", '7 {t}.3 <... chdir resumed>"/d") = 0'], "new"),
        (['7 {t}.2 chdir("/d" <unfinished ...>', "7 {t}.3 <... chdir resumed>) = 0"], "/d/new"),
        (["7 {t}.2 fchdir(3) = 0"], "/old/new"),
        (["7 {t}.2 fchdir(3</d>) = 0"], "/d/new"),
        (["7 {t}.2 fchdir(3) = -1 ENOTDIR (Not a directory)"], "new"),
        (['7 {t}.2 getcwd("/d", 4096) = 3'], "/d/new"),
        # A child has a copy of the directory, a thread has the same one.
        ([FORK, '8 {t}.3 chdir("/d") = 0'], "new"),
        ([THREAD, '8 {t}.3 chdir("/d") = 0'], "/d/new"),
        ([SHARED_FS, '8 {t}.3 chdir("/d") = 0'], "/d/new"),
        ([THREAD, "8 {t}.3 unshare(CLONE_FS) = 0", '8 {t}.4 chdir("/d") = 0'], "new"),
        ([THREAD, "8 {t}.3 unshare(CLONE_FILES) = 0", '8 {t}.4 chdir("/d") = 0'], "/d/new"),
        (['7 {t}.2 chdir("/d") = 0', '7 {t}.3 execve("/bin/x", ["x"], 0x7f) = 0'], "/d/new"),
        # The directory in which a call begins counts.
        (['7 {t}.2 chdir("/d") = 0', FORK, '7 {t}.3 chdir("/e") = 0'], "/e/new"),
    ],
)
def test_the_working_directory(between: list[str], path: str, tmp_path: Path) -> None:
    after = ['7 {t}.6 openat(AT_FDCWD, "./new", O_RDWR) = 5', "7 {t}.7 fsync(5) = 0 <0.01>"]
    data = lines(OPENED, *(line.replace("{t}", str(T)) for line in (*between, *after)))
    found = syncs(tmp_path, data)
    # Without a directory, the name is as printed.
    assert [row["path"] for row in found] == [path if path != "new" else "./new"]
    assert not losses(core(tmp_path, data)).get("unparsed_line")


def test_a_log_without_times_has_the_timeline_of_its_lines(tmp_path: Path) -> None:
    timed, untimed = (core(tmp_path, log(f"cwd-{name}.log")) for name in ("yy", "untimed"))
    meta = {row["key"]: row["value"] for row in untimed["meta"]}
    assert meta["clock"] == "line_order"
    assert all(row["dur_ns"] > 0 for row in untimed["sync"])
    assert losses(untimed) == losses(timed)
    # The order of the calls is that of the log, and the calls of one thread do not overlap.
    ends: dict[int, int] = {}
    for row in sorted(untimed["sync"], key=lambda row: row["ts_ns"]):
        assert row["ts_ns"] >= ends.get(row["tid"], 0)
        ends[row["tid"]] = row["ts_ns"] + row["dur_ns"]
    # Without -T, a duration is not known.
    bare = core(tmp_path, log("cwd-bare.log"))
    assert all(row["dur_ns"] is None and row["syscall_ns"] is None for row in bare["sync"])
    assert losses(bare)["duration_missing"] == len(bare["sync"]) == len(timed["sync"])


def test_interrupted_calls_of_a_log_without_times_last_as_printed(tmp_path: Path) -> None:
    data = lines(
        "7 fsync(3</a> <unfinished ...>",
        "8 fdatasync(4</b>) = 0 <0.000500>",
        "7 <... fsync resumed>) = 0 <0.002000>",
        "7 fdatasync(3</a>) = 0 <0.000100>",
        "8 fsync(4</b>) = 0",
    )
    found = sorted(syncs(tmp_path, data), key=lambda row: row["ts_ns"])
    assert [(row["path"], row["ts_ns"], row["dur_ns"]) for row in found] == [
        ("/a", 0, 2_000_000),
        ("/b", 1_000, 500_000),
        # After the end of the interrupted call, and a step of 1 us for each line.
        ("/a", 2_001_000, 100_000),
        ("/b", 2_102_000, None),
    ]


def test_a_report_says_that_a_log_has_no_times(tmp_path: Path) -> None:
    done = run("report", DATA / "cwd-untimed.log", "files")
    assert "has no times: its timeline is made of the order of its lines" in done.stderr
    assert "/data/sub/deep/d" in done.stdout


def test_the_low_level_log_of_a_log_without_times_gives_the_same(tmp_path: Path) -> None:
    for name in ("cwd-untimed.log", "cwd-bare.log"):
        events = convert(tmp_path, log(name), "out.events.jsonl").read_bytes()
        direct, again = core(tmp_path, log(name)), core(tmp_path, events, name="events")
        assert direct["sync"] == again["sync"]


def test_a_log_without_times_joins_no_other_and_times_must_not_begin_later(tmp_path: Path) -> None:
    (tmp_path / "x.1").write_bytes(lines("fsync(3</a>) = 0"))
    (tmp_path / "x.2").write_bytes(lines("fsync(3</b>) = 0"))
    message = fails(3, "convert", tmp_path / "x.1", tmp_path / "x.2", "-o", tmp_path / "x.csv")
    assert "line_order" in message
    mixed = core(tmp_path, lines("7 fsync(3) = 0 <0.1>", f"7 {T}.1 fsync(3) = 0 <0.1>"))
    assert losses(mixed)["unparsed_line"] == 1


def test_a_compressed_log_is_read_from_a_pipe(tmp_path: Path) -> None:
    packed = gzip.compress(log("small4.log"))
    out = ok("convert", "-q", "-", "-o", "-", "--to", "csv", stdin=packed)
    assert len(out.splitlines()) == 101


def test_recordings_of_the_thesis_have_no_call_only_rows(tmp_path: Path) -> None:
    result = core(tmp_path, (THESIS / "small1.log").read_bytes())
    assert all(row["id"] is not None and row["bytes"] is not None for row in result["sync"])


def test_a_broken_line_does_not_continue_after_a_stack(tmp_path: Path) -> None:
    data = lines(
        "7 1795294620.000001 fsync(3) = 0 <0.000010>",
        "7 1795294620.000020 fsync(3strace: Process 8 attached",
        " > /usr/lib/libc.so.6(fsync+0x7) [0x3c267]",
        "8 1795294620.000030 fsync(4) = 0 <0.000010>",
    )
    result = core(tmp_path, data)
    assert [(row["tid"], row["dur_ns"]) for row in result["sync"]] == [(7, 10_000), (8, 10_000)]
    # The torn line, and the stack without a call.
    losses = {row["reason"]: row["count"] for row in result["loss"]}
    assert losses == {"unparsed_line": 2, "call_only": 2}


@pytest.mark.parametrize("to", ["csv", "events.jsonl"])
def test_a_log_that_ends_inside_a_line_has_an_unparsed_line(to: str, tmp_path: Path) -> None:
    """Also if the call on that line is no sync call."""
    source = tmp_path / "cut.log"
    first, last = f"7 {T}.1 fsync(3) = 0 <0.1>\n", f'7 {T}.2 stat("/a(b", {{st_size=7}}) = 0 <0.1>'
    # Without -T, a line ends after its result.
    is_whole = [*range(last.index(" <"), last.index("<") + 1), len(last)]
    for length in [*range(1, last.index("<") + 1), len(last)]:
        source.write_text(first + last[:length])
        summary = _core.convert([str(source)], f"{tmp_path}/out.{to}", source="strace")
        unparsed = [
            loss["count"] for loss in summary["losses"] if loss["reason"] == "unparsed_line"
        ]
        assert unparsed == ([] if length in is_whole else [1]), last[:length]


def test_files_of_threads_without_sync_calls_are_accepted(tmp_path: Path) -> None:
    """`strace -ff` writes a file for each thread, and most threads make no sync call."""
    files = {
        "x.1": lines("1795294620.000001 fsync(3) = 0"),
        "x.2": lines("1795294620.000003 getpid() = 3", "1795294620.000004 +++ exited with 0 +++"),
        "x.3": lines("1795294620.000004 +++ exited with 0 +++"),
        "x.4": lines("1795294620.000004 +++ exited with 0 +++"),
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    paths = [tmp_path / name for name in files]
    for order in (paths, paths[::-1]):
        table = ok("convert", "-q", *order, "-o", "-", "--to", "csv")
        assert len(table.splitlines()) == 2
    for without_syncs in (paths[1:], paths[1:2]):
        assert "is a sync call" in fails(3, "convert", *without_syncs, "-o", tmp_path / "x.csv")
    (tmp_path / "x.3").write_bytes(
        lines("1795294620.000003 getpid() = 3", "1795294620.000004 fsync(3")
    )
    assert "x.3: none of its 2 lines" in fails(3, "convert", *paths, "-o", tmp_path / "x.csv")


# Lines that are missing or torn.

UNSEEN = f'7 {T}.05 openat(AT_FDCWD, "/d/g", O_RDWR) = 4 <0.01>'


@pytest.mark.parametrize(
    "resumed",
    [
        # The call that it ends began at .9936, not at .1.
        "7 {t}.999 <... fsync resumed>) = 0 <0.0054>",
        "7 {t}.999 <... fdatasync resumed>) = 0 <0.899>",
    ],
)
def test_a_resumed_line_of_another_call_ends_no_sync(resumed: str, tmp_path: Path) -> None:
    data = lines(OPENED, f"7 {T}.1 fsync(3 <unfinished ...>", resumed.replace("{t}", str(T)))
    result = core(tmp_path, data)
    (row,) = result["sync"]
    assert (row["op"], row["path"], row["dur_ns"], row["incomplete"]) == (
        "fsync",
        "/old",
        None,
        "end",
    )
    assert losses(result) == {"call_only": 1, "end_missing": 1, "unmatched_exit": 1}
    low = convert(tmp_path, data, "low.events.jsonl")
    again = core(tmp_path, low.read_bytes())
    assert (again["sync"], losses(again)) == (result["sync"], losses(result))


@pytest.mark.parametrize(
    ("delay", "is_its"), [(0.000001, True), (0.09, True), (-0.02, False), (0.2, False)]
)
def test_a_printed_duration_wins_unless_it_is_impossible(
    delay: float, is_its: bool, tmp_path: Path
) -> None:
    """strace prints that a call has resumed some time after it has returned, and never before."""
    end = f"{0.1 + 0.3 + delay:.6f}".removeprefix("0")
    data = lines(
        f"7 {T}.1 fsync(3 <unfinished ...>", f"7 {T}{end} <... fsync resumed>) = 0 <0.300000>"
    )
    (row,) = core(tmp_path, data)["sync"]
    assert row["dur_ns"] == (300_000_000 if is_its else None)


@pytest.mark.parametrize(
    ("others", "is_its"),
    [
        # 34.6 of the 40 ms are not of the call. strace was not delayed for longer than 10 ms in the first line, and 10 ms in the last one.
        ([".110000", ".130000"], False),
        # It may have been for 30 ms in the last line, or for 30 ms in the first one.
        ([".110000"], True),
        ([".130000"], True),
    ],
)
def test_strace_prints_no_other_line_while_it_is_delayed(
    others: list[str], is_its: bool, tmp_path: Path
) -> None:
    """Even a call that is of no interest says when strace was not delayed, and wherever a chunk of 1 MiB ends."""
    text = [
        f"7 {T}.100000 fsync(3 <unfinished ...>",
        *(f"8 {T}{time} futex(0x7f0000000000, FUTEX_WAKE, 1) = 0 <0.0001>" for time in others),
        f"7 {T}.140000 <... fsync resumed>) = 0 <0.005400>",
    ]
    for count in range(len(text)):
        data = lines(*text)
        if count:
            # The chunk ends after this many of the lines.
            filling = (1 << 20) - len(lines(*text[:count])) - 1
            short = f"8 {T}.000000 getpid() = 7 <0.000001>\n"
            pad = short.replace("getpid()", "getpid()" + " " * (filling % len(short)))
            data = (pad + short * (filling // len(short) - 1)).encode() + data
        result = core(tmp_path, data)
        (row,) = result["sync"]
        assert (row["dur_ns"], row["incomplete"]) == (
            (5_400_000, None) if is_its else (None, "end")
        ), count
        assert losses(result).get("unmatched_exit", 0) == (not is_its)


def test_coarse_times_and_durations_do_not_contradict(tmp_path: Path) -> None:
    for clock, resumed in (("20:18:27", "20:18:29"), ("20:18:27.121", "20:18:28.999")):
        data = lines(
            f"7 {clock} fsync(3 <unfinished ...>", f"7 {resumed} <... fsync resumed>) = 0 <1>"
        )
        data = data.replace(b"28.999", b"28.125")
        assert syncs(tmp_path, data)[0]["dur_ns"] == 10**9


@pytest.mark.parametrize(
    "between",
    [
        # Descriptor 3 was closed and opened again. What happened to 4?
        ["7 {t}.2 close(9) = 0 <0.01>", '7 {t}.3 openat(AT_FDCWD, "/new", O_RDWR) = 3 <0.01>'],
        ["7 {t}.2 close(9) = 0 <0.01>", "7 {t}.3 socket(AF_INET, SOCK_STREAM, 0) = 3 <0.01>"],
        ["7 {t}.2 close(9) = 0 <0.01>", "7 {t}.3 pipe([3, 5]) = 0 <0.01>"],
        # The return of a call, or its beginning, is missing.
        ["7 {t}.2 fsync(3 <unfinished ...>", "7 {t}.3 fdatasync(3) = 0 <0.01>"],
        ["7 {t}.2 <... openat resumed>) = 9 <0.01>"],
        [
            '7 {t}.2 openat(AT_FDCWD, "/d/h", O_RDWR <unfinished ...>',
            "7 {t}.9 <... openat resumed>) = 9 <0.01>",
        ],
        # Torn lines, which may have been any call.
        ["7 {t}.2 cl"],
        ['7 {t}.2 openat(AT_FDCWD, "/d/h", O_RD'],
        ['7 {t}.2 fsync(38 {t}.3 openat(AT_FDCWD, "/d/h", O_RDWR) = 4 <0.01>'],
        ['7 {t}.2 openat(AT_FDCWD, "/d/h8 {t}.3 write(5, "b", 1) = 1 <0.01>'],
        ["17952"],
    ],
)
def test_a_path_is_unknown_after_lines_that_are_missing(between: list[str], tmp_path: Path) -> None:
    between = [line.replace("{t}", str(T)) for line in between]
    data = lines(OPENED, UNSEEN, *between, f"7 {T}.95 fdatasync(4) = 0 <0.01>")
    found = [row for row in syncs(tmp_path, data) if row["ts_ns"] % 10**9 == 950_000_000]
    assert [(row["op"], row["path"], row["dur_ns"]) for row in found] == [
        ("fdatasync", None, 10**7)
    ]
    # A path that strace prints is known all the same.
    found = syncs(tmp_path, data.replace(b"fdatasync(4)", b"fdatasync(4</d/g>)"))
    assert found[-1]["path"] == "/d/g"


@pytest.mark.parametrize(
    "between",
    [
        # An output of the program, and a call that is no use of descriptors.
        ["hello", "Attaching"],
        # The log has no close at all, so it was recorded without.
        ['7 {t}.3 openat(AT_FDCWD, "/new", O_RDWR) = 3 <0.01>'],
        ["7 {t}.2 close(3) = 0 <0.01>", '7 {t}.3 openat(AT_FDCWD, "/new", O_RDWR) = 3 <0.01>'],
        # Descriptors that another program duplicates on purpose.
        ["7 {t}.2 close(9) = 0 <0.01>", "7 {t}.3 dup2(5, 3) = 3 <0.01>"],
        # The log begins in this call.
        ["9 {t}.2 <... openat resumed>) = 9 <0.01>"],
        ["7 {t}.2 ioctl(3, FIOCLEX <unfinished ...>", "7 {t}.3 <... ioctl resumed>) = 0 <0.1>"],
        ["7 {t}.2 close(9 <unfinished ...>", "7 {t}.3 <... close resumed>) = 0 <0.1>"],
        ["7 {t}.2 exit(0 <unfinished ...>", "7 {t}.3 <... exit resumed>) = ?"],
    ],
)
def test_a_path_stays_known_where_nothing_is_missing(between: list[str], tmp_path: Path) -> None:
    between = [line.replace("{t}", str(T)) for line in between]
    data = lines(OPENED, UNSEEN, *between, f"7 {T}.95 fdatasync(4) = 0 <0.01>")
    assert [row["path"] for row in syncs(tmp_path, data)] == ["/d/g"]


@pytest.mark.parametrize(
    ("path", "ret", "shown"),
    [
        ("/dev/urandom", "0", None),
        ("/dev/pts/0", "-1 EIO (Input/output error)", None),
        ("/dev/pts/0", "-1 EINVAL (Invalid argument)", "/dev/pts/0"),
        ("/dev/sda", "0", "/dev/sda"),
    ],
)
def test_a_sync_of_a_device_without_one_is_of_another_file(
    path: str, ret: str, shown: str | None, tmp_path: Path
) -> None:
    data = lines(
        f'7 {T}.1 openat(AT_FDCWD, "{path}", O_RDONLY) = 3 <0.0001>',
        f"7 {T}.2 fsync(3) = {ret} <0.007>",
    )
    assert [row["path"] for row in syncs(tmp_path, data)] == [shown]


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0), (1, 2, 0)])
def test_the_order_of_pieces_changes_no_path(order: tuple[int, ...], tmp_path: Path) -> None:
    pieces = [
        lines(f'7 {T}.0 openat(AT_FDCWD, "/etc/passwd", O_RDONLY) = 3 <0.0001>'),
        lines(
            f'7 {T + 1}.0 openat(AT_FDCWD, "/d/f", O_RDWR) = 3 <0.0001>',
            f"7 {T + 1}.1 fsync(3) = 0 <0.007>",
        ),
        lines(f"7 {T + 2}.0 fsync(3) = 0 <0.007>"),
    ]
    paths = [tmp_path / f"p{n}.log" for n in range(3)]
    for path, piece in zip(paths, pieces, strict=True):
        path.write_bytes(piece)
    _core.convert([str(paths[n]) for n in order], f"{tmp_path}/out/")
    assert [row["path"] for row in tables(tmp_path / "out")["sync"]] == ["/d/f", "/d/f"]


@pytest.mark.parametrize(
    "torn",
    [
        "7 {t}.2 fsync(3) = 0 <",
        "7 {t}.2 fsync(3) = 0 <0.01",
        "7 {t}.2 fsync(3) = -1 EIO (Input/out",
        "7 {t}.2 fsync(3) = 8 {t}.3 <... write resumed>) = 200 <0.01>",
        '7 {t}.2 <... fsync resumed>8 {t}.3 write(4, "x", 1) = 1 <0.01>',
        "77777    {t}.2 fsync(3) = 0 <0.01>",
    ],
)
def test_a_torn_line_is_unparsed(torn: str, tmp_path: Path) -> None:
    data = lines(
        f"7     {T}.1 fsync(3) = 0 <0.01>",
        torn.replace("{t}", str(T)),
        f"7     {T}.4 fsync(3) = 0 <0.01>",
    )
    result = core(tmp_path, data)
    assert [row["ts_ns"] % 10**9 for row in result["sync"]] == [100_000_000, 400_000_000]
    assert losses(result) == {"unparsed_line": 1, "call_only": 2}


def test_a_result_without_the_duration_that_others_have_is_torn(tmp_path: Path) -> None:
    """The descriptor may have had more digits."""
    timed = [f'7 {T}.{n} read(9, "x", 1) = 1 <0.01>' for n in range(10, 30)]
    timed = [line.replace("read", "write") for line in timed]
    opened = f'7 {T}.3 openat(AT_FDCWD, "/a", O_RDWR) = 3'
    data = lines(*timed, opened, f"7 {T}.4 fsync(3) = 0 <0.01>", f"7 {T}.5 fsync(3) = 0")
    result = core(tmp_path, data)
    assert [(row["path"], row["dur_ns"]) for row in result["sync"]] == [(None, 10**7), (None, None)]
    assert losses(result) == {"unparsed_line": 1, "call_only": 2, "duration_missing": 1}
    # As in a log that begins without -T.
    data = lines(opened, f"7 {T}.4 fsync(3) = 0 <0.01>", f"7 {T}.5 fsync(3) = 0")
    assert [row["path"] for row in syncs(tmp_path, data)] == ["/a", "/a"]

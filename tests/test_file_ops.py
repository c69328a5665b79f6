"""Operations on files: recordings against what the programs did and against a second reader; generated and damaged logs."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from syncline import _core

from tests.coretools import convert, core, recording, tables
from tests.reference import file_ops, stracegen
from tests.test_commands import ok

DATA = Path(__file__).parent / "data"
LOGS = sorted(path.name for path in (DATA / "files").glob("*.log.gz"))
T = 1_795_196_964_000_000_000
KEYS = (
    *("tid", "ts_ns", "dur_ns", "pid", "comm", "op", "fd", "path", "to_path", "flags"),
    *("created", "offset_bytes", "bytes", "ret", "confidence", "incomplete"),
)
SHORT = ("op", "fd", "path", "to_path", "flags", "created", "offset_bytes", "bytes", "ret")

Rows = list[dict[str, Any]]


def log(name: str) -> bytes:
    return recording(str(DATA / "files" / name))


def lines(*texts: str) -> bytes:
    return "".join(f"{text}\n" for text in texts).encode()


def ops(folder: Path, data: bytes, **options: Any) -> Rows:
    return core(folder, data, **options)["file_op"]


def compared(rows: Rows) -> list[tuple[Any, ...]]:
    """By thread, each in its own order."""
    of_threads = sorted(rows, key=lambda row: row["tid"])
    return [tuple(row[key] for key in KEYS) for row in of_threads]


def short(rows: Rows) -> list[tuple[Any, ...]]:
    return [tuple(row[key] for key in SHORT) for row in rows]


# Recordings.


# The second reader does not follow the working directory into the table of descriptors.
@pytest.mark.parametrize("name", [name for name in LOGS if name != "saver-plain.log.gz"])
def test_a_second_reader_finds_the_same_operations(name: str, tmp_path: Path) -> None:
    result = core(tmp_path, log(name))
    rows = [row for row in result["file_op"] if row["op"] != "map"]
    assert compared(rows) == compared(file_ops.rows(log(name)))
    assert [row["op_id"] for row in result["file_op"]] == [*range(1, len(result["file_op"]) + 1)]
    assert {row["reason"] for row in result["loss"]} <= {"call_only"}


@pytest.mark.parametrize("name", ["saver-y.log.gz", "saver-plain.log.gz"])
def test_operations_are_those_of_the_program(name: str, tmp_path: Path) -> None:
    """What tests/data/files/saver.py does, as its lines say."""
    rows = ops(tmp_path, log(name))
    begin = next(row["op_id"] for row in rows if row["op"] == "mkdir")
    done = [row for row in rows if row["op_id"] >= begin]
    at = "/tmp/saves/"
    new, any_, cut = ("O_WRONLY|O_CREAT" + more for more in ("|O_EXCL", "", "|O_TRUNC"))
    end = "|O_CLOEXEC"
    folder = (3, "/tmp/saves", None, "O_RDONLY|O_CLOEXEC|O_DIRECTORY", False, None, None, 3)
    closed = (None, None, None, None, None, 0)

    def opened(name: str, flags: str, created: bool | None) -> tuple[Any, ...]:
        return ("open", 3, at + name, None, flags + end, created, None, None, 3)

    def written(fd: int, name: str, length: int, offset: int | None = None) -> tuple[Any, ...]:
        return ("write", fd, at + name, None, None, None, offset, length, length)

    def moved(name: str, to: str, ret: int) -> tuple[Any, ...]:
        return ("rename", None, at + name, at + to, None, None, None, None, ret)

    def plain(op: str, name: str, created: bool | None) -> tuple[Any, ...]:
        return (op, None, at + name, None, None, created, None, None, 0)

    assert short(done) == [
        plain("mkdir", "sub", True),
        opened("a.tmp", new, True),
        written(3, "a.tmp", 100),
        written(3, "a.tmp", 2, 4096),
        ("close", 3, at + "a.tmp", *closed),
        moved("a.tmp", "a", 0),
        ("open", *folder),
        ("close", 3, "/tmp/saves", *closed),
        opened("b", cut, None),
        written(3, "b", 10),
        ("truncate", 3, at + "b", None, None, None, 5, None, 0),
        ("close", 3, at + "b", *closed),
        opened("sub/c.tmp", new, True),
        written(3, "sub/c.tmp", 30),
        ("close", 3, at + "sub/c.tmp", *closed),
        moved("sub/c.tmp", "sub/c", 0),
        opened("d", any_, None),
        written(3, "d", 50),
        ("dup", 3, at + "d", None, "F_DUPFD_CLOEXEC", None, None, None, 4),
        written(4, "d", 7),
        ("close", 4, at + "d", *closed),
        ("close", 3, at + "d", *closed),
        ("open", *folder),
        ("close", 3, "/tmp/saves", *closed),
        opened("e", any_ + "|O_DSYNC", None),
        written(3, "e", 20),
        ("close", 3, at + "e", *closed),
        plain("mkdir", "k", True),
        plain("rmdir", "k", None),
        ("symlink", None, at + "s", "a", None, True, None, None, 0),
        ("link", None, at + "a", at + "l", None, True, None, None, 0),
        plain("unlink", "s", None),
        ("open", 3, at + "b", None, "O_RDWR" + end, False, None, None, 3),
        ("allocate", 3, at + "b", None, None, None, 0, 8192, 0),
        ("close", 3, at + "b", *closed),
        moved("no", "x", -2),
        moved("sub", "a", -20),
        ("exit", None, None, None, None, None, None, None, None),
    ]
    shown = {"open", "write", "close", "truncate", "dup", "allocate"} if "-y" in name else set()
    for row in done:
        of_call = row["op"] in shown or row["op"] == "exit"
        assert row["confidence"] == ("exact" if of_call else "inferred"), row
        assert row["incomplete"] is None
    # The kernel makes a durable write both.
    (sync,) = [row for row in tables(tmp_path / "out")["sync"] if row["op"] == "write"]
    assert (sync["path"], sync["ret"]) == (at + "e", 20)


# The calls, one by one.


@pytest.mark.parametrize(
    ("call", "row"),
    [
        ('creat("/a", 0600) = 3', ("open", 3, "/a", None, "O_WRONLY|O_CREAT|O_TRUNC", None) + (None,) * 2 + (3,)),
        (
            'openat2(AT_FDCWD, "/a", {flags=O_RDWR|O_CREAT|O_EXCL, mode=0600, resolve=0}, 24) = 5',
            ("open", 5, "/a", None, "O_RDWR|O_CREAT|O_EXCL", True, None, None, 5),
        ),
        ('open("/a", O_RDONLY) = -1 ENOENT (No such file or directory)', ("open", None, "/a", None, "O_RDONLY", False, None, None, -2)),
        # The file system may have made the file and then refused the flags.
        ('open("/a", O_WRONLY|O_CREAT|O_DIRECT, 0600) = -1 EINVAL (Invalid argument)', ("open", None, "/a", None, "O_WRONLY|O_CREAT|O_DIRECT", None, None, None, -22)),
        ('open("/a", O_WRONLY|O_CREAT|O_EXCL, 0600) = -1 EEXIST (File exists)', ("open", None, "/a", None, "O_WRONLY|O_CREAT|O_EXCL", False, None, None, -17)),
        # A file without a name is not its folder.
        ('open("/d", O_RDWR|O_TMPFILE, 0600) = 4', ("open", 4, None, None, "O_RDWR|O_TMPFILE", True, None, None, 4)),
        ("pwritev2(3</a>, [{iov_base=\"\"..., iov_len=9}], 1, -1, RWF_APPEND) = 9", ("write", 3, "/a", None, "RWF_APPEND", None, None, 9, 9)),
        ("pwritev(3</a>, [{iov_base=\"\"..., iov_len=9}], 1, 70) = -1 ENOSPC (No space left on device)", ("write", 3, "/a", None, None, None, 70, None, -28)),
        ("sendfile(4</b>, 3</a>, [0] => [5], 5) = 5", ("write", 4, "/b", None, None, None, None, 5, 5)),
        ("copy_file_range(3</a>, [0], 4</b>, [8], 5, 0) = 5", ("write", 4, "/b", None, None, None, 8, 5, 5)),
        ("sendto(5<TCP:[10.0.0.1:5->10.0.0.2:6]>, \"\"..., 2, 0, NULL, 0) = 2", ("send", 5, "TCP:[10.0.0.1:5->10.0.0.2:6]", None, None, None, None, 2, 2)),
        ("write(1<pipe:[77]>, \"\"..., 2) = 2", ("write", 1, "pipe:[77]", None, None, None, None, 2, 2)),
        ('truncate("/a", 12) = 0', ("truncate", None, "/a", None, None, None, 12, None, 0)),
        ("fallocate(3</a>, FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE, 4096, 8) = 0", ("allocate", 3, "/a", None, "FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE", None, 4096, 8, 0)),
        ('renameat2(3</d>, "a", AT_FDCWD</e>, "./b", RENAME_EXCHANGE) = 0', ("rename", None, "/d/a", "/e/b", "RENAME_EXCHANGE", None, None, None, 0)),
        ('linkat(AT_FDCWD, "/proc/self/fd/4", AT_FDCWD, "/d/n", AT_SYMLINK_FOLLOW) = 0', ("link", None, None, "/d/n", "AT_SYMLINK_FOLLOW", True, None, None, 0)),
        ('symlinkat("../x", 3</d>, "l") = 0', ("symlink", None, "/d/l", "../x", None, True, None, None, 0)),
        ('unlinkat(3</d>, "f", 0) = 0', ("unlink", None, "/d/f", None, None, None, None, None, 0)),
        ('unlinkat(3</d>, "f", AT_REMOVEDIR) = 0', ("rmdir", None, "/d/f", None, "AT_REMOVEDIR", None, None, None, 0)),
        ('mkdirat(3</d>, "f", 0777) = 0', ("mkdir", None, "/d/f", None, None, True, None, None, 0)),
        ("dup3(3</a>, 9, O_CLOEXEC) = 9</a>", ("dup", 3, "/a", None, "O_CLOEXEC", None, None, None, 9)),
        ("close(3</a>(deleted)) = 0", ("close", 3, "/a (deleted)", None, None, None, None, None, 0)),
        ("mmap(NULL, 8192, PROT_READ|PROT_WRITE, MAP_SHARED, 3</a>, 0x1000) = 0x7f0000000000", ("map", 3, "/a", None, "PROT_READ|PROT_WRITE|MAP_SHARED", None, 4096, 8192, 0x7F0000000000)),
        ("mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, 3</a>, 0) = 0x7f0000000000", None),
        ("fcntl(3</a>, F_GETFL) = 0x8002 (flags O_RDWR|O_LARGEFILE)", None),
        ("exit_group(1) = ?", ("exit", *(None,) * 8)),
        ("read(3</a>, \"\"..., 5) = 5", None),
    ],
)  # fmt: skip
def test_each_call(call: str, row: tuple[Any, ...] | None, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    data = lines(f"7 1795196964.000001 {call}", "7 1795196964.000100 fsync(9</z>) = 0")
    assert short(ops(tmp_path, data)) == ([] if row is None else [row])


def test_a_relative_name_is_in_the_folder_that_another_call_shows(tmp_path: Path) -> None:
    """-y prints the working directory where a call takes a folder, and rename() takes none. A child begins where its parent is."""
    data = lines(
        '7 1795196964.000100 rename("t", "f") = 0',
        '7 1795196964.000200 openat(AT_FDCWD</d>, "/etc/x", O_RDONLY) = -1 ENOENT (No such file or directory)',
        '7 1795196964.000300 rename("t", "./f") = 0',
        "7 1795196964.000400 fork() = 8",
        '8 1795196964.000500 unlink("f") = 0',
        '8 1795196964.000600 chdir("e") = 0',
        '8 1795196964.000700 mkdir("g", 0777) = 0',
        '7 1795196964.000800 mkdir("g", 0777) = 0',
    )
    rows = [row for row in ops(tmp_path, data) if row["op"] != "open"]
    assert [(row["tid"], row["op"], row["path"], row["to_path"]) for row in rows] == [
        # Nothing has shown the folder yet.
        (7, "rename", "t", "f"),
        (7, "rename", "/d/t", "/d/f"),
        (8, "unlink", "/d/f", None),
        (8, "mkdir", "/d/e/g", None),
        (7, "mkdir", "/d/g", None),
    ]
    assert {row["confidence"] for row in rows} == {"inferred"}


def test_a_call_in_two_lines_and_one_without_return(tmp_path: Path) -> None:
    data = lines(
        '7 1795196964.000100 rename("/a", "/b" <unfinished ...>',
        '8 1795196964.000150 write(3</c>, ""..., 5 <unfinished ...>',
        "7 1795196964.000300 <... rename resumed>) = 0 <0.000190>",
        "8 1795196964.000400 +++ killed by SIGKILL +++",
        '7 1795196964.000500 unlink("/b" <unfinished ...>',
    )
    rows = ops(tmp_path, data)
    keys = ("tid", "op", "path", "ts_ns", "dur_ns", "ret", "bytes", "incomplete", "confidence")
    assert [tuple(row[key] for key in keys) for row in rows] == [
        (7, "rename", "/a", T + 100_000, 190_000, 0, None, None, "exact"),
        (8, "write", "/c", T + 150_000, None, None, None, "end", "exact"),
        (8, "exit", None, T + 400_000, None, None, None, None, "exact"),
        (7, "unlink", "/b", T + 500_000, None, None, None, "end", "exact"),
    ]


def test_a_thread_ends_once_whoever_ends_it(tmp_path: Path) -> None:
    """8 calls exit, 7 exit_group, which ends 9 too; a signal kills 10, and dumps its core."""
    data = lines(
        '7 1795196964.000050 execve("/bin/p", ["p"], 0x7 /* 1 var */) = 0',
        "7 1795196964.000100 clone(child_stack=0x1, flags=CLONE_VM|CLONE_FILES|CLONE_THREAD) = 8",
        "7 1795196964.000200 clone(child_stack=0x2, flags=CLONE_VM|CLONE_FILES|CLONE_THREAD) = 9",
        '9 1795196964.000300 write(3</c>, ""..., 5) = 5',
        "8 1795196964.000400 exit(0) = ?",
        "8 1795196964.000500 +++ exited with 0 +++",
        "7 1795196964.000600 exit_group(0) = ?",
        "9 1795196964.000700 +++ exited with 0 +++",
        "7 1795196964.000800 +++ exited with 0 +++",
        '10 1795196964.000900 write(3</c>, ""..., 5) = 5',
        "10 1795196964.001000 +++ killed by SIGABRT (core dumped) +++",
    )
    ends = [row for row in ops(tmp_path, data) if row["op"] == "exit"]
    assert [(row["tid"], row["pid"], row["ts_ns"], row["flags"]) for row in ends] == [
        (8, 7, T + 400_000, None),
        (7, 7, T + 600_000, None),
        (9, 7, T + 700_000, None),
        (10, None, T + 1_000_000, "SIGABRT"),
    ]


def test_a_return_without_its_begin(tmp_path: Path) -> None:
    """Another call begins in between, so the line of the return is not that of the begun call."""
    data = lines(
        '7 1795196964.000100 write(3</a>, ""..., 9 <unfinished ...>',
        "7 1795196964.000200 fsync(3</a>) = 0 <0.000010>",
        "7 1795196964.000500 <... write resumed>) = 9 <0.000100>",
        "7 1795196964.000600 <... unlink resumed>) = 0",
    )
    rows = ops(tmp_path, data)
    keys = ("op", "path", "fd", "ts_ns", "dur_ns", "ret", "bytes", "incomplete", "confidence")
    assert [tuple(row[key] for key in keys) for row in rows] == [
        ("write", "/a", 3, T + 100_000, None, None, None, "end", "exact"),
        ("write", None, None, T + 400_000, 100_000, 9, 9, "start", "unknown"),
        ("unlink", None, None, T + 600_000, None, 0, None, "start", "unknown"),
    ]


def test_descriptors_follow_dup_fork_and_exec(tmp_path: Path) -> None:
    """Without -y: the child has the file of its parent until it runs a program, and 3 is closed by exec. 9 is from before."""
    data = lines(
        '7 1795196964.1 execve("/bin/p", ["p"], 0x7 /* 1 var */) = 0 <0.0001>',
        '7 1795196964.2 open("/a", O_WRONLY|O_CLOEXEC) = 3 <0.0001>',
        '7 1795196964.3 open("/b", O_WRONLY) = 4 <0.0001>',
        "7 1795196964.4 fork() = 8 <0.0001>",
        '8 1795196964.5 write(3, ""..., 1) = 1 <0.0001>',
        '8 1795196964.6 execve("/bin/q", ["q"], 0x7 /* 1 var */) = 0 <0.0001>',
        '8 1795196964.7 write(3, ""..., 1) = 1 <0.0001>',
        '8 1795196964.8 write(4, ""..., 1) = 1 <0.0001>',
        '8 1795196964.9 write(9, ""..., 1) = 1 <0.0001>',
    )
    rows = [row for row in ops(tmp_path, data) if row["op"] == "write"]
    assert [(row["fd"], row["path"], row["confidence"], row["comm"]) for row in rows] == [
        (3, "/a", "inferred", "p"),
        (3, None, "unknown", "q"),
        (4, "/b", "inferred", "q"),
        (9, None, "unknown", "q"),
    ]


def test_stacks_are_those_of_the_calls(tmp_path: Path) -> None:
    data = lines(
        '7 1795196964.1 unlink("/a") = 0 <0.0001>',
        " > /usr/lib/libc.so.6(unlink+0x7) [0x11]",
        " > /bin/p(main+0x20) [0x99]",
        "7 1795196964.2 fsync(3</b>) = 0 <0.0001>",
    )
    (row,) = ops(tmp_path, data)
    assert row["stack"].split(";")[0].startswith("main") or "main" in row["stack"]
    assert "unlink" in row["stack"]


# Which inputs have operations.


def test_a_log_of_file_calls_without_a_sync_is_read(tmp_path: Path) -> None:
    data = lines('7 1795196964.1 rename("/a", "/b") = 0 <0.0001>')
    result = core(tmp_path, data)
    assert (len(result["file_op"]), result["sync"]) == (1, [])
    with pytest.raises(_core.CoreError, match="none of its 1 lines is a sync call"):
        convert(tmp_path, data, to="out.csv")
    with pytest.raises(_core.CoreError, match="none of its 1 lines is a sync call"):
        core(tmp_path, lines("7 1795196964.1 getpid() = 7 <0.0001>"))


def test_other_outputs_have_no_operations_and_do_not_change(tmp_path: Path) -> None:
    """The rows of syncs are the same whether operations are read or not."""
    both = convert(tmp_path, log("threads.log.gz"), to="out.jsonl").read_bytes()
    assert both.count(b"\n") == len(core(tmp_path, log("threads.log.gz"))["sync"]) == 10


def test_filters_apply_to_operations(tmp_path: Path) -> None:
    path = tmp_path / "in.log"
    path.write_bytes(
        lines(
            '7 1795196964.1 rename("/d/a", "/e/b") = 0 <0.0001>',
            '7 1795196964.2 unlink("/d/a") = 0 <0.0001>',
            '8 1795196964.3 unlink("/e/c") = 0 <0.0001>',
            "8 1795196964.4 close(3) = 0 <0.0001>",
            "8 1795196964.5 fsync(3</e/c>) = 0 <0.0001>",
        )
    )

    def found(*options: str) -> list[int]:
        sql = "SELECT op_id FROM syncline_file_op ORDER BY op_id"
        text = ok("query", path, "--format", "csv", *options, sql)
        return [int(line) for line in text.splitlines()[1:]]

    assert found() == [1, 2, 3, 4]
    # One of two paths is enough. An operation on an unknown file is on none that was asked for.
    assert found("--path", "/e/") == [1, 3]
    assert found("--path", "/d/") == [1, 2]
    assert found("--pid", "8") == []


@pytest.mark.parametrize("name", ["saver-y.log.gz", "threads.log.gz"])
def test_a_trace_holds_the_operations(name: str, tmp_path: Path) -> None:
    """Read back, and asked in SQL by the trace processor, they are those of the log."""
    expected = ops(tmp_path, log(name))
    trace = convert(tmp_path, log(name), to="out.pftrace")
    _core.convert_trace(str(trace), f"{tmp_path}/back/")
    assert tables(tmp_path / "back")["file_op"] == expected
    # The trace processor has no booleans.
    columns = ", ".join(key for key in ("op_id", *KEYS) if key != "created")
    sql = f"SELECT {columns}, CAST(created AS INTEGER) AS made FROM syncline_file_op ORDER BY op_id"
    answers = [
        ok("query", trace, "--engine", engine, "--format", "json", sql)
        for engine in ("embedded", "duckdb")
    ]
    assert answers[0] == answers[1]
    assert answers[0].count('"op_id"') == len(expected)


# Generated and damaged logs.


@pytest.mark.parametrize("seed", range(8))
def test_generated_logs(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    data = stracegen.generate(rng, stracegen.Style(decorate=seed % 2 == 0, hex=seed % 3 == 0)).text
    assert compared(ops(tmp_path, data)) == compared(file_ops.rows(data))


def sure(rows: Rows) -> set[tuple[Any, ...]]:
    """The operations that are exact and complete. Process and name of a thread may follow from lines that a part of a log lacks."""
    keys = [key for key in KEYS if key not in ("pid", "comm")]
    return {
        tuple(row[key] for key in keys)
        for row in rows
        if row["confidence"] == "exact" and row["incomplete"] is None
    }


def part_of_saver() -> list[bytes]:
    found = log("saver-y.log.gz").splitlines(keepends=True)
    begin = next(at for at, line in enumerate(found) if b" mkdir(" in line)
    return found[begin:]


def test_a_log_cut_at_any_byte_says_nothing_wrong(tmp_path: Path) -> None:
    """The last lines show each kind of call: every byte at which one of them may end."""
    found = part_of_saver()
    head, tail = b"".join(found[:20]), b"".join(found[20:])
    whole = sure(ops(tmp_path, head + tail))
    for end in range(0, len(tail), 29):
        rows = ops(tmp_path, head + tail[:end])
        assert sure(rows) <= whole, tail[:end].splitlines()[-1:]
        assert len(rows) >= 16


@pytest.mark.parametrize("seed", range(15))
def test_a_line_that_is_joined_to_another_one_says_nothing_wrong(seed: int, tmp_path: Path) -> None:
    """The end of a line is missing, and the next one follows at once. The digits of a PID before another one are a PID too, so not there."""
    rng = random.Random(seed)
    found = part_of_saver()[:-2]
    data, number = b"".join(found), rng.randrange(len(found) - 1)
    at = sum(map(len, found[:number])) + rng.randrange(6, len(found[number]))
    torn = data[:at] + data[data.index(b"\n", at) + 1 :]
    whole, result = core(tmp_path, data), core(tmp_path, torn)
    assert sure(result["file_op"]) <= sure(whole["file_op"])
    counted = {row["reason"] for row in result["loss"]} - {"call_only"}
    assert counted

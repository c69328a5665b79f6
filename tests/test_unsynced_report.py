"""`report unsynced` on recordings of programs that sync, or do not: what `tests/data/check/programs/faults.py` does says which state is right."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from tests.coretools import ROOT
from tests.sqltools import Run, write_parquet, write_trace
from tests.test_commands import ok

DATA = ROOT / "tests/data/check"

# Last name, state and unsynced bytes of each file that a program changes.
STATES: dict[str, list[tuple[str, str, int | None]]] = {
    "append-right": [("log", "synced", 0)],
    # Each write is durable by the flag of its open.
    "append-right-by-flag": [("log", "synced", 0)],
    "lazyfs-unsynced-append": [("log", "unsynced", len("record 1\n"))],
    "alice-append-after-sync": [("conf", "unsynced", len("later"))],
    "alice-no-file-sync": [("conf", "unsynced", len("new\n"))],
    "cuttlefs-retry": [("data", "failed", None)],
    "failed-sync-exit": [("data", "failed", None)],
    # It writes again after it has opened the file again, and syncs that.
    "failed-sync-reopen": [("data", "synced", 0)],
    "folder-moves": [("conf", "unknown", None)],
    "mapped": [("conf", "unknown", None)],
    "rename-over-itself": [("conf", "synced", 0)],
    "rename-twice-right": [("conf", "synced", 0)],
    "rename-twice-unsynced": [("conf", "unsynced", len("new\n"))],
    # Two versions of the file were replaced by the next one.
    "replace-right": [("conf", "synced", 0), ("conf", "removed", None), ("conf", "removed", None)],
    "sync-by-duplicate": [("conf", "synced", 0)],
    "sync-of-all": [("conf", "synced", 0)],
    "journal-unsynced": [("main", "synced", 0), ("main-journal", "removed", None)],
}


def rows(path: Path) -> list[tuple[str, str, int | None]]:
    found = json.loads(ok("report", path, "unsynced", "--format", "json"))["rows"]
    return [(Path(row["path"]).name, row["state"], row["unsynced_bytes"]) for row in found]


@pytest.mark.parametrize("name", STATES)
def test_the_state_of_each_file(name: str, tmp_path: Path) -> None:
    """By DuckDB for the log, and by the trace processor for its trace."""
    log = DATA / f"{name}.strace.gz"
    assert rows(log) == STATES[name]
    trace = tmp_path / "a.pftrace"
    ok("convert", "-q", log, "-o", trace)
    assert rows(trace) == STATES[name]


def test_how_long_data_were_at_risk(tmp_path: Path) -> None:
    """The write ends 20 ms before the sync begins, which takes 5 ms; a later file is never synced."""
    log = tmp_path / "a.strace"
    log.write_text(
        '7 100.000000 openat(AT_FDCWD, "/d/a", O_WRONLY|O_CREAT, 0666) = 3</d/a> <0.000100>\n'
        '7 100.010000 write(3</d/a>, ""..., 100) = 100 <0.001000>\n'
        "7 100.031000 fsync(3</d/a>) = 0 <0.005000>\n"
        '7 100.040000 openat(AT_FDCWD, "/d/b", O_WRONLY|O_CREAT, 0666) = 4</d/b> <0.000100>\n'
        '7 100.050000 write(4</d/b>, ""..., 300) = 300 <0.001000>\n'
        "7 100.060000 exit_group(0) = ?\n7 100.061000 +++ exited with 0 +++\n"
    )
    found = json.loads(ok("report", log, "unsynced", "--format", "json"))["rows"]
    keys = ("path", "folder", "state", "writes", "written_bytes", "share", "syncs", "risk_ns")
    assert [tuple(row[key] for key in keys) for row in found] == [
        ("/d/b", "/d", "unsynced", 1, 300, 1.0, 0, None),
        ("/d/a", "/d", "synced", 1, 100, 0.0, 1, 25_000_000),
    ]


def states(tmp_path: Path, *lines: str) -> list[tuple[str | None, str]]:
    log = tmp_path / "a.strace"
    log.write_text("".join(f"7 {100 + at}.000000 {line}\n" for at, line in enumerate(lines)))
    found = json.loads(ok("report", log, "unsynced", "--format", "json"))["rows"]
    return [(row["path"], row["state"]) for row in found]


OPEN = 'openat(AT_FDCWD, "/d/a", O_WRONLY|O_CREAT, 0666) = 3</d/a> <0.000100>'
WRITE = 'write(3</d/a>, ""..., 100) = 100 <0.001000>'
SYNC = "fsync(3</d/a>) = 0 <0.005000>"


def test_a_file_is_there_as_long_as_one_of_its_names(tmp_path: Path) -> None:
    """The usual way to publish a file: link it to its name, and remove the temporary one."""
    link = 'link("/d/a", "/d/b") = 0 <0.000100>'
    unlink = ['unlink("/d/a") = 0 <0.000100>', 'unlink("/d/b") = 0 <0.000100>']
    assert states(tmp_path, OPEN, WRITE, link, unlink[0]) == [("/d/b", "unsynced")]
    assert states(tmp_path, OPEN, WRITE, link, unlink[1]) == [("/d/a", "unsynced")]
    assert states(tmp_path, OPEN, WRITE, SYNC, link, unlink[0]) == [("/d/b", "synced")]
    assert states(tmp_path, OPEN, WRITE, link, *unlink) == [("/d/b", "removed")]


def test_a_rename_between_two_links_of_a_file_does_nothing(tmp_path: Path) -> None:
    """POSIX: "If the old argument and the new argument resolve to [...] the same existing file, rename() shall return successfully and perform no
    other action." So a removal of one name leaves the other.
    """
    link, rename = 'link("/d/a", "/d/b") = 0', 'rename("/d/a", "/d/b") = 0'
    back = 'rename("/d/b", "/d/a") = 0'
    gone = ['unlink("/d/a") = 0', 'unlink("/d/b") = 0']
    for renames in ([rename], [back], [rename, rename, back]):
        assert states(tmp_path, OPEN, WRITE, link, *renames, gone[1]) == [("/d/a", "unsynced")]
        assert states(tmp_path, OPEN, WRITE, link, *renames, gone[0]) == [("/d/b", "unsynced")]
        assert states(tmp_path, OPEN, WRITE, link, *renames, *gone) == [("/d/b", "removed")]
    # A sync by the name that it seems to have lost.
    assert [state for _, state in states(tmp_path, OPEN, WRITE, link, rename, SYNC)] == ["synced"]
    # The names are of two files again, or of none.
    other = OPEN.replace("/d/a", "/d/b")
    assert states(tmp_path, OPEN, WRITE, link, gone[1], other, rename) == [("/d/b", "unsynced")]
    assert states(tmp_path, OPEN, WRITE, link, gone[1], other, rename, gone[1]) == [("/d/b", "removed")]  # fmt: skip
    third = 'rename("/d/b", "/d/c") = 0'
    assert states(tmp_path, OPEN, WRITE, link, third, rename, gone[1]) == [("/d/c", "unsynced")]


@pytest.mark.parametrize("renames", range(7))
def test_renames_are_followed_or_the_state_is_unknown(renames: int, tmp_path: Path) -> None:
    """The write is of the first name, and the sync of the last one. With more than four renames between them, the file has one that is followed."""
    names = [f"/d/{letter}" for letter in "abcdefgh"]
    moves = [
        f'rename("{one}", "{two}") = 0 <0.000100>'
        for one, two in itertools.pairwise(names[: renames + 1])
    ]
    sync = SYNC.replace("/d/a", names[renames])
    last, is_known = names[min(renames, 4)], renames <= 4
    assert states(tmp_path, OPEN, WRITE, *moves, sync) == [
        (last, "synced" if is_known else "unknown")
    ]
    assert states(tmp_path, OPEN, WRITE, *moves) == [(last, "unsynced" if is_known else "unknown")]


def test_what_is_no_file_is_left_out_and_what_has_no_name_is_counted(tmp_path: Path) -> None:
    assert states(
        tmp_path,
        'write(1</dev/pts/0>, ""..., 5) = 5 <0.001000>',
        'write(2<pipe:[123]>, ""..., 5) = 5 <0.001000>',
        'write(9, ""..., 5) = 5 <0.001000>',
        'openat(AT_FDCWD, "here", O_WRONLY|O_CREAT, 0666) = 4 <0.000100>',
        'write(4, ""..., 5) = 5 <0.001000>',
    ) == [("here", "unknown"), (None, "unknown")]


def test_a_recording_without_writes_says_how_to_record_them() -> None:
    said = ok("report", ROOT / "tests/data/thesis/small4.log", "unsynced")
    assert "no write to a file is recorded" in said


@pytest.mark.parametrize(
    ("failed", "state"),
    [
        ("-1 EIO (Input/output error)", "unknown"),
        ("-1 EROFS (Read-only file system)", "unknown"),
        # An error of the call, which says nothing of a device or a journal.
        ("-1 EINVAL (Invalid argument)", "synced"),
        ("0", "synced"),
    ],
)
def test_sync_of_everything_is_not_trusted_after_a_sync_has_failed(
    failed: str, state: str, tmp_path: Path
) -> None:
    """It returns no error, even if the journal has failed for good."""
    other = f"fsync(4</d/b>) = {failed} <0.005000>"
    every = "sync() = 0 <0.005000>"
    assert states(tmp_path, OPEN, WRITE, other, every) == [("/d/a", state)]
    assert states(tmp_path, OPEN, WRITE, every, other) == [("/d/a", "synced")]


@pytest.mark.parametrize(
    ("flags", "states"),
    [("RENAME_EXCHANGE", ["unknown", "unknown"]), ("RENAME_NOREPLACE", ["removed", "unsynced"])],
)
def test_files_that_were_exchanged_are_not_taken_for_renamed(
    flags: str, states: list[str], tmp_path: Path
) -> None:
    """After the exchange, /d/b has the unsynced bytes, and /d/a those that were synced."""
    log = tmp_path / "a.strace"
    lines = [
        'openat(AT_FDCWD, "/d/a", O_WRONLY|O_CREAT, 0666) = 3</d/a> <0.000100>',
        'write(3</d/a>, "x"..., 10) = 10 <0.000100>',
        'openat(AT_FDCWD, "/d/b", O_WRONLY|O_CREAT, 0666) = 4</d/b> <0.000100>',
        'write(4</d/b>, "x"..., 20) = 20 <0.000100>',
        "fsync(4</d/b>) = 0 <0.000100>",
        f'renameat2(AT_FDCWD, "/d/a", AT_FDCWD, "/d/b", {flags}) = 0 <0.000100>',
    ]
    log.write_text("".join(f"7 100.0{n}0000 {line}\n" for n, line in enumerate(lines)))
    assert sorted(now for _, now, _ in rows(log)) == states


def test_an_unfinished_change_has_no_time_at_risk(tmp_path: Path) -> None:
    """A sync that began while a write went on need not cover it, although it began after the write."""
    log = tmp_path / "a.strace"
    log.write_text(
        '7 100.000000 openat(AT_FDCWD, "/d/a", O_WRONLY|O_CREAT, 0666) = 3</d/a> <0.000100>\n'
        '7 100.100000 write(3</d/a>, "x"..., 10 <unfinished ...>\n'
        "8 100.200000 fsync(3</d/a>) = 0 <0.001000>\n"
    )
    (row,) = json.loads(ok("report", log, "unsynced", "--format", "json"))["rows"]
    assert (row["state"], row["risk_ns"]) == ("unknown", None)


def found(tmp_path: Path, *lines: str) -> list[tuple[str | None, str, int | None, int | None]]:
    """Path, state, written and unsynced bytes of each file, sorted: by DuckDB for the log, and by the trace processor for its trace.

    Each line has its thread and its second: `7 1 write(...) = 5 <0.001000>`.
    """
    log, trace = tmp_path / "a.strace", tmp_path / "a.pftrace"
    timed = (line.split(" ", 2) for line in lines)
    log.write_text("".join(f"{tid} {100 + int(at)}.000000 {call}\n" for tid, at, call in timed))
    ok("convert", "-q", log, "-o", trace)
    both = [
        sorted(
            (
                (row["path"], row["state"], row["written_bytes"], row["unsynced_bytes"])
                for row in json.loads(ok("report", path, "unsynced", "--format", "json"))["rows"]
            ),
            key=str,
        )
        for path in (log, trace)
    ]
    assert both[0] == both[1]
    return both[0]


def write(path: str, count: int = 100, fd: int = 3) -> str:
    return f'write({fd}<{path}>, "x"..., {count}) = {count} <0.001000>'


def sync(path: str, result: str = "0") -> str:
    return f"fsync(3<{path}>) = {result} <0.005000>"


def rename(old: str, new: str, flags: str = "0") -> str:
    return f'renameat2(AT_FDCWD, "{old}", AT_FDCWD, "{new}", {flags}) = 0 <0.000100>'


EIO = "-1 EIO (Input/output error)"
DURABLE = 'pwritev2(3<{}>, [{{iov_base="x"..., iov_len=9}}], 1, 0, RWF_DSYNC) = 9 <0.001000>'


def test_a_file_that_may_have_another_name_is_not_removed(tmp_path: Path) -> None:
    """/d/f of the first write is /e/f now; what is removed is the file that got its name."""
    moved = ["7 1 " + write("/d/f"), "7 2 " + rename("/d", "/e")]
    again = ["7 3 " + write("/d/f"), '7 4 unlink("/d/f") = 0 <0.000100>']
    assert {state for _, state, _, _ in found(tmp_path, *moved, *again)} == {"unknown"}
    # Two processes whose working directories are not known.
    opened = 'openat(AT_FDCWD, "x", O_WRONLY|O_CREAT, 0666) = 3 <0.000100>'
    relative = [f"7 1 {opened}", '7 2 write(3, "x"..., 9) = 9 <0.001000>']
    assert found(tmp_path, *relative, '8 3 unlink("x") = 0 <0.000100>') == [("x", "unknown", 9, None)]  # fmt: skip


def test_a_folder_that_moves_makes_all_below_it_unknown(tmp_path: Path) -> None:
    """However deep they are, and under the new name as well; it makes no other file unknown."""
    deep = ["7 1 " + write("/a/b/f"), "7 2 " + rename("/a", "/z"), "7 3 " + sync("/z/b/f")]
    other = ["7 4 " + write("/az/f"), "7 5 " + sync("/az/f")]
    assert found(tmp_path, *deep, *other) == [
        ("/a/b/f", "unknown", 100, None),
        ("/az/f", "synced", 100, 0),
    ]
    durable = ["7 1 " + write("/d/f"), "7 2 " + rename("/d", "/e"), "7 4 " + DURABLE.format("/e/f")]
    both = [("/d/f", "unknown", 100, None), ("/e/f", "unknown", 9, None)]
    assert found(tmp_path, *durable) == both
    # Twice, and no file is known below the name between.
    durable[2:2] = ["7 3 " + rename("/e", "/g")]
    durable[-1] = durable[-1].replace("/e/", "/g/")
    assert found(tmp_path, *durable) == [both[0], ("/g/f", "unknown", 9, None)]
    # The files below a folder that is known only after the rename have one name in all of the recording.
    late = ["7 1 " + rename("/a", "/z"), "7 2 " + write("/z/b/f"), "7 3 " + sync("/z/b/f")]
    assert found(tmp_path, *late) == [("/z/b/f", "synced", 100, 0)]


def test_a_change_whose_end_is_not_known_may_be_covered(tmp_path: Path) -> None:
    """A sync began after its begin, and nobody knows whether before its end."""
    torn = '7 1 write(3</d/f>, "x"..., 9 <unfinished ...>'
    assert found(tmp_path, torn, "8 12 " + sync("/d/f")) == [("/d/f", "unknown", None, None)]
    # The end of its thread is the end of the call, too.
    killed = [torn, "7 2 +++ killed by SIGKILL +++"]
    assert found(tmp_path, *killed, "8 12 " + sync("/d/f")) == [("/d/f", "synced", None, 0)]
    # Without a length, the call may have lasted until its thread made the next one.
    untimed = "7 1 " + write("/d/f").removesuffix(" <0.001000>")
    nxt, end = "7 100 " + write("/d/g"), "7 200 exit_group(0) = ?"
    of_f = lambda *lines: found(tmp_path, *lines)[0]  # noqa: E731
    assert of_f(untimed, "8 50 " + sync("/d/f"), nxt, end) == ("/d/f", "unknown", 100, None)
    assert of_f("8 0 " + sync("/d/f"), untimed, nxt, end) == ("/d/f", "unsynced", 100, 100)
    assert of_f(untimed, nxt, "8 150 " + sync("/d/f"), end) == ("/d/f", "synced", 100, 0)


def test_a_size_that_is_not_known_is_not_zero(tmp_path: Path) -> None:
    unfinished = '7 2 write(3</d/f>, "x"..., 9 <unfinished ...>'
    assert found(tmp_path, unfinished) == [("/d/f", "unsynced", None, None)]
    # Only the one that is covered has a size.
    covered = ["7 0 " + write("/d/f"), "7 1 " + sync("/d/f"), unfinished]
    assert found(tmp_path, *covered) == [("/d/f", "unsynced", None, None)]
    # A truncation writes nothing.
    cut = "7 1 ftruncate(3</d/f>, 0) = 0 <0.001000>"
    assert found(tmp_path, cut) == [("/d/f", "unsynced", 0, 0)]


@pytest.mark.parametrize(
    ("call", "state"),
    [
        # One file system failed, and this file need not be in it.
        (f"syncfs(9</d>) = {EIO}", "unknown"),
        # The call itself was wrong.
        ("syncfs(9</d>) = -1 EBADF (Bad file descriptor)", "unsynced"),
        # A file that is not known: it may be this one.
        (f"fsync(9) = {EIO}", "unknown"),
    ],
)
def test_a_sync_that_failed_elsewhere_may_have_covered_a_file(
    call: str, state: str, tmp_path: Path
) -> None:
    lines = ["7 1 " + write("/b/f"), f"7 2 {call} <0.005000>"]
    assert [row[1] for row in found(tmp_path, *lines)] == [state]


def test_data_that_a_failed_sync_lost_stay_lost(tmp_path: Path) -> None:
    """The write after it is another one, and the sync after that covers no more than it."""
    failed = ["7 1 " + write("/d/f"), "7 2 " + sync("/d/f", EIO)]
    later = ["7 4 " + write("/d/f", 1), "7 5 " + sync("/d/f")]
    assert found(tmp_path, *failed, *later) == [("/d/f", "failed", 101, None)]
    # Who empties the file does not want them.
    emptied = '7 3 openat(AT_FDCWD, "/d/f", O_WRONLY|O_TRUNC) = 3</d/f> <0.000100>'
    assert found(tmp_path, *failed, emptied, *later) == [("/d/f", "synced", 101, 0)]
    # Who reads it writes nothing again.
    read = '8 3 openat(AT_FDCWD, "/d/f", O_RDONLY) = 5</d/f> <0.000100>'
    assert found(tmp_path, *failed, read, *later) == [("/d/f", "failed", 101, None)]
    # Nothing was to be lost yet.
    assert found(tmp_path, failed[1], *later) == [("/d/f", "synced", 1, 0)]


@pytest.mark.parametrize(
    ("error", "state"),
    [
        ("EINTR (Interrupted system call)", "unsynced"),
        ("EBADF (Bad file descriptor)", "unsynced"),
        # What block devices report of a bad sector, and of a lost path.
        ("ENODATA (No data available)", "failed"),
        ("ENOLINK (Link has been severed)", "failed"),
        ("ESHUTDOWN (Cannot send after transport endpoint shutdown)", "failed"),
    ],
)
def test_only_an_error_of_the_device_fails(error: str, state: str, tmp_path: Path) -> None:
    lines = ["7 1 " + write("/d/f"), "7 2 " + sync("/d/f", f"-1 {error}")]
    assert [row[1] for row in found(tmp_path, *lines)] == [state]


@pytest.mark.parametrize("flags", ["O_WRONLY|O_TRUNC", "O_WRONLY|O_CREAT|O_TRUNC, 0666"])
def test_an_open_that_empties_a_file_changes_it(flags: str, tmp_path: Path) -> None:
    empty = f'7 3 openat(AT_FDCWD, "/d/f", {flags}) = 3</d/f> <0.000100>'
    whole = ["7 1 " + write("/d/f"), "7 2 " + sync("/d/f")]
    assert found(tmp_path, *whole, empty) == [("/d/f", "unsynced", 100, 0)]
    assert found(tmp_path, *whole, empty, "7 4 " + sync("/d/f")) == [("/d/f", "synced", 100, 0)]
    # With O_CREAT the file may be new, and is empty anyway then.
    alone = found(tmp_path, empty, "7 4 " + write("/d/g"))
    assert len(alone) == (1 if "O_CREAT" in flags else 2)


def test_a_file_that_was_exchanged_stays_unknown_by_its_next_name(tmp_path: Path) -> None:
    exchanged = [
        "7 1 " + write("/d/b"),
        "7 2 " + rename("/d/a", "/d/b", "RENAME_EXCHANGE"),
        "7 3 " + rename("/d/a", "/d/d"),
        "7 4 " + DURABLE.format("/d/d"),
    ]
    assert {row[1] for row in found(tmp_path, *exchanged)} == {"unknown"}


def test_a_file_whose_name_looks_like_a_socket_counts(tmp_path: Path) -> None:
    name = "/music/a:[live].flac"
    lines = ["7 1 " + write(name), '7 2 write(4<socket:[77]>, "x"..., 1) = 1 <0.000100>']
    assert found(tmp_path, *lines) == [(name, "unsynced", 100, 100)]


def test_a_descriptor_that_outlives_the_name_of_its_file(tmp_path: Path) -> None:
    """Without strace -y it keeps the old name: the last write is of /d/f, and no file has the name /d/tmp."""
    opened = 'openat(AT_FDCWD, "/d/tmp", O_WRONLY|O_CREAT, 0666) = 3 <0.000100>'
    wrote, synced = 'write(3, "x"..., 9) = 9 <0.001000>', "fsync(3) = 0 <0.005000>"
    moved = rename("/d/tmp", "/d/f")
    first = [f"7 1 {opened}", f"7 2 {wrote}", f"7 3 {synced}", f"7 4 {moved}"]
    assert found(tmp_path, *first) == [("/d/f", "synced", 9, 0)]
    assert {row[1] for row in found(tmp_path, *first, f"7 5 {wrote}")} == {"unknown"}
    # A sync through it is one of /d/f.
    late = [f"7 1 {opened}", f"7 2 {wrote}", f"7 3 {moved}", f"7 4 {synced}"]
    assert found(tmp_path, *late) == [("/d/f", "unknown", 9, None)]
    # The descriptor of the next file with that name is another one, also in a child.
    again = [*first, f"7 5 {opened}", f"7 6 {wrote}", f"8 7 {wrote}"]
    assert found(tmp_path, *again)[0][:2] == ("/d/f", "synced")
    # A sync of a file that is removed is of no other one.
    gone = [f"7 1 {opened}", f"7 2 {wrote}", '7 3 unlink("/d/tmp") = 0 <0.000100>', f"7 4 {synced}"]
    assert found(tmp_path, *gone) == [("/d/tmp", "removed", 9, None)]
    # Another file is as sure as before.
    other = ["7 6 " + write("/d/g"), "7 7 " + sync("/d/g")]
    assert found(tmp_path, *first, f"7 5 {wrote}", *other)[1] == ("/d/g", "synced", 100, 0)


def of_rows(tmp_path: Path, run: Run) -> list[tuple[str, str, int | None]]:
    """Path, state and time at risk of each file, by both engines."""
    inputs = write_parquet(run, tmp_path / "tables"), write_trace(run, tmp_path / "a.pftrace")
    both = [
        [
            (row["path"], row["state"], row["risk_ns"])
            for row in json.loads(ok("report", path, "unsynced", "--format", "json"))["rows"]
        ]
        for path in inputs
    ]
    assert both[0] == both[1]
    return both[0]


def written(ts: int, path: str = "/f") -> Run:
    """A run in which a write begins at `ts` and takes 10 ns."""
    columns = {"op": "write", "fd": 3, "path": path, "bytes": 9, "ret": 9, "confidence": "exact"}
    row = {"op_id": 1, "ts_ns": ts, "dur_ns": 10, "tid": 1, "pid": 1, "comm": "app"} | columns
    return Run(file_op=[row])


def test_a_sync_whose_start_is_missing_covers_nothing(tmp_path: Path) -> None:
    """It runs since before the recording, so before the write; its first event comes after the write."""
    run = written(1000)
    run.add(2000, None, path="/f", tid=2, incomplete="start", ret=0)
    run.add(5000, 10, path="/other", tid=2)
    assert of_rows(tmp_path, run) == [("/f", "unsynced", None)]


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ({"dur_ns": 300}, ("/f", "synced", 2400 - 1010)),
        # The log ends in the second file system, and has no exits of calls.
        ({"dur_ns": None, "incomplete": "end", "ret": None}, ("/f", "unsynced", None)),
    ],
)
def test_a_sync_of_everything_ends_with_its_last_file_system(
    second: dict[str, Any], expected: tuple[str, str, int | None], tmp_path: Path
) -> None:
    """It begins at 2000; its first file system takes 50 ns, the second one 300 from 2100 on."""
    run = written(1000)
    own = {"op": "sync", "path": None, "tid": 2, "ret": None}
    run.add(2000, 50, **own, start_ns=2000)
    run.add(2100, 300, call=False, path=None, tid=2, call_sync_id=1, **({"ret": None} | second))
    assert of_rows(tmp_path, run) == [expected]


@pytest.mark.parametrize(
    ("last", "risk"),
    [
        ({"dur_ns": 500}, 4500 - 1010),
        ({"dur_ns": None, "incomplete": "end"}, None),
        ({"dur_ns": 500, "error": -5}, None),
    ],
)
def test_data_are_at_risk_until_the_last_bio_is_complete(
    last: dict[str, Any], risk: int | None, tmp_path: Path
) -> None:
    """Two bios of background writeback write the file, from 3000 and from 4000 on."""
    run = written(1000)
    bio = {"sync_id": None, "path": "/f", "origin": "background", "bytes": 4096}
    run.bio = [
        bio | {"bio_id": 1, "ts_ns": 3000, "dur_ns": 100},
        bio | {"bio_id": 2, "ts_ns": 4000} | last,
    ]
    assert of_rows(tmp_path, run) == [("/f", "unsynced", risk)]


def untimed(call: str) -> str:
    """The call as strace prints it without -T."""
    return call.rpartition(" <")[0]


def test_calls_without_a_duration_are_known_one_by_one(tmp_path: Path) -> None:
    """Lines of `strace -f -ttt -y`. The sync has returned 0, although nothing says when."""
    lines = ["7 1 " + untimed(write("/d/f")), "7 2 " + untimed(sync("/d/f"))]
    assert found(tmp_path, *lines) == [("/d/f", "synced", 100, 0)]
    assert found(tmp_path, *lines, "7 3 exit_group(0) = ?") == [("/d/f", "synced", 100, 0)]
    later = ["7 3 " + untimed(write("/d/g", 5)), "7 4 +++ killed by SIGKILL +++"]
    assert found(tmp_path, *lines, *later) == [
        ("/d/f", "synced", 100, 0),
        ("/d/g", "unsynced", 5, 5),
    ]
    report = json.loads(ok("report", tmp_path / "a.strace", "unsynced", "--format", "json"))
    assert {row["risk_ns"] for row in report["rows"]} == {None}


def test_no_risk_is_measured_to_the_end_of_a_sync_that_is_not_known(tmp_path: Path) -> None:
    """The write ends, the sync has no duration, and the thread sleeps for a second before it closes the file."""
    log = tmp_path / "a.strace"
    log.write_text(
        "7 100.000000 "
        + write("/d/f")
        + "\n7 100.010000 "
        + untimed(sync("/d/f"))
        + "\n7 101.000000 close(3</d/f>) = 0 <0.000100>\n"
    )
    (row,) = json.loads(ok("report", log, "unsynced", "--format", "json"))["rows"]
    assert (row["state"], row["risk_ns"]) == ("synced", None)


def test_where_lines_interrupt_calls_the_others_had_returned(tmp_path: Path) -> None:
    """Thread 7 writes and waits; 8 syncs. If some line interrupts a call, one of a single line had returned when the next line began; merged files
    of -ff have no such lines, and there the write may have gone on."""
    lines = ["7 1 " + untimed(write("/d/f")), "8 2 " + untimed(sync("/d/f"))]
    ends = ["7 9 exit_group(0) = ?", "8 10 +++ exited with 0 +++"]
    assert found(tmp_path, *lines, *ends) == [("/d/f", "unknown", 100, None)]
    torn = ["7 3 wait4(-1, <unfinished ...>", "8 4 getpid() = 8", "7 5 <... wait4 resumed>) = 9"]
    assert found(tmp_path, *lines, *torn, *ends) == [("/d/f", "synced", 100, 0)]
    # The part of a size of which it is not known whether the sync covers it is not known either.
    again = ["7 1 " + untimed(write("/d/f")), "8 2 " + untimed(sync("/d/f")), "7 3 " + untimed(write("/d/f", 5))]  # fmt: skip
    assert found(tmp_path, *again, *ends) == [("/d/f", "unsynced", 105, None)]
    assert found(tmp_path, *again, *torn, *ends) == [("/d/f", "unsynced", 105, 5)]


def test_a_clock_of_seconds_orders_nothing(tmp_path: Path) -> None:
    """A write after the sync, in the same second: strace -t."""
    log = tmp_path / "a.strace"
    log.write_text(
        "".join(
            f"7 20:18:27 {call}\n"
            for call in (write("/d/f"), sync("/d/f"), write("/d/f"), "exit_group(0) = ?")
        )
    )
    (row,) = json.loads(ok("report", log, "unsynced", "--format", "json"))["rows"]
    assert (row["path"], row["state"], row["writes"], row["written_bytes"]) == ("/d/f", "unknown", 2, 200)  # fmt: skip


def test_a_file_that_is_open_without_a_name_needs_no_sync(tmp_path: Path) -> None:
    """strace -y prints `</d/f>(deleted)` for the descriptor of a file that was removed or replaced."""
    deleted = 'write(3</d/f>(deleted), "x"..., 100) = 100 <0.001000>'
    unlink = '7 2 unlink("/d/f") = 0 <0.000100>'
    assert found(tmp_path, "7 1 " + write("/d/f"), unlink, "7 3 " + deleted) == [
        ("/d/f (deleted)", "removed", 100, None),
        ("/d/f", "removed", 100, None),
    ]
    # It may still have the name that a link gave it.
    link = '7 1 link("/d/f", "/d/g") = 0 <0.000100>'
    assert found(tmp_path, link, unlink, "7 3 " + deleted) == [("/d/f (deleted)", "unknown", 100, None)]  # fmt: skip
    # A file that somebody has called so.
    odd = '7 1 openat(AT_FDCWD</d>, "/d/f (deleted)", O_WRONLY|O_CREAT, 0666) = 3</d/f (deleted)> <0.000100>'
    assert found(tmp_path, odd, "7 3 " + write("/d/f (deleted)")) == [("/d/f (deleted)", "unknown", 100, None)]  # fmt: skip


TMPFILE = '7 1 openat(AT_FDCWD</d>, ".", O_RDWR|O_TMPFILE, 0644) = 3</d/#17>(deleted) <0.000100>'
NAMELESS = '7 2 write(3</d/#17>(deleted), "x"..., 5) = 5 <0.001000>'


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("", ("/d/#17 (deleted)", "removed", 5, None)),
        (
            'linkat(AT_FDCWD</d>, "/proc/self/fd/3", AT_FDCWD</d>, "a", AT_SYMLINK_FOLLOW)',
            ("/d/a", "unsynced", 5, 5),
        ),
        (
            'linkat(3</d/#17>(deleted), "", AT_FDCWD</d>, "a", AT_EMPTY_PATH)',
            ("/d/a", "unsynced", 5, 5),
        ),
        # Of another process, whose descriptors are not followed from here.
        (
            'linkat(AT_FDCWD</d>, "/proc/99/fd/3", AT_FDCWD</d>, "a", AT_SYMLINK_FOLLOW)',
            ("/d/#17 (deleted)", "unknown", 5, None),
        ),
    ],
)
def test_a_file_that_begins_without_a_name(
    link: str, expected: tuple[str, str, int, int | None], tmp_path: Path
) -> None:
    given = [f"7 3 {link} = 0 <0.000100>"] if link else []
    assert found(tmp_path, TMPFILE, NAMELESS, *given) == [expected]


def test_a_name_by_way_of_a_link_is_that_of_its_file(tmp_path: Path) -> None:
    """/d/l is a link to /d/x. -y prints the name without it, and a rename or a removal has it."""
    opened = '7 1 openat(AT_FDCWD</d>, "l/t", O_WRONLY|O_CREAT|O_EXCL, 0666) = 3</d/x/t> <0.000100>'
    lines = [opened, "7 2 " + write("/d/x/t"), '7 3 rename("/d/l/t", "/d/l/f") = 0 <0.000100>']
    assert found(tmp_path, *lines) == [("/d/x/f", "unsynced", 100, 100)]
    assert found(tmp_path, *lines, "7 4 " + sync("/d/x/f")) == [("/d/x/f", "synced", 100, 0)]
    assert found(tmp_path, *lines, '7 4 unlink("l/f") = 0 <0.000100>') == [("/d/x/f", "removed", 100, None)]  # fmt: skip
    # The link leads elsewhere later.
    moved = '7 5 rename("/d/new", "/d/l") = 0 <0.000100>'
    again = [opened.replace("7 1", "7 6").replace("/d/x", "/d/y"), "7 7 " + write("/d/y/t", 5)]
    assert found(tmp_path, *lines, moved, *again, '7 8 unlink("/d/l/t") = 0 <0.000100>') == [
        ("/d/x/f", "unsynced", 100, 100),
        ("/d/y/t", "removed", 5, None),
    ]
    # Here the file may be the link, so that the rename gives the link another name, and the file none.
    plain = [lines[0].replace("|O_EXCL", ""), *lines[1:], '7 4 unlink("/d/l/f") = 0 <0.000100>']
    assert found(tmp_path, *plain) == [("/d/x/t", "unsynced", 100, 100)]
    folder = '7 0 openat(AT_FDCWD</d>, "l", O_RDONLY|O_DIRECTORY) = 4</d/x> <0.000100>'
    assert found(tmp_path, folder, *plain) == [("/d/x/f", "removed", 100, None)]
    # `..` leads out of the folder in which the program is.
    above = opened.replace('"l/t"', '"x/../y/t"').replace("/d/x/t", "/d/y/t")
    removed = '7 3 unlink("/d/x/../y/t") = 0 <0.000100>'
    assert found(tmp_path, above, "7 2 " + write("/d/y/t"), removed) == [("/d/y/t", "removed", 100, None)]  # fmt: skip


def test_sharing_the_blocks_of_another_file_changes_it(tmp_path: Path) -> None:
    """What `cp --reflink` does; on a file system without it, the call fails."""
    clone = "7 1 ioctl(3</d/f>, BTRFS_IOC_CLONE or FICLONE, 4</d/o>) = {} <0.000100>"
    assert found(tmp_path, clone.format("0")) == [("/d/f", "unsynced", 0, 0)]
    write_of_other = "7 2 " + write("/d/g")
    failed = clone.format("-1 EOPNOTSUPP (Operation not supported)")
    assert found(tmp_path, failed, write_of_other) == [("/d/g", "unsynced", 100, 100)]

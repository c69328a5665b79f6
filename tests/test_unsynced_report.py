"""`report unsynced` on recordings of programs that sync, or do not: what `tests/data/check/programs/faults.py` does says which state is right."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from tests.coretools import ROOT
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
    assert (row["state"], row["risk_ns"]) == ("unsynced", None)

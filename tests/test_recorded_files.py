"""Operations on files that the route `dynamic-events` records with --files, and `syncline check` of them."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from syncline.check import output
from syncline.inputs import Reading

from tests.coretools import Rows, core, tables
from tests.test_check import CASES, DATA, found, outcomes, rules_in

DEV, MS = 254 << 20 | 16, 1_000_000
MOUNT = {"dev": DEV, "mount": "/data", "root": "/"}
# A pointer, and an error instead of one: -2.
POINTER, NOT_THERE = "18446612682070000000", str((1 << 64) - 2)
# FMODE_CREATED, beside bits of a file that is open for writing.
CREATED = 1 << 20 | 2
Event = tuple[int, int, str, dict[str, Any]]


def rows(folder: Path, *events: Event) -> Rows:
    lines = [
        {"ts_ns": ms * MS, "tid": tid, "pid": tid, "comm": f"t{tid}", "event": event, "source": "trace.dat"}
        | {"probe": "f+0x0/0x90"}
        | fields
        for ms, tid, event, fields in events
    ]  # fmt: skip
    table = folder / "files.jsonl"
    table.write_text(json.dumps(MOUNT) + "\n")
    log = "\n".join(map(json.dumps, lines)).encode()
    return core(folder, log, file_tables=[str(table)])["file_op"]


def named(prefix: str, path: str) -> dict[str, Any]:
    """The names of a file and of the folders above it, from the file to the root of its file system."""
    parts = [*reversed(path.strip("/").split("/")), "/"]
    return {f"{prefix}{n}": part for n, part in enumerate(parts)}


def at(path: str, **more: Any) -> dict[str, Any]:
    return {"dev": DEV} | named("n", path) | more


def facts(row: dict[str, Any], *columns: str) -> tuple[Any, ...]:
    return tuple(row[column] for column in ("op", "path", "to_path", "flags", *columns))


def test_an_open_has_the_file_that_it_returns(tmp_path: Path) -> None:
    flags = 0o1 | 0o100 | 0o1000 | 0o100000
    found = rows(
        tmp_path,
        (1, 7, "file_open", {"flags": flags}),
        (3, 7, "file_open_end", at("a/conf", file=POINTER, fmode=CREATED)),
        (4, 7, "file_open", {"flags": 0o4010000 | 0o2}),
        (5, 7, "file_open_end", at("a/conf", file=POINTER, fmode=2)),
        (6, 7, "file_open", {"flags": 0}),
        (7, 7, "file_open_end", {"file": NOT_THERE}),
    )
    assert [facts(row, "created", "ret", "dur_ns", "incomplete", "confidence") for row in found] == [
        ("open", "/data/a/conf", None, "O_WRONLY|O_CREAT|O_TRUNC", True, None, 2 * MS, None, "exact"),
        ("open", "/data/a/conf", None, "O_RDWR|O_SYNC", False, None, MS, None, "exact"),
        ("open", None, None, "O_RDONLY", None, -2, MS, None, "exact"),
    ]  # fmt: skip


def test_an_open_whose_end_the_kernel_drops_is_of_no_file_that_is_recorded(tmp_path: Path) -> None:
    """It is in /tmp or /proc. Only the end says so."""
    found = rows(
        tmp_path,
        (1, 7, "file_open", {"flags": 0}),
        (3, 7, "file_mkdir", at("a")),
        (4, 7, "file_mkdir_end", {"ret": "0"}),
        (5, 7, "file_open", {"flags": 0}),
    )
    assert [facts(row, "incomplete") for row in found] == [("mkdir", "/data/a", None, None, None)]


def test_each_operation_has_its_names_and_its_result(tmp_path: Path) -> None:
    def both(ms: int, op: str, fields: dict[str, Any], ret: int | str = 0) -> list[Event]:
        return [(ms, 7, f"file_{op}", fields), (ms + 1, 7, f"file_{op}_end", {"ret": ret})]

    found = rows(
        tmp_path,
        *both(10, "write", at("a/t", offset=5, ki_flags=0, file_size=9), 100),
        # IOCB_APPEND with IOCB_DSYNC: it begins at the end of the file.
        *both(20, "write", at("a/t", offset=5, ki_flags=18, file_size=9), 100),
        *both(30, "truncate", at("a/t", offset=3)),
        *both(40, "allocate", at("a/t", offset=0, len=4096, flags=3)),
        *both(50, "rename", at("a/t", flags=2) | named("t", "b/f")),
        *both(60, "link", at("a/t") | named("t", "b/g")),
        *both(70, "unlink", at("a/t"), -2),
        *both(80, "rmdir", at("a")),
        # A pointer, as newer kernels return it, an error instead of one, and an error of 32 bits.
        *both(90, "mkdir", at("a"), POINTER),
        *both(92, "mkdir", at("a"), str((1 << 64) - 17)),
        *both(94, "mkdir", at("a"), (1 << 32) - 17),
        *both(96, "map", at("a/t", file=POINTER, len=4096), 1 << 40),
        (98, 7, "file_exit", {}),
    )
    columns = ("offset_bytes", "bytes", "ret", "dur_ns", "incomplete")
    append, hole = "RWF_DSYNC|RWF_APPEND", "FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE"
    assert [facts(row, *columns) for row in found] == [
        ("write", "/data/a/t", None, None, 5, 100, 100, MS, None),
        ("write", "/data/a/t", None, append, 9, 100, 100, MS, None),
        ("truncate", "/data/a/t", None, None, 3, None, 0, MS, None),
        ("allocate", "/data/a/t", None, hole, 0, 4096, 0, MS, None),
        ("rename", "/data/a/t", "/data/b/f", "RENAME_EXCHANGE", None, None, 0, MS, None),
        ("link", "/data/a/t", "/data/b/g", None, None, None, 0, MS, None),
        ("unlink", "/data/a/t", None, None, None, None, -2, MS, None),
        ("rmdir", "/data/a", None, None, None, None, 0, MS, None),
        ("mkdir", "/data/a", None, None, None, None, 0, MS, None),
        ("mkdir", "/data/a", None, None, None, None, -17, MS, None),
        ("mkdir", "/data/a", None, None, None, None, -17, MS, None),
        ("map", "/data/a/t", None, None, None, 4096, 1 << 40, MS, None),
        ("exit", None, None, None, None, None, None, None, None),
    ]


def test_the_end_of_an_open_file_is_a_close_without_a_duration(tmp_path: Path) -> None:
    """It comes after the call that closes the last descriptor, in the next call at the earliest, and ends none."""
    found = rows(
        tmp_path,
        (1, 7, "file_close", at("a/t", fmode=2)),
        (2, 7, "file_write", at("a/g", offset=5, ki_flags=0, file_size=9)),
        (3, 7, "file_close", at("a/u", fmode=3)),
        (4, 7, "file_write_end", {"ret": 100}),
        (5, 7, "file_exit", {}),
        (6, 7, "file_close", at("a/v", fmode=2)),
    )
    columns = ("ret", "dur_ns", "incomplete", "confidence")
    assert [facts(row, *columns) for row in found] == [
        ("close", "/data/a/t", None, None, None, None, None, "exact"),
        ("close", "/data/a/u", None, None, None, None, None, "exact"),
        ("write", "/data/a/g", None, None, 100, 2 * MS, None, "exact"),
        ("exit", None, None, None, None, None, None, "exact"),
        ("close", "/data/a/v", None, None, None, None, None, "exact"),
    ]


def test_a_path_that_is_not_known_from_its_root_is_unknown(tmp_path: Path) -> None:
    """The file is deeper than the names that an event has, so its last parts may be those of another file."""
    deep = {"dev": DEV} | {f"n{n}": f"f{n}" for n in range(8)}
    found = rows(tmp_path, (1, 7, "file_unlink", deep), (2, 7, "file_unlink_end", {"ret": 0}))
    assert [facts(row, "confidence") for row in found] == [("unlink", None, None, None, "unknown")]


def test_an_end_without_its_begin_is_of_no_file_that_is_recorded(tmp_path: Path) -> None:
    found = rows(
        tmp_path,
        (1, 7, "file_unlink_end", {"ret": 0}),
        (2, 7, "file_write", at("a/t", offset=5, ki_flags=0, file_size=9)),
        # Within the write, of a file in memory.
        (3, 7, "file_truncate_end", {"ret": 0}),
        (4, 7, "file_write_end", {"ret": 3}),
    )
    assert [facts(row, "ret") for row in found] == [("write", "/data/a/t", None, None, 3)]


# --- recordings ----------------------------------------------------------------------------------

RECORDED = DATA / "recorded.tar.xz"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    with tarfile.open(RECORDED) as tar:
        tar.extractall(folder, filter="data")
    return folder


def names() -> list[str]:
    with tarfile.open(RECORDED) as tar:
        return sorted({member.name.partition("/")[0] for member in tar})


@pytest.mark.parametrize("name", names())
def test_check_says_of_a_recording_what_it_says_of_strace(
    name: str, recorded: Path, tmp_path: Path
) -> None:
    """The same programs, whose faults faults.py names."""
    rules, verdict, faults = CASES[name]
    checked = outcomes(recorded / name, rules_in(tmp_path, rules))
    assert (output.verdict(checked), found(checked)) == (verdict, sorted(faults))


def test_operations_are_those_of_the_program(recorded: Path, tmp_path: Path) -> None:
    """replace_right(): three times a new file, its rename, and the folder, which is opened to be synced."""
    Reading().convert([str(recorded / "replace-right")], f"{tmp_path}/out/")
    folder = "/mnt/data/replace_right"
    mine = [row for row in tables(tmp_path / "out")["file_op"] if (row["path"] or "").startswith(folder)]  # fmt: skip
    once = [
        ("open", "conf.tmp", None, "O_WRONLY|O_CREAT|O_TRUNC", True, None),
        ("write", "conf.tmp", None, None, None, len("new\n")),
        ("rename", "conf.tmp", "conf", None, None, None),
        ("open", "", None, "O_RDONLY|O_DIRECTORY", False, None),
    ]

    def last(path: str | None) -> str | None:
        return None if path is None else path.removeprefix(folder).lstrip("/")

    rows = [(row["op"], last(row["path"]), last(row["to_path"]), row["flags"], row["created"], row["bytes"]) for row in mine]  # fmt: skip
    assert rows == [("mkdir", "", None, None, None, None), *once * 3]
    assert {row["confidence"] for row in mine} == {"exact"}
    assert all(row["dur_ns"] > 0 and row["incomplete"] is None for row in mine)

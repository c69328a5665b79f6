"""Detects what an INPUT is. This is the only module that decides it."""

from __future__ import annotations

import gzip
import os
import shlex
import zlib
from pathlib import Path
from typing import Literal

from syncline import _core
from syncline.errors import InputError

__all__ = [
    "BASELINE",
    "DATASET",
    "MANIFEST",
    "TABLE_ENDINGS",
    "Kind",
    "format_of",
    "holds_tables",
    "is_columns",
    "is_dataset",
    "is_low_level_log",
    "is_recording",
    "kind_of",
    "runs_in",
    "table_ending",
]

# trace: Perfetto. dataset: an index of runs, and their tables. tables: a folder of Parquet tables, or of several runs. rows: a high-level log.
# log: a log or a run directory. folder: any other folder.
Kind = Literal["trace", "dataset", "tables", "rows", "log", "folder"]

# The first bytes of a stored baseline.
BASELINE = b'{"syncline_baseline":'
# The file that marks a run directory.
MANIFEST = "manifest.json"
# The file that a recording writes first.
DEVICES = "devices.json"
# The file that marks a dataset.
DATASET = "syncline_dataset.json"
# How the URL of a dataset in an object store begins.
_OBJECT_STORE = "s3://"

_ENDINGS = {name: tuple(endings) for name, endings in _core.FORMATS}


def _with_compression(endings: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(ending + packed for ending in endings for packed in ("", ".gz", ".zst"))


# Endings of high-level logs by format. Parquet is compressed inside.
TABLE_ENDINGS = {
    "parquet": _ENDINGS["parquet"],
    "csv": _with_compression(_ENDINGS["csv"]),
    "jsonl": _with_compression(_ENDINGS["jsonl"]),
}
_LOW_LEVEL_ENDINGS = _with_compression(_ENDINGS["events.jsonl"])

# A CSV file is a high-level log if its header has at least _COLUMNS_REQUIRED of these columns.
_COLUMNS = {b"ts_ns", b"sync_id", b"syscall_ns", b"writeback_ns", b"bytes", b"bios", b"dur_ns"}
_COLUMNS_REQUIRED = 3


def kind_of(path: str, source: str | None = None) -> Kind:
    """Detects what an INPUT is by its content. With `source` (`--from`), a file is a log.

    Raises:
        InputError: the file does not exist or cannot be read, or it is a stored baseline.
    """
    if path == "-":
        return "log"
    if path.startswith(_OBJECT_STORE):
        return "dataset"
    file = Path(path)
    try:
        exists = bool(path) and file.exists()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"cannot read {path}: {reason}", "check the name") from None
    if not exists:
        raise InputError(
            f"cannot read {path}: no such file or folder",
            "check the name; `-` is standard input",
        )
    if is_dataset(path):
        return "dataset"
    if file.is_dir():
        if is_recording(file):
            return "log"
        if os.path.lexists(file / MANIFEST):
            raise InputError(
                f"cannot read {file / MANIFEST}: it is no file",
                f"name the files of the recording instead: ls {shlex.quote(path)}",
            )
        if (file / DEVICES).is_file() and not is_table_folder(file):
            raise _unfinished(path)
        return "tables" if is_columns(file) else "folder"
    # Reading from a pipe would consume its first bytes.
    if source or not file.is_file():
        return "log"
    try:
        head = _head(file)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"cannot read {path}: {reason}", f"try: ls -l {path}") from None
    if head.startswith(BASELINE):
        raise InputError(
            f"{path} is a stored baseline, which holds figures but no run",
            f"use it as a side of a diff: syncline diff {shlex.quote(path)} NEW",
        )
    if head[:4] == b"PAR1" or _is_high_level(head):
        return "rows"
    # A trace begins with this byte. A log may do so too: with an empty line.
    if head[:1] == b"\x0a" and not _is_text(head[:256]) and _is_packet(head):
        return "trace"
    return "log"


def is_recording(path: str | Path) -> bool:
    """Returns whether the path is a run directory of `syncline record`."""
    return Path(path, MANIFEST).is_file()


def _unfinished(path: str) -> InputError:
    """What to say of a run directory whose recording was killed."""
    names = ("trace.dat", "trace.dat.gz")
    found = next((file for name in names if (file := Path(path, name)).is_file()), None)
    return InputError(
        f"{path} has no {MANIFEST}: its recording was not finished",
        f"name the recording itself: syncline report {shlex.quote(str(found))}"
        if found
        else "record again: syncline record -o DIR -- COMMAND",
    )


def is_dataset(path: str) -> bool:
    """Returns whether the path is a dataset. An object store is not asked: it can hold nothing else."""
    return path.startswith(_OBJECT_STORE) or Path(path, DATASET).is_file()


def is_columns(path: Path | str) -> bool:
    """Returns whether `engine.columns.open_columns` can read the path, by names only.

    It is a folder of tables, a high-level log, or a folder that holds some of these.
    """
    path = Path(path)
    return is_table_folder(path) or is_table_file(path) or (path.is_dir() and bool(runs_in(path)))


def runs_in(folder: Path) -> list[Path]:
    """Returns the folders with tables and the high-level logs in a folder, sorted by name."""
    return sorted(
        child
        for child in folder.iterdir()
        if not child.name.startswith(".") and (holds_tables(child) or is_table_file(child))
    )


def is_table_folder(path: Path) -> bool:
    """Returns whether the folder holds the table of requests."""
    return (path / "syncline_sync.parquet").is_file()


def holds_tables(path: Path) -> bool:
    """Returns whether the folder holds tables of a run, possibly without the table of requests."""
    return any(path.glob("syncline_*.parquet"))


def is_table_file(path: Path) -> bool:
    """Returns whether a file has the name of a high-level log."""
    return table_ending(path) is not None and path.is_file()


def table_ending(path: Path) -> tuple[str, str] | None:
    """Returns the format and the ending of a high-level log by its name; None for another name."""
    name = path.name.lower()
    if is_low_level_log(path):
        return None
    for form, endings in TABLE_ENDINGS.items():
        for ending in endings:
            if name.endswith(ending):
                return form, ending
    return None


def is_low_level_log(path: Path) -> bool:
    """Returns whether a file has the name of a low-level log."""
    return path.name.lower().endswith(_LOW_LEVEL_ENDINGS)


def format_of(output: str) -> str | None:
    """Returns the output format that the core chooses for a name; None if it chooses none."""
    if Path(output).is_dir():
        return "tables"
    chosen = (name for name, endings in _ENDINGS.items() if output.endswith(endings))
    return next(chosen, None)


def _head(file: Path) -> bytes:
    with file.open("rb") as stream:
        head = stream.read(4096)
        if head[:2] != b"\x1f\x8b":
            return head
        stream.seek(0)
        try:
            with gzip.open(stream) as unpacked:
                return unpacked.read(4096)
        except (OSError, EOFError, zlib.error):
            return b""


def _is_high_level(head: bytes) -> bool:
    """Returns whether text is a high-level log. The engine reports a column that is missing."""
    first = head.split(b"\n", 1)[0].strip()
    if first.startswith(b"{"):
        # A line of the low-level log begins with ts_ns too.
        return first.startswith(b'{"ts_ns":') and b'"sync_id":' in first
    return len(_COLUMNS & {*first.replace(b'"', b"").split(b",")}) >= _COLUMNS_REQUIRED


def _is_text(head: bytes) -> bool:
    """Returns whether all bytes are printable text. The last character may be cut off."""
    text = head.decode("utf-8", "ignore")
    is_utf8 = len(head) - len(text.encode()) < 4
    return is_utf8 and all(char.isprintable() or char.isspace() for char in text)


def _is_packet(head: bytes) -> bool:
    """Returns whether the bytes begin with a packet of a `Trace` that is not empty."""
    length, shift, at = 0, 0, 1
    while at < len(head) and at < 6:
        length |= (head[at] & 0x7F) << shift
        shift += 7
        at += 1
        if head[at - 1] < 0x80:
            break
    return length > 0 and at < len(head) and head[at] & 7 in (0, 1, 2, 5) and head[at] >> 3 > 0

"""Opens a recording of writes: a log of strace, the events of a stock kernel, a run directory with one of them, or a table in CSV."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from syncline import _core, interruptible, scratch
from syncline.errors import InputError
from syncline.input import Input
from syncline.reading import Progress, Reading
from syncline.recordings import Filter, Recording, read_file
from syncline.report import read_sql

from .probe_events import from_table
from .strace_calls import from_calls
from .writes import Writes, read_csv

__all__ = ["is_table", "read", "read_table", "refuse_filter"]

# The fields of a low-level log of strace that sql/commands/write_model/calls.sql uses.
_TYPES = {
    "ts_ns": "BIGINT", "tid": "BIGINT", "pid": "BIGINT", "event": "VARCHAR", "args": "VARCHAR", "text": "VARCHAR",
    "path": "VARCHAR", "ret": "BIGINT", "dur_ns": "BIGINT", "unfinished": "BIGINT", "resumed": "BIGINT",
    "entry_ns": "BIGINT", "untimed": "BOOLEAN",
}  # fmt: skip


def is_table(path: str) -> bool:
    """Returns whether a path names a table of writes in CSV, which is no recording and no other INPUT."""
    return path.lower().endswith(".csv")


def read_table(path: str, reading: Reading) -> Writes:
    """Reads the writes of a table.

    Raises:
        InputError: it cannot be read, or is no such table.
    """
    refuse_filter(reading)
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read {path}: {(error.strerror or str(error)).lower()}", "check the name") from None  # fmt: skip
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8", "write the table in UTF-8") from None
    return read_csv(path, text)


def read(input_: Input, reading: Reading, progress: Progress | None = None) -> Writes:
    """Reads the writes of a recording.

    Raises:
        InputError: the input has none, or is of another recorder.
        CoreError: it cannot be converted.
    """
    if not input_.is_log:
        raise InputError(
            f"{input_.path} is no recording of one run: the model reads a log, a run directory or a table of writes",
            "give one run directory of: syncline record --writes -o run -- COMMAND",
        )
    recording = input_.recording
    with scratch.folder() as work:
        # What is no file can be read only once, so its format is not known before that.
        can_detect = all(Path(file).is_file() for file in recording.files)
        formats = {
            reading.source or _core.detect_format(file) for file in recording.files if can_detect
        }
        if can_detect and formats != {"strace"}:
            return _of_events(work, recording, reading, progress)
        log = work / "log.events.jsonl"
        sources = _sources(reading.convert([recording], str(log), progress=progress))
        if sources == {"strace"}:
            refuse_filter(reading)
            return interruptible.call(lambda: _of_calls(log))
        again = Reading(window_ns=reading.window_ns, filter=reading.filter)
        return _of_events(work, read_file(str(log)), again, None, sources)


def refuse_filter(reading: Reading) -> None:
    """Refuses a filter for calls of strace and a table, which it does not select.

    Raises:
        InputError: there is one.
    """
    if reading.filter != Filter():
        raise InputError(
            "filters select writes only in the events of a kernel (route dynamic-events)",
            "leave it out; syncline model predict --by path has a row for each file",
        )


def _sources(summary: dict[str, Any]) -> set[str]:
    return {one["source"] for one in summary["inputs"]}


def _of_events(
    work: Path,
    recording: Recording,
    reading: Reading,
    progress: Progress | None,
    sources: set[str] | None = None,
) -> Writes:
    """Reads the writes of a kernel's events, which the core pairs. `sources`: what the events are of, if the recording does not say it."""
    table = work / "writes.parquet"
    summary = reading.convert([recording], str(table), to="writes", progress=progress)
    losses = {one["reason"]: one["count"] for one in summary["losses"]}
    lost = losses.get("lost_by_tracer", 0) + losses.get("missed_by_probe", 0)
    sources = sources or _sources(summary)
    return interruptible.call(lambda: _of_table(table, reading.filter, lost, sources))


def _of_table(table: Path, chosen: Filter, lost: int, sources: set[str]) -> Writes:
    import duckdb

    with duckdb.connect() as connection:
        connection.read_parquet(str(table), file_row_number=True).create_view("writes")
        has_writes = connection.execute(
            "SELECT 1 FROM writes WHERE part = 'call' AND kind = 'write' LIMIT 1"
        ).fetchall()
        if not has_writes:
            raise InputError(
                f"no call of write is recorded in this log, whose format is {', '.join(sorted(sources))}",
                "record with: syncline record --writes -o run -- COMMAND",
            )
        return from_table(connection, chosen, lost)


def _of_calls(log: Path) -> Writes:
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET preserve_insertion_order = true")
        columns = ", ".join(f"\"{name}\": '{kind}'" for name, kind in _TYPES.items())
        connection.execute(
            f"CREATE TABLE events AS FROM read_json(?, format = 'newline_delimited', columns = {{{columns}}})",
            [str(log)],
        )
        result = connection.execute(read_sql("commands/write_model", "calls"))
        names = [column[0] for column in result.description]
        return from_calls(dict(zip(names, row, strict=True)) for row in result.fetchall())

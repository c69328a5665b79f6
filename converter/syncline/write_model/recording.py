"""Opens a recording of writes: a log of strace, a run directory with one, or a table in CSV."""

from __future__ import annotations

from pathlib import Path

from syncline import interruptible, scratch
from syncline.errors import InputError
from syncline.reading import Progress, Reading
from syncline.report import read_sql

from .strace_calls import from_calls
from .writes import Writes, read_csv

__all__ = ["read"]

_TYPES = {
    "ts_ns": "BIGINT", "tid": "BIGINT", "pid": "BIGINT", "event": "VARCHAR", "source": "VARCHAR",
    "args": "VARCHAR", "path": "VARCHAR", "ret": "BIGINT", "dur_ns": "BIGINT",
    "unfinished": "BIGINT", "resumed": "BIGINT", "entry_ns": "BIGINT", "untimed": "BOOLEAN",
}  # fmt: skip


def read(path: str, reading: Reading, progress: Progress | None = None) -> Writes:
    """Reads the writes.

    Raises:
        InputError: the input has none, or is of another recorder.
        CoreError: it cannot be converted.
    """
    if path.lower().endswith(".csv"):
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except OSError as error:
            raise InputError(f"cannot read {path}: {(error.strerror or str(error)).lower()}", "check the name") from None  # fmt: skip
        except UnicodeDecodeError:
            raise InputError(f"{path} is not UTF-8", "write the table in UTF-8") from None
        return read_csv(path, text)
    with scratch.folder() as work:
        events = work / "log.events.jsonl"
        reading.convert([path], str(events), progress=progress)
        return interruptible.call(lambda: _from_events(events))


def _from_events(events: Path) -> Writes:
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET preserve_insertion_order = true")
        columns = ", ".join(f"{name}: '{kind}'" for name, kind in _TYPES.items())
        connection.execute(
            f"CREATE TABLE events AS FROM read_json(?, format = 'newline_delimited', columns = {{{columns}}})",
            [str(events)],
        )
        sources = {name for (name,) in connection.execute("SELECT DISTINCT source FROM events").fetchall()}  # fmt: skip
        if sources - {"strace"}:
            raise InputError(
                f"the recording is of {', '.join(sorted(map(str, sources)))}, which does not record plain writes",
                "record with: syncline record --route strace --writes -o run -- COMMAND",
            )
        result = connection.execute(read_sql("write_model", "calls"))
        names = [column[0] for column in result.description]
        return from_calls(dict(zip(names, row, strict=True)) for row in result.fetchall())

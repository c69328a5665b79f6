"""Opens a recording of writes: a log of strace, the events of a stock kernel, a run directory with one of them, or a table in CSV."""

from __future__ import annotations

from pathlib import Path

from syncline import interruptible, scratch
from syncline.errors import InputError
from syncline.kinds import kind_of
from syncline.reading import Progress, Reading
from syncline.report import read_sql

from .probe_events import from_events
from .strace_calls import from_calls
from .writes import Writes, read_csv

__all__ = ["read"]

_TYPES = {
    "ts_ns": "BIGINT", "tid": "BIGINT", "pid": "BIGINT", "event": "VARCHAR", "source": "VARCHAR",
    "args": "VARCHAR", "text": "VARCHAR", "path": "VARCHAR", "ret": "BIGINT", "dur_ns": "BIGINT",
    "unfinished": "BIGINT", "resumed": "BIGINT", "entry_ns": "BIGINT", "untimed": "BOOLEAN",
    "comm": "VARCHAR", "dev": "VARCHAR", "ino": "VARCHAR", "gen": "VARCHAR", "offset": "VARCHAR", "ki_flags": "BIGINT",
    "file_size": "BIGINT", "nr_dirty": "VARCHAR", "nr_writeback": "VARCHAR", "n0": "VARCHAR", "n1": "VARCHAR",
    "n2": "VARCHAR", "n3": "VARCHAR", "background_thresh": "BIGINT", "dirty_thresh": "BIGINT",
    "bg_thresh": "BIGINT", "thresh": "BIGINT",
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
    if kind_of(path, reading.source) != "log":
        raise InputError(
            f"{path} is no recording of one run: the model reads a log, a run directory or a table of writes",
            "give one run directory of: syncline record --writes -o run -- COMMAND",
        )
    with scratch.folder() as work:
        events = work / "log.events.jsonl"
        summary = reading.convert([path], str(events), progress=progress)
        losses = {one["reason"]: one["count"] for one in summary["losses"]}
        lost = losses.get("lost_by_tracer", 0)
        return interruptible.call(lambda: _from_events(events, reading, lost))


def _from_events(events: Path, reading: Reading, lost: int) -> Writes:
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET preserve_insertion_order = true")
        columns = ", ".join(f"\"{name}\": '{kind}'" for name, kind in _TYPES.items())
        connection.execute(
            f"CREATE TABLE events AS FROM read_json(?, format = 'newline_delimited', columns = {{{columns}}})",
            [str(events)],
        )
        sources = {name for (name,) in connection.execute("SELECT DISTINCT source FROM events").fetchall()}  # fmt: skip
        has_probes = connection.execute("SELECT 1 FROM events WHERE event = 'write_enter' LIMIT 1").fetchall()  # fmt: skip
        if has_probes:
            result = connection.execute(read_sql("write_model", "probes"))
            names = [column[0] for column in result.description]
            found = (dict(zip(names, row, strict=True)) for row in result.fetchall())
            return from_events(found, reading.filter, lost)
        if sources - {"strace"}:
            raise InputError(
                f"the recording is of {', '.join(sorted(map(str, sources)))}, and has no plain writes",
                "record with: syncline record --writes -o run -- COMMAND",
            )
        result = connection.execute(read_sql("write_model", "calls"))
        names = [column[0] for column in result.description]
        return from_calls(dict(zip(names, row, strict=True)) for row in result.fetchall())

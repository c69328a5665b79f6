"""What a filter could have named, if no sync passes it: a name that was mistyped looks like a program that never syncs."""

from __future__ import annotations

from dataclasses import replace

from syncline.input import Input
from syncline.printable import printable
from syncline.reading import Reading

from . import answer
from .run import run_query
from .tables import SqlEngine

__all__ = ["names_instead"]

# Filter -> column of syncline_sync, and what its values are.
_COLUMNS = {
    "comm": ("comm", "threads that sync"),
    "pid": ("pid", "processes that sync"),
    "path": ("path", "files that are synced"),
    "device": ("dev", "devices of files that are synced"),
    "cgroup": ("cgroup", "control groups that sync"),
}
# How many values are named.
_NAMED = 8


def names_instead(input: Input, reading: Reading, engine: str, filtered: SqlEngine) -> list[str]:
    """Returns a sentence for each filter that was given, with the values that the input has, most syncs first.

    Empty if a sync passes the filter, or if the input cannot be read a second time without it.

    Args:
        filtered: the engine that has the input with the filter.

    Raises:
        InputError, CoreError, EngineError.
    """
    if not (input.can_be_read_whole and answer.is_filtered(filtered)):
        return []
    if run_query(filtered, "SELECT 1 FROM syncline_sync LIMIT 1").rows:
        return []
    given = [name for name in _COLUMNS if getattr(reading.filter, name) is not None]
    with input.open(replace(reading, is_whole=True), engine) as whole:
        return [_sentence(whole, name) for name in given]


def _sentence(engine: SqlEngine, name: str) -> str:
    column, what = _COLUMNS[name]
    rows = run_query(
        engine,
        f"SELECT {column}, COUNT(*) FROM syncline_sync WHERE {column} IS NOT NULL"
        f" GROUP BY {column} ORDER BY 2 DESC, 1",
    ).rows
    if not rows:
        return f"--{name} selects nothing, because this input does not record the {what}"
    values = ", ".join(f"{printable(str(value))} ({syncs:,})" for value, syncs in rows[:_NAMED])
    more = f" and {len(rows) - _NAMED:,} more" if len(rows) > _NAMED else ""
    return f"no sync passes --{name}; the {what} are, with their syncs: {values}{more}"

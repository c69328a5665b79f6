"""Opens any INPUT for SQL."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from syncline import _core, scratch
from syncline.engine import EngineError
from syncline.errors import InputError
from syncline.kinds import BASELINE, Kind, kind_of
from syncline.reading import Progress, Reading

__all__ = ["BASELINE", "InputError", "Kind", "Progress", "Reading", "kind_of", "opened"]


@contextmanager
def opened(
    path: str,
    reading: Reading,
    engine: str = "auto",
    progress: Progress | None = None,
    *,
    converted: Callable[[dict[str, Any]], None] = lambda summary: None,
    allow_files: bool = False,
    **options: Any,
) -> Iterator[Any]:
    """Yields an engine that has the tables of docs/reference/tables.md for any INPUT.

    A trace is loaded into a trace processor. Any other input is opened by DuckDB; a log is
    converted to tables first.

    Args:
        path: the INPUT.
        reading: how a log is read.
        engine: `auto`, `duckdb`, or an engine of `syncline.engine.open_trace`. For the latter a
            log is converted to a trace first.
        progress: called while a log is converted.
        converted: called with the summary of the core after a log was converted.
        allow_files: SQL may use all files of the user (DuckDB).
        options: more arguments of `_core.convert`.

    Raises:
        InputError, CoreError, EngineError.
    """
    kind = kind_of(path, reading.source)
    if kind == "folder":
        raise _no_runs(path)
    with contextlib.ExitStack() as stack:
        if kind == "log":
            folder = stack.enter_context(scratch.folder())
            use_duckdb = engine in ("auto", "duckdb")
            output = f"{folder}/tables/" if use_duckdb else f"{folder}/trace.pftrace"
            converted(_convert(reading, path, output, progress, options))
            opened_engine = stack.enter_context(
                _open_columns(output, allow_files) if use_duckdb else _open_trace(output, engine)
            )
            # Messages name the file of the user, not the temporary one.
            opened_engine.path = Path(path)
            yield opened_engine
            return
        if kind == "trace":
            if engine == "duckdb":
                raise EngineError(
                    f"{path} is a trace, which DuckDB cannot read",
                    "Leave out --engine, or give the log.",
                )
            opened_engine = stack.enter_context(_open_trace(path, engine))
        else:
            if engine not in ("auto", "duckdb"):
                raise EngineError(
                    f"{path} is not a trace", "Leave out --engine, or give a trace or a log."
                )
            opened_engine = stack.enter_context(_open_columns(path, allow_files))
        if reading.marks:
            from syncline.report.marks import replace_marks, span

            marks = reading.mark_rows()
            replace_marks(opened_engine, [mark[:3] for mark in marks])
            reading.check_marks(marks, *span(opened_engine))
        yield opened_engine


def _convert(
    reading: Reading, path: str, output: str, progress: Progress | None, options: dict[str, Any]
) -> dict[str, Any]:
    try:
        return reading.convert([path], output, progress=progress, **options)
    except _core.CoreError as error:
        message, hint, kind = error.args
        if kind == "output":
            hint = f"the tables of {path} are temporary: free some space, or name another folder in TMPDIR"
        raise _core.CoreError(message, hint, kind) from None


def _no_runs(folder: str) -> InputError:
    if not any(Path(folder).iterdir()):
        return InputError(f"{folder} is an empty folder", "name a log, or a folder of runs")
    quoted = shlex.quote(folder.rstrip("/"))
    return InputError(
        f"{folder} is a folder without runs: it holds neither syncline_sync.parquet"
        " nor .parquet, .csv or .jsonl files nor folders of tables",
        "convert logs first (logs of one run by several recorders together); open traces one at a"
        " time. Type:"
        f" mkdir runs; for log in {quoted}/*; do"
        ' syncline convert "$log" -o "runs/$(basename "$log")/"; done; syncline report runs',
    )


def _open_trace(path: str, engine: str) -> Any:
    from syncline.engine import open_trace
    from syncline.report.catalogue import sql_root
    from syncline.report.run import NAMESPACE

    return open_trace(path, engine=engine, packages=[(NAMESPACE, sql_root() / "perfetto")])


def _open_columns(path: str, allow_files: bool) -> Any:
    from syncline.engine.columns import open_columns
    from syncline.report.catalogue import sql_root

    return open_columns(path, sql=sql_root() / "duckdb", allow_files=allow_files)

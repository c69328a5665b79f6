"""Opens any INPUT for SQL."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from syncline import _core, scratch
from syncline.engine import EngineError
from syncline.errors import InputError
from syncline.kinds import BASELINE, Kind, is_recording, kind_of
from syncline.reading import Progress, Reading, convert_trace, verify_trace

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
    perfetto: bool = False,
    statements: Iterable[str] | None = None,
    **options: Any,
) -> Iterator[Any]:
    """Yields an engine that has the tables of docs/reference/tables.md for any INPUT.

    DuckDB opens the tables. A log and a trace that Syncline wrote are converted to tables first. Any
    other trace is loaded into a trace processor.

    Args:
        path: the INPUT.
        reading: how a log is read.
        engine: `auto`, `duckdb`, or an engine of `syncline.engine.open_trace`. For the latter a
            log is converted to a trace first.
        progress: called while a log is converted.
        converted: called with the summary of the core after a log was converted.
        allow_files: SQL may use all files of the user (DuckDB).
        perfetto: SQL may use Perfetto's own tables, so `auto` loads every trace into a trace
            processor.
        statements: the SQL that will be run. Columns that it does not name need not be read.
            None if it is not known.
        options: more arguments of `_core.convert`.

    Raises:
        InputError, CoreError, EngineError.
    """
    kind = kind_of(path, reading.source)
    if reading.where is not None and kind != "dataset":
        raise InputError(
            f"--where selects runs of a dataset, and {path} is not one",
            f"make one: syncline ingest {shlex.quote(path)} --into DATASET",
        )
    if kind != "dataset" and engine.startswith(("local[", "spark://")):
        raise EngineError(
            f"Spark reads datasets, and {path} is not one",
            f"make one: syncline ingest {shlex.quote(path)} --into DATASET",
        )
    if kind == "folder":
        raise _no_runs(path)
    named = None if statements is None else _named(statements)
    # The tables are removed after use, and hold only what the statements name.
    contents = {"is_temporary": True, "needed": named}
    with contextlib.ExitStack() as stack:
        if kind == "log":
            folder = stack.enter_context(scratch.folder())
            use_duckdb = engine in ("auto", "duckdb")
            output = f"{folder}/tables/" if use_duckdb else f"{folder}/trace.pftrace"
            converted(_convert(reading, path, output, progress, options | contents))
            opened_engine = stack.enter_context(
                _open_columns(output, allow_files, named)
                if use_duckdb
                else _open_trace(output, engine)
            )
            # Messages name the file of the user, not the temporary one.
            opened_engine.path = Path(path)
            yield opened_engine
            return
        if kind == "dataset":
            opened_engine = stack.enter_context(
                _open_dataset(path, reading.where, engine, allow_files)
            )
        elif kind == "trace":
            tables = None
            if engine == "duckdb" or (engine == "auto" and not perfetto):
                tables = f"{stack.enter_context(scratch.folder())}/tables/"
                if not _convert_trace(path, tables, progress, contents, needed=engine == "duckdb"):
                    tables = None
            else:
                # A trace processor does not notice that packets are missing or were changed.
                verify_trace(path)
            if tables:
                opened_engine = stack.enter_context(_open_columns(tables, allow_files, named))
            else:
                opened_engine = stack.enter_context(_open_trace(path, engine))
            opened_engine.path = Path(path)
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
        raise _of_temporary(error, path) from None


def _named(statements: Iterable[str]) -> frozenset[str]:
    from syncline.report.marks import STATEMENTS
    from syncline.report.tables import named

    return named([*statements, *STATEMENTS])


def _convert_trace(
    path: str,
    output: str,
    progress: Progress | None,
    contents: dict[str, Any],
    *,
    needed: bool,
) -> bool:
    """Converts a trace to tables. Returns whether it is one whose rows the core can read.

    Raises:
        CoreError: the tables cannot be written. With `needed`: the core cannot read the rows.
    """
    try:
        convert_trace(path, output, progress=progress, **contents)
    except _core.CoreError as error:
        # The trace processor says what is wrong with a trace, in its own words.
        if error.args[2] == "foreign" and not needed:
            return False
        raise _of_temporary(error, path) from None
    return True


def _of_temporary(error: _core.CoreError, path: str) -> _core.CoreError:
    message, hint, kind = error.args
    # A limit of the process has a hint of its own.
    if kind == "output" and "ulimit" not in (hint or ""):
        hint = (
            f"the tables of {path} are temporary: free some space, or name another folder in TMPDIR"
        )
    return _core.CoreError(message, hint, kind)


def _no_runs(folder: str) -> InputError:
    if not any(Path(folder).iterdir()):
        return InputError(f"{folder} is an empty folder", "name a log, or a folder of runs")
    recordings = sorted(str(child) for child in Path(folder).iterdir() if is_recording(child))
    if recordings:
        number = "1 run directory" if len(recordings) == 1 else f"{len(recordings):,} run directories"  # fmt: skip
        return InputError(
            f"{folder} holds {number}, and this command reads one input",
            f"name one: {shlex.quote(recordings[0])}; or make a dataset of all: syncline ingest {shlex.quote(folder.rstrip('/'))}/* --into DATASET",
        )
    return InputError(
        f"{folder} is a folder without runs: it holds neither syncline_sync.parquet"
        " nor .parquet, .csv or .jsonl files nor folders of tables",
        "convert logs first (logs of one run by several recorders together); open traces one at a"
        " time. Type:"
        f" mkdir runs; for log in {_logs_in(folder)}; do"
        ' syncline convert "$log" -o "runs/$(basename "$log")/"; done; syncline report runs',
    )


def _logs_in(folder: str) -> str:
    """Returns words of a shell for the logs in a folder, one of the files that are read together."""
    files = [str(file) for file in sorted(Path(folder).iterdir())]
    first = [_core.first_part(file) or file for file in files]
    if first == files:
        return f"{shlex.quote(folder.rstrip('/'))}/*"
    return shlex.join(dict.fromkeys(first))


def _open_trace(path: str, engine: str) -> Any:
    from syncline.engine import open_trace
    from syncline.report.catalogue import sql_root
    from syncline.report.run import NAMESPACE

    return open_trace(
        path, engine=engine, packages=[(NAMESPACE, sql_root() / "tables" / "perfetto")]
    )


def _open_dataset(path: str, where: str | None, engine: str, allow_files: bool) -> Any:
    from syncline.dataset.spark import is_master, open_spark
    from syncline.dataset.tables import open_dataset

    if is_master(engine):
        return open_spark(path, where, engine)
    if engine not in ("auto", "duckdb"):
        raise EngineError(
            f"{path} is not a trace",
            "Leave out --engine: DuckDB reads datasets. Or name a Spark master: --engine spark://HOST:PORT",
        )
    return open_dataset(path, where, allow_files=allow_files)


def _open_columns(path: str, allow_files: bool, named: frozenset[str] | None = None) -> Any:
    from syncline.engine.columns import open_columns
    from syncline.report.catalogue import sql_root

    return open_columns(
        path, sql=sql_root() / "tables" / "duckdb", allow_files=allow_files, named=named
    )

"""Opens tables and traces with Syncline's SQL, which is in sql/."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from . import catalogue
from .tables import NAMESPACE

if TYPE_CHECKING:
    from syncline.engine import Engine
    from syncline.engine.columns import ColumnsEngine
    from syncline.engine.run_files import RunFiles

__all__ = ["open_tables", "open_trace"]


def open_tables(
    path: str | Path,
    *,
    allow_files: bool = False,
    named: frozenset[str] | None = None,
    runs: list[RunFiles] | None = None,
    is_fresh: bool = False,
) -> ColumnsEngine:
    """Opens tables with DuckDB. The arguments are those of `open_columns`; by default, `path` is the folder of one run."""
    from syncline.engine.columns import open_columns
    from syncline.engine.run_files import of_folder

    return open_columns(
        path,
        sql=catalogue.sql_root() / "tables" / "duckdb",
        allow_files=allow_files,
        named=named,
        runs=[of_folder(Path(path))] if runs is None else runs,
        is_fresh=is_fresh,
    )


def open_trace(path: str, engine: str) -> Engine:
    """Loads a trace into a trace processor, with the modules that build the tables from it."""
    from syncline.engine import open_trace as load

    return load(
        path,
        engine=engine,
        packages=[(NAMESPACE, catalogue.sql_root() / "tables" / "perfetto")],
    )

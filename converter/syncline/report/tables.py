"""Syncline's tables on an engine: which there are, and how a trace builds them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from syncline.engine import Result
from syncline.engine.attach import DERIVED, REQUIRED
from syncline.engine.columns import WITH_TABLES
from syncline.engine.expanded import expanded
from syncline.engine.reads import reads

from . import catalogue

__all__ = ["NAMESPACE", "SqlEngine", "include", "modules", "named", "wanted"]

# Namespace of the PerfettoSQL package, with which an engine on a trace must be opened.
NAMESPACE = "dev.syncline"

_TABLE = re.compile(r"\bsyncline_([a-z_]+)\b", re.I)


class SqlEngine(Protocol):
    """The parts of an engine that reports use."""

    name: str
    path: Path
    # Whether it has the table syncline_run.
    is_dataset: bool

    def query(self, sql: str) -> Result: ...

    def stats(self) -> list[tuple[str, str, int]]: ...


def modules() -> list[str]:
    """Returns the names of the tables without `syncline_`."""
    return sorted(
        file.stem for file in (catalogue.sql_root() / "tables" / "perfetto").glob("*.sql")
    )


def named(statements: Iterable[str]) -> frozenset[str]:
    """Returns the tables and columns that statements and the views that they use may read, as `reads` does."""
    found: frozenset[str] = frozenset()
    waiting = list(statements)
    while waiting:
        sql = waiting.pop()
        new = reads(expanded(sql, "duckdb")) - found
        found |= new
        views = {name.removeprefix("syncline_") for name in new & DERIVED}
        waiting += [catalogue.read_sql("tables/duckdb", view) for view in sorted(views)]
    # A table of requests must have these.
    return found | {f"syncline_sync.{column}" for column in REQUIRED}


def include(engine: SqlEngine, sql: str) -> None:
    """Builds the tables that the SQL names. On a trace, each is built from slices when it is first used.

    Raises:
        EngineError: the engine was opened without Syncline's package.
    """
    if engine.name in WITH_TABLES:
        return
    tables = wanted(sql)
    if tables:
        engine.query("".join(f"INCLUDE PERFETTO MODULE {NAMESPACE}.{name};\n" for name in tables))


def wanted(sql: str) -> list[str]:
    """Returns the tables that the SQL names, without `syncline_`."""
    return sorted(
        {*modules()} & {name.lower() for name in _TABLE.findall(expanded(sql, "perfetto"))}
    )

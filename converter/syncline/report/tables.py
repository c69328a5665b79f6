"""Syncline's tables on an engine: which there are, and how a trace builds them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Protocol

from syncline.engine import Result
from syncline.engine.columns import ColumnsEngine

from . import catalogue

__all__ = ["NAMESPACE", "SqlEngine", "include", "modules"]

# Namespace of the PerfettoSQL package, with which an engine on a trace must be opened.
NAMESPACE = "dev.syncline"

_TABLE = re.compile(r"\bsyncline_([a-z]+)\b", re.I)


class SqlEngine(Protocol):
    """The parts of an engine that reports use."""

    name: str
    path: Path

    def query(self, sql: str) -> Result: ...

    def stats(self) -> list[tuple[str, str, int]]: ...


def modules() -> list[str]:
    """Returns the names of the tables without `syncline_`."""
    return sorted(file.stem for file in (catalogue.sql_root() / "perfetto").glob("*.sql"))


def include(engine: SqlEngine, sql: str) -> None:
    """Builds the tables that the SQL names. On a trace, each is built from slices when it is first used.

    Raises:
        EngineError: the engine was opened without Syncline's package.
    """
    if engine.name == ColumnsEngine.name:
        return
    wanted = sorted({*modules()} & {name.lower() for name in _TABLE.findall(sql)})
    if wanted:
        engine.query("".join(f"INCLUDE PERFETTO MODULE {NAMESPACE}.{name};\n" for name in wanted))

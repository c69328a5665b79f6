"""A table, a report or the result of SQL. It is read when its rows are asked for."""

from __future__ import annotations

import html
import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from syncline.engine.columns import ColumnsEngine
from syncline.render import human
from syncline.report.catalogue import Report
from syncline.report.run import Table as Rows
from syncline.report.run import fetch, run_query

from .error import of_user

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

__all__ = ["Table"]

# Rows that a notebook shows.
_SHOWN = 20


class Table:
    """Rows with named columns, which are read when you ask for them and not before.

    Times are in ns (`_ns`) and sizes in bytes (`_bytes`); what is not known is None, NULL or NaN, never 0.
    """

    def __init__(
        self,
        name: str,
        engine: Callable[[], AbstractContextManager[Any]],
        sql: str,
        *,
        report: Report | None = None,
        rows: Rows | None = None,
        is_of_user: bool = False,
    ) -> None:
        """Takes what its run gives it. Use the tables, `sql` and `report` of a run.

        Args:
            engine: yields the engine of the run.
            rows: the rows, if they are there already.
        """
        self._name = name
        self._engine = engine
        self._sql = sql
        self._report = report
        self._rows = rows
        self._is_of_user = is_of_user

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in order."""
        return [*self._read().columns]

    def rows(self) -> list[tuple[Any, ...]]:
        """Returns the rows as tuples, in the order of `columns`."""
        return [*self._read().rows]

    def dicts(self) -> list[dict[str, Any]]:
        """Returns the rows as dictionaries."""
        return self._read().as_dicts()

    def arrow(self) -> pyarrow.Table:
        """Returns an Arrow table. It needs the package pyarrow."""
        package = _package("pyarrow", "arrow")
        found: pyarrow.Table = self._converted(lambda rows: rows.to_arrow_table(), package.table)
        return found

    def df(self) -> pandas.DataFrame:
        """Returns a data frame of pandas, which it needs."""
        package = _package("pandas", "df")
        found: pandas.DataFrame = self._converted(lambda rows: rows.df(), package.DataFrame)
        return found

    def pl(self) -> polars.DataFrame:
        """Returns a data frame of polars. It needs the packages polars and pyarrow."""
        _package("pyarrow", "pl")
        package = _package("polars", "pl")
        found: polars.DataFrame = self._converted(lambda rows: rows.pl(), package.DataFrame)
        return found

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.dicts())

    def __len__(self) -> int:
        return len(self._read().rows)

    def __repr__(self) -> str:
        return f"<syncline.Table {self._name}>"

    def __str__(self) -> str:
        from syncline.render import exporter

        return exporter("table")(self._read(), self._report)

    def _repr_html_(self) -> str:
        found = self._read()
        if not found.rows:
            return f"<p>{html.escape(human.no_rows(found))}</p>"
        shown = Rows(found.columns, found.rows[:_SHOWN])
        columns, rows = human.cells(shown, self._report)
        head = "".join(f"<th>{html.escape(human.header(*column))}</th>" for column in columns)
        body = "".join(
            f"<tr>{''.join(_cell(text, unit) for text, (_, unit) in zip(row, columns, strict=True))}</tr>"
            for row in rows
        )
        left = len(found.rows) - len(shown.rows)
        more = (
            f"<p>{left:,} more rows: .df(), .pl(), .arrow() or .rows() have all</p>" if left else ""
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"

    def _read(self) -> Rows:
        if self._rows is None:
            with of_user(), self._engine() as engine:
                found = run_query(engine, self._sql, is_of_user=self._is_of_user)
                if not found.rows and self._report:
                    from syncline.report.inspect import why_empty

                    found = Rows(found.columns, [], why_empty(engine, self._report.name))
            self._rows = found
        return self._rows

    def _converted(
        self, of_duckdb: Callable[[Any], Any], of_columns: Callable[[dict[str, Sequence[Any]]], Any]
    ) -> Any:
        """Returns the rows in another form: by DuckDB itself where it has them, else from values of Python."""
        if self._rows is None:
            with of_user(), self._engine() as engine:
                if isinstance(engine, ColumnsEngine):
                    found = fetch(engine, self._sql, of_duckdb, is_of_user=self._is_of_user)
                    return of_columns({}) if found is None else found
        found = self._read()
        values = [*zip(*found.rows, strict=True)] if found.rows else [()] * len(found.columns)
        return of_columns(dict(zip(found.columns, values, strict=True)))


def _cell(text: str, unit: str) -> str:
    align = ' style="text-align: right"' if unit in human.RIGHT else ""
    return f"<td{align}>{html.escape(text)}</td>"


def _package(name: str, method: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ImportError(f".{method}() needs the package {name}: pip install {name}") from None

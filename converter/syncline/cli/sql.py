"""`syncline sql`: prints the SQL of a report as an engine takes it."""

from __future__ import annotations

import sys

import click

from syncline.cli import options
from syncline.cli.errors import Failure
from syncline.cli.options import example
from syncline.cli.output import show
from syncline.cli.types import PLACE


def _macros() -> list[str]:
    from syncline.engine.expanded import known

    found = {one.signature: one.text.partition("\n")[0].rstrip(".") for one in known().values()}
    found["same!(a, b, (columns))"] = (
        "Whether two tables have the same values in columns; null is equal to null"
    )
    found["of!(a, (columns))"] = "Columns of a table, written out: a.x, a.y"
    width = max(map(len, found))
    return [f"{form:{width}}  {text}" for form, text in sorted(found.items())]


@click.command(
    "sql",
    epilog=example(
        "syncline sql latency",
        "syncline sql --for perfetto latency",
        'echo "SELECT * FROM depth!(syncline_sync, (run))" | syncline sql -',
    ),
)
@click.argument("name", metavar="REPORT")
@click.option(
    "--for",
    "engine",
    type=click.Choice(("duckdb", "perfetto", "spark")),
    default="duckdb",
    show_default=True,
    help="The engine. For perfetto, the text also builds the tables, so that it can be pasted into the SQL page of any Perfetto UI.",
)
@click.option(
    "--tables",
    type=PLACE,
    metavar="DIR",
    help="For duckdb: also create the tables of this folder, which `syncline convert LOG -o DIR/` has written.",
)
@options.listing("macros", _macros)
def command(name: str, engine: str, tables: str | None) -> None:
    """Prints the SQL of a report with its macros expanded, to run it by hand.

    With -, SQL from the standard input is expanded. Reports are in sql/reports/, macros in sql/macros/. `syncline query` expands macros
    itself.
    """
    from syncline.engine.attach import script
    from syncline.engine.expanded import expanded
    from syncline.report import catalogue
    from syncline.ui import timeline

    try:
        sql = sys.stdin.read() if name == "-" else catalogue.load(name).sql
    except catalogue.UnknownReport as error:
        raise Failure(str(error), "list the reports: syncline report --list") from None
    if tables and engine != "duckdb":
        raise Failure(f"--tables is for DuckDB, not for {engine}", "leave --tables or --for out")
    before = timeline.inlined([sql]) if engine == "perfetto" else ""
    if tables:
        before = script(catalogue.sql_root() / "tables" / "duckdb", tables)
    show(f"{before}{expanded(sql, engine).rstrip()}\n")

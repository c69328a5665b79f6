"""`syncline schema`: the tables and reports that there are to ask, for people and for programs."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import click

from syncline.cli.errors import Failure
from syncline.cli.options import example, plain_or_json
from syncline.cli.output import show


@click.command(
    "schema",
    epilog=example(
        "syncline schema",
        "syncline schema syncline_bio",
        "syncline schema --format json",
        "syncline schema --agents",
    ),
)
@click.argument("table", required=False, metavar="[TABLE]")
@plain_or_json(
    "text", "json has all tables and reports with their columns, units and when a column is null."
)
@click.option(
    "--agents",
    is_flag=True,
    help="Print instead how a program that writes commands answers `why is fsync slow`, in one page.",
)
def command(table: str | None, form: str, agents: bool) -> None:
    """Lists the tables that SQL can ask, or describes the columns of one TABLE. With --format json, also the reports."""
    from syncline.printable import json_text
    from syncline.report import schema

    if agents:
        show((Path(__file__).parents[1] / "AGENTS.md").read_text(encoding="utf-8"))
        return
    found = schema.tables()
    if table is not None:
        wanted = table if table.startswith("syncline_") else f"syncline_{table}"
        names = [one["name"] for one in found]
        if wanted not in names:
            close = difflib.get_close_matches(wanted, names, 1)
            raise Failure(
                f"no table '{table}'" + (f". Did you mean {close[0]}?" if close else ""),
                "list them: syncline schema",
            )
        found = [one for one in found if one["name"] == wanted]
    if form == "json":
        from syncline import _core

        whole: dict[str, Any] = {
            "schema_version": _core.SCHEMA_VERSION,
            "conventions": [*schema.CONVENTIONS],
            "tables": found,
        }
        if table is None:
            whole["reports"] = schema.reports()
        show(json_text(whole, indent=2) + "\n")
        return
    if table is None:
        wide = max(len(one["name"]) for one in found)
        show("".join(f"{one['name']:{wide}}  {one['description']}\n" for one in found))
        show("\nColumns: syncline schema TABLE. Reports: syncline report --list.\n")
        return
    show(_described(found[0]))


def _described(table: dict[str, Any]) -> str:
    wide = max(len(column["name"]) for column in table["columns"])
    lines = [f"{table['name']}: {table['description']}", ""]
    for column in table["columns"]:
        kind = column["type"] + (f" ({column['unit']})" if column["unit"] else "")
        text = f"{column['meaning']} {column['null'] if column['null'] != 'Never null.' else ''}".rstrip()
        lines.append(
            click.wrap_text(text, 110, f"  {column['name']:{wide}}  {kind:15}  ", " " * (wide + 21))
        )
    return "\n".join(lines) + "\n"

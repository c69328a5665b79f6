"""`syncline doctor`: reports what this machine can do."""

from __future__ import annotations

import click

from syncline import doctor
from syncline.cli.options import example
from syncline.cli.output import show
from syncline.printable import printable


@click.command("doctor", epilog=example("syncline doctor"))
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Output format.",
)
def command(form: str) -> None:
    """Checks this machine: engines, DuckDB, recorders, kernel features, UI."""
    checks = doctor.collect()
    show(doctor.to_json(checks) if form == "json" else printable(doctor.render(checks), "\n"))

"""`syncline doctor`: reports what this machine can do."""

from __future__ import annotations

import click

from syncline import doctor, terminal
from syncline.cli.options import example, plain_or_json
from syncline.cli.output import show
from syncline.printable import printable


@click.command("doctor", epilog=example("syncline doctor"))
@plain_or_json("text")
def command(form: str) -> None:
    """Checks this machine: engines, DuckDB, recorders, kernel features, UI."""
    checks = doctor.collect()
    if form == "json":
        show(doctor.to_json(checks))
    else:
        show(printable(doctor.render(checks, terminal.width()), "\n"))

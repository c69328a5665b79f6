"""`syncline doctor`: reports what this machine can do."""

from __future__ import annotations

import click

from syncline import doctor
from syncline.cli.options import example, plain_or_json
from syncline.cli.output import show
from syncline.printable import printable


@click.command("doctor", epilog=example("syncline doctor"))
@plain_or_json("text")
def command(form: str) -> None:
    """Checks this machine: engines, DuckDB, recorders, kernel features, UI."""
    checks = doctor.collect()
    show(doctor.to_json(checks) if form == "json" else printable(doctor.render(checks), "\n"))

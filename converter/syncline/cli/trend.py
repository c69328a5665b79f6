"""`syncline trend`."""
from __future__ import annotations
import click
@click.command("trend")
def command() -> None:
    """Finds the runs at which a metric changed."""

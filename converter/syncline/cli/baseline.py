"""`syncline baseline save`: stores what a later diff needs of runs in one small file."""

from __future__ import annotations

import click

from syncline.cli.diff_input import (
    checked_limit,
    named,
    read_queries,
    read_side,
    refuse_overwriting,
    side_options,
)
from syncline.cli.errors import TOO_MUCH_LOST, Failure, say
from syncline.cli.options import example, reading_with
from syncline.cli.types import FILE
from syncline.reading import Reading


@click.group("baseline", epilog=example("syncline baseline save tests/data/diff/base -o main.baseline.json"))  # fmt: skip
def command() -> None:
    """Stores runs for a later diff."""


@command.command(
    "save",
    epilog=example(
        "syncline baseline save tests/data/diff/base -o main.baseline.json",
        "syncline baseline save tests/data/thesis/small1.log -o small1.baseline.json.gz",
    ),
)
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option(
    "-o",
    "--output",
    required=True,
    type=FILE,
    metavar="FILE",
    help="Output file. It is compressed if its name ends in .gz.",
)
@side_options
@reading_with(
    max_loss="Write nothing and exit with code 4 if any run lost more: a number of losses (100), or a"
    " percentage of the events and losses of the run together (0.1%). Without it, losses are only"
    " reported."
)
def save(
    inputs: tuple[str, ...],
    output: str,
    queries: tuple[str, ...],
    engine: str,
    reading: Reading,
) -> None:
    """Stores what `syncline diff` needs of the runs INPUT...

    INPUT is anything that `diff` accepts. The file holds figures but no events: a few kB a run. `diff`
    accepts the file as a side, like the runs themselves.
    """
    from syncline.comparison import baseline

    max_loss = checked_limit(reading)
    parsed_queries = read_queries(queries)
    found = named(inputs, reading)
    refuse_overwriting(output, [found], reading, *queries)
    side = read_side("baseline", found, reading, engine, parsed_queries)
    for warning in side.warnings:
        say(f"warning: {warning}")
    for run in side.runs:
        excess = run.too_much_lost(max_loss) if max_loss else None
        if excess:
            raise Failure(
                f"{excess}, more than --max-loss {max_loss} allows",
                f"list the losses: syncline report {run.name} losses",
                TOO_MUCH_LOST,
            )
    size = baseline.save(side.runs, parsed_queries, output)
    say(f"{len(side.runs)} run{'s' * (len(side.runs) > 1)} -> {output} ({size / 1000:.1f} kB)")

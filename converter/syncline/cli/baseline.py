"""`syncline baseline save`: what a later diff needs of runs, in one small file."""

from __future__ import annotations

import click

from syncline.cli.diff import (
    checked_limit,
    read_queries,
    read_side,
    refuse_overwriting,
    sides_options,
)
from syncline.cli.errors import TOO_MUCH_LOST, Failure, say
from syncline.cli.options import example, reading_with
from syncline.inputs import Reading


@click.group("baseline", epilog=example("syncline baseline save tests/data/diff/base -o main.baseline.json"))  # fmt: skip
def command() -> None:
    """Keeps runs for a later diff."""


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
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="A new file; compressed if its name ends in .gz.",
)
@sides_options
@reading_with(
    max_loss="Write nothing and stop with exit code 4 when any run lost more than this: a number of losses,"
    " or a share of its events and losses together."
)
def save(
    inputs: tuple[str, ...],
    output: str,
    queries: tuple[str, ...],
    engine: str,
    reading: Reading,
) -> None:
    """Keeps what `syncline diff` needs of the runs INPUT..., each as `diff` takes it.

    The file holds figures, not events: a few kB a run. A diff takes it as a side, as it would the runs.
    """
    from syncline import losses
    from syncline.diff import baseline

    max_loss = checked_limit(reading)
    asked = read_queries(queries)
    refuse_overwriting(output, inputs, reading, *queries)
    side = read_side("baseline", list(inputs), reading, engine, asked)
    for warning in side.warnings:
        say(f"warning: {warning}")
    for run in side.runs:
        told = run.too_much_lost(losses.Limit.parse(max_loss)) if max_loss else None
        if told:
            raise Failure(
                f"{told}, more than --max-loss {max_loss} allows",
                f"see what: syncline report {run.name} losses",
                TOO_MUCH_LOST,
            )
    size = baseline.save(side.runs, asked, output)
    say(f"{len(side.runs)} run{'s' * (len(side.runs) > 1)} -> {output} ({size / 1000:.1f} kB)")

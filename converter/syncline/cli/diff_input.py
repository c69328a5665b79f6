"""What `syncline diff` and `syncline baseline save` share: options, and reading the runs of a side."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from syncline import _core
from syncline.cli import options
from syncline.cli.errors import Failure, say
from syncline.cli.output import refuse_inputs
from syncline.cli.progress import bar
from syncline.cli.types import FILE
from syncline.reading import Reading

if TYPE_CHECKING:
    from syncline.comparison.find_runs import Named
    from syncline.comparison.sides import Query, Side


def side_options(function: Any) -> Any:
    """Adds the options of what is measured in each run."""
    function = click.option(
        "--query",
        "queries",
        multiple=True,
        type=FILE,
        metavar="FILE.sql",
        help="Compare the result of your own query too. Its columns are key, value and, optionally,"
        " unit. May be given several times.",
    )(function)
    return options.engine(function)


def checked_limit(reading: Reading) -> str | None:
    """Returns `--max-loss`, which applies to each run of a side, not to the conversion.

    Raises:
        Failure: it is neither a number nor a percentage.
    """
    if reading.max_loss is not None:
        try:
            _core.check_max_loss(reading.max_loss)
        except _core.CoreError as error:
            raise Failure(str(error.args[0]), "write 100, or 0.1%") from None
    return reading.max_loss


def read_queries(paths: tuple[str, ...]) -> list[Query]:
    """Reads the files of `--query`."""
    from syncline.comparison.sides import Query

    found = []
    for path in paths:
        try:
            found.append(Query(path, Path(path).read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError) as error:
            reason = (getattr(error, "strerror", None) or str(error)).lower()
            raise Failure(f"cannot read {path}: {reason}") from None
    return found


def named(inputs: Sequence[str], reading: Reading, where: str | None = None) -> Named:
    """Returns a side by what names it. `where` is added to the condition of `--where`."""
    from syncline.comparison.find_runs import Named

    conditions = [condition for condition in (reading.where, where) if condition is not None]
    both = " AND ".join(f"({condition})" for condition in conditions) or None
    return Named([*inputs], reading.source, both)


def read_side(
    name: str,
    side: Named,
    reading: Reading,
    engine: str,
    queries: list[Query],
    *,
    blocks: bool | None = None,
) -> Side:
    """Reads the runs of a side."""
    from syncline.comparison.sides import collect

    # A limit of losses applies to the verdict, not to the conversion.
    reading = dataclasses.replace(reading, max_loss=None, given=reading.given - {"max_loss"})
    with bar(f"reading {name}") as progress:
        return collect(
            name,
            side,
            reading,
            engine=engine,
            queries=queries,
            blocks=blocks,
            progress=progress,
            check=lambda run: options.refuse_for_converted(run, reading),
            say=say,
        )


def refuse_overwriting(
    output: str, sides: Sequence[Named], reading: Reading, *others: str | Path | None
) -> None:
    """Refuses an output that is an input, or a run in a folder that is an input.

    Raises:
        Failure: the output would overwrite it.
    """
    runs = [run for side in sides for run in side.runs]
    refuse_inputs(output, [*runs, reading.marks, *(str(one) for one in others if one)])

"""`syncline diff`: did writeback get worse, and how surely."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from syncline import losses
from syncline.cli import options
from syncline.cli.errors import BAD_INPUT, CANNOT_TELL, OK, REGRESSION, TOO_MUCH_LOST, Failure, say
from syncline.cli.options import example, reading_with
from syncline.cli.output import refuse_inputs
from syncline.cli.progress import bar
from syncline.inputs import Reading
from syncline.recordings import Filter

if TYPE_CHECKING:
    from syncline.diff.compare import Comparison
    from syncline.diff.policy import Policy
    from syncline.diff.sides import Query, Side

_ENDINGS = {".json": "json", ".md": "md", ".xml": "junit", ".txt": "table"}


def sides_options(function: Any) -> Any:
    """What is kept of a run, for `diff` and `baseline save`."""
    function = click.option(
        "--query",
        "queries",
        multiple=True,
        type=click.Path(dir_okay=False),
        metavar="FILE.sql",
        help="Compare the rows of your own query, too: columns key and value, perhaps unit.",
    )(function)
    return options.engine(function)


@click.command(
    "diff",
    epilog=example(
        "syncline diff tests/data/diff/base tests/data/diff/slower || test $? = 1   (a regression)",
        "syncline diff tests/data/diff/base tests/data/diff/same --by none -o diff.md || test $? = 5   (can't tell)",
        "syncline diff tests/data/thesis/small4.log tests/data/thesis/small4-slowdisk.log || test $? = 1",
    ),
)
@click.argument("base", required=False)
@click.argument("new", required=False)
@click.option("--base", "more_base", multiple=True, metavar="INPUT", help="A run of the base; as often as you like.")  # fmt: skip
@click.option("--new", "more_new", multiple=True, metavar="INPUT", help="A run of the new side; as often as you like.")  # fmt: skip
@click.option(
    "--policy",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="What is watched, and how much of a change matters; ./syncline.toml by default.",
)
@click.option(
    "--by",
    default="file,thread,stack",
    show_default=True,
    metavar="KIND,...",
    help="What rows there are beside those of the whole; `none` for none.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "md", "junit"]),
    default="table",
    show_default=True,
)
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Write it here, too: .json .md .xml (JUnit) .txt; as often as you like.",
)
@click.option("--all", "everything", is_flag=True, help="Print every row, not what matters alone.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of what is drawn by chance.")
@sides_options
@reading_with(
    max_loss="No verdict and exit code 4 when any run of a side lost more than this: a number of losses,"
    " or a share of its events and losses together; overrides the policy's max_loss."
)
def command(
    base: str | None,
    new: str | None,
    more_base: tuple[str, ...],
    more_new: tuple[str, ...],
    policy: str | None,
    by: str,
    form: str,
    outputs: tuple[str, ...],
    everything: bool,
    seed: int,
    queries: tuple[str, ...],
    engine: str,
    reading: Reading,
) -> int:
    """Compares two sides, BASE and NEW, and says what got worse.

    A side is a log, a trace, Parquet, a recording, a stored baseline, a folder of several of these (each a
    run), a pattern in quotes, or `-`. The more runs, the surer: five of each side find most (docs/diff.md).

    Exit codes: 0 no regression, 1 a regression, 5 can't tell (too few runs, or too much noise), and
    those of all commands (2 wrong use, 3 unreadable, 4 more lost than --max-loss allows).
    """
    from syncline import _core
    from syncline.diff import output
    from syncline.diff.compare import compare
    from syncline.diff.metrics import KINDS
    from syncline.diff.policy import PolicyError

    sides = [[*([base] if base else []), *more_base], [*([new] if new else []), *more_new]]
    if base and not new and more_base and not more_new:
        # `diff --base A NEW`: the one that stands alone is the new one.
        sides = [[*more_base], [base]]
    if sum(side.count("-") for side in sides) > 1:
        raise Failure("standard input can be one run alone", "name the others by their files")
    if not all(sides):
        raise Failure(
            "a diff has two sides, BASE and NEW",
            "syncline diff BASE NEW; or several runs: syncline diff --base A --base B --new C --new D",
        )
    kinds = [] if by == "none" else [kind.strip() for kind in by.split(",")]
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise Failure(f"--by: no kind '{unknown[0]}'", f"the kinds are: {', '.join(KINDS)}")
    targets = [(path, _format_of(path)) for path in outputs]
    try:
        rules = read_policy(policy)
    except PolicyError as error:
        raise Failure(error.message, error.hint) from None
    max_loss = checked_limit(reading)
    asked = read_queries(queries)
    for path in outputs:
        refuse_overwriting(path, sides[0] + sides[1], reading, rules.path, *queries)
    base_side, new_side = (
        read_side(name, inputs, reading, engine, asked)
        for name, inputs in zip(("base", "new"), sides, strict=True)
    )
    if not base_side.runs or not new_side.runs:
        raise Failure("a side without runs", "see docs/diff.md on what a side may be")
    _refuse_other_requests(base_side, new_side, reading)
    try:
        comparison = compare(
            base_side, new_side, rules, asked, seed=seed, by=kinds, max_loss=max_loss
        )
    except PolicyError as error:
        raise Failure(error.message, error.hint) from None
    for path, kind in targets:
        _core.write(path, output.render(kind, comparison, everything=True).encode())
    click.echo(output.render(form, comparison, everything=everything, terminal=True), nl=False)
    if form != "table":
        # What a program reads must not be all that a person sees.
        for warning in comparison.warnings:
            say(f"warning: {warning}")
        say(f"{comparison.verdict}" + (f": {comparison.no_verdict}" if comparison.no_verdict else ""))  # fmt: skip
    return exit_code(comparison)


def _refuse_other_requests(base: Side, new: Side, reading: Reading) -> None:
    """What was filtered in two ways is not alike, however alike the program is.

    Raises:
        Failure: the sides are of different requests, of none, or a filter would be without effect.
    """
    wanted = {run.fact("request_filter") or "all" for side in (base, new) for run in side.runs}
    if len(wanted) > 1:
        raise Failure(
            f"the runs are of different requests: {' / '.join(sorted(wanted))}",
            "a baseline keeps the filter that it was saved with: give the same one here, or save it again",
        )
    asked = Filter() != reading.filter
    if asked and wanted == {"all"}:
        raise Failure(
            "stored baselines are filtered when they are saved: a filter would change nothing",
            "syncline baseline save INPUT... -o FILE with the filter",
        )
    syncs = [run.figures.get(("syncs", "all")) for side in (base, new) for run in side.runs]
    if wanted != {"all"} and not any(one and one.value for one in syncs):
        raise Failure(
            f"no request of {wanted.pop()} is on either side",
            "is the filter spelt as the log has it? syncline report INPUT files threads",
            code=BAD_INPUT,
        )


def refuse_overwriting(
    output: str, inputs: Sequence[str], reading: Reading, *others: str | Path | None
) -> None:
    """The runs in a folder are inputs, too.

    Raises:
        Failure: the output is one of them.
    """
    from syncline.diff.sides import runs_of

    runs = [run for path in inputs for run in runs_of(path, reading.source)]
    refuse_inputs(output, [*runs, reading.marks, *(str(one) for one in others if one)])


def exit_code(comparison: Comparison) -> int:
    """The verdict of the whole as an exit code."""
    if comparison.lost:
        return TOO_MUCH_LOST
    if comparison.verdict == "regression":
        return REGRESSION
    if comparison.verdict == "can't tell" and comparison.policy.cant_tell != "pass":
        return CANNOT_TELL
    return OK


def _format_of(path: str) -> str:
    for ending, form in _ENDINGS.items():
        if path.endswith(ending):
            return form
    raise Failure(f"{path} has no ending that chooses a format", f"end it in {' '.join(_ENDINGS)}")


def read_policy(path: str | None) -> Policy:
    """The policy that is named, else the one that lies here, else the defaults."""
    from syncline.diff import policy

    if path is not None:
        return policy.read(Path(path))
    here = Path(policy.FILE)
    if not here.is_file():
        return policy.Policy()
    say(f"policy: {here}")
    return policy.read(here)


def checked_limit(reading: Reading) -> str | None:
    """`--max-loss`, which here takes a side's verdict, not its runs."""
    if reading.max_loss is not None:
        try:
            losses.Limit.parse(reading.max_loss)
        except ValueError as error:
            raise Failure(f"--max-loss: {error}", "write 100, or 0.1%") from None
    return reading.max_loss


def read_queries(paths: tuple[str, ...]) -> list[Query]:
    """The user's own queries."""
    from syncline.diff.sides import Query

    found = []
    for path in paths:
        try:
            found.append(Query(path, Path(path).read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError) as error:
            reason = (getattr(error, "strerror", None) or str(error)).lower()
            raise Failure(f"cannot read {path}: {reason}") from None
    return found


def read_side(
    name: str,
    inputs: list[str],
    reading: Reading,
    engine: str,
    queries: list[Query],
    *,
    blocks: bool | None = None,
) -> Side:
    """Reads the runs of a side."""
    from syncline.diff.sides import collect

    how = dataclasses.replace(reading, max_loss=None, given=reading.given - {"max_loss"})
    with bar(f"reading {name}") as progress:
        return collect(
            name,
            inputs,
            how,
            engine=engine,
            queries=queries,
            blocks=blocks,
            progress=progress,
            check=lambda path: options.refuse_for_converted(path, how),
            say=lambda message: click.echo(message, file=sys.stderr),
        )

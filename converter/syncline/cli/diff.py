"""`syncline diff`: compares two sets of runs and reports regressions."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import click

from syncline import interruptible
from syncline.cli.diff_input import (
    checked_limit,
    named,
    read_queries,
    read_side,
    refuse_overwriting,
    side_options,
)
from syncline.cli.errors import BAD_INPUT, CANNOT_TELL, OK, REGRESSION, TOO_MUCH_LOST, Failure, say
from syncline.cli.options import example, reading_with
from syncline.cli.output import show
from syncline.cli.policy import read_policy
from syncline.cli.types import FILE, PLACE
from syncline.reading import Reading
from syncline.recordings import Filter

if TYPE_CHECKING:
    from syncline.comparison.compare import Comparison
    from syncline.comparison.sides import Side

_ENDINGS = {".json": "json", ".md": "md", ".xml": "junit", ".txt": "table"}


@click.command(
    "diff",
    epilog=example(
        "syncline diff tests/data/diff/base tests/data/diff/slower || test $? = 1   (a regression)",
        "syncline diff tests/data/diff/base tests/data/diff/same --by none -o diff.md || test $? = 5   (too noisy)",
        "syncline diff tests/data/thesis/small4.log tests/data/thesis/small4-slowdisk.log || test $? = 1",
    ),
)
@click.argument("base", required=False)
@click.argument("new", required=False)
@click.option("--base", "more_base", multiple=True, type=PLACE, metavar="INPUT", help="A run of the base side. May be given several times.")  # fmt: skip
@click.option("--new", "more_new", multiple=True, type=PLACE, metavar="INPUT", help="A run of the new side. May be given several times.")  # fmt: skip
@click.option("--base-where", metavar="SQL", help="The runs of a dataset that are the base side, as --where selects them.")  # fmt: skip
@click.option("--new-where", metavar="SQL", help="The runs of a dataset that are the new side.")
@click.option(
    "--policy",
    type=FILE,
    metavar="FILE",
    help="File that sets which metrics are compared and which change of each matters. By default"
    " ./syncline.toml, if it exists.",
)
@click.option(
    "--by",
    default="file,thread,stack",
    show_default=True,
    metavar="KIND,...",
    help="Compare groups of requests too, by these kinds. `none` compares only the whole run.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "md", "junit"]),
    default="table",
    show_default=True,
    help="Format of standard output.",
)
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    type=FILE,
    metavar="FILE",
    help="Also write the result to a file. The ending chooses the format: .json .md .xml (JUnit) .txt."
    " May be given several times.",
)
@click.option(
    "--all", "everything", is_flag=True, help="Print every row, not only those that matter."
)
@click.option(
    "--seed",
    type=int,
    default=1,
    show_default=True,
    help="Seed of the random resampling.",
)
@click.option(
    "--cant-tell",
    type=click.Choice(["power", "fail", "strict", "pass"]),
    help="When figures of the gate that have no clear verdict set exit code 5. Overrides cant_tell of the policy."
    " power (default): exit code 5 only if the runs may not even show a doubling, or should have shown what one looks like."
    " fail: if one looks worse. strict: if one may be worse. pass: never.",
)
@side_options
@reading_with(
    max_loss="Give no verdict and exit with code 4 if any run lost more: a number of losses (100), or a"
    " percentage of the events and losses of the run together (0.1%). Overrides max_loss of the policy."
)
def command(
    base: str | None,
    new: str | None,
    more_base: tuple[str, ...],
    more_new: tuple[str, ...],
    base_where: str | None,
    new_where: str | None,
    policy: str | None,
    by: str,
    form: str,
    outputs: tuple[str, ...],
    everything: bool,
    seed: int,
    cant_tell: str | None,
    queries: tuple[str, ...],
    engine: str,
    reading: Reading,
) -> int:
    """Compares two sides, BASE and NEW, and reports what got worse.

    A side is a log, a trace, Parquet, a run directory, a stored baseline, a folder of several of these
    (each is a run), a quoted pattern, a dataset, or `-`. With more runs the verdict is more certain. Five runs on
    each side find most regressions (docs/reference/diff.md).

    Exit codes: 0 no regression that these runs would have shown, 1 a regression, 5 can't tell (too few
    runs, or too much noise to show a doubling), and those of all commands (2 wrong use, 3 unreadable input, 4 more losses than --max-loss allows).
    """
    from syncline.comparison import output
    from syncline.comparison.compare import compare
    from syncline.comparison.metrics import KINDS
    from syncline.comparison.policy import PolicyError

    sides = [[*([base] if base else []), *more_base], [*([new] if new else []), *more_new]]
    if base and not new and more_base and not more_new:
        # `diff --base A NEW`: the argument is the new side.
        sides = [[*more_base], [base]]
    if base_where is not None and new_where is not None and not sides[1]:
        # `diff DATASET --base-where A --new-where B`: both sides are of one dataset.
        sides[1] = [*sides[0]]
    if sum(side.count("-") for side in sides) > 1:
        raise Failure("standard input can be only one run", "name the others by their files")
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
    rules = read_policy(policy)
    if cant_tell is not None:
        rules = dataclasses.replace(rules, cant_tell=cant_tell)
    max_loss = checked_limit(reading)
    parsed_queries = read_queries(queries)
    both = [
        named(paths, reading, where)
        for paths, where in zip(sides, (base_where, new_where), strict=True)
    ]
    for path in outputs:
        refuse_overwriting(path, both, reading, rules.path, *queries)
    base_side, new_side = (
        read_side(name, side, reading, engine, parsed_queries)
        for name, side in zip(("base", "new"), both, strict=True)
    )
    if not base_side.runs or not new_side.runs:
        raise Failure("a side has no runs", "see docs/reference/diff.md on what a side may be")
    _refuse_different_filters(base_side, new_side, reading)
    try:
        comparison = compare(
            base_side, new_side, rules, parsed_queries, seed=seed, by=kinds, max_loss=max_loss
        )
    except PolicyError as error:
        raise Failure(error.message, error.hint) from None
    for path, kind in targets:
        interruptible.write(path, output.render(kind, comparison, everything=True).encode())
    show(output.render(form, comparison, everything=everything, terminal=True))
    if form != "table":
        # Programs read the other formats from stdout, so stderr has the verdict for the user.
        for warning in comparison.warnings:
            say(f"warning: {warning}")
        say(f"{comparison.verdict}" + (f": {comparison.no_verdict}" if comparison.no_verdict else ""))  # fmt: skip
    return _exit_code(comparison)


def _refuse_different_filters(base: Side, new: Side, reading: Reading) -> None:
    """Refuses to compare runs that were filtered differently.

    Raises:
        Failure: the runs have different filters, a filter has no effect, or no request passes it.
    """
    filters = {run.fact("request_filter") or "all" for side in (base, new) for run in side.runs}
    if len(filters) > 1:
        raise Failure(
            f"the runs have different filters: {' / '.join(sorted(filters))}",
            "a baseline keeps the filter that it was saved with: give the same filter here, or save"
            " the baseline again",
        )
    if Filter() != reading.filter and filters == {"all"}:
        raise Failure(
            "a filter has no effect on stored baselines, which are filtered when they are saved",
            "use the filter with: syncline baseline save INPUT... -o FILE",
        )
    syncs = [run.figures.get(("syncs", "all")) for side in (base, new) for run in side.runs]
    if filters != {"all"} and not any(figure and figure.value for figure in syncs):
        raise Failure(
            f"no request on either side passes the filter {filters.pop()}",
            "check the spelling against the log: syncline report INPUT files threads",
            code=BAD_INPUT,
        )


def _exit_code(comparison: Comparison) -> int:
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
    raise Failure(
        f"{path} has no ending that chooses a format", f"use one of: {' '.join(_ENDINGS)}"
    )

"""`syncline trend`: finds what happened to a metric in the runs of a dataset: steps, episodes, drifts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from syncline.cli import options
from syncline.cli.errors import OK, REGRESSION, Failure, say, say_prepared
from syncline.cli.options import example
from syncline.cli.output import refuse_inputs, show, written
from syncline.cli.types import FILE

if TYPE_CHECKING:
    from syncline.trend.findings import Finding
    from syncline.trend.history import Series


@click.command(
    "trend",
    epilog=example(
        "syncline ingest -q tests/data/thesis/small4.log --into history --started 2026-11-24 --fact branch=main",
        "syncline trend history syscall_latency_p99",
        "syncline trend history syncs syscall_latency_avg --where \"branch = 'main'\" --html trend.html",
        "syncline trend history syscall_latency_p99 --recent 5     (exit code 1 if it got worse)",
        "syncline trend history syscall_latency_p99 --since-last 2 --junit trend.xml     (exit code 1 if the last two runs are worse)",
    ),
)
@click.argument("dataset", metavar="DATASET")
@click.argument("metrics", nargs=-1, required=True, metavar="METRIC...")
@options.table_format("csv and json have a row for each finding.")
@click.option("--where", metavar="SQL", help="Only runs that pass this condition on the columns of syncline_run.")  # fmt: skip
@click.option("--scope", default="all", show_default=True, help="Scope of the metrics, as in the report summary: op:fsync, mark:NAME.")  # fmt: skip
@click.option(
    "--by",
    type=click.Choice(["host", "none"]),
    default="host",
    show_default=True,
    help="A series for each host, or one series for all runs.",
)
@click.option(
    "--policy",
    type=FILE,
    metavar="FILE",
    help="File that sets which change of each metric matters, as for a diff. By default ./syncline.toml, if it exists.",
)
@click.option(
    "--recent",
    type=click.IntRange(min=1),
    metavar="N",
    help="Exit with code 1 if a metric got worse with one of the last N runs of a series.",
)
@click.option(
    "--since-last",
    type=click.IntRange(min=1),
    metavar="N",
    help="Also compare the last N runs of each series with the level before them, and exit with code 1 if they are worse.",
)
@click.option(
    "--html",
    type=FILE,
    metavar="OUT",
    help="Also write a page with a chart of each series, in which each run is a link.",
)
@click.option("--junit", type=FILE, metavar="OUT", help="Also write JUnit XML: a test case for each series, which fails where the exit code is 1, and is skipped where there are too few runs.")  # fmt: skip
def command(
    dataset: str,
    metrics: tuple[str, ...],
    form: str,
    where: str | None,
    scope: str,
    by: str,
    policy: str | None,
    recent: int | None,
    since_last: int | None,
    html: str | None,
    junit: str | None,
) -> int:
    """Finds the runs at which a metric changed: steps, episodes after which the level returned, and drifts.

    METRIC is one of the report summary. The runs are in the order of their starts. Whether a change matters is judged
    as in a diff (docs/reference/datasets.md).

    Exit codes: 0, and 1 if --recent or --since-last is given and a metric got worse lately.
    """
    from syncline import render
    from syncline.cli.policy import read_policy
    from syncline.comparison.policy import FILE as POLICY
    from syncline.dataset import index
    from syncline.dataset.store import is_url, open_store
    from syncline.kinds import Dataset
    from syncline.trend import junit as junit_file
    from syncline.trend import page, text
    from syncline.trend.history import history

    if Dataset.at(dataset) is None:
        raise Failure(
            f"{dataset} is not a dataset", f"make one: syncline ingest RUN... --into {dataset}"
        )
    rules = read_policy(policy)
    store = open_store(dataset)
    entries, left_out = index.read_entries(store)
    if where is not None:
        entries = index.filtered(store, entries, where)
    found, more = history(entries, metrics, scope, rules, by_host=by == "host", last=since_last)
    left_out = [*left_out, *index.unreadable(store, entries), *more]
    root = None if is_url(store.root) else store.root
    for output in filter(None, (html, junit)):
        _refuse_inputs(output, root, policy or POLICY)
    if html is not None and junit is not None and Path(html).resolve() == Path(junit).resolve():
        raise Failure(f"--html and --junit both write {html}", "name two files")
    if html is not None:
        with written(Path(html)) as file:
            file.write(page.render(found, left_out, dataset, Path(html), root).encode())
    if junit is not None:
        with written(Path(junit)) as file:
            file.write(junit_file.render(found, left_out, dataset, lambda one: _worse(one, recent)).encode())  # fmt: skip
    if form == "table":
        show(text.render(found, left_out))
    else:
        preface, errors = render.preface(form, left_out)
        say_prepared(errors)
        show(preface + render.exporter(form)(text.as_table(found), text.REPORT))
    if html is not None:
        say(f"{html}: open it in a browser")
    asked = " and ".join(name for name, value in (("--recent", recent), ("--since-last", since_last)) if value)  # fmt: skip
    if asked and (short := [one for one in found if one.too_few]):
        have, them = ("has", "it") if len(short) == 1 else ("have", "them")
        say(f"note: {len(short):,} series {have} too few runs, so {asked} sees no change in {them}")
    return REGRESSION if any(_worse(one, recent) for one in found) else OK


def _refuse_inputs(output: str, root: str | None, policy: str) -> None:
    """Refuses an output that is the policy, or in the dataset.

    Raises:
        Failure: it is one.
    """
    refuse_inputs(output, [policy])
    if root is not None and Path(output).resolve().is_relative_to(Path(root).resolve()):
        raise Failure(f"{output} is in the dataset", "write it into another folder")


def _worse(series: Series, recent: int | None) -> Finding | None:
    """Returns the answer that the last runs are worse, or the newest finding for the worse that has one of the `recent` runs."""
    if series.last is not None and series.last.row.verdict == "regression":
        return series.last
    if recent is None:
        return None
    found = [
        one
        for one in series.findings
        if one.row.verdict == "regression"
        and (one.start if one.kind == "step" else one.end - 1) >= len(series.values) - recent
    ]
    return found[-1] if found else None

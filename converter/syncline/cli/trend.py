"""`syncline trend`: finds the runs of a dataset at which a metric changed."""

from __future__ import annotations

from pathlib import Path

import click

from syncline.cli import options
from syncline.cli.errors import OK, REGRESSION, Failure, say, say_prepared
from syncline.cli.options import example
from syncline.cli.output import refuse_inputs, show, written
from syncline.cli.types import FILE


@click.command(
    "trend",
    epilog=example(
        "syncline ingest -q tests/data/thesis/small4.log --into history --started 2026-11-24 --fact branch=main",
        "syncline trend history syscall_latency_p99",
        "syncline trend history syncs syscall_latency_avg --where \"branch = 'main'\" --html trend.html",
        "syncline trend history syscall_latency_p99 --recent 5     (exit code 1 if it got worse)",
    ),
)
@click.argument("dataset", metavar="DATASET")
@click.argument("metrics", nargs=-1, required=True, metavar="METRIC...")
@options.table_format("csv and json have a row for each change.")
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
    "--html",
    type=FILE,
    metavar="OUT",
    help="Also write a page with a chart of each series, in which each run is a link.",
)
def command(
    dataset: str,
    metrics: tuple[str, ...],
    form: str,
    where: str | None,
    scope: str,
    by: str,
    policy: str | None,
    recent: int | None,
    html: str | None,
) -> int:
    """Finds the runs at which a metric changed.

    METRIC is one of the report summary. The runs are in the order of their starts. The runs before and after a change
    are compared with the statistics of a diff (docs/reference/datasets.md).

    Exit codes: 0, and 1 if --recent is given and a metric got worse lately.
    """
    from syncline import render
    from syncline.cli.policy import read_policy
    from syncline.dataset import index
    from syncline.dataset.store import is_url, open_store
    from syncline.kinds import Dataset
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
    found, more = history(entries, metrics, scope, rules, by_host=by == "host")
    left_out = [*left_out, *index.unreadable(store, entries), *more]
    if html is not None:
        refuse_inputs(html, [])
        root = None if is_url(store.root) else store.root
        with written(Path(html)) as file:
            file.write(page.render(found, left_out, dataset, Path(html), root).encode())
    if form == "table":
        show(text.render(found, left_out))
    else:
        preface, errors = render.preface(form, left_out)
        say_prepared(errors)
        show(preface + render.exporter(form)(text.as_table(found), text.REPORT))
    if html is not None:
        say(f"{html}: open it in a browser")
    if recent is not None and (short := [one for one in found if one.too_few]):
        have, them = ("has", "it") if len(short) == 1 else ("have", "them")
        say(
            f"note: {len(short):,} series {have} too few runs, so --recent sees no change in {them}"
        )
    if recent is not None and any(
        change.row.verdict == "regression" and change.at >= len(series.values) - recent
        for series in found
        for change in series.changes
    ):
        return REGRESSION
    return OK

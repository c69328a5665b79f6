"""`syncline report`: canned answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from syncline.cli import options
from syncline.cli.errors import Failure, say
from syncline.cli.options import example, reading
from syncline.cli.output import refuse_inputs, written
from syncline.cli.progress import bar
from syncline.inputs import Reading, opened
from syncline.render import human


def _list_reports(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    from syncline.report import catalogue

    if wanted:
        for name in catalogue.names():
            click.echo(f"{name:10} {catalogue.load(name).title}")
        ctx.exit()


@click.command(
    "report",
    epilog=example(
        "syncline report tests/data/thesis/small4.log",
        "syncline report tests/data/thesis/parallel4.log threads latency",
        "syncline report --format csv tests/data/thesis/bg.log.gz scatter > scatter.csv",
        "syncline report tests/data/thesis/parallel4.log --html parallel4.html",
        "syncline report tests/data/thesis/small4.log --html cmp.html --base tests/data/thesis/small1.log",
    ),
)
@click.argument("input", metavar="INPUT")
@click.argument("names", nargs=-1, metavar="[NAME...]")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json", "md"]),
    default="table",
    show_default=True,
    help="csv and json give plain ns and bytes.",
)
@click.option(
    "--html",
    type=click.Path(dir_okay=False),
    metavar="OUT",
    help="All of it as one page to look at, which needs no network: charts, flame graphs, tables.",
)
@click.option(
    "--base",
    metavar="BASE",
    help="With --html: another input, to which INPUT is compared side by side.",
)
@options.engine
@click.option(
    "--list",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_reports,
    help="The reports, a line each.",
)
@reading
def command(
    input: str,
    names: tuple[str, ...],
    form: str,
    html: str | None,
    base: str | None,
    engine: str,
    reading: Reading,
) -> None:
    """Prints reports on a log, a trace, or Parquet; the summary by default.

    INPUT is a log, a trace, a Parquet file or folder, a folder of runs that have been converted
    (to .parquet, .csv, .jsonl or DIR/), or `-`.
    """
    if html is not None:
        _page(input, base, Path(html), names, engine, reading)
        return
    if base is not None:
        raise Failure(
            "--base changes nothing without --html",
            f"syncline report {input} --html OUT.html --base {base}",
        )
    from syncline import render
    from syncline.report import catalogue
    from syncline.report.run import caveats, run_report

    try:
        reports = [catalogue.load(name) for name in names or ("summary",)]
    except catalogue.UnknownReport as error:
        if other := next((name for name in names if Path(name).exists()), None):
            raise Failure(
                f"a report is of one input, and {other} is another",
                "recorders of one run: syncline convert LOG... -o run.pftrace; runs: syncline diff, or a folder of them",
            ) from None
        raise Failure(str(error), "`syncline report --list` tells what each answers") from None
    if form == "csv" and len(reports) > 1:
        raise Failure("CSV holds one table", "ask for one report at a time, or for --format json")
    options.refuse_for_converted(input, reading)
    with bar("reading") as progress, opened(input, reading, engine, progress) as open_engine:
        before, beside = render.preface(form, caveats(open_engine))
        tables = [(run_report(open_engine, report.name), report) for report in reports]
    click.echo(beside, err=True, nl=False)
    export = render.exporter(form)
    # JSON objects in a row are a stream that jq reads.
    between = "" if form == "json" else "\n"
    click.echo(before + between.join(export(table, report) for table, report in tables), nl=False)


def _page(
    input: str,
    base: str | None,
    out: Path,
    names: tuple[str, ...],
    engine: str,
    reading: Reading,
) -> None:
    """One page for one input or two."""
    from syncline.diff.comparability import differences, glance
    from syncline.report import html

    if names:
        raise Failure(
            f"the page of --html holds all reports: {', '.join(names)} would change nothing",
            "leave the names out",
        )
    if click.get_current_context().get_parameter_source("form") is ParameterSource.COMMANDLINE:
        raise Failure("--format changes nothing in the page of --html", "leave out one of the two")
    if input == base == "-":
        raise Failure("standard input can be read once", "name one of the two inputs")
    try:
        html.template()
    except html.PageMissing as error:
        raise Failure(str(error), "in a checkout: make page (it needs Node.js and npm)") from None
    refuse_inputs(out, [input, base, reading.marks])
    with written(out) as file:
        sides: list[dict[str, Any]] = []
        glances = []
        for path in [base, input] if base is not None else [input]:
            options.refuse_for_converted(path, reading)
            with (
                bar(f"reading {path}") as progress,
                opened(path, reading, engine, progress) as open_engine,
            ):
                sides.append(html.describe(open_engine, _name(path), compared=base is not None))
                if base is not None:
                    summary = zip(*sides[-1]["summary"].values(), strict=True)
                    glances.append(glance(open_engine, _name(path), summary))
        for path, side in zip([base, input] if base is not None else [input], sides, strict=True):
            of = f"{_name(path)}: " if base is not None else ""
            for caveat in side["caveats"]:
                say(f"warning: {of}{caveat}")
        page = html.page(sides, differences(*glances) if glances else ())
        file.write(page)
    if str(out) != "-":
        say(f"{human.text(len(page), 'bytes')} -> {out}: open it in a browser")


def _name(path: str) -> str:
    return "standard input" if path == "-" else path

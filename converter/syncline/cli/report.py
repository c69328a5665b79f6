"""`syncline report`: canned answers."""

from __future__ import annotations

import click

from syncline.cli import options
from syncline.cli.errors import Failure
from syncline.cli.options import example, reading
from syncline.cli.progress import bar
from syncline.inputs import Reading, opened


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
def command(input: str, names: tuple[str, ...], form: str, engine: str, reading: Reading) -> None:
    """Prints reports on a log, a trace, or Parquet; the summary by default.

    INPUT is a log, a trace, a Parquet file or folder, a folder of runs that have been converted
    (to .parquet, .csv, .jsonl or DIR/), or `-`.
    """
    from syncline import render
    from syncline.report import catalogue
    from syncline.report.run import caveats, run_report

    try:
        reports = [catalogue.load(name) for name in names or ("summary",)]
    except catalogue.UnknownReport as error:
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

"""`syncline report`: prints reports, or writes them as an HTML page."""

from __future__ import annotations

import functools
import itertools
import shlex
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import click
from click.core import ParameterSource

from syncline.cli import options
from syncline.cli.errors import Failure, say, say_prepared
from syncline.cli.options import example, reading
from syncline.cli.output import refuse_inputs, show, written
from syncline.cli.progress import bar
from syncline.cli.types import FILE, PLACE
from syncline.printable import printable
from syncline.reading import Reading
from syncline.render import human

if TYPE_CHECKING:
    from syncline.input import Input
    from syncline.report import Report, Table
    from syncline.report.answer import Answer
    from syncline.report.rows import Choice

# Longer outputs than this are kept in a file until they are complete. In characters.
_IN_MEMORY = 1 << 24
# Reports whose rows name a sync that explains them.
_NAMES_SYNCS = ("bystanders",)


def _reports() -> list[str]:
    from syncline.report import catalogue

    names = catalogue.names()
    width = max(map(len, names))
    return [f"{name:{width}} {catalogue.load(name).title}" for name in names]


@click.command(
    "report",
    epilog=example(
        "syncline report tests/data/thesis/small4.log",
        "syncline report tests/data/thesis/parallel4.log threads latency",
        "syncline report tests/data/thesis/small4.log files --sort bytes --limit 5",
        "syncline report --format csv tests/data/thesis/bg.log.gz scatter > scatter.csv",
        "syncline report tests/data/thesis/parallel4.log --html parallel4.html",
        "syncline report tests/data/thesis/small4.log --html cmp.html --base tests/data/thesis/small1.log",
    ),
)
@click.argument("input", metavar="INPUT")
@click.argument("names", nargs=-1, metavar="[NAME...]", shell_complete=options.complete_reports)
@options.table_format("csv and json give times in ns and sizes in bytes.")
@click.option(
    "--html",
    type=FILE,
    metavar="OUT",
    help="Write all reports as one HTML page with charts, flame graphs and tables. The page needs no"
    " network.",
)
@click.option(
    "--base",
    type=PLACE,
    metavar="BASE",
    help="With --html: another input, which the page compares with INPUT.",
)
@click.option(
    "--sort",
    metavar="COLUMN",
    help="Order the rows by this column: figures from the largest down, texts upwards. COLUMN:asc or COLUMN:desc"
    " says otherwise.",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Print at most N rows.")
@options.engine
@options.listing("reports", _reports)
@reading
def command(
    input: str,
    names: tuple[str, ...],
    form: str,
    html: str | None,
    base: str | None,
    sort: str | None,
    limit: int | None,
    engine: str,
    reading: Reading,
) -> None:
    """Prints reports on a log, a trace, or Parquet. Without NAME it prints the answer: who waited, for what,
    for which file, and two commands that go on from there. --format csv, which holds one table, then prints
    the summary.

    INPUT is a log, a run directory, a trace, a Parquet file or folder, a folder of runs, a dataset
    (`syncline ingest`), or `-`. Several logs of one run are named one after another, as for `convert`.
    """
    from syncline.report.rows import Choice

    choice = Choice(sort, limit)
    if choice != Choice() and (html is not None or (not names and form != "csv")):
        raise Failure(
            "--sort and --limit choose rows of a report, and this prints none",
            "name a report: syncline report --list",
        )
    if html is not None:
        _write_page(input, base, Path(html), names, engine, reading)
        return
    if base is not None:
        raise Failure(
            "--base has no effect without --html",
            f"syncline report {input} --html OUT.html --base {base}",
        )
    from syncline import render
    from syncline.advice import statements_of_advice, with_advice
    from syncline.report import answer, catalogue, neighbours
    from syncline.report.inspect import statements as statements_of_why
    from syncline.report.inspect import why_empty
    from syncline.report.run import caveats, lacks_reads, run_report, statements

    others_of_run, names = _logs_among(names)
    wants_answer = not names and form != "csv"
    try:
        wanted = dict.fromkeys(names or ("summary",))
        reports = [catalogue.load(name) for name in wanted if not wants_answer]
    except catalogue.UnknownReport as error:
        context = click.get_current_context().find_root()
        known = set(cast(click.Group, context.command).list_commands(context))
        hint = "list the reports: syncline report --list"
        if command := next((name for name in names if name in known), None):
            hint = f"{command} is no report. It is a command: syncline {command} INPUT."
        raise Failure(str(error), hint) from None
    if form == "csv" and len(reports) > 1:
        raise Failure("CSV holds one table", "name one report, or use --format json")
    found_input = (
        options.resolved_together([input, *others_of_run], reading)
        if others_of_run
        else options.resolved(input, reading)
    )
    needed = statements(report.name for report in reports)
    needed += [*answer.statements(), *statements_of_advice()] if wants_answer else []
    # A report without rows says why: people read it in the table, programs get it on stderr.
    needed += statements_of_why(report.name for report in reports)
    notes = []
    parts = render.streamed(form)
    is_joined = form == "json" and len(reports) > 1
    # Not all rows of a large dataset fit the memory, and half an output would look like a whole one.
    with tempfile.SpooledTemporaryFile(
        _IN_MEMORY, "w+", encoding="utf-8", errors="surrogatepass", newline=""
    ) as out:
        with (
            bar("reading") as progress,
            found_input.open(reading, engine, progress, statements=needed) as open_engine,
        ):
            others = None
            if wants_answer or "neighbours" in names:
                others = neighbours.of_filtered(found_input, reading, engine, open_engine)
            said = caveats(open_engine, says_failures=not wants_answer)
            stdout_preface, stderr_preface = render.preface(form, said)
            if wants_answer:
                found = answer.read(open_engine, others.as_dicts() if others else None)
                out.write(_answer(form, with_advice(open_engine, found), said, found_input))
                # The answer has its own place for them.
                stderr_preface = ""
            else:
                out.write(stdout_preface)
            for number, report in enumerate(reports):
                between = "\n" if number and not is_joined else ""
                if is_joined:
                    out.write(("," if number else "{") + f'"{report.name}": ')
                if report.name == "neighbours" and others is not None:
                    is_empty = not others.rows
                    out.write(
                        between + render.exporter(form)(_chosen(choice, others, report), report)
                    )
                elif parts and choice == Choice():
                    is_empty = _write_in_parts(open_engine, report, parts, out)
                    why = why_empty(open_engine, report.name) if is_empty else ""
                    notes += [f"note: {report.name}: no rows: {why}\n"] if why else []
                else:
                    table = run_report(open_engine, report.name)
                    is_empty = not table.rows
                    if is_empty:
                        table = replace(table, why_empty=why_empty(open_engine, report.name))
                    out.write(
                        between + render.exporter(form)(_chosen(choice, table, report), report)
                    )
                    if form == "table" and report.name in _NAMES_SYNCS and found_input.can_be_shown:
                        notes += _ways_to_look(input, table)
                if not is_empty and lacks_reads(open_engine, report.name):
                    notes.append(f"note: {report.name}: reads are not in this recording.\n")
            out.write("}\n" if is_joined else "")
            options.say_names_instead(found_input, reading, engine, open_engine)
        say_prepared(stderr_preface + "".join(notes))
        out.seek(0)
        while text := out.read(_IN_MEMORY):
            show(text)
    if others_of_run and wants_answer:
        _say_joined([input, *others_of_run])


def _say_joined(paths: list[str]) -> None:
    logs = shlex.join(paths)
    say(
        f"note: the logs were read as one run. For commands, make one INPUT of them: syncline convert {logs} -o run.pftrace;"
        " to compare two runs: syncline diff BASE NEW"
    )


def _ways_to_look(input: str, table: Table) -> list[str]:
    """Says how to see the sync that the first row names, if it names one."""
    row = dict(zip(table.columns, table.rows[0], strict=True)) if table.rows else {}
    if row.get("sync_id") is None or row.get("run"):
        return []
    command = f"syncline open {shlex.quote(input)} --sync {row['sync_id']}"
    return [f"note: the sync of the first row in the timeline: {printable(command)}\n"]


def _logs_among(names: tuple[str, ...]) -> tuple[list[str], tuple[str, ...]]:
    """Divides names into more logs of the run, and reports. A report wins over a file of its name."""
    from syncline.report import catalogue

    known = set(catalogue.names())
    logs = [name for name in names if name not in known and Path(name).exists()]
    return logs, tuple(name for name in names if name not in logs)


def _answer(form: str, found: Answer, caveats: list[str], input: Input) -> str:
    """Returns the answer in a format, with its warnings."""
    from syncline import render
    from syncline.kinds import Together
    from syncline.printable import json_text
    from syncline.render import answer

    # Commands to type take one INPUT, so for several logs they say INPUT, as they do for standard input.
    path = "-" if isinstance(input, Together) else input.path
    if form == "json":
        data = answer.as_data(found, caveats, path, can_be_shown=input.can_be_shown)
        return json_text(data, indent=2) + "\n"
    if form == "md":
        from syncline.render import answer_markdown

        return answer_markdown.render(found, caveats, path, can_be_shown=input.can_be_shown)
    warnings, _ = render.preface(form, caveats)
    whole = answer.render(found, path, can_be_shown=input.can_be_shown)
    return answer.render_failures(found) + warnings + whole


def _chosen(choice: Choice, table: Table, report: Report) -> Table:
    from syncline.report.rows import UnknownColumn

    try:
        return choice.of(table, report)
    except UnknownColumn as error:
        raise Failure(str(error), f"what they mean: syncline help {report.name}") from None


def _write_in_parts(
    engine: Any, report: Report, parts: Callable[..., Iterator[str]], out: IO[str]
) -> bool:
    """Writes the text of a report, and returns whether it has no rows."""
    from syncline.report.run import run_report_in_batches

    is_empty = True

    def rows() -> Iterator[list[tuple[Any, ...]]]:
        nonlocal is_empty
        for batch in itertools.chain([first], batches):
            is_empty = is_empty and not batch.rows
            yield batch.rows

    batches = run_report_in_batches(engine, report.name)
    first = next(batches)
    # `writelines` would move to a file only after the last one.
    for part in parts(first.columns, rows(), report):
        out.write(part)
    return is_empty


def _write_page(
    input: str,
    base: str | None,
    out: Path,
    names: tuple[str, ...],
    engine: str,
    reading: Reading,
) -> None:
    """Writes one HTML page of one input or of two."""
    from syncline.advice import advise, with_advice
    from syncline.comparison.answer import answer as changes
    from syncline.comparison.comparability import differences, glance
    from syncline.comparison.output import answer as words_of_changes
    from syncline.kinds import Together
    from syncline.render.advice import as_page
    from syncline.render.answer import sentences_of
    from syncline.report import answer, html, neighbours

    others_of_run, names = _logs_among(names)
    if others_of_run and base is not None:
        raise Failure(
            f"--base compares one INPUT with another, and {others_of_run[0]} is a further one",
            f"make one of the logs of a run: syncline convert {shlex.join([input, *others_of_run])} -o run.pftrace",
        )
    if names:
        raise Failure(
            f"--html writes all reports: {', '.join(names)} has no effect",
            "leave out the names of reports",
        )
    if click.get_current_context().get_parameter_source("form") is ParameterSource.COMMANDLINE:
        raise Failure("--format has no effect on --html", "leave out one of the two")
    if input == base == "-":
        raise Failure(
            "standard input can be read only once", "name a file for one of the two inputs"
        )
    try:
        html.template()
    except html.PageMissing as error:
        raise Failure(str(error), "in a checkout: make page (it needs Node.js and npm)") from None
    # The base is read first, as it is shown.
    inputs = (
        [options.resolved_together([input, *others_of_run], reading)]
        if others_of_run
        else [options.resolved(path, reading) for path in (base, input) if path is not None]
    )
    refuse_inputs(out, [*inputs, reading.marks])
    with written(out) as file:
        sides: list[dict[str, Any]] = []
        glances = []
        for one in inputs:
            # Commands to type take one INPUT, so for several logs they say INPUT.
            path = "-" if isinstance(one, Together) else one.path
            with (
                bar(f"reading {one.path}") as progress,
                one.open(reading, engine, progress) as open_engine,
            ):
                others = neighbours.of_filtered(one, reading, engine, open_engine)
                found = answer.read(open_engine, others.as_dicts() if others else None)
                # The answer leaves advice out too where it would take long.
                advice = advise(open_engine) if answer.is_small(open_engine, found.total) else None
                sides.append(
                    html.describe(
                        open_engine,
                        _name(one.path),
                        compared=base is not None,
                        answer=with_advice(open_engine, found, advice),
                        sentences=functools.partial(
                            sentences_of, path=path, can_be_shown=one.can_be_shown
                        ),
                        advice=as_page(path, advice) if advice else None,
                        typed="INPUT" if path == "-" else None,
                        can_be_shown=one.can_be_shown,
                    )
                )
                if base is not None:
                    summary = zip(*sides[-1]["summary"].values(), strict=True)
                    glances.append(glance(open_engine, _name(one.path), summary))
        for one, side in zip(inputs, sides, strict=True):
            of = f"{_name(one.path)}: " if base is not None else ""
            for caveat in (*side["failed"], *side["caveats"]):
                say(f"warning: {of}{caveat.removesuffix('.')}")
        if glances:
            change = changes(*glances)
            changed = {"sentences": [*words_of_changes.sentences(change)], "phases": change.phases}
            page = html.page(sides, differences(*glances), changed)
        else:
            page = html.page(sides)
        file.write(page)
    if str(out) != "-":
        say(f"{human.text(len(page), 'bytes')} -> {out}: open it in a browser")
    if others_of_run:
        _say_joined([input, *others_of_run])


def _name(path: str) -> str:
    return "standard input" if path == "-" else path

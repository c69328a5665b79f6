"""`syncline advise`: what a recording shows that costs time or is a risk, and what people do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from syncline.cli import options
from syncline.cli.errors import CANNOT_TELL, FOUND, OK, Failure, reported, say, say_prepared
from syncline.cli.options import example, reading
from syncline.cli.output import show
from syncline.cli.progress import bar
from syncline.reading import Reading

if TYPE_CHECKING:
    from syncline.advice import Advice


def _findings() -> list[str]:
    from syncline.advice import load, names

    return [f"{name:13} {load(name).title}" for name in names()]


@click.command(
    "advise",
    epilog=example(
        "syncline advise tests/data/thesis/small4.log",
        "syncline advise --format csv tests/data/thesis/small4.log tests/data/thesis/empty.log",
        "syncline advise tests/data/thesis/small4.log --evidence small-files",
        "syncline advise tests/data/thesis/small4.log --fail-on small-files,needless || test $? = 1   (a finding)",
    ),
)
@click.argument("inputs_", nargs=-1, required=True, metavar="INPUT...")
@options.table_format("csv and json give times in ns.")
@click.option(
    "--evidence",
    "name",
    metavar="FINDING",
    help="List all requests that are evidence of one finding, of one INPUT.",
)
@click.option(
    "--fail-on",
    metavar="FINDING,...",
    help="Exit with code 1 if one of these findings is found in an INPUT, and with 5 if none is but one could"
    " not be checked.",
)
@options.engine
@options.listing("findings", _findings)
@reading
def command(
    inputs_: tuple[str, ...],
    form: str,
    name: str | None,
    fail_on: str | None,
    engine: str,
    reading: Reading,
) -> int:
    """Names syncs of each INPUT that are not needed, could be cheaper, or do not suffice.

    Each finding has its cost in wall time, the requests that are its evidence, and what people do about it.
    A finding that the recording does not allow is listed as not checked. Inputs that cannot be read are skipped; the
    exit code is then that of the first one. With --fail-on, it is 1 if one of the findings is there, and 5 if one of
    them could not be checked.
    """
    gate = _gate(fail_on)
    if name is not None:
        if gate:
            raise Failure(
                "--evidence lists requests and checks nothing, so --fail-on would have no effect",
                "leave one of them out",
            )
        _show_evidence(inputs_, form, name, engine, reading)
        return OK
    from syncline import render
    from syncline.advice import advise
    from syncline.render import advice
    from syncline.report.run import caveats

    code = OK
    found: list[tuple[str, list[Advice]]] = []
    for path in inputs_:
        try:
            input_ = options.resolved(path, reading)
            with (
                bar(f"reading {path}") as progress,
                input_.open(reading, engine, progress) as open_engine,
            ):
                warnings = caveats(open_engine)
                found.append((path, advise(open_engine)))
                options.say_names_instead(input_, reading, engine, open_engine)
        except Exception as error:
            code = reported(error, code)
            continue
        if form == "table":
            shown = advice.render(*found[-1], warnings, can_be_shown=input_.can_be_shown)
            show(("\n" if len(found) > 1 else "") + shown)
            continue
        for warning in warnings:
            say(f"warning: {path}: {warning}" if len(inputs_) > 1 else f"warning: {warning}")
        if form == "json":
            show(advice.as_json(*found[-1]))
    if form in ("csv", "md") and found:
        show(render.exporter(form)(advice.as_table(found), advice.REPORT))
    return code or _verdict(gate, found)


def _gate(names: str | None) -> list[str]:
    """Returns the findings of `--fail-on`.

    Raises:
        Failure: there is no such finding, or none is named.
    """
    from syncline.advice import UnknownFinding, load

    if names is None:
        return []
    gate = [name.strip() for name in names.split(",") if name.strip()]
    if not gate:
        raise Failure("--fail-on names no finding", "list the findings: syncline advise --list")
    for name in gate:
        try:
            load(name)
        except UnknownFinding as error:
            raise Failure(
                f"--fail-on: {error}", "list the findings: syncline advise --list"
            ) from None
    return gate


def _verdict(gate: list[str], found: list[tuple[str, list[Advice]]]) -> int:
    """Returns the exit code of `--fail-on`, and says which findings decide it: what is not checked is no pass."""
    for status, code in (("found", FOUND), ("not checked", CANNOT_TELL)):
        decide = [
            f"{one.finding.name} is {status} in {path}"
            for path, advice in found
            for one in advice
            if one.finding.name in gate and one.status == status
        ]
        if decide:
            say(f"--fail-on: {'; '.join(decide)}")
            return code
    return OK


def _show_evidence(
    inputs: tuple[str, ...], form: str, name: str, engine: str, reading: Reading
) -> None:
    """Prints all evidence of one finding."""
    from syncline import render
    from syncline.advice import UnknownFinding, evidence, load, why_not
    from syncline.report.run import caveats

    if len(inputs) > 1:
        raise Failure("--evidence lists the requests of one input", "name one INPUT")
    try:
        finding = load(name)
    except UnknownFinding as error:
        raise Failure(str(error), "list the findings: syncline advise --list") from None
    input_ = options.resolved(inputs[0], reading)
    with (
        bar("reading") as progress,
        input_.open(reading, engine, progress) as open_engine,
    ):
        if reason := why_not(open_engine, finding):
            raise Failure(
                f"{name} cannot be checked in {inputs[0]}: {reason}",
                f"what the input holds: syncline inspect {inputs[0]}",
            )
        stdout_preface, stderr_preface = render.preface(form, caveats(open_engine))
        found = evidence(open_engine, finding)
    say_prepared(stderr_preface)
    show(stdout_preface + render.exporter(form)(found, finding.report))

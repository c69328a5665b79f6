"""`syncline convert`: converts logs to a trace, tables, requests, events or samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from syncline import _core
from syncline.cli import conversion
from syncline.cli.errors import Failure, say
from syncline.cli.options import (
    FILTERS,
    csv_safe,
    example,
    flag,
    offsets,
    reading,
    refuse_where,
    with_offsets,
)
from syncline.cli.output import refuse_inputs, refuse_terminal
from syncline.cli.progress import bar
from syncline.cli.types import PLACE
from syncline.formats import format_of
from syncline.reading import Reading
from syncline.render import human

if TYPE_CHECKING:
    from syncline.input import Input

_ENDINGS = dict(_core.FORMATS)
FORMATS = list(_ENDINGS)


@click.command(
    "convert",
    epilog=example(
        "syncline convert tests/data/thesis/small4.log -o small4.pftrace",
        "syncline convert tests/data/thesis/bg.log.gz -o bg/     (a folder of Parquet tables)",
        "zcat tests/data/thesis/bg.log.gz | syncline convert - -o - --to csv",
    ),
)
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option(
    "-o",
    "--output",
    required=True,
    type=PLACE,
    metavar="OUT",
    help="Output file; `-` is standard output. The ending chooses the format: .pftrace[.gz] (trace),"
    " .parquet .csv .jsonl (requests), .events.jsonl (events), .perf .folded (samples), DIR/ (eight"
    " tables as Parquet).",
)
@click.option(
    "--to",
    type=click.Choice(FORMATS),
    help="Format of the output. By default the ending of OUT chooses it.",
)
@click.option(
    "--weight",
    type=click.Choice(_core.WEIGHTS),
    show_default="count",
    help="What a sample counts (.perf, .folded).",
)
@click.option(
    "--by",
    type=click.Choice(_core.BY),
    show_default="stack",
    help="What the frames of a sample are (.perf, .folded).",
)
@csv_safe("a .csv")
@click.option("-q", "--quiet", is_flag=True, help="Print only warnings and errors.")
@offsets
@reading
def command(
    inputs: tuple[str, ...],
    output: str,
    to: str | None,
    weight: str | None,
    by: str | None,
    csv_safe: bool,
    quiet: bool,
    offsets: tuple[tuple[str, int], ...],
    reading: Reading,
) -> None:
    """Converts logs to a trace, tables, requests, events or samples.

    INPUT may also be one trace that Syncline wrote; it becomes tables, requests or samples.
    Several INPUTs are logs of one run by several recorders, or pieces of one log in their order. `-`
    is standard input.
    """
    from syncline.kinds import resolve

    found: list[Input] = []
    for path in inputs:
        found.append(resolve(path, reading.source))
        found[-1].refuse_to_convert(with_others=len(inputs) > 1)
    if output == "-" and to is None:
        raise Failure(
            "standard output has no ending that chooses a format",
            f"name the format with --to: {', '.join(FORMATS)}",
        )
    refuse_where(reading)
    _refuse_unused(output, to, reading, weight=weight, by=by, csv_safe=csv_safe)
    refuse_inputs(output, [*found, reading.marks])
    refuse_terminal(output, to or "")
    reading = with_offsets(reading, inputs, offsets)
    if found[0].is_converted:
        _refuse_for_trace(inputs[0], reading)
    choices: dict[str, Any] = {
        "to": to, "weight": weight or "count", "by": by or "stack", "csv_safe": csv_safe
    }  # fmt: skip
    with bar("converting") as progress:
        if len(found) == 1:
            summary = found[0].convert(output, reading, progress, **choices)
        else:
            recordings = [one.recording for one in found]
            summary = reading.convert(recordings, output, progress=progress, **choices)
    _print_summary(summary, output, quiet)


_TRACES = ("pftrace", "pftrace.gz")
_SAMPLES = ("perf", "folded")
# The low-level log holds all events as they were recorded, in the order of the input.
_NOT_LOW_LEVEL = tuple(name for name in FORMATS if name != "events.jsonl")
# The formats in which an option has an effect.
_USED_BY = {
    "--weight": _SAMPLES,
    "--by": _SAMPLES,
    "--csv-safe": ("csv",),
    "--marks": (*_TRACES, "tables"),
    **dict.fromkeys(FILTERS, _NOT_LOW_LEVEL),
    "--window": _NOT_LOW_LEVEL,
}


def _refuse_unused(
    output: str, to: str | None, reading: Reading, **options: str | bool | None
) -> None:
    """Refuses an option that has no effect on the output.

    Raises:
        Failure: names the formats in which the option has an effect.
    """
    form = to or format_of(output)
    given = {flag(name) for name, value in options.items() if value}
    given |= {flag(name) for name in reading.given}
    for option, users in _USED_BY.items():
        if option in given and form is not None and form not in users:
            endings = ", ".join(_ENDINGS[name][0] for name in users).replace("/", "DIR/")
            raise Failure(
                f"{option} has no effect on {form}: it is for {endings}",
                f"leave it out, or give the output one of the endings {endings}",
            )


def _refuse_for_trace(path: str, reading: Reading) -> None:
    """Refuses the options that have an effect only on a log.

    Raises:
        Failure: names them.
    """
    given = sorted(flag(name) for name in reading.given - {"max_loss"})
    if given:
        raise Failure(
            f"{path} is a trace: {', '.join(given)} would have no effect",
            "give the log, or leave out the option",
        )


def _count(number: int) -> str:
    return human.text(number, "count")


def _print_summary(summary: dict[str, Any], output: str, quiet: bool) -> None:
    """Prints what was read and written, and every loss, to stderr."""
    if not quiet:
        events = summary["events"]
        span = ((summary["last_ts_ns"] or 0) - (summary["first_ts_ns"] or 0)) / 1e9
        kinds = summary["events_by_kind"]
        requests = summary["requests"]
        result = "" if requests is None else f" ({_count(requests)} sync requests)"
        if not requests and kinds["call_enter"]:
            result = f" ({_count(kinds['call_enter'])} sync calls)"
        target = "standard output" if output == "-" else output
        say(f"{_count(events)} events over {span:.3f} s{result} -> {target}")
    for line in conversion.warnings(summary):
        say(f"warning: {line}")
    for line in summary["unparsed"]:
        say(f"  {line}")
    if summary["predicted_writes"]:
        # A trace becomes no trace.
        say(
            f"warning: {_count(summary['predicted_writes'])} predicted writes left out: only a trace holds them"
        )
    if summary["left_out"]:
        say(f"warning: {_count(summary['left_out'])} requests left out: their weight is unknown")

"""`syncline convert`: a log becomes a trace, columns, rows, events or samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from syncline import _core, losses
from syncline.cli.errors import Failure, say
from syncline.cli.options import FILTERS, example, offsets, reading, with_offsets
from syncline.cli.output import refuse_inputs
from syncline.cli.progress import bar
from syncline.engine.columns import is_columns
from syncline.inputs import InputError, Reading, kind_of
from syncline.render import human

FORMATS = [name for name, _ in _core.FORMATS]


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
    metavar="OUT",
    help="Its ending chooses the format: .pftrace[.gz] .parquet .csv .jsonl (requests), .events.jsonl (events), .perf .folded (samples), DIR/ (seven tables as Parquet). `-` is standard output.",
)
@click.option("--to", type=click.Choice(FORMATS), help="The format, whatever the ending.")
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
@click.option(
    "--callstacks",
    is_flag=True,
    help="Put stacks into a trace as Perfetto callstacks too, for a UI of v53 or later (v52 counts them as import errors).",
)
@click.option("-q", "--quiet", is_flag=True, help="Say nothing when all is well.")
@offsets
@reading
def command(
    inputs: tuple[str, ...],
    output: str,
    to: str | None,
    weight: str | None,
    by: str | None,
    callstacks: bool,
    quiet: bool,
    offsets: tuple[tuple[str, int], ...],
    reading: Reading,
) -> None:
    """Converts logs. Several INPUTs are pieces of one log, in their order; `-` is standard input."""
    for path in inputs:
        kind = kind_of(path, reading.source)
        if kind == "tables" and not is_columns(path):
            raise InputError(
                f"{path} is a folder, and `convert` reads logs",
                "name its logs: together they are taken for pieces of one log, in their order"
                f" (syncline convert {path.rstrip('/')}/* -o OUT)",
            )
        if kind != "log":
            raise InputError(
                f"{path} is already converted",
                "`convert` reads logs; use `syncline report` or `syncline open` on it",
            )
    if output == "-" and to is None:
        raise Failure(
            "standard output has no ending that chooses a format",
            f"say which with --to: {', '.join(FORMATS)}",
        )
    _refuse_unused(output, to, reading, weight=weight, by=by, callstacks=callstacks)
    refuse_inputs(output, [*inputs, reading.marks])
    reading = with_offsets(reading, inputs, offsets)
    with bar("converting") as progress:
        summary = reading.convert(
            list(inputs),
            output,
            to=to,
            weight=weight or "count",
            by=by or "stack",
            callstacks=callstacks,
            progress=progress,
        )
    tell(summary, output, quiet)


# The formats in which an option changes anything.
_TRACES = ("pftrace", "pftrace.gz")
_SAMPLES = ("perf", "folded")
_USED_BY = {
    "--weight": _SAMPLES,
    "--by": _SAMPLES,
    "--callstacks": _TRACES,
    "--marks": (*_TRACES, "tables"),
    # The low-level log keeps the order of its input.
    # The low-level log is what was recorded.
    **dict.fromkeys(FILTERS, tuple(name for name in FORMATS if name != "events.jsonl")),
    "--window": tuple(name for name in FORMATS if name != "events.jsonl"),
}


def _refuse_unused(
    output: str, to: str | None, reading: Reading, **typed: str | bool | None
) -> None:
    """Says of an option that the output has no use for, what has."""
    form = to or _format_of(output)
    given = {f"--{name}" for name, value in typed.items() if value}
    given |= {f"--{name.replace('_', '-')}" for name in reading.given}
    for option, users in _USED_BY.items():
        if option in given and form is not None and form not in users:
            endings = ", ".join(_ENDINGS[name][0] for name in users).replace("/", "DIR/")
            raise Failure(
                f"{option} changes nothing in {form}: it is for {endings}",
                f"leave it out, or end the name of the output in one of {endings}",
            )


_ENDINGS = dict(_core.FORMATS)


def _format_of(output: str) -> str | None:
    """As the core chooses it; None where it will say that it cannot."""
    if Path(output).is_dir():
        return "tables"
    chosen = (name for name, endings in _ENDINGS.items() if output.endswith(tuple(endings)))
    return next(chosen, None)


def count(number: int) -> str:
    """A number for people."""
    return human.text(number, "count")


def tell(summary: dict[str, Any], output: str, quiet: bool) -> None:
    """What was read, what was written, and what is missing; on stderr."""
    if not quiet:
        events = summary["events"]
        span = ((summary["last_ts_ns"] or 0) - (summary["first_ts_ns"] or 0)) / 1e9
        kinds = summary["events_by_kind"]
        requests = summary["requests"]
        done = "" if requests is None else f" ({count(requests)} sync requests)"
        if not requests and kinds["call_enter"]:
            done = f" ({count(kinds['call_enter'])} sync calls)"
        target = "standard output" if output == "-" else output
        say(f"{count(events)} events of {span:.3f} s{done} -> {target}")
    for line in losses.of_conversion(summary):
        say(f"warning: {line}")
    for line in summary["unparsed"]:
        say(f"  {line}")
    if summary["left_out"]:
        say(f"warning: {count(summary['left_out'])} requests left out: their weight is not known")

"""`syncline convert`: a log becomes a trace, columns, rows, events or samples."""

from __future__ import annotations

from typing import Any

import click

from syncline import _core
from syncline.cli.errors import Failure, say
from syncline.cli.options import example, reading
from syncline.cli.progress import bar
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
    help="Its ending chooses the format: .pftrace[.gz] .parquet .csv .jsonl (requests), .events.jsonl (events), .perf .folded (samples), DIR/ (Parquet tables). `-` is standard output.",
)
@click.option("--to", type=click.Choice(FORMATS), help="The format, whatever the ending.")
@click.option(
    "--weight",
    type=click.Choice(_core.WEIGHTS),
    default="count",
    show_default=True,
    help="What a sample counts (.perf, .folded).",
)
@click.option(
    "--by",
    type=click.Choice(_core.BY),
    default="stack",
    show_default=True,
    help="What the frames of a sample are (.perf, .folded).",
)
@click.option(
    "--callstacks",
    is_flag=True,
    help="Put stacks into a trace as Perfetto callstacks too, for a UI of v53 or later (v52 counts them as import errors).",
)
@click.option("-q", "--quiet", is_flag=True, help="Say nothing when all is well.")
@reading
def command(
    inputs: tuple[str, ...],
    output: str,
    to: str | None,
    weight: str,
    by: str,
    callstacks: bool,
    quiet: bool,
    reading: Reading,
) -> None:
    """Converts logs. Several INPUTs are pieces of one log, in their order; `-` is standard input."""
    for path in inputs:
        kind = kind_of(path)
        if kind != "log" and reading.source is None:
            raise InputError(
                f"{path} is already converted",
                "`convert` reads logs; use `syncline report` or `syncline open` on it",
            )
    if output == "-" and to is None:
        raise Failure(
            "standard output has no ending that chooses a format",
            f"say which with --to: {', '.join(FORMATS)}",
        )
    with bar("converting") as progress:
        summary = reading.convert(
            list(inputs),
            output,
            to=to,
            weight=weight,
            by=by,
            callstacks=callstacks,
            progress=progress,
        )
    tell(summary, output, quiet)


def count(number: int) -> str:
    """A number for people."""
    return human.text(number, "count")


def tell(summary: dict[str, Any], output: str, quiet: bool) -> None:
    """What was read, what was written, and what is missing; on stderr."""
    if not quiet:
        events = summary["events"]
        span = (summary["last_ts_ns"] - summary["first_ts_ns"]) / 1e9
        requests = summary["events_by_kind"]["sync_start"]
        target = "standard output" if output == "-" else output
        say(
            f"{count(events)} events of {span:.3f} s ({count(requests)} sync requests started) -> {target}"
        )
    for loss in summary["losses"]:
        if loss["severity"] == "loss":
            part = human.text(loss["count"] / (summary["events"] + loss["count"]), "share")
            say(
                f"warning: {count(loss['count'])} {loss['reason']} ({part} of the events): {loss['meaning']}"
            )
    for line in summary["unparsed"]:
        say(f"  {line}")
    if summary["left_out"]:
        say(
            f"warning: {count(summary['left_out'])} requests left out: their weight is not known (incomplete)"
        )

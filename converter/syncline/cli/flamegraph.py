"""`syncline flamegraph`: draws what syncs wait for, by stack, file or thread."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from syncline import interruptible
from syncline.cli import options
from syncline.cli.errors import Failure, say
from syncline.cli.options import example, reading
from syncline.cli.output import refuse_inputs, refuse_terminal
from syncline.cli.progress import bar
from syncline.cli.types import PERCENT, PLACE
from syncline.errors import InputError
from syncline.reading import Reading
from syncline.render import human

if TYPE_CHECKING:
    from syncline.kinds import Kind

# Copies of the names in `syncline.flamegraph`, which is imported only when the command runs.
_BY = ("stack", "file", "thread")
_WEIGHTS = ("count", "syscall", "writeback", "journal", "flush", "bytes")
_FORMATS = ("svg", "folded", "speedscope", "perf", "pprof")
# Formats that can hold two weights a stack.
_DIFFERENTIAL = ("svg", "folded")


@click.command(
    "flamegraph",
    epilog=example(
        "syncline flamegraph tests/data/thesis/small4.log -o stacks.svg",
        "syncline flamegraph tests/data/thesis/rename.log --by file --weight syscall -o files.svg",
        "syncline flamegraph tests/data/thesis/small4-slowdisk.log --diff tests/data/thesis/small4.log -o diff.svg",
        "syncline flamegraph tests/data/thesis/parallel4.log --by thread --weight bytes",
    ),
)
@click.argument("input", metavar="INPUT")
@click.option(
    "-o",
    "--output",
    default="-",
    type=PLACE,
    metavar="OUT",
    help="Output file. The ending chooses the format: .svg (with zoom and search in a browser), .folded,"
    " .speedscope.json, .perf, .pb.gz (pprof). By default `-`: folded stacks on standard output.",
)
@click.option(
    "--to",
    type=click.Choice(_FORMATS),
    help="Format of the output. By default the ending of OUT chooses it.",
)
@click.option(
    "--by",
    type=click.Choice(_BY),
    default="stack",
    show_default=True,
    help="What the frames are: functions (stack), folders and files, or threads and their calls.",
)
@click.option(
    "--weight",
    type=click.Choice(_WEIGHTS),
    default="count",
    show_default=True,
    help="What the width of a frame is: the number of requests, their syscall latency, their writeback"
    " latency, their wait for the journal or for cache flushes (both recorded by the route dynamic-events, and"
    " by the ring buffer of a patched kernel), or the bytes that were written back for them.",
)
@click.option(
    "--diff",
    "base",
    type=PLACE,
    metavar="BASE",
    help="Compare INPUT with BASE. The widths are those of INPUT; the text and the colour of a frame"
    " show the difference (.svg, .folded).",
)
@click.option(
    "--normalize",
    is_flag=True,
    help="With --diff: scale BASE to the total of INPUT, to compare shares instead of amounts.",
)
@click.option(
    "--hide-under",
    type=PERCENT,
    help="Leave out frames that are narrower than this percentage of the whole (.svg).",
)
@options.engine
@click.option("-q", "--quiet", is_flag=True, help="Print only warnings and notes.")
@reading
def command(
    input: str,
    output: str,
    to: str | None,
    by: str,
    weight: str,
    base: str | None,
    normalize: bool,
    hide_under: float | None,
    engine: str,
    quiet: bool,
    reading: Reading,
) -> None:
    """Draws a flame graph of a log, a trace, or Parquet.

    Requests with an unknown weight are left out and counted. Requests without a stack are the frame
    [no stack]. A function is shown as an address if the log does not name it.
    """
    from syncline.flamegraph import exporter
    from syncline.flamegraph.picture import Picture

    form = _format(output, to)
    _refuse(form, base, normalize, hide_under, reading)
    paths = [input] if base is None else [input, base]
    if paths == ["-", "-"]:
        raise Failure("standard input can be only one of the sides", "name a file for the other")
    inputs = [options.resolved(path, reading) for path in paths]
    refuse_inputs(output, [*inputs, reading.marks])
    refuse_terminal(output, form)
    new, *bases = [_side(one, by, engine, reading, compared=base is not None) for one in inputs]
    _check(new, by, weight, may_be_0=False)
    for side in bases:
        _check(side, by, weight, may_be_0=not normalize)
    picture = Picture(new, by, weight, bases[0] if bases else None, normalize, hide_under)
    interruptible.write(output, exporter(form)(picture))
    if not quiet:
        target = "standard output" if output == "-" else output
        say(f"{picture.title()}: {picture.total_text(picture.new)} -> {target}")
    _print_notes(picture, form)


def _format(output: str, to: str | None) -> str:
    from syncline.flamegraph import FORMATS, format_of

    if to or output == "-":
        return to or "folded"
    form = format_of(output)
    if form is None:
        endings = ", ".join(ends[0] for ends in FORMATS.values())
        raise Failure(
            f"{output} has no ending that chooses a format",
            f"use one of: {endings}; or name the format with --to",
        )
    return form


def _refuse(
    form: str,
    base: str | None,
    normalize: bool,
    hide_under: float | None,
    reading: Reading,
) -> None:
    """Refuses options that have no effect on the output.

    Raises:
        Failure: names the formats in which the option has an effect.
    """
    if base is not None and form not in _DIFFERENTIAL:
        raise Failure(
            f"--diff writes two weights a stack, and {form} holds only one",
            "give the output the ending .svg or .folded; or write both sides and compare them with"
            " another tool, such as `go tool pprof -diff_base BASE.pb.gz NEW.pb.gz`",
        )
    if normalize and base is None:
        raise Failure(
            "--normalize has no effect without --diff", "leave it out, or add: --diff BASE"
        )
    if hide_under is not None and form != "svg":
        raise Failure(
            f"--hide-under has no effect on {form}: it is for .svg",
            "leave it out, or give the output the ending .svg",
        )
    if "marks" in reading.given:
        raise Failure(
            "--marks has no effect on a flame graph", "leave it out, or use: syncline report"
        )


def _side(input: Kind, by: str, engine: str, reading: Reading, *, compared: bool) -> Any:
    from syncline.flamegraph import read
    from syncline.flamegraph.picture import Side
    from syncline.report.run import caveats, run_query

    with bar("reading") as progress, input.open(reading, engine, progress) as open_engine:
        stacks = read(open_engine, by, compared=compared)
        lost = run_query(
            open_engine,
            "SELECT reason, SUM(count) AS count FROM syncline_loss WHERE severity = 'loss'"
            " GROUP BY reason HAVING SUM(count) > 0 ORDER BY SUM(count) DESC, reason",
        ).rows
        losses = [(str(reason), int(count or 0)) for reason, count in lost]
        filters = run_query(
            open_engine, "SELECT value FROM syncline_meta WHERE key = 'request_filter'"
        ).rows
        return Side(
            input.path,
            stacks,
            losses,
            caveats(open_engine),
            str(filters[0][0]) if filters else None,
            options.names_instead(input, reading, engine, open_engine),
        )


def _check(side: Any, by: str, weight: str, *, may_be_0: bool) -> None:
    """Checks that there is something to draw.

    Raises:
        InputError: the input does not record the weight or the frames; suggests others.
    """
    from syncline.flamegraph import WEIGHTS

    stacks, path = side.stacks, side.path
    again = f"syncline flamegraph {shlex.quote(path)}"
    kept = "" if by == "stack" else f" --by {by}"
    if not stacks.syncs and side.wanted:
        raise InputError(
            f"{path}: nothing to draw: no sync request passes the filter {side.wanted}",
            "; ".join(side.instead)
            or f"check the spelling against the log: syncline report {shlex.quote(path)} files threads",
        )
    if not stacks.syncs:
        raise InputError(
            f"{path}: nothing to draw: it holds no sync request",
            f"list what it holds: syncline inspect {shlex.quote(path)}",
        )
    if stacks.unrecorded["count"] == stacks.syncs:
        has = {"stack": "a call stack", "file": "a path or an inode"}[by]
        other = {"stack": "file", "file": "thread"}[by]
        raise InputError(
            f"{path}: none of the {_count(stacks.syncs)} sync requests has {has}",
            f"draw something else: {again} --by {other}",
        )
    be = "are" if weight == "bytes" else "is"
    if not stacks.known[weight]:
        raise InputError(
            f"{path}: the {WEIGHTS[weight].text} of all {_count(stacks.syncs)} sync requests {be} unknown",
            f"draw something else: {again} --weight count{kept}",
        )
    if not (may_be_0 or stacks.total(weight)):
        raise InputError(
            f"{path}: nothing to draw: the {WEIGHTS[weight].text} of all"
            f" {_count(stacks.known[weight])} sync requests {be} 0",
            f"draw something else: {again} --weight count{kept}",
        )


def _print_notes(picture: Any, form: str) -> None:
    """Prints what the picture does not show to stderr."""
    from syncline.flamegraph.stacks import NO_STACK, UNKNOWN_FILE

    for side in filter(None, (picture.new, picture.base)):
        of, stacks = (f"{side.path}: " if picture.base else ""), side.stacks
        syncs = _count(stacks.syncs)
        for caveat in side.caveats:
            say(f"warning: {of}{caveat}")
        if left_out := picture.left_out(side):
            say(
                f"warning: {of}{_count(left_out)} of {syncs} requests left out: their"
                f" {picture.what.text} is unknown"
            )
        if unrecorded := stacks.unrecorded[picture.weight]:
            what, frame = ("stack", NO_STACK) if picture.by == "stack" else ("path", UNKNOWN_FILE)
            say(
                f"note: {of}{_count(unrecorded)} of {syncs} requests have no {what} in the"
                f" log: they are shown as {frame}"
            )
        if stacks.nameless:
            few = sorted(stacks.nameless_frames)[:3]
            more = ", ..." if len(stacks.nameless_frames) > len(few) else ""
            say(
                f"note: {of}{_count(stacks.nameless)} of {syncs} requests come from"
                f" {_count(len(stacks.nameless_frames))} functions without a name: {', '.join(few)}{more}"
            )
    if picture.base:
        gone = [base for _, weight, base in picture.rows() if weight == 0]
        if gone:
            one = len(gone) == 1
            stacks = "a stack" if one else f"{_count(len(gone))} stacks"
            amount, verb = human.text(sum(gone), picture.what.unit), "is in"
            # Normalized counts are no numbers of requests.
            if picture.weight == "count" and not picture.normalize:
                amount += " request" if sum(gone) == 1 else " requests"
                verb = "has" if sum(gone) == 1 else "have"
            where = (
                f"The lower graph shows {'it' if one else 'them'}."
                if form == "svg"
                else f"To see {'it' if one else 'them'}, exchange the two: syncline flamegraph"
                f" {shlex.quote(picture.base.path)} --diff {shlex.quote(picture.new.path)}"
            )
            say(
                f"note: {amount} of {picture.base.path} {verb} {stacks} that {picture.new.path} does"
                f" not have. {where}"
            )
    for remark in picture.remarks:
        say(f"note: {remark}")


def _count(number: int) -> str:
    return human.text(number, "count")

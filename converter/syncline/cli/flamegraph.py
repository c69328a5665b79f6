"""`syncline flamegraph`: what syncs wait for as a picture, by stack, file or thread."""

from __future__ import annotations

import re
import shlex
from typing import Any

import click

from syncline.cli import options
from syncline.cli.errors import Failure, say
from syncline.cli.options import example, reading
from syncline.cli.output import refuse_inputs
from syncline.cli.progress import bar
from syncline.inputs import InputError, Reading, opened
from syncline.render import human

# As `syncline.flamegraph` has them, which is imported when the command runs: `--help` stays fast.
_BY = ("stack", "file", "thread")
_WEIGHTS = ("count", "syscall", "writeback", "journal", "flush", "bytes")
_FORMATS = ("svg", "folded", "speedscope", "perf", "pprof")
# Formats with room for two weights.
_DIFFERENTIAL = ("svg", "folded")


def _percent(_ctx: click.Context, _param: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+) ?%?", value.strip())
    if not match or not 0 <= float(match[1]) < 100:
        raise click.BadParameter(f"'{value}' is no share of the whole; write 3%")
    return float(match[1])


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
    metavar="OUT",
    help="Its ending chooses the format: .svg (zooms and searches in a browser), .folded, .speedscope.json, .perf, .pb.gz (pprof). Folded stacks on standard output by default.",
)
@click.option("--to", type=click.Choice(_FORMATS), help="The format, whatever the ending.")
@click.option(
    "--by",
    type=click.Choice(_BY),
    default="stack",
    show_default=True,
    help="What the frames are: functions, folders and files, or threads and their calls.",
)
@click.option(
    "--weight",
    type=click.Choice(_WEIGHTS),
    default="count",
    show_default=True,
    help="What the width is: requests, their syscall latency, their writeback latency, their wait for the journal or for cache flushes (from the ring buffer of a patched kernel), or the bytes written back for them.",
)
@click.option(
    "--diff",
    "base",
    metavar="BASE",
    help="Compare INPUT with BASE: widths are INPUT's, each frame says and shows by its colour how it differs (.svg, .folded).",
)
@click.option(
    "--normalize",
    is_flag=True,
    help="With --diff: scale BASE to INPUT's total, so that shares are compared and not amounts.",
)
@click.option(
    "--hide-under",
    metavar="N%",
    callback=_percent,
    help="Leave out frames narrower than this share of the whole (.svg).",
)
@options.engine
@click.option("-q", "--quiet", is_flag=True, help="Say nothing when all is well.")
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

    Requests whose weight is not known are left out and counted; those without a stack are the frame
    [no stack]. Functions of which the log has no more than an address are shown as that.
    """
    from syncline import _core
    from syncline.flamegraph import exporter
    from syncline.flamegraph.picture import Picture

    form = _format(output, to)
    _refuse(form, base, normalize, hide_under, reading)
    paths = [input] if base is None else [input, base]
    if paths == ["-", "-"]:
        raise Failure("standard input cannot be both sides", "name a file for one of them")
    for path in paths:
        options.refuse_for_converted(path, reading)
    refuse_inputs(output, [*paths, reading.marks])
    new, *bases = [_side(path, by, engine, reading, compared=base is not None) for path in paths]
    _check(new, by, weight, may_be_0=False)
    for side in bases:
        _check(side, by, weight, may_be_0=not normalize)
    picture = Picture(new, by, weight, bases[0] if bases else None, normalize, hide_under)
    _core.write(output, exporter(form)(picture))
    if not quiet:
        target = "standard output" if output == "-" else output
        say(f"{picture.title()}: {picture.total_text(picture.new)} -> {target}")
    _tell(picture)


def _format(output: str, to: str | None) -> str:
    from syncline.flamegraph import FORMATS, format_of

    if to or output == "-":
        return to or "folded"
    form = format_of(output)
    if form is None:
        endings = ", ".join(ends[0] for ends in FORMATS.values())
        raise Failure(
            f"cannot tell from '{output}' what to write",
            f"end the name in one of {endings}, or say --to FORMAT",
        )
    return form


def _refuse(
    form: str,
    base: str | None,
    normalize: bool,
    hide_under: float | None,
    reading: Reading,
) -> None:
    """Says of an option that cannot be met, or that would be without effect, what can."""
    if base is not None and form not in _DIFFERENTIAL:
        raise Failure(
            f"--diff writes two weights a stack, for which {form} has no room",
            "end the name in .svg or .folded; or write both sides and compare them elsewhere,"
            " such as `go tool pprof -diff_base BASE.pb.gz NEW.pb.gz`",
        )
    if normalize and base is None:
        raise Failure("--normalize changes nothing without --diff", "leave it out, or name BASE")
    if hide_under is not None and form != "svg":
        raise Failure(
            f"--hide-under changes nothing in {form}: it is for .svg",
            "leave it out, or end the name of the output in .svg",
        )
    if "marks" in reading.given:
        raise Failure(
            "--marks changes nothing in a flame graph", "leave it out, or try: syncline report"
        )


def _side(path: str, by: str, engine: str, reading: Reading, *, compared: bool) -> Any:
    from syncline.flamegraph import read
    from syncline.flamegraph.picture import Side
    from syncline.report.run import caveats, run_query

    with bar("reading") as progress, opened(path, reading, engine, progress) as made:
        stacks = read(made, by, compared=compared)
        lost = run_query(
            made,
            "SELECT reason, SUM(count) AS count FROM syncline_loss WHERE severity = 'loss'"
            " GROUP BY reason HAVING SUM(count) > 0 ORDER BY SUM(count) DESC, reason",
        ).rows
        losses = [(str(reason), int(count or 0)) for reason, count in lost]
        wanted = run_query(made, "SELECT value FROM syncline_meta WHERE key = 'request_filter'").rows
        return Side(path, stacks, losses, caveats(made), str(wanted[0][0]) if wanted else None)


def _check(side: Any, by: str, weight: str, *, may_be_0: bool) -> None:
    """There must be something to draw.

    Raises:
        InputError: the input does not tell what is asked for; with what it tells.
    """
    from syncline.flamegraph import WEIGHTS

    stacks, path = side.stacks, side.path
    again = f"syncline flamegraph {shlex.quote(path)}"
    kept = "" if by == "stack" else f" --by {by}"
    if not stacks.syncs and side.wanted:
        raise InputError(
            f"{path}: there is nothing to draw: no sync request of it is of {side.wanted}",
            f"is the filter spelt as the log has it? syncline report {shlex.quote(path)} files threads",
        )
    if not stacks.syncs:
        raise InputError(
            f"{path}: there is nothing to draw: it holds no sync request",
            f"see what it holds: syncline report {shlex.quote(path)}",
        )
    if stacks.unrecorded == stacks.syncs:
        has = {"stack": "a call stack", "file": "a path"}[by]
        other = {"stack": "file", "file": "thread"}[by]
        raise InputError(
            f"{path}: none of the {_count(stacks.syncs)} sync requests has {has}",
            f"draw something else: {again} --by {other}",
        )
    if not stacks.known[weight]:
        raise InputError(
            f"{path}: the {WEIGHTS[weight].text} is known of none of the {_count(stacks.syncs)} sync requests",
            f"draw something else: {again} --weight count{kept}",
        )
    if not (may_be_0 or stacks.total(weight)):
        raise InputError(
            f"{path}: there is nothing to draw: the {WEIGHTS[weight].text} of all"
            f" {_count(stacks.known[weight])} sync requests are 0",
            f"draw something else: {again} --weight count{kept}",
        )


def _tell(picture: Any) -> None:
    """What is missing from the picture; on stderr."""
    from syncline.flamegraph.stacks import NO_STACK, UNKNOWN_FILE

    for side in filter(None, (picture.new, picture.base)):
        of, stacks = (f"{side.path}: " if picture.base else ""), side.stacks
        syncs = _count(stacks.syncs)
        for caveat in side.caveats:
            say(f"warning: {of}{caveat}")
        if left_out := picture.left_out(side):
            say(
                f"warning: {of}{_count(left_out)} of {syncs} requests left out: their"
                f" {picture.what.text} is not known"
            )
        if stacks.unrecorded:
            word, frame = ("stack", NO_STACK) if picture.by == "stack" else ("path", UNKNOWN_FILE)
            say(
                f"note: {of}{_count(stacks.unrecorded)} of {syncs} requests have no {word} in the"
                f" log: they are {frame}"
            )
        if stacks.nameless:
            few = sorted(stacks.nameless_frames)[:3]
            more = ", ..." if len(stacks.nameless_frames) > len(few) else ""
            say(
                f"note: {of}{_count(stacks.nameless)} of {syncs} requests come from functions without"
                f" a name, {_count(len(stacks.nameless_frames))} in all: {', '.join(few)}{more}"
            )
    if picture.base:
        gone = [base for _, weight, base in picture.rows() if weight == 0]
        if gone:
            stacks = "1 stack" if len(gone) == 1 else f"{_count(len(gone))} stacks"
            say(
                f"note: {human.text(sum(gone), picture.what.unit)} of {picture.base.path} is of {stacks}"
                f" that {picture.new.path} has not, and so has no width; to see it: syncline flamegraph"
                f" {shlex.quote(picture.base.path)} --diff {shlex.quote(picture.new.path)}"
            )
    for remark in picture.remarks:
        say(f"note: {remark}")


def _count(number: int) -> str:
    return human.text(number, "count")

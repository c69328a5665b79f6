"""Options that several commands share."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from syncline import _core
from syncline.cli.errors import Failure, say
from syncline.cli.output import show
from syncline.cli.types import DEVICE, DURATION, FILE, OFFSET, InputFormat
from syncline.reading import Reading
from syncline.recordings import Filter

if TYPE_CHECKING:
    from syncline.input import Input
    from syncline.kinds import Kind

# Parameters of a filter, as `Filter` takes them.
_FILTER = ("pid", "comm", "path", "device", "min_latency", "cgroup")
# Parameters that say how a log is read.
_READING = ("source", "time_unit", "pid_is", "window", "max_loss", "marks", *_FILTER)

_ENGINES = ("auto", "duckdb", "embedded", "native")

_MAX_LOSS = (
    "Write nothing and exit with code 4 if more is lost: a number of losses (100), or a percentage of"
    " events and losses together (0.1%). Without it, losses are only reported."
)


def example(*lines: str) -> str:
    """Returns the end of a command's help: examples that work in the checkout."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def complete_reports(_ctx: click.Context, _param: click.Parameter, begun: str) -> list[str]:
    """Returns the names of reports that begin so, for a shell."""
    from syncline.report import catalogue

    return [name for name in catalogue.names() if name.startswith(begun)]


def flag(name: str) -> str:
    """Returns the option of a parameter."""
    return "--from" if name == "source" else f"--{name.replace('_', '-')}"


FILTERS = tuple(map(flag, _FILTER))


def plain_or_json(plain: str, note: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Returns `--format` of a command that prints `plain` or json. `note` ends its help."""
    return click.option(
        "--format",
        "form",
        type=click.Choice([plain, "json"]),
        default=plain,
        show_default=True,
        help=" ".join(filter(None, ("Output format.", note))),
    )


def table_format(note: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Returns `--format` of a command that prints tables. `note` ends its help."""
    form = click.option(
        "--format",
        "form",
        type=click.Choice(["table", "csv", "json", "md"]),
        default="table",
        show_default=True,
        help=f"Output format. {note}".rstrip(),
    )
    safe = csv_safe("--format csv", expose_value=False, callback=_quote_formulas)
    return lambda function: form(safe(function))


def csv_safe(when: str, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Returns `--csv-safe`. `when` names the option with which the command writes CSV, for the help."""
    return click.option(
        "--csv-safe",
        is_flag=True,
        help=f"With {when}: a quote before texts that begin with = + - @, which a spreadsheet would run as formulas.",
        **options,
    )


def _quote_formulas(_ctx: click.Context, _param: click.Parameter, is_given: bool) -> None:
    if is_given:
        from syncline.render import csv

        csv.quote_formulas()


def listing(
    what: str, lines: Callable[[], Iterable[str]]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Returns `--list`, which prints lines and ends the command."""

    def show_list(ctx: click.Context, _param: click.Parameter, is_given: bool) -> None:
        if is_given:
            show("".join(f"{line}\n" for line in lines()))
            ctx.exit()

    return click.option(
        "--list",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=show_list,
        help=f"List the {what} and exit.",
    )


def filters(
    pid_help: str = "Only requests of the process with this id, if the log records processes.",
) -> list[Callable[..., Any]]:
    """Returns the options that select requests."""
    return [
        click.option("--pid", type=click.IntRange(min=1), help=pid_help),
        click.option("--comm", metavar="NAME", help="Only requests of threads with this name."),
        click.option(
            "--path", metavar="TEXT", help="Only requests for files whose path begins with TEXT."
        ),
        click.option(
            "--device",
            type=DEVICE,
            default=None,
            help="Only requests for files on this device: 254:16, /dev/sdb, or a file on it.",
        ),
        click.option(
            "--min-latency",
            type=DURATION,
            help="Only requests that took at least this long, such as 10ms.",
        ),
        click.option(
            "--cgroup",
            metavar="NAME",
            help="Only requests of processes in this control group or below it, if the recording has the groups"
            " of processes. NAME is a path (/system.slice/postgresql.service), or a part of a name on it, such"
            " as the start of a container's id.",
        ),
    ]


def offsets(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--offset`, for commands that join several inputs."""
    return click.option(
        "--offset",
        "offsets",
        type=OFFSET,
        multiple=True,
        help="Add DURATION to the times of INPUT. Needed if the clocks of the inputs differ and no"
        " input records how (-12.5s), or if they are the same and the inputs do not record it (0)."
        " May be given once for each input.",
    )(function)


def with_offsets(
    reading: Reading, paths: tuple[str, ...], offsets: tuple[tuple[str, int], ...]
) -> Reading:
    """Returns the reading with the values of `--offset`.

    Raises:
        Failure: an offset names a path that is not an input, or names an input twice.
    """
    for path, _ in offsets:
        if path not in paths:
            raise Failure(
                f"--offset {path}=...: {path} is not one of the inputs",
                f"write it exactly as the input: {', '.join(map(shlex.quote, paths))}",
            )
    named = [path for path, _ in offsets]
    if len(set(named)) < len(named):
        raise Failure("--offset is given twice for one input", "leave one of them out")
    return dataclasses.replace(reading, offsets=offsets)


def reading(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of how a log is read. The command gets them as one `Reading`."""
    return reading_with(max_loss=_MAX_LOSS)(function)


def reading_with(*, max_loss: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Returns `reading` for a command in which `--max-loss` has another effect: `max_loss` is its help."""
    return lambda function: _reading(function, max_loss)


def _reading(function: Callable[..., Any], max_loss_help: str) -> Callable[..., Any]:
    decorators = [
        click.option(
            "--from",
            "source",
            type=InputFormat(_core.SOURCES),
            metavar="FORMAT",
            help=f"Format of the log: {', '.join(_core.SOURCES)}. By default it is detected from the content.",
        ),
        click.option(
            "--time-unit",
            type=click.Choice(["ns", "us"]),
            default="ns",
            show_default=True,
            help="Unit of the times in the log.",
        ),
        click.option(
            "--pid-is",
            type=click.Choice(["thread", "process"]),
            default="thread",
            show_default=True,
            help="What the PID column of the log holds.",
        ),
        click.option(
            "--window",
            type=DURATION,
            default="5s",
            show_default=True,
            help="Reorder window: how late a line may be, by the times in the log.",
        ),
        click.option(
            "--max-loss",
            metavar="N|N%",
            help=max_loss_help
            + " Only losses with the severity 'loss' count: see `syncline report INPUT losses`.",
        ),
        click.option(
            "--marks",
            type=FILE,
            metavar="FILE",
            help="Application marks. Either its log (etcd, PostgreSQL, Redis, syslog, JSON, ...), whose lines are"
            " marks at their times of day, in local time (TZ) if they name no zone. Or a CSV file: time,name[,duration],"
            " in this order or in that of its header, on the clock of the log (nsecs of bpftrace), in --time-unit or in"
            " the unit that the header names (time_ms). Where marks overlap, each counts the requests in it.",
        ),
        *filters(),
        click.option(
            "--where",
            metavar="SQL",
            help="Only runs of a dataset that pass this condition on the columns of syncline_run, such as"
            " \"host = 'db1' AND day >= '2026-11-01'\".",
        ),
    ]

    def wrapped(
        *args: Any,
        source: str | None,
        time_unit: str,
        pid_is: str,
        window: int,
        max_loss: str | None,
        marks: str | None,
        pid: int | None,
        comm: str | None,
        path: str | None,
        device: int | None,
        min_latency: int | None,
        cgroup: str | None,
        where: str | None,
        **rest: Any,
    ) -> Any:
        chosen = Reading(
            source=source,
            time_unit=time_unit,
            pid_is=pid_is,
            window_ns=window,
            max_loss=max_loss,
            marks=marks,
            where=where,
            filter=Filter(pid, comm, path, device, min_latency, cgroup),
            given=_given(*_READING),
            warn=lambda message, hint: say(f"warning: {message}", hint),
            note=lambda message: say(f"note: {message}"),
        )
        return function(*args, reading=chosen, **rest)

    wrapped.__name__ = function.__name__
    wrapped.__doc__ = function.__doc__
    wrapped.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
    for decorate in reversed(decorators):
        wrapped = decorate(wrapped)
    return wrapped


def _given(*names: str) -> frozenset[str]:
    """Returns the parameters that were given on the command line."""
    ctx = click.get_current_context()
    return frozenset(
        name for name in names if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
    )


def refuse_where(reading: Reading) -> None:
    """Refuses `--where` for a command that does not read a dataset.

    Raises:
        Failure: it was given.
    """
    if reading.where is not None:
        raise Failure(
            "--where selects runs of a dataset, and a log is one run", "leave --where out"
        )


def resolved(path: str, reading: Reading) -> Kind:
    """Returns the INPUT at a path, for a command that opens it, and refuses options that would have no effect on it.

    Raises:
        InputError: it does not exist, cannot be read, or is a stored baseline.
        Failure: an option of how a log is read would have no effect on it.
    """
    from syncline.kinds import resolve

    found = resolve(path, reading.source)
    refuse_for_converted(found, reading)
    return found


def resolved_together(paths: Sequence[str], reading: Reading) -> Kind:
    """Returns logs of one run as one INPUT.

    Raises:
        InputError: one does not exist, cannot be read, or is no log.
    """
    from syncline.kinds import together

    return together(paths, reading.source)


def names_instead(found: Input, reading: Reading, engine: str, open_engine: Any) -> list[str]:
    """Returns what a filter could have named, if no sync passes it."""
    from syncline.report.without_match import names_instead

    return names_instead(found, reading, engine, open_engine)


def say_names_instead(found: Input, reading: Reading, engine: str, open_engine: Any) -> None:
    """Says what a filter could have named, if no sync passes it."""
    for sentence in names_instead(found, reading, engine, open_engine):
        say(f"note: {sentence}")


def refuse_for_converted(found: Input, reading: Reading, *, has_filters: bool = False) -> None:
    """Refuses options of how a log is read if the input is not a log.

    Args:
        has_filters: the command can filter a trace, but not by `--cgroup`, which needs the groups that a run directory lists.

    Raises:
        Failure: an option would have no effect.
    """
    if not found.is_converted:
        return
    # `--time-unit` is the unit of the marks, too.
    without_effect = {*_READING} - {"marks"} - ({"time_unit"} if reading.marks else set())
    if has_filters:
        without_effect -= {*_FILTER} - {"cgroup"}
    names = sorted(flag(name) for name in reading.given & without_effect)
    if names:
        raise Failure(
            f"{found.path} is already converted: {', '.join(names)} would have no effect",
            "give the log, or use the option with `syncline convert`",
        )


def check_svg(output: str) -> None:
    """Refuses another ending than that of the only form in which charts are drawn.

    Raises:
        Failure.
    """
    if not output.lower().endswith(".svg"):
        raise Failure(f"cannot write {output}: the chart is an SVG", "end its name in .svg")


def refuse_reading(reading: Reading, instead: str) -> None:
    """Refuses all options of how a log is read where an option takes the place of the log.

    Raises:
        Failure: one was given.
    """
    names = sorted(flag(name) for name in reading.given)
    names += ["--where"] if reading.where is not None else []
    if names:
        raise Failure(f"no log is read with {instead}, so {', '.join(names)} would have no effect", f"leave out {', '.join(names)}")  # fmt: skip


def _checked_engine(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    if value in _ENGINES or value.startswith(("local[", "spark://")):
        return value
    # Loaded here, because most commands need no engine.
    from syncline.engine import is_program

    # The engine reports what is wrong with a path.
    if is_program(value):
        return value
    raise click.BadParameter(
        f"'{value}' is neither {', '.join(_ENGINES)}, nor a Spark master, nor a program to use as trace_processor_shell"
    )


engine = click.option(
    "--engine",
    default="auto",
    metavar="NAME",
    callback=_checked_engine,
    help="Engine that runs the SQL: duckdb, embedded, native, or the path of a trace_processor_shell; for a"
    " dataset also a Spark master, spark://HOST:PORT or local[N]."
    " By default, duckdb for logs and tables; for a trace a native one if there is one, else embedded.",
)

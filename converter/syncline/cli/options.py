"""Options that several commands share."""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
import shutil
import stat
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from syncline import inputs
from syncline.cli.errors import Failure, say
from syncline.engine.columns import is_columns


def example(*lines: str) -> str:
    """The end of a command's help: what to type in the checkout."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


class _Duration(click.ParamType):
    name = "DURATION"
    UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value).strip()
        for unit in sorted(self.UNITS, key=len, reverse=True):
            number = text.removesuffix(unit)
            if number != text:
                try:
                    ns = round(float(number) * self.UNITS[unit])
                except ValueError:
                    break
                if 0 <= ns < 2**62:
                    return ns
                break
        self.fail(f"'{text}' is no duration; write 500ms or 5s", param, ctx)


DURATION = _Duration()


class _Offset(click.ParamType):
    """(INPUT, ns)"""

    name = "INPUT=DURATION"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        path, equals, text = str(value).rpartition("=")
        # Times of day in ns have more digits than a float.
        told = re.fullmatch(r"([+-]?\d+(?:\.\d+)?)(ns|us|ms|s|min)|[+-]?0", text.strip())
        if not path or not equals or not told:
            self.fail(
                f"'{value}' is no input and an offset; write LOG=-12.5s, or LOG=0 for one on the same clock",
                param,
                ctx,
            )
        number, unit = told.groups()
        ns = round(Decimal(number or 0) * _Duration.UNITS[unit or "ns"])
        if abs(ns) >= 2**62:
            self.fail(f"'{text}' is longer than any clock has run", param, ctx)
        return path, ns


def offsets(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--offset`, for commands that lay several inputs side by side."""
    return click.option(
        "--offset",
        "offsets",
        type=_Offset(),
        multiple=True,
        help="What is to be added to the times of INPUT for those of the others: where clocks differ and do not"
        " tell of each other (-12.5s), or are the same and do not say so (0).",
    )(function)


def with_offsets(
    reading: inputs.Reading, paths: tuple[str, ...], offsets: tuple[tuple[str, int], ...]
) -> inputs.Reading:
    """The same reading, with what `--offset` says.

    Raises:
        Failure: of what is no input.
    """
    for path, _ in offsets:
        if path not in paths:
            raise Failure(
                f"--offset {path}=...: {path} is none of the inputs",
                f"write it as the input is written: {', '.join(map(shlex.quote, paths))}",
            )
    named = [path for path, _ in offsets]
    if len(set(named)) < len(named):
        raise Failure("--offset is there twice for one input", "leave one of them out")
    return dataclasses.replace(reading, offsets=offsets)


class _Device(click.ParamType):
    name = "DEVICE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value)
        major, _, minor = text.replace(",", ":").partition(":")
        if major.isdigit() and minor.isdigit():
            return int(major) << 20 | int(minor)
        try:
            found = Path(text).stat()
        except OSError as error:
            self.fail(f"{text}: {error.strerror}", param, ctx)
        # A file or folder stands for the device that it is on.
        device = found.st_rdev if stat.S_ISBLK(found.st_mode) else found.st_dev
        return os.major(device) << 20 | os.minor(device)


DEVICE = _Device()

FILTERS = ("--pid", "--comm", "--path", "--device", "--min-latency")


def filters(
    pid_help: str = "Only requests of this process, where the log tells processes.",
) -> list[Callable[..., Any]]:
    """Options for which requests are wanted."""
    return [
        click.option("--pid", type=click.IntRange(min=1), help=pid_help),
        click.option("--comm", metavar="NAME", help="Only requests of threads of this name."),
        click.option(
            "--path", metavar="TEXT", help="Only requests for files whose path begins so."
        ),
        click.option(
            "--device",
            type=DEVICE,
            default=None,
            help="Only requests for files on this device: 254:16, /dev/sdb, or a file on it.",
        ),
        click.option("--min-latency", type=DURATION, help="Only requests that took so long: 10ms."),
    ]


_MAX_LOSS = (
    "Write nothing and stop with exit code 4 when more than this is lost: a number of losses, or a share of"
    " events and losses together."
)


def reading(function: Callable[..., Any]) -> Callable[..., Any]:
    """How a log is read; collected into one `inputs.Reading`."""
    return reading_with(max_loss=_MAX_LOSS)(function)


def reading_with(*, max_loss: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The same, for a command in which `--max-loss` does something else."""
    return lambda function: _reading(function, max_loss)


def _reading(function: Callable[..., Any], max_loss_help: str) -> Callable[..., Any]:
    from syncline import _core

    decorators = [
        click.option(
            "--from",
            "source",
            type=click.Choice(_core.SOURCES),
            help="Format of the log; told from its content by default.",
        ),
        click.option(
            "--time-unit",
            type=click.Choice(["ns", "us"]),
            default="ns",
            show_default=True,
            help="Unit of the log's times.",
        ),
        click.option(
            "--pid-is",
            type=click.Choice(["thread", "process"]),
            default="thread",
            show_default=True,
            help="What the log's PID column holds.",
        ),
        click.option(
            "--window",
            type=DURATION,
            default="5s",
            show_default=True,
            help="How far lines may run backwards in time.",
        ),
        click.option(
            "--max-loss",
            metavar="N|N%",
            help=max_loss_help
            + " What counts are the losses that `syncline report INPUT losses` gives the severity loss.",
        ),
        click.option(
            "--marks",
            type=click.Path(dir_okay=False),
            metavar="FILE",
            help="CSV of application marks, time,name[,duration] in this order or as its header says:"
            " on the log's clock (bpftrace's nsecs) and in --time-unit, or in the header's unit"
            " (time_ms). Overlapping marks each count what they share.",
        ),
        *filters(),
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
        **rest: Any,
    ) -> Any:
        how = inputs.Reading(
            source=source,
            time_unit=time_unit,
            pid_is=pid_is,
            window_ns=window,
            max_loss=max_loss,
            marks=marks,
            filter=inputs.Filter(pid, comm, path, device, min_latency),
            given=_given(
                *("source", "time_unit", "pid_is", "window", "max_loss", "marks"),
                *("pid", "comm", "path", "device", "min_latency"),
            ),
            warn=lambda message, hint: say(f"warning: {message}", hint),
        )
        return function(*args, reading=how, **rest)

    wrapped.__name__ = function.__name__
    wrapped.__doc__ = function.__doc__
    wrapped.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
    for decorate in reversed(decorators):
        wrapped = decorate(wrapped)
    return wrapped


def _given(*names: str) -> frozenset[str]:
    """Those of the options that the user has typed."""
    ctx = click.get_current_context()
    return frozenset(
        name for name in names if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
    )


def refuse_for_converted(path: str, reading: inputs.Reading) -> None:
    """How a log is read can be said of a log alone.

    Raises:
        Failure: an option would be without effect.
    """
    kind = inputs.kind_of(path, reading.source)
    if kind == "log" or (kind == "tables" and not is_columns(path)):
        return
    # The unit is that of the marks, too.
    without_effect = {"source", "pid_is", "window", "max_loss"}
    without_effect |= {"pid", "comm", "path", "device", "min_latency"}
    without_effect |= set() if reading.marks else {"time_unit"}
    names = sorted(_flag(name) for name in reading.given & without_effect)
    if names:
        raise Failure(
            f"{path} has been converted already: {', '.join(names)} would change nothing",
            "give the log itself, or say it to `syncline convert`",
        )


def _flag(name: str) -> str:
    return "--from" if name == "source" else f"--{name.replace('_', '-')}"


def _known_engine(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    # A path may be wrong in many ways, which the engine tells better.
    if (
        value in _ENGINES
        or os.sep in value
        or Path(value).exists()
        or shutil.which(value) is not None
    ):
        return value
    raise click.BadParameter(
        f"'{value}' is neither {', '.join(_ENGINES[:4])} nor a trace_processor_shell"
    )


_ENGINES = ("auto", "duckdb", "embedded", "native", "embedded32", "embedded64")

engine = click.option(
    "--engine",
    default="auto",
    metavar="NAME",
    callback=_known_engine,
    help="duckdb, embedded, native or the path of a trace_processor_shell; chosen by the input by default.",
)

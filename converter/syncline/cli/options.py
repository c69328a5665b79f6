"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from syncline import inputs


def example(*lines: str) -> str:
    """The end of a command's help: what to type in the checkout."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def reading(function: Callable[..., Any]) -> Callable[..., Any]:
    """How a log is read; collected into one `inputs.Reading`."""
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
            help="Stop with exit code 4 when more events are lost or unparsed.",
        ),
        click.option(
            "--marks",
            type=click.Path(dir_okay=False),
            metavar="FILE",
            help="CSV of application marks: time,name[,duration].",
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
        **rest: Any,
    ) -> Any:
        how = inputs.Reading(
            source=source,
            time_unit=time_unit,
            pid_is=pid_is,
            window_ns=window,
            max_loss=max_loss,
            marks=marks,
        )
        return function(*args, reading=how, **rest)

    wrapped.__name__ = function.__name__
    wrapped.__doc__ = function.__doc__
    wrapped.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
    for decorate in reversed(decorators):
        wrapped = decorate(wrapped)
    return wrapped


class _Duration(click.ParamType):
    name = "DURATION"
    _UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value).strip()
        for unit in sorted(self._UNITS, key=len, reverse=True):
            number = text.removesuffix(unit)
            if number != text:
                try:
                    ns = round(float(number) * self._UNITS[unit])
                except ValueError:
                    break
                if 0 <= ns < 2**62:
                    return ns
                break
        self.fail(f"'{text}' is no duration; write 500ms or 5s", param, ctx)


DURATION = _Duration()

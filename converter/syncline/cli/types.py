"""Types of option values: durations, sizes, offsets, devices, shares."""

from __future__ import annotations

import os
import re
import stat
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import click

from syncline import _core
from syncline.dataset import layout

__all__ = ["DEVICE", "DURATION", "FACT", "FILE", "FOLDER", "OFFSET", "PERCENT", "PLACE", "SIZE", "TIME", "FilePath", "InputFormat"]  # fmt: skip

_UNITS_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}
# Larger times do not fit the 64-bit ns of the core.
_MAX_NS = 2**62


def _refuse_option(value: Any, param: click.Parameter | None, ctx: click.Context | None) -> None:
    """Refuses the next option as a value. A file with such a name is ./--NAME."""
    text = os.fsdecode(value)
    if isinstance(param, click.Option) and text.startswith("-") and text != "-":
        name, wanted = param.opts[0], param.metavar or "FILE"
        raise click.UsageError(
            f"{name} has no value: '{text}' follows. Write: {name} {wanted}", ctx
        )


class FilePath(click.Path):
    """A file or a folder that an option names."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        _refuse_option(value, param, ctx)
        return super().convert(value, param, ctx)


class _Place(click.ParamType):
    """A path, or another place of data, such as a URL. Whether it exists is not checked here."""

    name = "PLACE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        _refuse_option(value, param, ctx)
        return str(value)


class InputFormat(click.Choice):
    """A format of inputs, also by its earlier name, which scripts may still use."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert(_core.EARLIER_SOURCES.get(value, value), param, ctx)


class _Duration(click.ParamType):
    """A duration with its unit, as ns."""

    name = "DURATION"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value).strip()
        for unit in sorted(_UNITS_NS, key=len, reverse=True):
            number = text.removesuffix(unit)
            if number != text:
                try:
                    ns = round(float(number) * _UNITS_NS[unit])
                except ValueError:
                    break
                if 0 <= ns < _MAX_NS:
                    return ns
                break
        self.fail(f"'{text}' is not a duration; write 500ms or 5s", param, ctx)


class _Offset(click.ParamType):
    """An input and its offset: (INPUT, ns)."""

    name = "INPUT=DURATION"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        path, equals, text = str(value).rpartition("=")
        match = re.fullmatch(r"([+-]?\d+(?:\.\d+)?)(ns|us|ms|s|min)|[+-]?0", text.strip())
        if not path or not equals or not match:
            self.fail(
                f"'{value}' is not an input and an offset; write LOG=-12.5s, or LOG=0 for a log on"
                " the same clock",
                param,
                ctx,
            )
        number, unit = match.groups()
        # A time of day in ns has more digits than a float.
        ns = round(Decimal(number or 0) * _UNITS_NS[unit or "ns"])
        if abs(ns) >= _MAX_NS:
            self.fail(f"'{text}' is longer than any clock has run", param, ctx)
        return path, ns


class _Device(click.ParamType):
    """A block device, as the kernel numbers it internally: major << 20 | minor."""

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
        # A file or folder selects the device of its file system.
        device = found.st_rdev if stat.S_ISBLK(found.st_mode) else found.st_dev
        return os.major(device) << 20 | os.minor(device)


class _Size(click.ParamType):
    """A size with its unit, as KiB."""

    name = "SIZE"
    _UNITS_KB = {"K": 1, "M": 1 << 10, "G": 1 << 20}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value).strip().upper().removesuffix("B")
        unit = self._UNITS_KB.get(text[-1:])
        if unit is None or not text[:-1].isdigit() or not 0 < int(text[:-1]) * unit <= 1 << 24:
            self.fail(f"'{value}' is not a size; write 64M", param, ctx)
        return int(text[:-1]) * unit


class _Time(click.ParamType):
    """A time in ISO 8601, as ns since 1970; UTC without an offset."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            time = datetime.fromisoformat(str(value).strip())
        except ValueError:
            self.fail(f"'{value}' is not a time; write 2026-11-24T08:30:00Z", param, ctx)
        time = time if time.tzinfo else time.replace(tzinfo=UTC)
        since = time - datetime(1970, 1, 1, tzinfo=UTC)
        ns = (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000
        if not -(2**63) <= ns < 2**63:
            self.fail(f"'{value}' is outside the years 1678 to 2262", param, ctx)
        return ns


class _Fact(click.ParamType):
    """A fact: (key, value). The key is a name of SQL that needs no quotes."""

    name = "KEY=VALUE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        key, equals, text = str(value).partition("=")
        if not equals or not layout.FACT.fullmatch(key):
            self.fail(
                f"'{value}' is not a fact; write branch=main, with a key of a-z, 0-9 and _",
                param,
                ctx,
            )
        if key in layout.TAKEN:
            self.fail(f"'{key}' is a column of every run; choose another key", param, ctx)
        return key, text


class _Percent(click.ParamType):
    """A share below 100 %, as a number; the % sign is optional."""

    name = "N%"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+) ?%?", str(value).strip())
        if not match or not 0 <= float(match[1]) < 100:
            self.fail(f"'{value}' is not a share of the whole; write 3%", param, ctx)
        return float(match[1])


FILE = FilePath(dir_okay=False)
FOLDER = FilePath(file_okay=False)
PLACE = _Place()
DURATION = _Duration()
OFFSET = _Offset()
DEVICE = _Device()
SIZE = _Size()
PERCENT = _Percent()
TIME = _Time()
FACT = _Fact()

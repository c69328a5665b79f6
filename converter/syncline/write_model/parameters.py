"""The parameters of a machine: a file in TOML, and what is read from it.

All times are in ns, sizes in bytes, and bandwidths in bytes per second.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from syncline.errors import InputError
from syncline.structured import parse_toml

__all__ = ["Interval", "Parameters", "as_toml", "read"]

_FORMAT = 1
# About a year. No time of a machine is longer.
_LONGEST_NS = 3e16
_LARGEST_BYTES = 2**62
# A floppy disk is faster than the first, and no memory is as fast as the second.
_BANDWIDTHS = (1.0, 1e15)


@dataclass(frozen=True)
class Interval:
    """The bounds between which a measured value is, with a confidence of 95 %."""

    low: float
    high: float


@dataclass(frozen=True)
class Parameters:
    """What the model knows of a machine.

    `intervals` has the measured values. The others were read from the kernel or set by hand.
    """

    memory_bytes_per_s: float
    # Copying to new page cache, while nothing is written back.
    page_cache_bytes_per_s: float
    # Copying to page cache that is dirty already. The paper does not have it.
    rewrite_bytes_per_s: float
    # The same while the flusher thread writes back.
    reduced_bytes_per_s: float
    device_write_bytes_per_s: float
    device_read_bytes_per_s: float
    # What a call costs besides its data. `sync_` is for calls that return when the device has the data.
    write_call_ns: float
    sync_write_call_ns: float
    # What a synchronized write at another place costs more than one that continues.
    seek_ns: float
    block_size_bytes: int
    library_buffer_bytes: int
    # Dirty page cache at which the flusher thread begins, and that no writer exceeds.
    background_limit_bytes: int
    hard_limit_bytes: int
    dirty_expire_ns: int
    # The call of a direct write that is not synchronized: O_DIRECT without O_SYNC or O_DSYNC. None in a file of an earlier version.
    direct_write_call_ns: float | None = None
    # What a synchronized write, or a sync, takes longer if it waits for a commit of the file system; and how often the times of a file
    # may change. None in a file of an earlier version.
    commit_ns: float | None = None
    timestamp_granularity_ns: int | None = None
    # How often the flusher thread looks for data that has expired; 0: never. None in a file of an earlier version.
    dirty_writeback_ns: int | None = None
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    # How and where it was measured; for people.
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in NAMES:
            value = getattr(self, name)
            if value is None and name in _OPTIONAL:
                continue
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number or not math.isfinite(value):
                raise ValueError(f"{name}: {value!r} is not a number")
            is_time = name.endswith("_ns")
            if value < 0 or (value == 0 and not is_time):
                raise ValueError(
                    f"{name}: {value!r} must {'not be below' if is_time else 'be above'} 0"
                )
            if is_time and value > _LONGEST_NS:
                raise ValueError(f"{name}: {value!r} is more than {_LONGEST_NS:.0e} ns, a year")
            if name.endswith("_bytes") and value != int(value):
                raise ValueError(f"{name}: {value!r} is not a whole number of bytes")
            if name.endswith("_bytes") and value > _LARGEST_BYTES:
                raise ValueError(f"{name}: {value!r} is more than 2^62 bytes")
            low, high = _BANDWIDTHS
            if name.endswith("_per_s") and not low <= value <= high:
                raise ValueError(
                    f"{name}: {value!r} is no bandwidth of a machine: {low:g} to {high:.0e} bytes per second"
                )
        if self.background_limit_bytes >= self.hard_limit_bytes:
            raise ValueError(
                "background_limit_bytes must be below hard_limit_bytes, as in the kernel"
            )
        if self.commit_ns is not None and self.timestamp_granularity_ns is None:
            raise ValueError("commit_ns needs timestamp_granularity_ns")
        for name, one in self.intervals.items():
            if not one.low <= getattr(self, name) <= one.high:
                raise ValueError(f"{name}: the value is not between low and high")


_OPTIONAL = ("direct_write_call_ns", "commit_ns", "timestamp_granularity_ns", "dirty_writeback_ns")
NAMES = tuple(one.name for one in fields(Parameters) if one.name not in ("intervals", "notes"))


def as_toml(parameters: Parameters) -> str:
    """Returns the text of the file."""
    lines = ["# Parameters of `syncline model predict`. low and high: 95 % confidence."]
    lines += [f"# {one}" for note in parameters.notes for one in note.splitlines()]
    lines += [f"format = {_FORMAT}", ""]
    for name in NAMES:
        known = getattr(parameters, name)
        if known is None:
            continue
        value = _number(known)
        if (one := parameters.intervals.get(name)) is not None:
            value = f"{{ value = {value}, low = {_number(one.low)}, high = {_number(one.high)} }}"
        lines.append(f"{name} = {value}")
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    """Returns a number of TOML with four digits behind those that count."""
    return (
        str(round(value)) if isinstance(value, int) or abs(value) >= 1e6 else repr(round(value, 4))
    )


def read(path: str) -> Parameters:
    """Reads a file.

    Raises:
        InputError: it cannot be read, or a value is missing or not valid.
    """
    hint = "syncline model measure --dir DIR -o FILE writes such a file"
    try:
        data = parse_toml(Path(path).read_bytes())
    except OSError as error:
        raise InputError(f"cannot read {path}: {(error.strerror or str(error)).lower()}", hint) from None  # fmt: skip
    except ValueError as error:
        raise InputError(f"{path} is not valid TOML: {error}", hint) from None
    if data.pop("format", None) != _FORMAT:
        raise InputError(f"{path}: no `format = {_FORMAT}`: it is not a file of parameters", hint)
    if unknown := sorted(set(data) - set(NAMES)):
        raise InputError(f"{path}: unknown key '{unknown[0]}'", f"the keys are: {', '.join(NAMES)}")
    if missing := [name for name in NAMES if name not in data and name not in _OPTIONAL]:
        raise InputError(f"{path}: {missing[0]} is missing", hint)
    values: dict[str, Any] = {}
    intervals: dict[str, Interval] = {}
    for name, value in data.items():
        values[name] = value
        if isinstance(value, dict):
            if set(value) != {"value", "low", "high"}:
                raise InputError(f"{path}: {name}: {value!r}", "write a number, or { value = 1, low = 1, high = 1 }")  # fmt: skip
            if not all(type(one) in (int, float) for one in value.values()):
                raise InputError(f"{path}: {name}: {value!r} has another value than numbers", hint)
            values[name] = value["value"]
            intervals[name] = Interval(value["low"], value["high"])
    try:
        return Parameters(**values, intervals=intervals)
    except ValueError as error:
        raise InputError(f"{path}: {error}", hint) from None

"""The result of one check of `syncline doctor`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

Status = Literal["ok", "warn", "missing"]


class Finding(NamedTuple):
    """What a check found. `hint` says what to type; it is empty if the status is ok."""

    status: Status
    detail: str
    hint: str = ""


# A check gets the folder in which /sys and /proc are.
Probe = Callable[[Path], Finding]

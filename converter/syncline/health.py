"""What `syncline doctor` says of one part of the machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

Status = Literal["ok", "warn", "missing"]


class Health(NamedTuple):
    """The health of one part. `hint` says what to type; it is empty if the status is ok."""

    status: Status
    detail: str
    hint: str = ""


# A check gets the folder in which /sys and /proc are.
Checker = Callable[[Path], Health]

"""The users on whose behalf a command runs."""

from __future__ import annotations

import os
from dataclasses import dataclass

__all__ = ["Caller", "is_trusted", "sudo_caller"]


@dataclass(frozen=True)
class Caller:
    """A user who has called sudo: user id and group id."""

    uid: int
    gid: int


def sudo_caller() -> Caller | None:
    """Returns the user who has called sudo; None if this is not root, or root without sudo."""
    if os.geteuid() != 0:
        return None
    try:
        caller = Caller(int(os.environ["SUDO_UID"]), int(os.environ["SUDO_GID"]))
    except (KeyError, ValueError):
        return None
    return caller if caller.uid > 0 and caller.gid >= 0 else None


def is_trusted(uid: int) -> bool:
    """Returns whether this command may act on what a user has prepared: its own user, root, or the caller of sudo."""
    caller = sudo_caller()
    return uid in (0, os.geteuid()) or (caller is not None and uid == caller.uid)

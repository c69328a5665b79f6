"""Counts and words how many syncs, calls and bios ended with an error."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = ["by_kind", "counted", "sentence"]

# Only tracers see these errors. A signal interrupted the call, and the kernel restarts it or returns EINTR.
_OF_TRACERS = {
    512: "ERESTARTSYS",
    513: "ERESTARTNOINTR",
    514: "ERESTARTNOHAND",
    516: "ERESTART_RESTARTBLOCK",
}
# Errors that are named in a sentence.
_MOST = 3
# What has no data of its own that a program has asked to be durable.
_OF_DEVICES = ("bios", "requests of the block layer")


def by_kind(counts: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    """Returns for each kind the number of failures, and the errors, the most frequent first.

    Args:
        counts: the rows of sql/commands/inspect/failures.sql: what, error or None, number.
    """
    kinds: dict[str, dict[str, Any]] = {}
    for what, error, number in counts:
        kind = kinds.setdefault(what, {"what": what, "failed": 0, "of": 0, "errors": []})
        kind["of"] += number
        if error is not None:
            kind["failed"] += number
            kind["errors"].append({"error": int(error), "name": _name(error), "count": number})
    for kind in kinds.values():
        # The smaller number comes first where two errors have the same count, so that the order is stable.
        kind["errors"].sort(key=lambda one: (-one["count"], -one["error"]))
    return list(kinds.values())


def sentence(kind: Mapping[str, Any]) -> str:
    """Words the failures of a kind as `2 of 60 syncs failed (EIO 2): ...`."""
    errors = kind["errors"]
    named = [f"{one['name']} {one['count']:,}" for one in errors[:_MOST]]
    more = f", {len(errors) - _MOST} more errors" if len(errors) > _MOST else ""
    meaning = "" if kind["what"] in _OF_DEVICES else ": their data may not be durable"
    return f"{kind['failed']:,} of {kind['of']:,} {kind['what']} failed ({', '.join(named)}{more}){meaning}"


def counted(kind: Mapping[str, Any]) -> str:
    """Returns how many there are of a kind, as `1 sync` or `2 requests of the block layer`."""
    noun, blank, rest = kind["what"].partition(" ")
    return f"{kind['of']:,} {noun.removesuffix('s') if kind['of'] == 1 else noun}{blank}{rest}"


def _name(error: int) -> str:
    """Returns the name of a negative errno, as `EIO`."""
    number = -int(error)
    return errno.errorcode.get(number) or _OF_TRACERS.get(number) or f"error {number}"

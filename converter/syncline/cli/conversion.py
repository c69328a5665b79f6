"""What a conversion has to say besides its output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from syncline import losses

__all__ = ["warnings"]

# A shorter gap would be shown as 0.0 s.
_AT_ONCE_NS = 50_000_000


def warnings(summary: Mapping[str, Any]) -> list[str]:
    """Returns a sentence for each reason of a loss in the summary of `_core.convert`."""
    numbers = {"lines": summary["lines"], "events": summary["events"]}
    if summary["requests"] is not None:
        numbers["requests"] = summary["requests"]
    numbers |= {f"events.{kind}": count for kind, count in summary["events_by_kind"].items()}
    numbers |= {loss["reason"]: loss["count"] for loss in summary["losses"]}
    found = [
        losses.sentence(loss["reason"], loss["meaning"], numbers)
        for loss in summary["losses"]
        if loss["severity"] == "loss"
        or (loss["reason"] in losses.REPORTED and loss["reason"] not in losses.said_anyway(numbers))
    ]
    left_out = losses.filtered(summary["filter"], numbers)
    found += [
        f"{first} ends {gap / 1e9:,.1f} s before {second} begins, so nothing is joined: are they of the"
        " same run and clock, and is --offset right?"
        for first, second, gap in summary["disjoint"]
        # Pieces of one recording follow each other without a gap.
        if gap >= _AT_ONCE_NS
    ]
    return [*found, left_out] if left_out else found

"""What a loss is a part of: the same words after a conversion and above a report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["TOLD", "Limit", "filtered", "of_conversion", "sentence"]

# Numbers that add up to what a reason is a part of: keys of `syncline_meta`, or reasons. A bio has a
# submit, or is counted as one without.
_SUBMITS = ("events.bio_submit", "events.block_submit")
_BIOS = ("bios", (*_SUBMITS, "never_submitted"))
_REQUESTS = ("requests", ("requests",))
_PART_OF = {
    "never_completed": _BIOS,
    "never_submitted": _BIOS,
    "start_missing": _REQUESTS,
    "end_missing": _REQUESTS,
    "duplicate_start": ("starts", ("events.sync_start",)),
    "duplicate_end": ("ends", ("events.sync_end",)),
    "unmatched_complete": ("completions", ("events.bio_complete", "events.block_complete")),
    "unmatched_exit": ("exits", ("events.call_exit",)),
    "duration_missing": ("calls", ("events.call_enter",)),
    "call_only": ("calls", ("events.call_enter",)),
    "unparsed_line": ("lines", ("lines",)),
}
_EVENTS = ("events", ("events",))
# Less than this would be told as 0.0 s.
AT_ONCE_NS = 50_000_000
# No loss, but whoever reads a figure has to know why so many others are missing.
TOLD = ("call_only",)


def sentence(reason: str, meaning: str, numbers: Mapping[str, int], runs: int = 1) -> str:
    """`15 of 100 bios: never_completed: ...`.

    `numbers` holds the counts of `syncline_meta` (`lines`, `events`, `events.KIND`) and of all
    reasons, summed over the runs; without those of the whole, the part stands alone.
    """
    count = numbers[reason]
    noun, parts = _PART_OF.get(reason, _EVENTS)
    total = sum(numbers.get(part, 0) for part in parts)
    if noun == "bios" and all(numbers.get(submits, 0) > 0 for submits in _SUBMITS):
        # Some are told by both, and it is not counted how many.
        total = 0
    # Events that the tracer lost are not among those that the log holds.
    beside = "beside" if reason == "lost_by_tracer" else "of"
    part = (
        f"{count:,} {beside} {total:,} {noun}"
        if total > 0 and parts[0] in numbers
        else f"{count:,} {noun}"
        if noun == "bios"
        else f"{count:,}"
    )
    where = f" in {runs:,} runs" if runs > 1 else ""
    return f"{part}{where}: {reason}" + (f": {meaning}" if meaning else "")


def filtered(wanted: str, numbers: Mapping[str, int]) -> str:
    """What a filter has left out; `wanted` is it in words, empty without one."""
    if not wanted:
        return ""
    out, unknown = numbers.get("filtered_out", 0), numbers.get("filter_unknown", 0)
    told = f"only requests of {wanted} are here: {out:,} others and calls without a request are left out"
    if unknown:
        told += f", and {unknown:,} of which the log does not tell what the filter asks"
    return told


def of_conversion(summary: Mapping[str, Any]) -> list[str]:
    """A sentence for each reason of a loss, from what `_core.convert` returns."""
    numbers = {"lines": summary["lines"], "events": summary["events"]}
    if summary["requests"] is not None:
        numbers["requests"] = summary["requests"]
    numbers |= {f"events.{kind}": count for kind, count in summary["events_by_kind"].items()}
    numbers |= {loss["reason"]: loss["count"] for loss in summary["losses"]}
    told = [
        sentence(loss["reason"], loss["meaning"], numbers)
        for loss in summary["losses"]
        if loss["severity"] == "loss" or loss["reason"] in TOLD
    ]
    left_out = filtered(summary["filter"], numbers)
    told += [
        f"{first} has ended {gap / 1e9:,.1f} s before {second} begins, so nothing is joined: are they of one"
        " run and of one clock, and is --offset right?"
        for first, second, gap in summary["disjoint"]
        # Pieces of one recording follow each other at once.
        if gap >= AT_ONCE_NS
    ]
    return [*told, left_out] if left_out else told


@dataclass(frozen=True)
class Limit:
    """What `--max-loss` allows: a number of losses, or a share of events and losses together."""

    amount: float
    share: bool

    @staticmethod
    def parse(text: str) -> Limit:
        """`N` or `N%`. Raises ValueError."""
        number, share = text.strip(), text.strip().endswith("%")
        try:
            amount = float(number.removesuffix("%")) if share else int(number)
        except ValueError:
            amount = -1
        if not 0 <= amount < (100.0001 if share else 2**63):
            raise ValueError(f"'{text}' is neither a number of losses nor a share of them")
        return Limit(amount, share)

    def allows(self, lost: int, events: int) -> bool:
        """Whether so many losses are few enough, beside so many events."""
        if not self.share:
            return lost <= self.amount
        return 100 * lost <= self.amount * (lost + events)

"""Words losses as sentences, for the messages of a conversion and the warnings above a report. What to type is said by `cli`."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["REPORTED", "filtered", "said_anyway", "sentence"]

# Reason -> (noun, counts that add up to the total that the reason is a part of). A count is a key of
# `syncline_meta` or another reason. Each bio has a submit, or is counted as `never_submitted`.
_SUBMITS = ("events.bio_submit", "events.block_submit")
_BIOS = ("bios", (*_SUBMITS, "never_submitted"))
_REQUESTS = ("requests", ("requests",))
_PART_OF = {
    "never_completed": _BIOS,
    "never_submitted": _BIOS,
    "folios_missing": _BIOS,
    "start_missing": _REQUESTS,
    "call_missing": _REQUESTS,
    "end_missing": _REQUESTS,
    "ends_not_recorded": _REQUESTS,
    "duplicate_start": ("starts", ("events.sync_start",)),
    "duplicate_end": ("ends", ("events.sync_end",)),
    "unmatched_complete": ("completions", ("events.bio_complete", "events.block_complete")),
    "unmatched_exit": ("exits", ("events.call_exit",)),
    "duration_missing": ("calls", ("events.call_enter",)),
    "exit_missing": ("calls", ("events.call_enter",)),
    "call_only": ("calls", ("events.call_enter",)),
    "only_cpu": ("recordings", ()),
    "cut_off": ("logs", ()),
    "recorder_ended": ("logs", ()),
    "unparsed_line": ("lines", ("lines",)),
    "submits_missing": ("completions", ("events.block_complete",)),
}
_EVENTS = ("events", ("events",))
# Reasons of events that the log does not hold.
_NOT_IN_THE_LOG = ("lost_by_tracer", "missed_by_probe")
# No losses, but the first explains why many figures are not known, and the second may be one.
REPORTED = ("call_only", "only_cpu")


def sentence(reason: str, meaning: str, numbers: Mapping[str, int], runs: int = 1) -> str:
    """Words a loss as `15 of 100 bios: never_completed: ...`.

    Args:
        numbers: the counts of `syncline_meta` (`lines`, `events`, `events.KIND`) and of all reasons, summed
            over the runs. Without the counts of the total, the sentence has only the count of the reason.
        runs: how many runs have the loss.
    """
    count = numbers[reason]
    noun, parts = _PART_OF.get(reason, _EVENTS)
    total = sum(numbers.get(part, 0) for part in parts)
    if noun == "bios" and all(numbers.get(submits, 0) > 0 for submits in _SUBMITS):
        # The file system and the block layer both record some submits, and it is not known how many.
        total = 0
    # Events that the tracer lost are not among those that the log holds.
    relation = "in addition to" if reason in _NOT_IN_THE_LOG else "of"
    part = (
        f"{count:,} {relation} {total:,} {noun}"
        if total > 0 and parts[0] in numbers
        else f"{count:,} {noun}"
        if noun == "bios"
        else f"{count:,}"
    )
    where = f" in {runs:,} runs" if runs > 1 else ""
    return f"{part}{where}: {reason}" + (f": {meaning}" if meaning else "")


def said_anyway(numbers: Mapping[str, int]) -> set[str]:
    """Returns the reasons that need no warning: only calls are expected in a log such as that of strace."""
    calls = numbers.get("call_only", 0)
    return {"call_only"} if calls and calls == numbers.get("requests") else set()


def filtered(wanted: str, numbers: Mapping[str, int]) -> str:
    """Words what a filter has left out.

    Args:
        wanted: the filter in words; empty without one.
    """
    if not wanted:
        return ""
    out, unknown = numbers.get("filtered_out", 0), numbers.get("filter_unknown", 0)
    text = f"only requests of {wanted} are included: {out:,} others and calls without a request are left out"
    if unknown:
        text += f", and {unknown:,} for which the log does not record what the filter selects by"
    return text

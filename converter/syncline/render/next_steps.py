"""What to type after the answer: commands that run as they stand."""

from __future__ import annotations

import shlex

from syncline.printable import printable
from syncline.report.answer import Answer, causes

__all__ = ["next_steps"]

# The report that a cause leads to, and what it says.
_OF_CAUSE = {
    "neighbour": ("neighbours", "what each neighbour cost, and between which bounds that is"),
    "unrecorded": ("device", "how busy the device was, and for whom"),
    "cpu": ("phases", "the time of each kind of sync by phase"),
}
# The same, by the phase with most of the time. The first that matches counts.
_OF_PHASE = (
    ("commit", ("journal", "how many syncs shared a commit, and how long each took")),
    ("flush", ("device", "how busy the device was, and with how many flushes")),
    ("queue", ("bystanders", "who was at the device before the slowest syncs")),
    ("device", ("bystanders", "who was at the device before the slowest syncs")),
    ("writeback", ("bystanders", "who was at the device before the slowest syncs")),
)
_OTHERWISE = ("files", "what each file costs")


def next_steps(answer: Answer, path: str, *, can_be_shown: bool) -> list[tuple[str, str]]:
    """Returns commands, each with what it shows.

    Args:
        path: of the input; `-` cannot be read again, so the commands then say INPUT.
        can_be_shown: whether `syncline open` takes the input.
    """
    name = "INPUT" if path == "-" else shlex.quote(path)
    found = []
    if can_be_shown and answer.slowest:
        found.append(
            (
                f"syncline open {name} --sync {answer.slowest['sync_id']}",
                "the slowest sync in the timeline",
            )
        )
    report, why = _report(answer)
    found.append((f"syncline report {name} {report}", why))
    if len(found) < 2:
        found.append(
            (f"syncline inspect {name}", "what it can answer, and what to record for the rest")
        )
    return [(printable(command), why) for command, why in found]


def _report(answer: Answer) -> tuple[str, str]:
    if answer.failures:
        return "failures", "which syncs, calls and bios failed"
    if not answer.total["syncs"]:
        return _OF_CAUSE["unrecorded"]
    for _, finding, _ in causes(answer.neighbours, answer.phases):
        return _OF_CAUSE[finding]
    longest = max(answer.phases, key=lambda phase: answer.phases[phase], default="")
    return next((said for part, said in _OF_PHASE if part in longest), _OTHERWISE)

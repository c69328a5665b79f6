"""Words each verdict: a sentence that says what is wrong with a file, and one that says what to mend."""

from __future__ import annotations

from typing import Any

from syncline.printable import printable
from syncline.render import human

from .run import Checked

__all__ = ["doubt", "mend", "problem"]

# By the fault of a rule: what is wrong, and what to do about it.
_FAULTS = {
    "data": (
        "the {op} at {at} came before a sync of the {other} at {other_at}",
        "fsync {op_path} after the {other} at {other_at} and before the {op} at {at}",
    ),
    "folder": (
        "the folder {folder} was not synced after the {op} at {at}",
        "fsync the folder {folder} after the {op} at {at}",
    ),
    "unsynced": (
        "the {other} at {other_at} was never synced",
        "fsync {path} after the {other} at {other_at}",
    ),
    "acknowledged": (
        "the {op} to {op_path} at {at} acknowledged the {other} at {other_at} before it was synced",
        "fsync {path} after the {other} at {other_at} and before the {op} to {op_path} at {at}",
    ),
    "retried": (
        "the {op} at {at} succeeded after the {other} at {other_at} had failed, whose data may be lost",
        "end the program after the {other} at {other_at}, or open {path} again and write the data again",
    ),
    "removed": (
        "the {op} at {at} came before a sync of the {other} to {other_path} at {other_at}",
        "fsync {folder} after the {other} at {other_at} and before the {op} of {path} at {at}",
    ),
    "ahead": (
        "the {op} at {at} came before a sync of the {other} to the journal {other_path} at {other_at}",
        "fsync {folder} after the {other} at {other_at} and before the {op} to {path} at {at}",
    ),
}
# Why it cannot be told, and what to do about it.
_DOUBTS = {
    "unseen": (
        "nothing was recorded of what was written to {op_path} before the {op} at {at}",
        "begin the recording before the file is written; if its path has a symbolic link, use the path without",
    ),
    "pending": (
        "the recording ends before the program does, so a sync may have followed",
        "record until the program has ended",
    ),
    "lost": (
        "lines of the recording are lost or torn, and any of them may be of this file",
        "see what is lost: syncline report INPUT losses; and record again",
    ),
    "io_uring": (
        "the program uses io_uring, whose writes and syncs strace does not see",
        "record as root: syncline record --files -o RUN -- COMMAND",
    ),
    "coarse": (
        "the times of the recording are too coarse to say which call came first",
        "record with strace -ttt instead of -t",
    ),
    "untimed": (
        "nothing says when the {doubt} at {doubt_at} had ended, so it may have ended in time",
        "record with strace -T, which prints how long each call took",
    ),
    "unknown": (
        "the {doubt} at {doubt_at} is of a file that is not known, which may be this one",
        "record with strace -y, which prints the file of each descriptor",
    ),
    "refused": (
        "a sync had failed before the {doubt} at {doubt_at}, which reports no error of a device or a journal",
        "sync each file with fsync, whose result says whether it failed",
    ),
    "partial": (
        "the {doubt} at {doubt_at} failed on one file system, which need not be that of this file",
        "sync each file with fsync, whose result is its own",
    ),
    "stale": (
        "it was used by a descriptor from before one of its names was given to another file",
        "record with strace -y, which prints the present name of each descriptor",
    ),
    "mapped": (
        "the file was mapped for writing at {doubt_at}, and stores to memory are no calls",
        "check it without a mapping, or by hand: msync before the step",
    ),
    "relative": (
        "the folder of its name in the {doubt} at {doubt_at} is not known",
        "record from the start of the program, so that the working directory is known",
    ),
    "exchanged": (
        "it was exchanged with another file at {doubt_at} (RENAME_EXCHANGE)",
        "check it by hand",
    ),
    "unreturned": (
        "the {doubt} at {doubt_at} did not return, so whether it had an effect is not known",
        "record until the call has returned",
    ),
    "moved": (
        "a folder above it was renamed at {doubt_at}, so its path may mean another file",
        "check it in a run in which the folder does not move",
    ),
}


def problem(one: Checked) -> str:
    """Returns what is wrong, or why it cannot be told."""
    row = one.row
    if one.verdict == "violated":
        return _filled(_FAULTS[row["fault"]][0], row)
    if row["shown"] == "cannot tell":
        return _filled(_DOUBTS[row["fault"]][0], row)
    said = _filled(_DOUBTS[row["doubt"]][0], row)
    if row["shown"] == "violated":
        return f"{_filled(_FAULTS[row['fault']][0], row)}, but {said}"
    return said


def mend(one: Checked) -> str:
    """Returns what to do about it."""
    row = one.row
    if one.verdict == "violated":
        return _filled(_FAULTS[row["fault"]][1], row)
    return doubt(one)


def doubt(one: Checked) -> str:
    """Returns what to record so that it can be told."""
    row = one.row
    name = row["fault"] if row["shown"] == "cannot tell" else row["doubt"]
    return _filled(_DOUBTS[name][1], row)


def _filled(text: str, row: dict[str, Any]) -> str:
    def shown(value: Any) -> str:
        return printable(str(value)) if value is not None else "[unknown]"

    def time(value: Any) -> str:
        return human.text(value, "time") if value is not None else "[unknown]"

    return text.format(
        path=shown(row["path"]),
        folder=shown(row["folder"]),
        op=shown(row["op"]),
        at=time(row["ts_ns"]),
        op_path=shown(row["op_path"]),
        other=shown(row["other_op"] or "write"),
        other_at=time(row["other_ts_ns"]),
        other_path=shown(row["other_path"]),
        doubt=shown(row["doubt_op"] or "call"),
        doubt_at=time(row["doubt_ts_ns"]),
    )

"""Defines and removes dynamic events in tracefs. They are global: each recording has a group of its own."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path

from syncline.record.errors import RecordError
from syncline.record.tracefs import append, is_running, owner

_PREFIX = "syncline_"
_FILE = "dynamic_events"


def group() -> str:
    """Returns the name of this process's group: its id, and the time at which it was started."""
    pid, start = owner()
    return f"{_PREFIX}{pid}_{start}"


def free_group(tracefs: Path) -> str:
    """Returns the name of this process's group, with a number if somebody else has events in a group of that name."""
    taken: set[str] = set()
    with contextlib.suppress(OSError):
        taken = {name for name, _ in _defined(tracefs)}
    names = (group(), *(f"{group()}_{number}" for number in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)


def define(tracefs: Path, text: str) -> None:
    """Defines an event.

    Raises:
        RecordError: the kernel refuses it. The message has the kernel's reason.
    """
    before = _errors(tracefs)
    try:
        append(tracefs / _FILE, text)
    except OSError as error:
        after = _errors(tracefs)
        reason = _reason(after) if after != before else None
        raise RecordError(reason or str(error.strerror)) from None


def remove_group(tracefs: Path, name: str) -> list[str]:
    """Removes the events of a group. They must be off. Returns those that are in use elsewhere."""
    left = []
    with contextlib.suppress(OSError):
        for event in sorted({event for found, event in _defined(tracefs) if found == name}):
            try:
                append(tracefs / _FILE, f"-:{name}/{event}")
            except OSError:
                left.append(event)
    return left


def remove_dead_groups(tracefs: Path) -> list[str]:
    """Removes the events of recorders that were killed, and returns the names of their groups."""
    removed = []
    with contextlib.suppress(OSError):
        for name in sorted({found for found, _ in _defined(tracefs)}):
            of = re.fullmatch(rf"{_PREFIX}(\d+)_(\d+)(?:_\d+)?", name)
            if of and not is_running(int(of[1]), of[2]):
                remove_group(tracefs, name)
                removed.append(name)
    return removed


@dataclass
class Hits:
    """How often the kprobes of an event were hit, and how many hits the kernel missed."""

    hits: int = 0
    missed: int = 0


def profile(tracefs: Path, name: str) -> dict[str, Hits]:
    """Returns the hits of the kprobes of a group, by event. The kernel does not count those of fprobes."""
    found: dict[str, Hits] = {}
    with contextlib.suppress(OSError):
        text = (tracefs / _FILE).read_text(errors="replace")
        # A uprobe has the path of a file instead of a function.
        kprobes = re.findall(r"^[pr]\d*:([^/\s]+)/(\S+) [^/\s]+(?: |$)", text, re.MULTILINE)
        rows = [line.split() for line in (tracefs / "kprobe_profile").read_text().splitlines()]
        # The profile has no groups. It is in the order of the definitions.
        in_order = [row[0] for row in rows] == [event for _, event in kprobes]
        mine = {event for group, event in kprobes if group == name}
        for i, row in enumerate(rows):
            is_mine = kprobes[i][0] == name if in_order else row[0] in mine
            if is_mine:
                event = found.setdefault(row[0], Hits())
                event.hits += int(row[1])
                event.missed += int(row[2])
    return found


def _defined(tracefs: Path) -> list[tuple[str, str]]:
    """Returns group and name of all dynamic events."""
    text = (tracefs / _FILE).read_text(errors="replace")
    return re.findall(r"^\w+:([^/\s]+)/(\S+)", text, re.MULTILINE)


def _errors(tracefs: Path) -> str:
    with contextlib.suppress(OSError):
        return (tracefs / "error_log").read_text(errors="replace")
    return ""


def _reason(log: str) -> str | None:
    """Returns the last error of error_log: the kernel's message and the word that it marks."""
    entries = re.findall(
        r"^\[.*?\] \w+: error: (.*)\n  Command: (.*)\n(?: *\^)?", log, re.MULTILINE
    )
    if not entries:
        return None
    message, command = entries[-1]
    caret = log.rstrip("\n").rpartition("\n")[2]
    at = caret.find("^") - len("  Command: ")
    word = (
        re.search(r"\S*$", command[:at])[0] + re.match(r"\S*", command[at:])[0] if at >= 0 else ""
    )  # type: ignore[index]
    return f"{message.strip()}: {word}" if word else message.strip()

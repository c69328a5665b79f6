"""A workload in words, such as `write 4k x 10000, fsync every 100`, as the calls that a program would make."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from syncline.errors import InputError

from .writes import LARGEST_CALL, Write, Writes, kind_of_flags

__all__ = ["EXAMPLE", "planned"]

EXAMPLE = "write 4k x 10000, fsync every 100"
# More need minutes, and say nothing that fewer do not.
_MOST_CALLS = 200_000
_MOST_BYTES = 100 << 30
_LONGEST_NS = 366 * 86_400 * 1_000_000_000
_FILE = "file"
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_TIMES = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "min": 60_000_000_000}
_FLAGS = "direct|sync|dsync|library|overwrite|random"
_COUNT = r"[0-9]{1,9}"
_NUMBER = r"[0-9]{1,9}(?:\.[0-9]{1,9})?"
# A quote begins only after a space: that of `it's` does not.
_QUOTED = r"(?<=\s)(?:'[^']*'|\"[^\"]*\")"
# A path with spaces, or one that is also a word of this language, is quoted.
_TO = rf"(?P<path>'[^']+'|\"[^\"]+\"|(?!(?:{_FLAGS}|every|at)\b)[^\s'\"]\S*)"
_SIZE = rf"(?P<size>{_NUMBER}) ?(?:(?P<unit>[kmg])(?:i?b)?|b)?"
_WRITE = re.compile(rf"write {_SIZE}(?: ?[x*\u00d7] ?(?P<times>{_COUNT}))?(?: to {_TO})?(?P<flags>(?: (?:{_FLAGS}))*)", re.I)  # fmt: skip
_SYNC = re.compile(rf"(?P<call>fsync|fdatasync|sync)(?: of {_TO})?(?: (?:every (?P<every>{_COUNT})|at the end))?", re.I)  # fmt: skip
_PAUSE = re.compile(rf"pause (?P<length>{_NUMBER}) ?(?P<unit>ns|us|ms|s|min)(?: every (?P<every>{_COUNT}))?", re.I)  # fmt: skip
_HELP = (
    f'write it like "{EXAMPLE}; pause 5s; write 1m x 20 to log direct": phases by ; and in each one write SIZE x TIMES [to FILE] [direct]'
    " [sync|dsync] [library] [overwrite] [random], then fsync, fdatasync [of FILE] or sync, and pause TIME, each every N or at the end"
)


@dataclass(frozen=True)
class _Step:
    """What follows writes of a phase: a sync call, or a pause."""

    every: int
    call: str = ""
    pause_ns: int = 0
    # Empty for that of the phase.
    path: str = ""


@dataclass(frozen=True)
class _Phase:
    size: int
    times: int
    path: str
    flags: frozenset[str]
    steps: tuple[_Step, ...]


def planned(text: str) -> Writes:
    """Returns the calls of a workload. Their durations are 0, and `start_ns` is the sum of the pauses before each.

    Raises:
        InputError: it is not understood, or has too many calls.
    """
    phases: list[_Phase] = []
    for part in filter(None, map(_spaced, _split(text, ";"))):
        phases.append(_phase(part, phases[-1].path if phases else _FILE))
    calls = sum(one.times + sum(_count(one, step) for step in one.steps) for one in phases)
    if calls > _MOST_CALLS:
        raise InputError(f"--workload has {calls:,} calls, and at most {_MOST_CALLS:,} are predicted", "give fewer writes: what one costs does not change any more")  # fmt: skip
    if (size := sum(one.size * one.times for one in phases)) > _MOST_BYTES:
        raise InputError(f"--workload writes {size >> 30:,} GiB, and at most {_MOST_BYTES >> 30} are predicted", "give fewer writes: what one costs does not change any more")  # fmt: skip
    if (
        pauses := sum(
            one.times // step.every * step.pause_ns for one in phases for step in one.steps
        )
    ) > _LONGEST_NS:
        raise InputError(
            f"--workload pauses for {pauses / 86_400e9:,.0f} days, and at most 366 are predicted",
            "give shorter pauses: data is written back after dirty_expire_ns",
        )
    writes = list(_calls(phases))
    if not any(one.kind != "sync" for one in writes):
        raise InputError(f"--workload '{text}' has no write", _HELP)
    notes = []
    if any("library" in one.flags for one in phases) and any(one.kind == "sync" for one in writes):
        notes.append("a sync has nothing of what is in the buffer of the C library: the program must call fflush before")  # fmt: skip
    return Writes(writes, notes, has_deletions=True, is_plan=True)


def _count(phase: _Phase, step: _Step) -> int:
    return max(1, phase.times // step.every) if step.call else 0


def _phase(text: str, before: str) -> _Phase:
    """Reads a phase. Without a write, its syncs are of the file of the phase before."""
    write = None
    steps = []
    for part in map(str.strip, _split(text, ",")):
        if match := _WRITE.fullmatch(part):
            if write is not None:
                raise InputError(
                    f"--workload: '{text}' has two writes", "begin another phase with ;"
                )
            write = match
        elif match := _SYNC.fullmatch(part):
            # With a number, after each so many writes; without, once.
            every = _positive(match["every"], part) if match["every"] else 0
            steps.append(_Step(every, call=match["call"].lower(), path=_unquoted(match["path"])))
        elif match := _PAUSE.fullmatch(part):
            every = _positive(match["every"], part) if match["every"] else 0
            steps.append(_Step(every, pause_ns=round(float(match["length"]) * _TIMES[match["unit"].lower()])))  # fmt: skip
        else:
            raise InputError(f"--workload: '{part}' is not understood", _HELP)
    if write is None:
        return _Phase(0, 0, before, frozenset(), _ordered(steps, 1))
    size = round(float(write["size"]) * _UNITS[(write["unit"] or "").lower()])
    if not 0 < size <= LARGEST_CALL:
        raise InputError(f"--workload: a call of Linux writes 1 to {LARGEST_CALL:,} bytes, and not {size:,}", "give a smaller write more often")  # fmt: skip
    times = _positive(write["times"], write[0]) if write["times"] else 1
    flags = frozenset(write["flags"].lower().split())
    if "library" in flags and flags & {"direct", "sync", "dsync"}:
        raise InputError(f"--workload: '{write[0]}' goes through the buffer of the C library, which has no {', '.join(sorted(flags - {'library'}))} writes", "leave one of them out")  # fmt: skip
    return _Phase(size, times, _unquoted(write["path"]) or _FILE, flags, _ordered(steps, times))


def _split(text: str, at: str) -> list[str]:
    """Splits a text at a character outside of quotes. Empty parts are left out."""
    return re.findall(rf"(?:{_QUOTED}|[^{at}])+", text)


def _spaced(text: str) -> str:
    """Makes spaces outside of quotes single."""
    return re.sub(rf"({_QUOTED})|\s+", lambda found: found[1] or " ", text).strip()


def _unquoted(path: str | None) -> str:
    if not path:
        return ""
    return path[1:-1] if path[0] in "'\"" else path


def _positive(text: str, part: str) -> int:
    if not int(text):
        raise InputError(f"--workload: '{part}' has a 0", "count from 1")
    return int(text)


def _ordered(steps: list[_Step], times: int) -> tuple[_Step, ...]:
    """Steps without a number come once, after the last write.

    Raises:
        InputError: one never comes.
    """
    if never := next((one for one in steps if one.every > times), None):
        raise InputError(f"--workload: a step comes every {never.every:,} writes, and its phase has {times:,}", "leave out `every`: then it comes after the last write")  # fmt: skip
    return tuple(replace(one, every=one.every or times) for one in steps)


def _calls(phases: list[_Phase]) -> Iterator[Write]:
    now = 0
    sizes: dict[str, int] = {}
    places = random.Random(1)
    for phase in phases:
        whole = phase.size * phase.times
        if phase.flags & {"overwrite", "random"}:
            # The file is there already.
            sizes[phase.path] = max(sizes.get(phase.path, 0), whole)
        begin = 0 if phase.flags & {"overwrite", "random"} else sizes.get(phase.path, 0)
        # Each place once.
        order: Sequence[int] = range(phase.times)
        if "random" in phase.flags:
            order = places.sample(range(sizes[phase.path] // phase.size), phase.times)
        for number in range(1, max(phase.times, 1) + 1):
            if phase.times:
                write = _write(phase, now, begin + order[number - 1] * phase.size, sizes)
                sizes[phase.path] = max(sizes.get(phase.path, 0), write.offset + write.size)
                yield write
            for step in phase.steps:
                if number % step.every:
                    continue
                now += step.pause_ns
                if step.call:
                    path = "" if step.call == "sync" else step.path or phase.path
                    yield Write(now, 0, "sync", path, 0, 0, is_datasync=step.call == "fdatasync")


def _write(phase: _Phase, now: int, offset: int, sizes: dict[str, int]) -> Write:
    is_synchronized = bool(phase.flags & {"sync", "dsync"})
    kind = kind_of_flags(is_direct="direct" in phase.flags, is_synchronized=is_synchronized)
    return Write(
        *(now, 0, "library" if "library" in phase.flags else kind, phase.path, offset, phase.size),
        file_size=sizes.get(phase.path, 0),
        is_datasync="dsync" in phase.flags,
    )

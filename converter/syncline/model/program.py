"""What each thread of a recording does, as a list of steps that a replay repeats.

A step waits until the thread's requests have completed as often as they had in the recording, and then takes as long as it
took there. So a thread with one request at a time waits for each, a thread with many in flight keeps as many, and a sync
begins only after the one before it returned.
"""

from __future__ import annotations

import bisect
import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

from .recording import Recording, Request, Sync

__all__ = [
    "CommitProgram",
    "Kind",
    "Program",
    "Step",
    "commit_programs",
    "flush_drains",
    "thread_programs",
]


# From this many steps on, a thread is judged by its median step.
_MANY = 10


class Kind(Enum):
    """What a step does."""

    SUBMIT = "submit"
    SYNC_START = "start of a sync"
    SYNC_END = "end of a sync"
    # For the next commit that starts, and for the one that is being made.
    COMMIT = "wait for a commit"
    RUNNING_COMMIT = "wait for the running commit"


@dataclass(frozen=True)
class Step:
    """One step of a program.

    `number`: index of the request, or of the sync; of the commit to wait for, index of the commit.
    `completions`: how many of the program's requests have to be complete.
    `delay_ns`: time from the later of the step before and the last of these completions.
    `after_issue`: whether the request of the step before was issued first. A thread that waits for a tag cannot go on
    before that, so with tags, the time is `delay_after_issue_ns`, from the issue on.
    `drains`: whether all requests that are at the device have to be complete first, because of a flush that is not recorded.
    """

    kind: Kind
    number: int
    completions: int
    delay_ns: int
    after_issue: bool = False
    delay_after_issue_ns: int = 0
    drains: bool = False


@dataclass(frozen=True)
class Program:
    """The steps of a thread.

    `goes_on`: whether the thread was still busy at the end of the recording, and has no sync. A replay repeats it
    as long as a sync is missing.
    """

    tid: int
    comm: str | None
    steps: list[Step]
    goes_on: bool = False
    is_commit: bool = False

    @cached_property
    def has_sync(self) -> bool:
        """Returns whether the thread syncs."""
        return any(step.kind is Kind.SYNC_START for step in self.steps)

    @cached_property
    def pause_ns(self) -> int:
        """Returns the time before the thread begins its steps again: a typical delay of a step.

        Of few steps it is the mean, with the time before the first one: a thread that wrote once does not write all the time.
        """
        delays = [
            step.delay_after_issue_ns if step.after_issue else step.delay_ns for step in self.steps
        ]
        typical = statistics.median(delays) if len(delays) >= _MANY else statistics.mean(delays)
        return round(typical)


@dataclass(frozen=True)
class CommitProgram:
    """A commit: what its thread does from start to end.

    `delay_ns`: from its cause (the first sync that waits for it, or the end of the commit before) to its start.
    `at_ns`: its start, from the start of the recording, if no sync caused it; else None.
    `end_delay_ns`: from the last step or completion to its end.
    """

    program: Program
    delay_ns: int
    at_ns: int | None
    end_delay_ns: int


# (time of the recording, order among equal times, kind, number, time when it was over)
_Event = tuple[int, int, Kind, int, int]
# A thread was busy at the end if its last request completed in this last part of the recording.
_LAST_PART = 0.1


# A flush is seen if this share of syncs ends only after all requests that were at the device, and if that is most of the
# time that nothing else explains, and enough of all syncs to matter.
_DRAINED = 0.95
_EXPLAINED = 0.8
_MATTERS = 0.1


def flush_drains(recording: Recording) -> bool:
    """Returns whether syncs end with a wait for all that is at the device, as a flush causes it that is not recorded."""
    requests = recording.requests
    issues = sorted((request.issue_ns, request.end_ns) for request in requests)
    # The last completion of all that was issued until then.
    latest = list(itertools.accumulate((end for _, end in issues), max))
    own: dict[int, int] = {}
    for request in requests:
        if request.sync is not None:
            own[request.sync] = max(own.get(request.sync, 0), request.end_ns)
    gaps = []
    for number, sync in enumerate(recording.syncs):
        reached = own.get(number)
        if reached is None or sync.waits or reached >= sync.end_ns:
            continue
        place = bisect.bisect_right(issues, (reached, math.inf))
        gaps.append((sync.end_ns - reached, max(latest[place - 1] - reached, 0)))
    if len(gaps) < _MANY:
        return False
    whole = sum(gap for gap, _ in gaps)
    drained = sum(min(gap, drain) for gap, drain in gaps)
    return (
        sum(drain <= gap for gap, drain in gaps) >= _DRAINED * len(gaps)
        and drained >= _EXPLAINED * whole
        and drained >= _MATTERS * sum(sync.end_ns - sync.start_ns for sync in recording.syncs)
    )


def thread_programs(recording: Recording, *, drains: bool) -> list[Program]:
    """Returns the programs of all threads. Requests of commits are left out.

    Args:
        drains: syncs end with a wait for all that is at the device.
    """
    events: dict[int, list[_Event]] = defaultdict(list)
    comms: dict[int, str | None] = {}
    of_commit = {index for of_one in _requests_of_commits(recording) for index in of_one}
    for number, sync in enumerate(recording.syncs):
        comms[sync.tid] = sync.comm
        own = events[sync.tid]
        own.append((sync.start_ns, 0, Kind.SYNC_START, number, sync.start_ns))
        # At one time, the end of a sync comes before the start of the next one.
        end = 3 if sync.end_ns == sync.start_ns else -1
        own.append((sync.end_ns, end, Kind.SYNC_END, number, sync.end_ns))
        for wait in sync.waits:
            is_late = wait.start_ns > recording.commits[wait.commit].start_ns
            kind = Kind.RUNNING_COMMIT if is_late else Kind.COMMIT
            own.append((wait.start_ns, 2, kind, wait.commit, wait.end_ns))
    for number, request in enumerate(recording.requests):
        if number in of_commit:
            continue
        tid = _owner(request, recording.syncs)
        comms.setdefault(tid, request.comm)
        events[tid].append(_submit(request, number))
    programs = []
    start, end = recording.start_ns, recording.end_ns
    limit = end - _LAST_PART * (end - start)
    for tid, own in events.items():
        steps = _steps(sorted(own, key=lambda event: event[:2]), recording, start)
        if drains:
            steps = _with_drains(steps, recording)
        last = max((recording.requests[e[3]].end_ns for e in own if e[2] is Kind.SUBMIT), default=0)
        has_sync = any(event[2] is Kind.SYNC_START for event in own)
        programs.append(Program(tid, comms[tid], steps, not has_sync and last >= limit))
    return programs


def commit_programs(recording: Recording) -> list[CommitProgram]:
    """Returns the programs of the commits, in their order."""
    causes = _causes(recording.syncs)
    found = []
    before = None
    for number, (commit, indices) in enumerate(
        zip(recording.commits, _requests_of_commits(recording), strict=True)
    ):
        events = [_submit(recording.requests[i], i) for i in indices]
        steps = _steps(events, recording, commit.start_ns)
        reached = [commit.start_ns]
        reached += [recording.requests[i].submit_ns for i in indices]
        reached += [e for i in indices if (e := recording.requests[i].end_ns) <= commit.end_ns]
        cause = causes.get(number)
        if cause is not None and cause > commit.start_ns:
            # Nobody waited yet: a timer started it, or the journal needed space.
            cause = None
        if cause is not None and before is not None:
            # A sync may ask for a commit while the one before is made.
            cause = max(cause, before)
        delay = 0 if cause is None else max(commit.start_ns - cause, 0)
        at = None if cause is not None else commit.start_ns - recording.start_ns
        program = Program(commit.tid, None, steps, is_commit=True)
        found.append(CommitProgram(program, delay, at, max(commit.end_ns - max(reached), 0)))
        before = commit.end_ns
    return found


def _owner(request: Request, syncs: Sequence[Sync]) -> int:
    """Returns the thread whose program has the request: that of its sync, else the one that submitted it."""
    return request.tid if request.sync is None else syncs[request.sync].tid


def _requests_of_commits(recording: Recording) -> list[list[int]]:
    """Returns the requests of each commit: those that its thread submitted from its start to its end."""
    by_tid: dict[int, list[tuple[int, int]]] = defaultdict(list)
    tids = {commit.tid for commit in recording.commits}
    for number, request in enumerate(recording.requests):
        if request.sync is None and request.tid in tids:
            by_tid[request.tid].append((request.submit_ns, number))
    found = []
    for commit in recording.commits:
        own = by_tid[commit.tid]
        first = bisect.bisect_left(own, (commit.start_ns, -1))
        last = bisect.bisect_right(own, (commit.end_ns, len(recording.requests)))
        found.append([number for _, number in own[first:last]])
    return found


def _causes(syncs: Iterable[Sync]) -> dict[int, int]:
    """Returns, by commit, when the first sync began to wait for it."""
    found: dict[int, int] = {}
    for sync in syncs:
        for wait in sync.waits:
            found[wait.commit] = min(found.get(wait.commit, wait.start_ns), wait.start_ns)
    return found


def _submit(request: Request, number: int) -> _Event:
    return request.submit_ns, 1, Kind.SUBMIT, number, request.submit_ns


def _with_drains(steps: list[Step], recording: Recording) -> list[Step]:
    """Returns the steps, where each sync ends when what was at the device is complete, and as long after it as recorded."""
    requests = recording.requests
    issues = sorted((request.issue_ns, request.end_ns) for request in requests)
    latest = list(itertools.accumulate((end for _, end in issues), max))
    found = []
    for step in steps:
        if step.kind is Kind.SYNC_END and not recording.syncs[step.number].waits:
            end = recording.syncs[step.number].end_ns
            reached = end - step.delay_ns
            place = bisect.bisect_right(issues, (reached, math.inf))
            drained = max(latest[place - 1], reached) if place else reached
            left = max(end - drained, 0)
            step = replace(step, delay_ns=left, delay_after_issue_ns=left, drains=True)
        found.append(step)
    return found


def _steps(events: Sequence[_Event], recording: Recording, start_ns: int) -> list[Step]:
    """Returns the steps of one thread from its events, which are sorted by time."""
    requests = recording.requests
    ends = sorted(requests[event[3]].end_ns for event in events if event[2] is Kind.SUBMIT)
    steps: list[Step] = []
    # When the step before was over, and the request that it submitted.
    before, submitted = start_ns, None
    for at, _, kind, number, over in events:
        done = bisect.bisect_right(ends, at)
        reached = max(before, ends[done - 1]) if done else before
        delay = max(at - reached, 0)
        if submitted is not None and submitted.issue_ns <= at:
            after = max(at - max(reached, submitted.issue_ns), 0)
            steps.append(
                Step(kind, number, done, delay, after_issue=True, delay_after_issue_ns=after)
            )
        else:
            steps.append(Step(kind, number, done, delay))
        submitted = requests[number] if kind is Kind.SUBMIT else None
        before = over
    return steps

"""Predicted costs of recorded writes, next to what was measured."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from .commits import Commits
from .cost import (
    Library,
    PageCache,
    direct_ns,
    direct_synchronized_ns,
    naive_ns,
    synchronized_ns,
)
from .parameters import Parameters
from .writes import Cut, Write, Writes, of_scenario

__all__ = ["GROUPS", "Outcome", "Predicted", "Summary", "predict", "relative_error", "signed_error"]


# What a row of the summary is.
GROUPS = ("scenario", "state", "path", "commit")
_RULES = {
    "direct": direct_ns,
    "direct_synchronized": direct_synchronized_ns,
    "synchronized": synchronized_ns,
}


@dataclass(frozen=True)
class Predicted:
    """A write with its predicted costs. `state` is that at its end, `dirty_bytes` what is predicted to be dirty then.

    `made_bytes`: how many of its bytes went to pages that were not dirty yet; None if it is not a cached write. `commits`: how many
    commits of the file system it waits for, at most 1, and `commit_ns`: their part of `ns`; None if nothing need be durable, or what a
    commit takes is not known.
    """

    write: Write
    ns: float
    naive_ns: float
    state: str
    dirty_bytes: float
    made_bytes: float | None
    commits: float | None
    commit_ns: int | None


@dataclass(frozen=True)
class Summary:
    """The writes of one scenario. Errors are shares. `measured_ns` and they are None if nothing was measured."""

    scenario: str
    writes: int
    size: int
    measured_ns: int | None
    predicted_ns: float
    naive_ns: float
    # Mean relative error of a write, as the paper has it.
    error: float | None
    naive_error: float | None
    # The median says more where the costs of single writes vary.
    median_error: float | None
    # Relative error of the sum: above 0 if the prediction is too long.
    total_error: float | None
    naive_total_error: float | None

    @property
    def improvement(self) -> float | None:
        """Returns by which share the error is less than the naive model's."""
        if self.error is None or not self.naive_error:
            return None
        return 1 - self.error / self.naive_error


@dataclass(frozen=True)
class Outcome:
    """All predictions.

    In sentences: `notes` say what the recording shows, `assumptions` what it does not show.
    """

    rules: str
    predicted: Sequence[Predicted]
    summaries: Sequence[Summary]
    notes: list[str] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)
    # Nothing was measured.
    is_plan: bool = False


def predict(
    parameters: Parameters, recorded: Writes, rules: str = "kernel", *, by: str = GROUPS[0]
) -> Outcome:
    """Predicts the cost of each write, from the writes before it and the measured time between them.

    A scenario begins with nothing dirty: what was dirty of the one before is left out.

    Args:
        by: what is summed up separately in a scenario: nothing else (scenario), each state of page cache, each path, or what waits for a
            commit and what does not.
    """
    notes = list(recorded.notes)
    if recorded.has_overhead:
        notes.append("strace makes each call 10 to 100 us longer, or more, so short writes take longer than predicted")  # fmt: skip
    predicted: list[Predicted] = []
    for writes in _by_scenario(recorded.writes).values():
        predicted += _one(parameters, writes, rules, recorded.cuts, is_plan=recorded.is_plan)
    overlaps = sum(_overlaps(writes) for writes in _by_scenario(recorded.writes).values())
    if overlaps:
        begin = "1 call begins" if overlaps == 1 else f"{overlaps:,} calls begin"
        notes.append(f"{begin} before an earlier call has ended; the model has one writer, so a call follows the one before it")  # fmt: skip
    assumptions = _commit_assumptions(parameters, recorded)
    if not recorded.has_deletions:
        assumptions.append(
            "no file is deleted or truncated while it is dirty: the input shows no such call"
        )
    is_direct = any(one.kind == "direct" for one in recorded.writes)
    if is_direct and parameters.direct_write_call_ns is None:
        assumptions.append(
            "a direct write that is not synchronized takes as long as one that is: the file of parameters has no direct_write_call_ns,"
            " which syncline model measure now writes"
        )
    assumptions.append("one process writes to one device, and nothing is dirty at the start")
    if recorded.is_plan and (dirty := round(predicted[-1].dirty_bytes)):
        notes.append(
            f"{dirty:,} bytes are dirty after the last call, and nobody has waited for them yet"
        )
    predicted.sort(key=lambda one: one.write.start_ns)
    summaries = [_summary(name, ones, is_plan=recorded.is_plan) for name, ones in _grouped(predicted, by).items()]  # fmt: skip
    return Outcome(rules, predicted, summaries, notes, assumptions, recorded.is_plan)


def _commit_assumptions(parameters: Parameters, recorded: Writes) -> list[str]:
    durable = [one for one in recorded.writes if one.is_durable]
    if not durable and not any(one.kind == "sync" for one in recorded.writes):
        return []
    if parameters.commit_ns is None:
        return [
            "no synchronized write and no sync waits for a commit of the file system: the file of parameters has no commit_ns, which"
            " syncline model measure now writes"
        ]
    found = [
        f"{what}: the table has no {column}" for column, what in recorded.taken_for_granted.items()
    ]
    if unknown := _of_unknown_size(recorded.writes):
        count = f"{unknown:,} write{'s' if unknown > 1 else ''}"
        found.append(
            f"a write does not extend its file if the size of the file is not known ({count})"
        )
    return found


def _of_unknown_size(writes: Sequence[Write]) -> int:
    """Returns how many writes that are, or are made, durable may extend their file, which nothing in the recording says."""
    synced = {one.key for one in writes if one.kind == "sync"}
    ends: dict[tuple[str | None, str], int] = {}
    count = 0
    for one in writes:
        if not one.size:
            continue
        file, end = (one.scenario, one.key), one.offset + one.size
        is_asked = one.is_durable or one.key in synced or "" in synced
        count += is_asked and one.file_size is None and end > ends.get(file, 0)
        ends[file] = max(ends.get(file, 0), end)
    return count


def _by_scenario(writes: Sequence[Write]) -> dict[str | None, list[Write]]:
    """Returns the writes by scenario. Kinds share page cache, so without scenarios all are together."""
    found: dict[str | None, list[Write]] = {}
    for one in writes:
        found.setdefault(one.scenario, []).append(one)
    return found


def _grouped(predicted: Sequence[Predicted], by: str) -> dict[str, list[Predicted]]:
    found: dict[str, list[Predicted]] = {}
    for one in predicted:
        part = {"state": one.state, "path": one.write.path, "commit": _waits(one)}.get(by)
        name = of_scenario(one.write)
        found.setdefault(f"{name}, {part}" if part else name, []).append(one)
    return found


def _waits(one: Predicted) -> str:
    if one.commits is None:
        return ""
    return "commit" if one.commits == 1 else "perhaps a commit" if one.commits else "no commit"


def _overlaps(writes: Sequence[Write]) -> int:
    count, end = 0, 0
    for one in writes:
        count += one.start_ns < end
        end = max(end, one.end_ns)
    return count


def _one(
    parameters: Parameters,
    writes: Sequence[Write],
    rules: str,
    cuts: Sequence[Cut],
    *,
    is_plan: bool,
) -> list[Predicted]:
    cache = PageCache(parameters, rules)
    libraries: dict[str, Library] = {}
    one_commit_ns = parameters.commit_ns
    # If the cost of a commit is not known, the prediction has no waits for commits.
    commits = None
    if one_commit_ns is not None:
        commits = Commits(parameters.timestamp_granularity_ns or 0)
    ends: dict[str, int] = {}
    last_ns = writes[0].start_ns
    found = []
    pending = deque(cuts)
    # What the calls of a plan took until now. Their times are those of the pauses alone.
    spent_ns = 0.0
    for planned in writes:
        write = planned
        while pending and pending[0].time_ns <= write.start_ns:
            cut = pending.popleft()
            cache.pass_time(max(0, cut.time_ns - last_ns))
            last_ns = max(last_ns, cut.time_ns)
            cache.cut(cut.key, cut.size)
            if commits:
                commits.cut(cut.key)
        delay = max(0, write.start_ns - last_ns)
        last_ns = max(last_ns, write.end_ns)
        if is_plan:
            write = replace(planned, start_ns=planned.start_ns + round(spent_ns))
        is_random = write.offset != ends.get(write.key, write.offset)
        if write.kind != "sync":
            ends[write.key] = write.offset + write.size
        made = None
        # The expected number of commits that the call waits for, and what they cost it. None if nothing need be durable.
        expected_commits = commits.call(write) if commits else None
        commit_ns = None
        if expected_commits is not None and one_commit_ns is not None:
            commit_ns = round(expected_commits * one_commit_ns)
        if write.kind == "cached":
            cached = cache.write(write.key, write.offset, write.size, delay)
            cost, made = cached.ns, cached.made_bytes
        elif write.kind == "library":
            library = libraries.setdefault(write.key, Library(cache, write.key))
            cost = library.write(write.offset, write.size, delay).ns
        else:
            cache.pass_time(delay)
            if write.kind == "sync":
                cost = cache.sync(write.key or None, commit_ns or 0.0)
            else:
                cost = _RULES[write.kind](parameters, write.size, is_random=is_random)
                cost += commit_ns or 0.0
                cache.pass_time(cost)
        if is_plan:
            write = replace(write, duration_ns=round(spent_ns + cost) - round(spent_ns))
        spent_ns += cost
        naive = naive_ns(parameters, write.size)
        found.append(
            Predicted(
                *(write, cost, naive, cache.state, cache.dirty_bytes, made),
                *(expected_commits, commit_ns),
            )
        )
    return found


def relative_error(predicted_ns: float, measured_ns: float) -> float | None:
    """Returns the absolute error divided by what was measured; None if that is 0."""
    return abs(predicted_ns - measured_ns) / measured_ns if measured_ns else None


def signed_error(predicted_ns: float, measured_ns: float) -> float | None:
    """Returns the error divided by what was measured, above 0 if the prediction is too long; None if that is 0."""
    return predicted_ns / measured_ns - 1 if measured_ns else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [one for one in values if one is not None]
    return sum(known) / len(known) if known else None


def _summary(name: str, ones: Sequence[Predicted], *, is_plan: bool) -> Summary:
    size = sum(one.write.size for one in ones)
    if is_plan:
        predicted, naive = sum(one.ns for one in ones), sum(one.naive_ns for one in ones)
        return Summary(*(name, len(ones), size, None, predicted, naive), *(None,) * 5)
    measured = sum(one.write.duration_ns for one in ones)
    predicted, naive = sum(one.ns for one in ones), sum(one.naive_ns for one in ones)
    errors = [relative_error(one.ns, one.write.duration_ns) for one in ones]
    return Summary(
        *(name, len(ones), size, measured, predicted, naive),
        _mean(errors),
        _mean([relative_error(one.naive_ns, one.write.duration_ns) for one in ones]),
        statistics.median(known) if (known := [one for one in errors if one is not None]) else None,
        signed_error(predicted, measured),
        signed_error(naive, measured),
    )

"""The answer to "what did the syncs wait for?", as sentences with numbers and one bar."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from syncline import terminal
from syncline.printable import printable
from syncline.report import catalogue, failures
from syncline.report.answer import (
    CAUSE_SHARE,
    CAUSE_SYNCS,
    LAST,
    RESIDUE,
    UNKNOWN,
    Answer,
    Row,
    causes,
)

from .human import count, text
from .next_steps import next_steps
from .phase_words import hidden_after_completion, meaning

__all__ = [
    "as_data",
    "bar",
    "phase_colours",
    "phase_name",
    "render",
    "render_failures",
    "sentences",
    "sentences_of",
]

# Width of the bar if standard output is not a terminal, and at most.
_WIDTH = 100
_COMMAND = re.compile(r"\b(syncline (?:report|advise|inspect)) INPUT\b")
# Phases whose meaning is said: those with this part of the time, and at most so many.
_EXPLAINED = 0.05
_MOST_EXPLAINED = 5
# Phases that the sentence names. The bar has all that have room.
_NAMED = 3
# The limits of a control group that hold bios back.
_OF_IO = ("io.max", "io.latency")
# The return of a call that comes later by this share of the sync is named.
_LATE = 0.01
_INFERRED = " Which commit a sync waited for is inferred, because waits are not recorded."
_EACH = {RESIDUE: "not explained"}
# Neighbours that are named at most, and the part of the others' time from which on they are.
_NEIGHBOURS = 3
_SHARE = 0.01
# The part of the time from which on something is the cause of most of it.
_MOST = 0.5
# Parts of the time: a gap in what is known that is worth a sentence, and idle CPUs that show a limit.
_GAP = 0.1
_IDLE = 0.25
# Bios of others, and how much shorter they were queued, from which on only one control group was held back; how much, if all were.
_HELD_BIOS = 5
_HELD_FACTOR = 10
_HELD_TOO = 3
# The part of the time of a commit's bios inside of a device mapper that is named.
_INSIDE = 0.5
_COMMITS = "commits of the journal"
# The phases of each kind of own work, as the first sentence names it.
_OWN_WORK = {
    _COMMITS: (
        *("commit", "commit wait", "commit start", "commit locking", "commit flushing"),
        *("commit logging", "earlier commit", "fast commit", "fast commit wait"),
    ),
    "bios in the queue and at the device": ("queue", "device", "writeback"),
    "cache flushes": ("flush",),
}
# What commits of a file system are that has no journal.
_WITHOUT_JOURNAL = {"btrfs": "commits of btrfs", "f2fs": "checkpoints of f2fs"}
# Results that differ by this factor disagree.
_APART = 1.5
# Times that differ by less are the same to a reader.
_ABOUT = 1.01
# What a neighbour does that is a program.
_DOES = {
    "syncs": "which syncs",
    "writes": "which writes",
    "reads": "which reads",
    "discards": "which discards",
    "computes": "which computes",
    "metadata": "which changes metadata",
}
# What a bio does, where its direction is no noun.
_OPERATIONS = {"zeroes": "zeroes", "unknown": "an operation without a name"}
# Columns of the ways in which a neighbour delays others.
_WAYS = {
    "queue_ns": "in the queue of the device",
    "commit_locking_ns": "commit locking",
    "commit_data_ns": "commits",
    "cache_flush_ns": "cache flushes",
    "cpu_ns": "waiting for a CPU or a worker",
}


def render(answer: Answer, path: str, *, can_be_shown: bool) -> str:
    """Renders the answer, one paragraph for each question, and ends with what to type next.

    Args:
        path: of the input, for commands that run as they stand.
        can_be_shown: whether `syncline open` takes the input.
    """
    width = terminal.width()
    first = sentences(answer).get("cause")
    lines = []
    for line in _lines(answer):
        # The bar is to scale.
        whole = line == "" or line.startswith(("|", "\x1b"))
        parts = [line] if whole else terminal.wrapped(_named(line, path), width)
        lines += [terminal.paint(part, "bold") for part in parts] if line == first else parts
    steps = next_steps(answer, path, can_be_shown=can_be_shown)
    wide = max(len(command) for command, _ in steps)
    lines += ["", "Go on with"]
    for command, why in steps:
        line = f"  {command:{wide}}   {why}"
        # A command is not broken, so that it can be copied.
        lines += [line] if width is None or len(line) <= width else [f"  {command}", f"      {why}"]
    return "\n".join(lines) + "\n"


def as_data(
    answer: Answer, caveats: Sequence[str], path: str, *, can_be_shown: bool
) -> dict[str, Any]:
    """Returns the answer as plain values: times in ns, None for what is not known.

    `phases_ns` is by phase, the longest first; `causes` are the findings that the first sentence names.
    """
    found = dataclasses.asdict(answer)
    return {
        "input": path,
        "caveats": [*caveats],
        "causes": [
            {
                "finding": finding,
                "share": share,
                "process": row and row["process"],
                "cgroup": row and row["cgroup"],
            }
            for share, finding, row in causes(answer.neighbours, answer.phases)
        ],
        "phases_ns": found.pop("phases"),
        "sentences": sentences(answer),
        "next": [
            {"command": command, "shows": why}
            for command, why in next_steps(answer, path, can_be_shown=can_be_shown)
        ],
        **{name: _plain(value) for name, value in found.items()},
    }


def sentences_of(answer: Answer, path: str, *, can_be_shown: bool) -> dict[str, Any]:
    """Returns the sentences for a page or a notebook: with commands that run as they stand, those to type next (`next`), and what
    each phase is (`phase_words`)."""

    def named(said: Any) -> Any:
        return _named(said, path) if isinstance(said, str) else [_named(one, path) for one in said]

    words = {phase: meaning(phase, answer.phases_seen) for phase in answer.phases}
    return {
        **{name: named(said) for name, said in sentences(answer).items()},
        "next": [
            {"command": command, "shows": why}
            for command, why in next_steps(answer, path, can_be_shown=can_be_shown)
        ],
        "phase_words": {phase: said for phase, said in words.items() if said},
    }


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return dict(value) if isinstance(value, Mapping) else value


def _named(line: str, path: str) -> str:
    """Sentences say INPUT; where the input has a name, their commands run as they stand."""
    return (
        line
        if path == "-"
        else _COMMAND.sub(lambda found: f"{found[1]} {shlex.quote(printable(path))}", line)
    )


def render_failures(answer: Answer) -> str:
    """Renders what failed, for the place above all else: it is the most serious that a recording can show. Empty if nothing did."""
    said = [f"{one} The report failures lists them." for one in _kinds_that_failed(answer)]
    lines = [
        terminal.paint("FAILED:", "red") + f" {one}\n" for one in [*said, *_lost_before(answer)]
    ]
    return "".join([*lines, "\n"] if lines else [])


def _kinds_that_failed(answer: Answer) -> list[str]:
    return [f"{failures.sentence(kind)}." for kind in answer.failures]


def sentences(answer: Answer) -> dict[str, Any]:
    """Returns the sentences by their content. One without figures is absent.

    `runs`, `cause`, `total`, `devices`, `phases`, `slowest`, `neighbours` and `advice` are text, `failed` and `meanings` (of
    the longest phases) are lists, `worst` is a list below the title `worst_title`. `runs` is present only for a dataset.
    """
    runs = {"runs": _runs(answer.runs)} if answer.runs else {}
    failed = [*_kinds_that_failed(answer), *_lost_before(answer)]
    return ({"failed": failed} if failed else {}) | runs | _sentences(answer)


def _sentences(answer: Answer) -> dict[str, Any]:
    total = answer.total
    if not total["syncs"]:
        devices = [_device(row, answer) for row in answer.devices if row["part"] == "all"]
        said: dict[str, Any] = {"total": _nothing(answer)}
        return said | ({"devices": " ".join(devices)} if devices else {})
    own = answer.programs if _has_both(answer) else total
    of_kernel = answer.kernel["syncs"] if _has_both(answer) else 0
    if not total["known"]:
        return {"total": _total(own, of_kernel)}
    by = "folder" if any((row["path"] or "").endswith("/") for row in answer.worst) else "file"
    cause = _cause(answer)
    return {
        **({"cause": cause} if cause else {}),
        "total": _total(own, of_kernel) + _of_kernel(answer) + _ranges(own),
        "phases": _phases(answer.phases, total["syncs"] if of_kernel else 0)
        + (_INFERRED if answer.infers_waits else "")
        + _idle_queue(answer)
        + _cpu_wait(answer)
        + _unfollowed(answer),
        **({"meanings": said} if (said := _meanings(answer)) else {}),
        "worst_title": f"Those that waited longest, by {by} and name of the thread:",
        "worst": [_worst(row, total["time_ns"]) + _run(row, total) for row in answer.worst],
        **(
            {
                "slowest": f"Slowest: {_slowest(answer.slowest)}{_run(answer.slowest, total)}."
                + _may_be_slower(total)
            }
            if answer.slowest
            else {}
        ),
        "neighbours": _neighbours(answer),
        **({"advice": _advice(answer.advice, total)} if answer.advice else {}),
    }


def _meanings(answer: Answer) -> list[str]:
    """Says what the longest phases are."""
    whole = sum(answer.phases.values())
    long = [
        phase
        for phase, ns in answer.phases.items()
        if phase not in LAST and ns >= _EXPLAINED * whole
    ]
    said = ((phase, meaning(phase, answer.phases_seen)) for phase in long[:_MOST_EXPLAINED])
    return [f"{phase}: {words}" for phase, words in said if words]


def _advice(row: Row, total: Row) -> str:
    """Says what the program could do better."""
    if row["wall_ns"] is None:
        of = "the time of all syncs"
    elif row["wall_ns"] > _ABOUT * (total["wall_ns"] or 0):
        # A second in which two processes wait counts twice, unlike in the sentence on all syncs.
        of = f"the {text(row['wall_ns'], 'ns')} wall time in sync, each process by itself"
    else:
        of = "the wall time in sync"
    cost, share = text(row["cost_ns"], "ns"), text(row["share"], "share")
    return (
        f"To change in the program{' (inferred)' if row['inferred'] else ''}: {row['seen'].removesuffix('.')}; these cost"
        f" {cost}, {share} of {of}. What helps: {row['instead']}"
    )


def _of_kernel(answer: Answer) -> str:
    """Says what syncs no program made: a loop device syncs its file in a worker, and nfsd those of its clients."""
    if not answer.of_kernel:
        return ""
    syncs: Counter[tuple[str, str | None]] = Counter()
    for row in answer.of_kernel:
        syncs[row["comm"].partition("/")[0], row["path"]] += row["syncs"]
    all_of_kernel, (((comm, path), most), *_) = syncs.total(), syncs.most_common(1)
    of = (
        f", {'all' if most == all_of_kernel else f'{most:,}'} of {text(path, 'text')}"
        if path
        else ""
    )
    kernel = answer.kernel
    time_ns = f", waited {text(kernel['time_ns'], 'ns')}" if kernel.get("known") else ""
    whose = "These" if _has_both(answer) else "All of these"
    said = (
        f" {whose} {all_of_kernel:,} by threads of the kernel, such as {text(comm, 'text')}{of}{time_ns}: a loop device syncs"
        " its file so, and nfsd those of its clients."
    )
    return said + (" What follows covers both." if _has_both(answer) else "")


def _has_both(answer: Answer) -> bool:
    """Whether both programs and threads of the kernel made syncs."""
    return bool(answer.programs.get("syncs") and answer.kernel.get("syncs"))


def _cause(answer: Answer) -> str:
    """Says what the time went to in one line, how sure that is, and what to do next. Empty if nothing recorded says it."""
    whole = sum(answer.phases.values())
    if not whole or answer.phases.get(RESIDUE, 0) + answer.phases.get(UNKNOWN, 0) > _MOST * whole:
        return ""
    found = [
        (share, _cause_of(row, answer) if row else _cause_cpu(answer, share))
        for share, _, row in causes(answer.neighbours, answer.phases)
    ]
    if found:
        (share, (what, to_do)), *others = found
        also = f" Then {others[0][1][0]}." if others else ""
        return f"{'Mostly' if share >= _MOST else 'In part'} {what}.{also}{_beside(answer, whole)} Next: {to_do}."
    work = [
        (sum(answer.phases.get(phase, 0) for phase in of), what) for what, of in _OWN_WORK.items()
    ]
    own_ns, what = max(work)
    if what == _COMMITS:
        what = _commits(answer)
    if answer.phases.get("after completion", 0) >= _MOST * whole and answer.is_device_seen:
        return _after(answer, whole)
    if answer.neighbours is None or own_ns < CAUSE_SHARE * whole:
        return ""
    is_most = own_ns >= _MOST * whole
    inside = _inside(answer) if what != "cache flushes" else ""
    had = f"{text(own_ns / whole, 'share')} of the time"
    for row in answer.neighbours:
        if _is_possible(row, whole):
            return (
                f"{'Mostly' if is_most else 'In part'} {what}, {had}.{_beside(answer, whole)} It is not certain whose they were: {_who(row)} may have"
                f" delayed these syncs by up to {text(row['high_ns'], 'ns')}. Next: syncline report INPUT bystanders, which"
                " says who was there meanwhile."
            )
    # Whose fault that is, no event says: a slow device and one that others use unseen look the same.
    if beside := _beside(answer, whole):
        begin = f"{what[0].upper()}{what[1:]} had {had}.{beside}"
    elif is_most:
        begin = f"Mostly {what}: {had}."
    else:
        begin = f"No single cause: {_largest_other(answer, own_ns, whole)}{what} had {had}."
    to_do = "Next: syncline advise INPUT, which looks for what could be left out or shared."
    if answer.has_no_advice:
        to_do = "Nothing was found that the program could leave out or share."
    return f"{begin} {inside}{_without_neighbour(answer, whole)} {to_do}"


def _largest_other(answer: Answer, own_ns: int, whole: int) -> str:
    """Says which phase had more than this work, if one that is no work of the device or the journal did."""
    works = {phase for of in _OWN_WORK.values() for phase in of} | {RESIDUE, UNKNOWN}
    others = [(ns, phase) for phase, ns in answer.phases.items() if phase not in works]
    ns, phase = max(others, default=(0, ""))
    return f"{text(ns / whole, 'share')} of the time was {phase}, and " if ns > own_ns else ""


def _beside(answer: Answer, whole: int) -> str:
    """Says how much is not explained, if that may be as important as a cause."""
    ns = answer.phases.get(RESIDUE, 0) + answer.phases.get(UNKNOWN, 0)
    if ns < CAUSE_SHARE * whole:
        return ""
    return f" Nothing that is recorded explains {text(ns / whole, 'share')} of the time."


def _without_neighbour(answer: Answer, whole: int) -> str:
    """Says that no neighbour had a quarter of the time, unless one may have that is not seen."""
    rows = answer.neighbours or []
    of_metadata = [
        row
        for row in rows
        if row["kind"] == "metadata" and row["high_ns"] is None and (row["share"] or 0) >= _SHARE
    ]
    if of_metadata:
        return (
            f"{_who(of_metadata[0]).removesuffix(',')}, may have made these commits longer by more than the recording shows."
            " Nobody else who is recorded had a quarter of it."
        )
    most = max(
        (row for row in rows if row["kind"] in _DOES and row["kind"] != "computes"),
        key=lambda row: row["high_ns"] or 0,
        default=None,
    )
    if most is not None and (most["high_ns"] or 0) >= CAUSE_SHARE * whole:
        return f"By estimate, no neighbour that is recorded had a quarter of it, but {_who(most)} may have had more."
    other = "" if answer.has_processes else " of another name"
    return f"No neighbour{other} that is recorded had a quarter of it."


def _after(answer: Answer, whole: int) -> str:
    """Says that most of the time passed when the data was written. Empty if the recording could have shown on what."""
    hidden = hidden_after_completion(answer.phases_seen)
    if not hidden:
        return ""
    share = text(answer.phases["after completion"] / whole, "share")
    return (
        f"Mostly what came after the data was written: {share} of the time.{_beside(answer, whole)} That holds, where the sync needed them, {hidden},"
        " which this recording does not separate. Next: record with `syncline record` as root on Linux 6.1 or later, which does."
    )


def _commits(answer: Answer) -> str:
    if not any(fs in _WITHOUT_JOURNAL for fs in answer.committing):
        return _COMMITS
    return " and ".join(
        dict.fromkeys(_WITHOUT_JOURNAL.get(fs, _COMMITS) for fs in answer.committing)
    )


def _inside(answer: Answer) -> str:
    """Says how long bios were inside of a device mapper, or that it is not known: a mapper that delays looks like a journal or a slow device."""
    rows = [row for row in answer.mappers if row["bios"]]
    if not rows:
        return ""
    names, bios = ", ".join(row["device"] for row in rows), sum(row["bios"] for row in rows)
    if sum(row["known"] for row in rows) < bios:
        return (
            f"The bios of these syncs and their commits went to a device mapper ({names}), and what they waited for inside of it"
            " is not recorded. "
        )
    dur_ns, inside_ns = (sum(row[column] for row in rows) for column in ("dur_ns", "inside_ns"))
    if inside_ns < _INSIDE * dur_ns:
        return ""
    return (
        f"The {count(bios, 'bio')} of these syncs and their commits waited inside of the device mapper ({names}) for {text(inside_ns, 'ns')} of"
        f" {text(dur_ns, 'ns')}, before the device below got them. "
    )


def _is_possible(row: Row, whole: int) -> bool:
    """Whether a neighbour may have cost a large part of the time, though the estimate is small: a device that has two bios serves one first.

    Two kinds are left out, because nearly all of them would be possible: programs that sync, each of which is the other's neighbour, and
    programs that compute now and then, which meet all syncs.
    """
    is_other = row["kind"] in _DOES and row["kind"] not in ("syncs", "computes")
    return is_other and (row["share"] or 0) < CAUSE_SHARE <= (row["high_ns"] or 0) / whole


def _cause_of(row: Row, answer: Answer) -> tuple[str, str]:
    """What a row of the report `neighbours` is as a cause, and what to do next."""
    cost, share = text(row["cost_ns"], "ns"), text(row["share"] or 0, "share")
    if row["kind"] == "unrecorded":
        held = (
            f"held bios of syncs and of their commits in the queue for {cost}, {share} of the time"
        )
        if group := _only_held(answer):
            limits = _limits(answer, group, *_OF_IO)
            what = f"a limit on the I/O of the control group {text(group, 'text')} ({limits or 'inferred'})"
            others = answer.held[1:]
            mean_ns = sum(one["queue_ns"] for one in others) / sum(one["bios"] for one in others)
            return (
                f"{what}, which {held}: bios of others at the same device were queued for {text(mean_ns, 'ns')} on average,"
                f" and those of this group for {text(answer.held[0]['queue_ns'] / answer.held[0]['bios'], 'ns')}",
                "raise the limit"
                if limits
                else f"look at io.max and io.latency of {text(group, 'text')} and of the groups above it",
            )
        what = "something that is not recorded"
        if mappers := _mappers(answer):
            what = f"the device mapper ({mappers}) or {what}"
        if (limits := _limits_of_io(answer)) and not _all_held(answer):
            what = f"a limit ({limits}) or {what}"
        too = ""
        if _all_held(answer) and not answer.mappers:
            too = (
                "; it held the bios of all control groups, so it is no limit of one:"
                f" {'' if answer.has_reads else 'somebody who reads, '}another partition or another guest may have held the device"
            )
        return (
            f"{what}, which {held}{too}",
            "syncline advise INPUT, which says where to look for it",
        )
    return (
        f"a neighbour (inferred): {_who(row)} delayed {row['syncs']:,} of {count(row['of_syncs'], 'sync')} of others for {cost}, {share} of {_time(row)}",
        _against(row),
    )


def _against(row: Row) -> str:
    """What helps against a neighbour."""
    if 2 * row["cpu_ns"] >= row["cost_ns"]:
        return "give it less CPU (cpu.weight), or a CPU of its own (cpuset)"
    if row["kind"] == "metadata":
        return "give it a file system of its own"
    if row["kind"] == "syncs":
        return (
            "put its files on another device, or at least on a file system of its own; a limit (io.max) would also hold back the commits"
            " that both need"
        )
    return "put its files on another device, or limit its bandwidth (io.max)"


def _only_held(answer: Answer) -> str | None:
    """The control group whose bios were held, if those of others at the device were not: so does a limit, and nobody who holds the device."""
    if len(answer.held) < 2:
        return None
    first, *others = answer.held
    bios, queue_ns = sum(row["bios"] for row in others), sum(row["queue_ns"] for row in others)
    if bios < _HELD_BIOS or first["bios"] < CAUSE_SYNCS or first["cgroup"] == "/":
        return None
    return (
        first["cgroup"]
        if queue_ns / bios * _HELD_FACTOR <= first["queue_ns"] / first["bios"]
        else None
    )


def _all_held(answer: Answer) -> bool:
    """Whether the bios of every control group at the device were queued for about as long."""
    means = [row["queue_ns"] / row["bios"] for row in answer.held if row["bios"] >= _HELD_BIOS]
    return len(means) > 1 and max(means) <= _HELD_TOO * min(means)


def _mappers(answer: Answer) -> str:
    return ", ".join(row["device"] for row in answer.mappers)


def _cause_cpu(answer: Answer, share: float) -> tuple[str, str]:
    """A limit leaves CPUs idle while threads are ready to run. Others that compete do not."""
    cpu_ns = answer.phases.get("cpu wait", 0)
    group = answer.cpu_wait["cgroup"] if answer.cpu_wait else None
    limit = _limits(answer, group, "cpu.max")
    is_idle = answer.cpu_idle_ns >= _IDLE * cpu_ns
    what = "the CPUs"
    if limit:
        what = f"a limit on CPU time ({limit})" if is_idle else f"the CPUs, or a limit ({limit})"
    had = _had_cpu(answer, " of it")
    before = f"; the CPU that they got next {had}" if had else ""
    if limit and is_idle:
        to_do = "raise the limit, or move what uses it up to another control group"
    elif limit or group is None or group in answer.limits:
        to_do = "give these threads more CPU (cpu.weight, cpuset), or move away what runs instead"
    else:
        to_do = "look for a limit (cpu.max) or for who runs instead"
    return (
        f"{what}: threads that sync were ready to run for {text(cpu_ns, 'ns')}, {text(share, 'share')} of the time,"
        f" and got none{before}",
        f"{to_do}; the disk has no part in that time",
    )


def _had_cpu(answer: Answer, of: str = "") -> str:
    """Says what the CPU did that threads that sync waited for. Empty with a filter: the times are sums over all syncs of the input."""
    if answer.is_filtered:
        return ""
    who = [
        f"{text(name, 'text') or 'a thread without a name'} ({text(ns, 'ns')})"
        for ns, name in answer.cpu_before
    ]
    idle_ns = answer.cpu_idle_ns
    is_worth_it = idle_ns > 0 and idle_ns >= _SHARE * answer.phases.get("cpu wait", 0)
    idle = f"was idle for {text(idle_ns, 'ns')}{of}" if is_worth_it else ""
    ran = f"ran {', '.join(who)}" if who else ""
    parts = [part for part in (idle, ran) if part]
    return ", and ".join(parts)


def _unfollowed(answer: Answer) -> str:
    """Says that syncs may have waited for a CPU unseen, if these are a part worth a sentence of the time in syncs that has no reason."""
    row = answer.unfollowed
    if not row or not answer.phases or row["unknown_ns"] < _GAP * row["dur_ns"]:
        return ""
    unexplained_ns = answer.phases.get(RESIDUE, 0)
    if not row["known"]:
        if unexplained_ns < _GAP * row["dur_ns"]:
            return ""
        return " When threads waited for a CPU is not recorded, so some of what is not explained may be that."
    unknown = row["syncs"] - row["known"]
    return (
        f" When the threads of {unknown:,} of {row['syncs']:,} {_unit(answer)}s waited for a CPU is not recorded"
        f" ({text(row['unknown_ns'] / row['dur_ns'], 'share')} of the time): the recorder did not follow these threads yet."
    )


def _lost_before(answer: Answer) -> list[str]:
    row = answer.lost_before
    if row is None:
        return []
    of = "its file" if row["syncs"] == 1 else "the file of each"
    most = "" if row["syncs"] == 1 else "up to "
    what = "data" if row["lost_bytes"] is None else most + text(row["lost_bytes"], "bytes")
    return [
        f"{count(row['syncs'], 'sync')} returned 0 although the device had refused {what} of {of} before, and nobody had written that again by then: the kernel"
        " reports such an error once, and then takes the pages for clean. The report durability lists them."
    ]


def _idle_queue(answer: Answer) -> str:
    """Says that recorded bios at the device are not the reason for a queue, and what else may be."""
    row = answer.idle_queue
    if row is None:
        return ""
    group = f" of the control group {text(row['cgroup'], 'text')}" if row["cgroups"] == 1 else ""
    reads = "" if answer.has_reads else "reads, which are not in this recording, "
    idle = (
        f" The device had no recorded bio for at least {text(row['idle_ns'], 'ns')} of the"
        f" {text(row['queue_ns'], 'ns')} that {_comm(row)} was queued, so it is not busy writing"
    )
    if (held := _only_held(answer)) is not None:
        return f"{idle}, and it took the bios of others at once.{_limits_of_queue(answer, held)}"
    return (
        f"{idle}. Others that hold bios"
        f" back: {reads}a limit{group} (io.max, io.latency), the I/O scheduler, or a device mapper such as dm-crypt."
        + _limits_of_queue(answer, row["cgroup"] if row["cgroups"] == 1 else None)
    )


def _limits_of_queue(answer: Answer, group: str | None) -> str:
    if group != "/" and group not in answer.limits:
        return " Limits are not recorded."
    found = _limits(answer, group, *_OF_IO)
    return f" Recorded limits: {found}." if found else " No such limit is set for the group."


def _limits(answer: Answer, group: str | None, *names: str) -> str:
    """Returns the limits of a group, or of one above it, with these names."""
    all_of_group = answer.limits.get(group or "", "").split("; ")
    return "; ".join(one for one in all_of_group if one.startswith(tuple(f"{n} " for n in names)))


def _cpu_wait(answer: Answer) -> str:
    """Says who had the CPU that threads waited for, unless the first sentence does, and whether a limit makes them wait although CPUs may be free."""
    row = answer.cpu_wait
    if row is None:
        return ""
    is_cause = any(finding == "cpu" for _, finding, _ in causes(answer.neighbours, answer.phases))
    had = "" if is_cause else _had_cpu(answer)
    said = f" During cpu wait, the CPU that a thread got next {had}." if had else ""
    group = row["cgroup"]
    if group == "/":
        return said
    if group not in answer.limits:
        return (
            f"{said} Whether a limit (cpu.max) makes threads of the control group {text(group, 'text')} wait for a CPU is not"
            " recorded."
        )
    if not (found := _limits(answer, group, "cpu.max")):
        return said
    return (
        f"{said} Threads of the control group {text(group, 'text')} may have waited for a CPU although one was free, because of a"
        f" limit: {found}."
    )


def _lines(answer: Answer) -> Iterator[str]:
    said = sentences(answer)
    if "runs" in said:
        yield said["runs"]
    if "cause" in said:
        yield said["cause"]
        yield ""
    yield said["total"]
    if "devices" in said:
        yield said["devices"]
    if "phases" not in said:
        return
    yield ""
    yield said["phases"]
    if answer.phases:
        yield bar(
            answer.phases,
            min(_WIDTH, terminal.width() or _WIDTH),
            phase_colours() if terminal.is_coloured() else None,
        )
    for one in said.get("meanings", []):
        yield f"  {one}"
    yield ""
    yield said["worst_title"]
    for place, row in enumerate(said["worst"], 1):
        yield f"  {place}. {row}"
    yield ""
    if "slowest" in said:
        yield said["slowest"]
    yield from said["neighbours"].splitlines()
    if "advice" in said:
        yield ""
        yield said["advice"]


def _runs(runs: Row) -> str:
    """Says which runs of a dataset are read."""
    of = f" of {count(runs['hosts'], 'host')}" if runs["hosts"] > 1 else ""
    if runs["hosts"] == 1:
        of = f" of host {text(runs['first_host'], 'text')}"
    on = f" on {count(runs['days'], 'day')}, {runs['first_day']} to {runs['last_day']}" if runs["days"] > 1 else ""  # fmt: skip
    if runs["days"] == 1:
        on = f" on {runs['first_day']}"
    unknown = "".join(
        f" The {what} of {count(runs[f'without_{what}'], 'run')} is not known."
        for what in ("host", "day")
        if runs[f"without_{what}"]
    )
    return f"{count(runs['runs'], 'run')}{of}{on}.{unknown}"


def _run(row: Row, total: Row) -> str:
    """Names the run of a row, if there are several."""
    return f", in run {text(row['run'], 'text')}" if total["runs"] > 1 else ""


def _nothing(answer: Answer) -> str:
    if answer.left_out:
        return (
            f"No sync passes the filter; the input has {answer.left_out:,}, calls without a sync"
            " request included."
        )
    if not answer.shows_syncs:
        return (
            "The input has no event of a sync or a sync call, so it does not show whether there were syncs,"
            " or which bios are of a sync."
        )
    if answer.unmatched:
        return (
            f"The input has {count(answer.unmatched, 'sync call')} and no sync request: their file system has no function that syncs a"
            " file, as tmpfs, which has no device, or the recorder does not follow it."
        )
    return "The input has no sync request."


def _device(device: Row, answer: Answer) -> str:
    """Says what one device was busy with. `busy` is a part of the time from its first to its last bio."""
    threads = [
        row
        for row in answer.devices
        if row["part"] == "thread" and (row["run"], row["dev"]) == (device["run"], device["dev"])
    ]
    most = max(threads, key=lambda row: row["busy_ns"], default=None)
    by = f"; longest for {_comm(most)} ({text(most['busy_ns'], 'ns')})" if most else ""
    size = f", {text(device['bytes'], 'bytes')}" if device["bytes"] is not None else ""
    (lengths,) = (
        row for row in answer.lengths if (row["run"], row["dev"]) == (device["run"], device["dev"])
    )
    of = _bios(device["bios"], lengths["requests"])
    return (
        f"Device {text(device['dev'], 'text')} was busy for {text(device['busy_ns'], 'ns')}"
        f" ({text(device['busy'], 'share')} of the time) with {of}{size}{_reads(lengths)}{by}."
        f" {_longest(lengths)}{_flushes(lengths)}"
    )


def _bios(bios: int, requests: int) -> str:
    """Counts bios. Requests of the block layer stand for bios that are not recorded, and may hold several each."""
    if not requests:
        return count(bios, "bio")
    whole = f"{count(requests, 'request')} of the block layer"
    return whole if requests == bios else f"{count(bios - requests, 'bio')} and {whole}"


def _reads(lengths: Row) -> str:
    """Says how much of it was reads, which keep a device as busy as writes."""
    if not lengths["reads"]:
        return ""
    size = lengths["read_bytes"]
    return f" ({count(lengths['reads'], 'read')}{', ' + text(size, 'bytes') if size else ''})"


def _longest(lengths: Row) -> str:
    direction = lengths["longest_direction"]
    what = _OPERATIONS.get(direction, f"a {direction}")
    size = f" of {text(lengths['longest_bytes'], 'bytes')}" if lengths["longest_bytes"] else ""
    return (
        f"The longest {'request' if lengths['longest_is_request'] else 'bio'} took"
        f" {text(lengths['longest_ns'], 'ns')}: {what}{size} by"
        f" {_comm({'comm': lengths['longest_comm']})} (bio_id {lengths['longest_id']}, at"
        f" {text(lengths['longest_ts_ns'], 'time')})."
    )


def _flushes(lengths: Row) -> str:
    """Says which part of the time of all bios was flushes; nothing if no flush has a known length."""
    if not lengths["flushes"] or not lengths["time_ns"]:
        return ""
    return (
        f" {count(lengths['flushes'], 'flush', 'es')} took {text(lengths['flush_ns'], 'ns')}, which is"
        f" {text(lengths['flush_ns'] / lengths['time_ns'], 'share')} of the time from submit to completion of all."
    )


def _total(total: Row, of_kernel: int) -> str:
    syncs = count(total["syncs"], "sync") + _requests(total)
    if of_kernel:
        syncs += f" (and {of_kernel:,} by threads of the kernel)"
    of = f" of {count(total['files'], 'file')}" if total["files"] else ""
    if total["whole"] == total["syncs"]:
        of += " of whole file systems"
    elif total["whole"]:
        of += f", {total['whole']:,} of whole file systems,"
    by = f" by {count(total['threads'], 'thread')}" if total["threads"] else ""
    runs = f" in {total['runs']:,} runs" if total["runs"] > 1 else ""
    if not total["known"]:
        return f"{f'{syncs}{of}{by}{runs}'.rstrip(',')}; the length of none is known."
    unknown = total["syncs"] - total["known"]
    lacking = f" The length of {unknown:,} is not known." if unknown else ""
    wall, span = total["wall_ns"], total["span_ns"]
    share = f" ({text(wall / span, 'share')})" if span and wall is not None else ""
    least = "at least " if unknown else ""
    waited = f"{syncs}{of}{by}{runs} waited {least}{text(total['time_ns'], 'ns')}."
    if wall is None:
        return waited + lacking
    return (
        f"{waited} At least one waited in"
        f" {least}{text(wall, 'ns')}{share} of the {text(span, 'ns')} from the first to the last.{lacking}"
    )


def _ranges(total: Row) -> str:
    """Says that some of the syncs make nothing durable."""
    ranges = total.get("ranges", 0)
    if not ranges:
        return ""
    which = "All" if ranges == total["syncs"] else f"{ranges:,}"
    return (
        f" {which} of these {'are' if ranges > 1 else 'is'} sync_file_range, which asks for no flush and no commit, so it"
        " makes nothing durable."
    )


def _requests(total: Row) -> str:
    """Says how many requests the syncs made, if some made several."""
    return f" ({total['requests']:,} requests)" if total["requests"] > total["syncs"] else ""


def _phases(phases: dict[str, int], of_syncs: int) -> str:
    if not phases:
        return "What they waited for is not recorded: syncline inspect INPUT says what would record it."
    whole = sum(phases.values())
    known = [(phase, ns) for phase, ns in phases.items() if phase not in LAST][:_NAMED]
    parts = [", ".join(f"{text(ns / whole, 'share')} {phase}" for phase, ns in known)]
    parts.append(f"{text(phases.get(RESIDUE, 0) / whole, 'share')} is not explained")
    if UNKNOWN in phases:
        parts.append(f"{text(phases[UNKNOWN] / whole, 'share')} is unknown")
    of = f" of all {of_syncs:,}" if of_syncs else ""
    return f"Where {text(whole, 'ns')}{of} went: {'; '.join(part for part in parts if part)}."


def bar(phases: dict[str, int], width: int, colours: Mapping[str, str] | None = None) -> str:
    """Draws the shares to scale. A part has its name as far as there is room; those without room are one part.

    Args:
        colours: of phases, for a terminal.
    """
    whole = sum(phases.values())
    room = width - 2
    parts = [(phase, ns) for phase, ns in phases.items() if ns * room >= 2 * whole]
    rest = whole - sum(ns for _, ns in parts)
    if rest * room >= 2 * whole:
        last = sum(phase in LAST for phase, _ in parts)
        parts.insert(len(parts) - last, ("others", rest))
    drawn, at, done = "|", 0, 0
    for phase, ns in parts:
        done += ns
        size = round(done * room / (whole if rest * room >= 2 * whole else whole - rest)) - at
        at += size
        name = phase_name(phase)[: size - 1].ljust(size - 1)
        colour = (colours or {}).get(phase)
        drawn += (terminal.background(name, colour) if colour else name) + "|"
    return drawn


def phase_colours() -> dict[str, str]:
    """Returns the colour of each phase, which is the same in the timeline, the page and a terminal."""
    text = (catalogue.sql_root() / "phase_colours.json").read_text(encoding="utf-8")
    colours: dict[str, str] = json.loads(text)
    return colours


def _worst(row: Row, whole: int) -> str:
    threads = f" ({row['threads']:,} threads)" if row["threads"] > 1 else ""
    mostly = (
        f", {text(row['phase_ns'], 'ns')} of it {phase_name(row['phase'])}" if row["phase"] else ""
    )
    share = f" ({text(row['time_ns'] / whole, 'share')})" if whole else ""
    files = f" ({row['files']:,} files)" if row["files"] > 1 else ""
    return (
        f"{_file(row)}{files}, {_comm(row)}{threads}: {text(row['time_ns'], 'ns')}{share} in"
        f" {count(row['syncs'], 'sync')}, at most {text(row['max_ns'], 'ns')}{mostly}"
    )


def _slowest(row: Row) -> str:
    mostly = (
        f", {text(row['phase_ns'], 'ns')} of it {phase_name(row['phase'])}" if row["phase"] else ""
    )
    volume = ""
    if row["bytes"] is not None and row["bios"] is not None:
        volume = f", for {text(row['bytes'], 'bytes')} in {_bios(row['bios'], row['requests'])}"
    parts = f" in {row['parts']:,} requests" if row["parts"] > 1 else ""
    # `summary` has the syscall, until it returns.
    later_ns = (row["syscall_ns"] or 0) - row["dur_ns"]
    later = f", and {text(later_ns, 'ns')} more until the call returned" if later_ns > _LATE * row["dur_ns"] else ""  # fmt: skip
    return (
        f"{row['op'] or 'a sync'} of {_file(row)} by {_comm(row)}: {text(row['dur_ns'], 'ns')}"
        f"{mostly}{volume}{parts}{later} (sync_id {row['sync_id']}, at {text(row['ts_ns'], 'time')})"
    )


def _may_be_slower(total: Row) -> str:
    """Says that the slowest sync may be another one, if the length of some is not known."""
    unknown = total["syncs"] - total["known"]
    if not unknown:
        return ""
    whose = "The sync" if unknown == 1 else f"Any of the {unknown:,}"
    return f" {whose} of unknown length may have been slower."


def _neighbours(answer: Answer) -> str:
    """Says what each neighbour cost, the worst first; a line for each."""
    if not answer.is_device_seen:
        return "Neighbours: not recorded."
    if answer.neighbours is None:
        return "Neighbours: it takes a while to find them for so many syncs: syncline report INPUT neighbours"
    named = [
        row
        for row in answer.neighbours
        if row["kind"] != "unrecorded"
        and ((row["share"] or 0) >= _SHARE or _is_possible(row, answer.total["time_ns"] or 1))
    ]
    lines = [_neighbour(row) for row in named[:_NEIGHBOURS]]
    if more := named[_NEIGHBOURS:]:
        lines.append(f"{len(more):,} more: the report neighbours has them.")
    lines += [_unrecorded(row, answer) for row in answer.neighbours if _is_unrecorded(row)]
    lines = lines or [_nobody(answer.neighbours, answer.total["time_ns"] or 1)]
    lines[-1] += _rest(answer)
    if not answer.has_others:
        lines[-1] += " Those whose syncs the filter left out are not in this input."
    elif answer.is_filtered:
        lines[-1] += " The filter chose whose wait is meant; it hides no neighbour."
    if not answer.has_processes:
        lines[-1] += " Processes are not recorded, so programs of the same name count as one."
    lines[-1] += _without_reads(answer)
    return "Neighbours: " + "\n  ".join(lines)


def _nobody(neighbours: Sequence[Row], whole: int) -> str:
    """Says that no neighbour had a part of the time that is worth a line, and what one may have had all the same."""
    said = "nobody who is recorded delayed these syncs at the device or in the journal by 1 % of their time"
    # A thread of the kernel meets many syncs that it works for, and so does a program that only now and then computes.
    worth = [
        row
        for row in neighbours
        if row["kind"] != "computes"
        and (row["high_ns"] or 0) >= (_SHARE if row["kind"] in _DOES else _GAP) * whole
    ]
    if not worth:
        return f"{said}."
    most = max(worth, key=lambda row: row["high_ns"])
    return (
        f"by estimate, {said}. But {_who(most)} may have delayed those that met it by up to"
        f" {text(most['high_ns'], 'ns')} of {text(whole, 'ns')}."
    )


def _is_unrecorded(row: Row) -> bool:
    """Whether something that is not recorded held bios for a part of the time that is worth a line of its own."""
    return (
        row["kind"] == "unrecorded"
        and (row["share"] or 0) >= CAUSE_SHARE
        and row["syncs"] >= CAUSE_SYNCS
    )


def _neighbour(row: Row) -> str:
    way, most_ns = max(
        ((way, row[column]) for column, way in _WAYS.items()), key=lambda one: one[1]
    )
    syncs, of_syncs = row["syncs"], count(row["of_syncs"], "sync")
    share, cost = text(row["share"], "share"), text(row["cost_ns"], "ns")
    how = f"{_certainty(row)}; {text(most_ns, 'ns')} of it {way}"
    if row["kind"] not in _DOES:
        # A journal commits for the sync that waits, too.
        return (
            f"{_who(row)} worked while {syncs:,} of {of_syncs} waited, for {cost} ({share} of {_time(row)}), {how}. For whom"
            " is not recorded: it may have been for these syncs."
        )
    return f"{_who(row)} delayed {syncs:,} of {of_syncs} of others for {cost} ({share} of {_time(row)}), {how}."


def _time(row: Row) -> str:
    """Names the syncs whose time a share is of: the neighbour's own are not among them."""
    return "its time" if row["of_syncs"] == 1 else f"the time of all {row['of_syncs']:,}"


def _certainty(row: Row) -> str:
    """How far the cost may be from the truth: by its bounds, and by the comparison with syncs while the neighbour was quiet."""
    low_ns, high_ns = row["low_ns"], row["high_ns"]
    if high_ns is None:
        more = (
            "and more by what it added to commits"
            if row["kind"] == "metadata"
            else "with no known bound above"
        )
        return f"at least {text(low_ns, 'ns')}, {more}"
    bounds = (
        f"at least {text(low_ns, 'ns')} and, in syncs that met it, at most {text(high_ns, 'ns')}"
    )
    compared_ns, error_ns = row["compared_ns"], row["compared_error_ns"]
    if compared_ns is None:
        return bounds if high_ns <= _APART * low_ns else f"an estimate: {bounds}"
    found = (
        f"{text(max(compared_ns, 0), 'ns')} +/- {text(error_ns, 'ns')} by comparison with"
        f" {count(row['quiet_syncs'], 'sync')} while it was quiet"
    )
    cost_ns = row["cost_ns"]
    agree = cost_ns <= _APART * compared_ns and compared_ns <= _APART * cost_ns
    if agree:
        return f"{bounds}, and {found}"
    return f"an estimate: {bounds}, but {found}, so the two ways to find it disagree"


def _unit(answer: Answer) -> str:
    """What the waits for a CPU are counted by: requests, which are syncs unless a call makes several."""
    return "request" if answer.total["requests"] > answer.total["syncs"] else "sync"


def _who(row: Row) -> str:
    """Names a neighbour and what it does: `dd in control group /backup, which writes,`."""
    # The root says nothing: all processes are below it.
    group = f" in control group {text(row['cgroup'], 'text')}" if row["cgroup"] not in (None, "/") else ""  # fmt: skip
    what = _DOES.get(row["kind"], "a thread of the kernel")
    if row["kind"] == "metadata" and row["high_ns"] is None:
        what = "whose changes of metadata are not recorded"
    return f"{text(row['process'] or 'a thread without a name', 'text')}{group}, {what},"


def _rest(answer: Answer) -> str:
    """Time without a recorded neighbour that is too short to ask who it was, and too long for silence."""
    rows = answer.neighbours or []
    unrecorded = [
        row
        for row in rows
        if row["kind"] == "unrecorded" and (row["share"] or 0) >= _SHARE and not _is_unrecorded(row)
    ]
    if not unrecorded:
        return ""
    (row,) = unrecorded[:1]
    return (
        f" For {text(row['cost_ns'], 'ns')} ({text(row['share'], 'share')}) bios were queued while nothing recorded was at"
        " the device."
    )


def _unrecorded(row: Row, answer: Answer) -> str:
    return (
        f"nothing recorded was at the device for {text(row['cost_ns'], 'ns')} ({text(row['share'], 'share')} of the"
        f" time of these syncs) while their bios were queued: {_held_by(answer)}"
    )


def _held_by(answer: Answer) -> str:
    """What may have held bios back although nothing recorded did. The sentence on an idle device has said it before."""
    if answer.idle_queue is not None:
        return "what may have held them back is said above."
    reads = "" if answer.has_reads else "reads, "
    limits = _limits_of_io(answer)
    limit = f"a limit ({limits}), " if limits else ""
    if not answer.limits:
        limit = "a limit of a control group, which is not recorded, "
    if _all_held(answer):
        # A limit of one group would have let the bios of others pass.
        limit = ""
    mapper = f"the device mapper ({_mappers(answer)}), " if answer.mappers else ""
    return (
        f"{mapper}{limit}{reads}another partition or another guest held it, or the CPUs were busy."
    )


def _limits_of_io(answer: Answer) -> str:
    """The recorded limits of all groups on their I/O; empty if there is none."""
    limits = {
        one for group in answer.limits for one in _limits(answer, group, *_OF_IO).split("; ") if one
    }
    return "; ".join(sorted(limits))


def _without_reads(answer: Answer) -> str:
    """A neighbour that reads delays syncs like one that writes, so its absence from the input must not look like calm."""
    return "" if answer.has_reads else " Reads are not in this recording."


def phase_name(phase: str) -> str:
    """Returns the name of a phase for people."""
    return _EACH.get(phase, phase)


def _file(row: Row) -> str:
    return text(row["path"], "text") if row["path"] else "a file without a known path"


def _comm(row: Row) -> str:
    if row["comm"]:
        return text(row["comm"], "text")
    return (
        "a thread without a name"
        if row.get("tid") is None or row.get("threads", 1) > 1
        else f"thread {row['tid']}"
    )

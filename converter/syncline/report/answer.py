"""What a person wants to know first of an input: who waited, for what, for which file, and who else was there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from syncline.engine.columns import WITH_TABLES

from . import catalogue
from .run import check_trace, read_failures, run_query, run_report
from .tables import SqlEngine

__all__ = [
    "ACTIVITIES",
    "CAUSE_SHARE",
    "CAUSE_SYNCS",
    "LAST",
    "RESIDUE",
    "UNKNOWN",
    "Answer",
    "causes",
    "is_filtered",
    "is_small",
    "phases",
    "read",
    "read_causes",
    "statements",
    "with_unknown",
]

# The phase of the time that nothing recorded explains.
RESIDUE = "residue"
# Time in syncs that has no phase: the call outside sync_start and sync_end, or a sync that lacks an event.
UNKNOWN = "unknown"
# Parts that come after all phases, in this order.
LAST = (RESIDUE, UNKNOWN)
_FILES = (
    "total",
    "worst",
    "slowest",
    "filter",
    "reads",
    "waits",
    "lengths",
    "queued",
    "failed",
    "limits",
    "waited",
    "of-kernel",
    "mappers",
    "held",
    "cpu",
    "unfollowed",
)
_REPORTS = ("phases", "neighbours", "device", "durability")
# Syncs up to which the answer looks for neighbours and for what the program could do better: DuckDB takes about 0.3 ms of CPU each, a trace processor some ms.
_MOST_SYNCS = 20_000
_MOST_SYNCS_OF_TRACE = 5_000
_SEEN = "SELECT value FROM syncline_meta WHERE key = 'phases_seen'"
# Whether it is known who was at a device.
_DEVICES = "SELECT 1 FROM syncline_bio WHERE dev IS NOT NULL AND dur_ns IS NOT NULL LIMIT 1"
_PROCESSES = "SELECT 1 FROM syncline_bio WHERE pid IS NOT NULL LIMIT 1"
# From this part of the time of the syncs on, and this number of syncs, something is the cause of it. `advise` finds it from there on too.
CAUSE_SHARE = 0.25
CAUSE_SYNCS = 3
# What the rows of the report `neighbours` are that are of programs.
ACTIVITIES = ("syncs", "writes", "reads", "discards")
# Parts of the time: a queue and a wait for a CPU that are worth a sentence, and a queue that is mostly not the device's.
_MUCH_QUEUE = 0.1
_MUCH_CPU = 0.05
_MOSTLY = 0.5

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Answer:
    """The figures. Times are in ns; a row has the columns of its SQL in sql/commands/answer/ or sql/reports/.

    `phases`: time by phase, the longest first, then those of LAST; empty if no phase is recorded.
    `worst`: up to three files with the name of a thread.
    `slowest`: None without a sync whose length is known.
    `neighbours`: the rows of the report `neighbours`, the worst first. None for so many syncs that it would take long.
    `is_device_seen`: whether it is known who was at the device.
    `has_processes`: whether it is known of which process a thread was that submitted a bio. If not, those of one name count as one.
    `infers_waits`: whether waits for commits are inferred, because the recording has no event of a wait.
    `has_reads`: whether the input has bios that read. Without, somebody who reads is not seen.
    `is_filtered`: whether a filter was applied.
    `has_others`: whether `neighbours` has those too whose syncs the filter left out.
    `left_out`: how many syncs, and calls without one, the filter left out.
    `unmatched`: how many sync calls have no request.
    `failures`: how many syncs, calls and bios failed, as `read_failures` gives them; only kinds with a failure.
    `shows_syncs`: whether the input has events of syncs. Without, that it has no sync says nothing.
    `devices`: of an input without syncs, the rows of the report `device` for whole devices and for threads.
    `lengths`: of such an input, how long its bios took, a row for each device.
    `lost_before`: how many `syncs` returned 0 although the device had refused data of their file before, as the report `durability` says, and
        `lost_bytes` of one of them, None if not known. None without such a sync.
    `idle_queue`: the thread that was queued longest, with `queue_ns`, and how long at least no device was busy with
        recorded bios meanwhile (`idle_ns`). None if that is not most of the time, or if the queue does not matter.
    `cpu_wait`: the control group whose syncs waited longest for a CPU, with `wait_ns`. None if that does not matter.
    `of_kernel`: how many syncs threads of the kernel made, by name and file, most first.
    `programs`, `kernel`: as `total`, of the syncs of programs and of those by threads of the kernel.
    `mappers`: the devices of a device mapper on which syncs are, with what is known of the bios of commits on them.
    `held`: how long the bios of each control group were queued, the longest first, on the device with the longest queue.
    `cpu_before`: who had the CPU while threads that sync waited for one, as (ns, name), and `cpu_idle_ns`: how long nobody had. Of all syncs.
    `committing`: the file systems whose commits syncs waited for. One without a name is empty.
    `unfollowed`: of how many syncs the waits for a CPU are not known, and how long these took.
    `limits`: what limits a control group, in words and with `; ` between them, by its path. A group that is not in it was not looked at.
    `phases_seen`: the phases that the input can show, in every run.
    `advice`: what the program itself could do better, with the most to gain, as `advice.with_advice` finds it; None without a finding.
    `runs`: of a dataset, how many runs, hosts and days are read; None for other inputs.
    """

    total: Row
    phases: dict[str, int]
    worst: list[Row]
    slowest: Row | None
    neighbours: list[Row] | None
    is_device_seen: bool
    infers_waits: bool
    has_reads: bool
    is_filtered: bool
    has_others: bool
    left_out: int
    failures: list[Row]
    shows_syncs: bool
    devices: list[Row]
    lengths: list[Row]
    unmatched: int = 0
    lost_before: Row | None = None
    idle_queue: Row | None = None
    cpu_wait: Row | None = None
    limits: Mapping[str, str] = field(default_factory=dict)
    of_kernel: list[Row] = field(default_factory=list)
    programs: Row = field(default_factory=dict)
    kernel: Row = field(default_factory=dict)
    mappers: list[Row] = field(default_factory=list)
    held: list[Row] = field(default_factory=list)
    cpu_before: list[tuple[int, str]] = field(default_factory=list)
    cpu_idle_ns: int = 0
    committing: list[str] = field(default_factory=list)
    unfollowed: Row = field(default_factory=dict)
    runs: Row | None = None
    phases_seen: list[str] = field(default_factory=list)
    advice: Row | None = None
    # All findings were looked for, and none was there.
    has_no_advice: bool = False
    has_processes: bool = True


def statements() -> list[str]:
    """Returns the SQL that `read` runs."""
    reports = [catalogue.load(name).sql for name in _REPORTS]
    return [
        *map(_sql, _FILES),
        _DEVICES,
        _PROCESSES,
        _SEEN,
        catalogue.read_sql("commands/inspect", "failures"),
        *reports,
    ]


def read(engine: SqlEngine, neighbours: list[dict[str, Any]] | None = None) -> Answer:
    """Reads the figures.

    Args:
        neighbours: the rows of that report for the syncs of this input, from one without its filter.

    Raises:
        EngineError: a query failed, or the trace was not written by Syncline.
    """
    check_trace(engine)
    totals = {row["part"]: row for row in _rows(engine, _sql("total"))}
    total = totals["all"]
    slowest = _rows(engine, _sql("slowest"))
    (filtered,) = _rows(engine, _sql("filter"))
    is_device_seen = bool(_rows(engine, _DEVICES))
    of_all = neighbours
    if of_all is None and is_small(engine, total):
        # The report takes a fifth of the time of a whole answer, also to find that it has no row.
        of_all = run_report(engine, "neighbours").as_dicts() if is_device_seen else []
    of_phases = _rows(engine, catalogue.load("phases").sql)
    found = _by_phase(of_phases)
    cpu_before, cpu_idle_ns = _cpu_before(engine, total)
    return Answer(
        total=total,
        phases=with_unknown(found, total["time_ns"]),
        worst=_rows(engine, _sql("worst")),
        slowest=slowest[0] if slowest else None,
        neighbours=of_all and sorted(of_all, key=lambda row: -row["cost_ns"]),
        is_device_seen=is_device_seen,
        has_processes=bool(_rows(engine, _PROCESSES)),
        infers_waits=_rows(engine, _sql("waits"))[0]["inferred"] > 0,
        has_reads=_rows(engine, _sql("reads"))[0]["reads"] > 0,
        is_filtered=filtered["filters"] > 0,
        has_others=neighbours is not None or not filtered["filters"],
        left_out=filtered["left_out"],
        unmatched=filtered["unmatched"],
        failures=[kind for kind in read_failures(engine) if kind["failed"]],
        shows_syncs=total["syncs"] > 0 or not 0 < total["unseen"] == total["all_runs"],
        devices=[] if total["syncs"] else _devices(engine),
        lengths=[] if total["syncs"] else _rows(engine, _sql("lengths")),
        lost_before=_lost_before(engine),
        idle_queue=_idle_queue(engine, found, total),
        cpu_wait=_cpu_wait(engine, found, total),
        programs=totals["programs"],
        kernel=totals["kernel"],
        mappers=_rows(engine, _sql("mappers")),
        held=_rows(engine, _sql("held")) if total["runs"] == 1 else [],
        cpu_before=cpu_before,
        cpu_idle_ns=cpu_idle_ns,
        unfollowed=_rows(engine, _sql("unfollowed"))[0],
        of_kernel=_rows(engine, _sql("of-kernel")),
        limits=_limits(engine),
        committing=sorted(
            {row["fs"] or "" for row in of_phases if row["time_ns"] and "commit" in row["phase"]}
        ),
        runs=_rows(engine, catalogue.read_sql("commands/dataset", "extent"))[0]
        if engine.is_dataset
        else None,
        phases_seen=_seen(engine),
    )


def is_small(engine: SqlEngine, total: Row) -> bool:
    """Returns whether the input has so few syncs that the answer may take some ms for each of them."""
    most: int = _MOST_SYNCS if engine.name in WITH_TABLES else _MOST_SYNCS_OF_TRACE
    return bool(total["known"] <= most)


def causes(
    neighbours: Sequence[Row] | None, phases: Mapping[str, int]
) -> list[tuple[float, str, Row | None]]:
    """Returns what the time of the syncs went to and no change of the program would help against, the worst first.

    Each has its part of the time, the name of its finding and its row of `neighbours`. Empty if most of the time has no reason.

    Args:
        phases: as `Answer.phases`.
    """
    whole = sum(phases.values())
    if not whole or phases.get(RESIDUE, 0) + phases.get(UNKNOWN, 0) > _MOSTLY * whole:
        return []
    found: list[tuple[float, str, Row | None]] = [(phases.get("cpu wait", 0) / whole, "cpu", None)]
    for row in neighbours or []:
        is_known = row["kind"] in ACTIVITIES or (
            row["kind"] == "metadata" and row["high_ns"] is not None
        )
        finding = "neighbour" if is_known else row["kind"]
        if finding in ("neighbour", "unrecorded") and row["syncs"] >= CAUSE_SYNCS:
            found.append((row["share"] or 0, finding, row))
    return sorted((one for one in found if one[0] >= CAUSE_SHARE), key=lambda one: -one[0])


def read_causes(engine: SqlEngine, neighbours: Sequence[Row] | None) -> list[str]:
    """Returns the names of the findings in the order of `causes`.

    Args:
        neighbours: the rows of that report; None where it cannot be computed.

    Raises:
        EngineError: a query failed, or the trace was not written by Syncline.
    """
    total = next(row for row in _rows(engine, _sql("total")) if row["part"] == "all")
    found = causes(neighbours, with_unknown(phases(engine), total["time_ns"]))
    return list(dict.fromkeys(finding for _, finding, _ in found))


def is_filtered(engine: SqlEngine) -> bool:
    """Returns whether a filter left out syncs."""
    return bool(_rows(engine, _sql("filter"))[0]["filters"])


def _seen(engine: SqlEngine) -> list[str]:
    runs = [set(row["value"].split(", ")) for row in _rows(engine, _SEEN)]
    return sorted(set.intersection(*runs)) if runs else []


def _lost_before(engine: SqlEngine) -> Row | None:
    if not _rows(engine, _sql("failed"))[0]["bios"]:
        return None
    rows = [
        row
        for row in run_report(engine, "durability").as_dicts()
        if row["verdict"] == "lost before"
    ]
    if not rows:
        return None
    lost = [row["lost_bytes"] for row in rows if row["lost_bytes"] is not None]
    return {"syncs": sum(row["syncs"] for row in rows), "lost_bytes": max(lost, default=None)}


def _idle_queue(engine: SqlEngine, found: Mapping[str, int], total: Row) -> Row | None:
    """A device that is not busy is no reason for a queue. All that devices were busy for may have been in the queue."""
    if total["runs"] > 1 or found.get("queue", 0) < _MUCH_QUEUE * (total["time_ns"] or 0):
        return None
    queued = _rows(engine, _sql("queued"))
    busy = [row["busy_ns"] for row in _devices(engine) if row["part"] == "all"]
    if not queued or not busy or None in busy:
        return None
    unissued_ns = _rows(engine, _sql("failed"))[0]["unissued_ns"] or 0
    idle_ns = queued[0]["queue_ns"] - sum(busy) - unissued_ns
    return {**queued[0], "idle_ns": idle_ns} if idle_ns > _MOSTLY * queued[0]["queue_ns"] else None


def _limits(engine: SqlEngine) -> dict[str, str]:
    pairs = [row["limits"].split("\t", 1) for row in _rows(engine, _sql("limits"))]
    # Runs may differ, and then neither is right of all.
    times = Counter(group for group, _ in pairs)
    return {group: limits for group, limits in pairs if times[group] == 1}


def _cpu_wait(engine: SqlEngine, found: Mapping[str, int], total: Row) -> Row | None:
    if total["runs"] > 1 or found.get("cpu wait", 0) < _MUCH_CPU * (total["time_ns"] or 0):
        return None
    return next(iter(_rows(engine, _sql("waited"))), None)


def _cpu_before(engine: SqlEngine, total: Row) -> tuple[list[tuple[int, str]], int]:
    if total["runs"] > 1:
        return [], 0
    said = {row["key"]: row["value"] for row in _rows(engine, _sql("cpu"))}
    idle_ns = int(said.pop("cpu_idle_ns", 0))
    pairs = (said[key].partition(" ") for key in sorted(said))
    return [(int(ns), name) for ns, _, name in pairs], idle_ns


def _devices(engine: SqlEngine) -> list[dict[str, Any]]:
    rows = _rows(engine, catalogue.load("device").sql)
    return [row for row in rows if row["part"] in ("all", "thread")]


def phases(engine: SqlEngine) -> dict[str, int]:
    """Returns the ns of all syncs by phase, the longest first and RESIDUE last; empty if no phase is recorded.

    Raises:
        EngineError: the query failed.
    """
    return _by_phase(_rows(engine, catalogue.load("phases").sql))


def _by_phase(rows: Sequence[Row]) -> dict[str, int]:
    sums: Counter[str] = Counter()
    for row in rows:
        sums[row["phase"]] += row["time_ns"] or 0
    longest = sorted(sums, key=lambda phase: (phase == RESIDUE, -sums[phase], phase))
    return {phase: sums[phase] for phase in longest if sums[phase] > 0}


def with_unknown(phases: Mapping[str, Any], time_ns: Any) -> dict[str, Any]:
    """Returns the phases and, as UNKNOWN, what they lack of the time in syncs. Without phases the result is empty."""
    rest = (time_ns or 0) - sum(phases.values())
    return {**phases, UNKNOWN: rest} if phases and rest > 0 else dict(phases)


def _sql(name: str) -> str:
    return catalogue.read_sql("commands/answer", name)


def _rows(engine: SqlEngine, sql: str) -> list[dict[str, Any]]:
    return run_query(engine, sql).as_dicts()

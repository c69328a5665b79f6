"""Runs the findings on an input. SQL selects and adds up the evidence; Python fills in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

from syncline.report import Table, catalogue, metadata, run_query
from syncline.report.answer import Answer, causes, is_small, read_causes
from syncline.report.run import check_trace, keep
from syncline.report.tables import SqlEngine

from .catalogue import DELAYS, NEIGHBOURS, OF_KERNEL, SHARED, Finding, load, names, shared
from .needs import named

__all__ = [
    "Advice",
    "Place",
    "advise",
    "evidence",
    "statements_of_advice",
    "why_not",
    "with_advice",
]

# Which of the shared tables an engine has. Its input does not change.
_kept: WeakKeyDictionary[SqlEngine, set[str]] = WeakKeyDictionary()
# The table of the evidence of the finding that is checked.
_EVIDENCE = "_syncline_evidence"
# The figures of an advice that an answer has.
_FIGURES = ("syncs", "of_syncs", "cost_ns", "share")
# Requests that the result lists for each finding. `evidence` returns all of them.
_SHOWN = 3
# The finding of what the recording lacks, and the part of the wall time from which on it comes first.
_UNRECORDED = "unrecorded"
_MOSTLY = 0.5
_OF_FILES = "SELECT 1 FROM syncline_sync_call WHERE COALESCE(what, '') NOT LIKE '%whole%' LIMIT 1"
_LENGTHS = "SELECT COUNT(*), COUNT(dur_ns) FROM syncline_sync"
_FACTS = "SELECT key, value FROM syncline_meta"
# The finding of writes that read their page first, which a recording of calls shows only as slow writes.
_READS = "reads"
# The findings that the answer of `report` begins with.
_OF_ANSWER = {_UNRECORDED, "neighbour", "cpu"}
# The part of the wall time from which on a finding is worth a sentence of the answer.
_WORTH = 0.01


@dataclass(frozen=True)
class Place:
    """Where evidence is: a thread name, a file or (with a `/` at its end) a folder, and the number of syncs."""

    comm: str | None
    path: str | None
    syncs: int


@dataclass(frozen=True)
class Advice:
    """What a finding says of one input.

    `status`: `found`, `none`, or `not checked` for `reason`, which is a clause. `none` also stands for evidence that costs no wall time.
    `syncs`: number of syncs that are evidence, of `of_syncs` with a known start and end. Those by threads of the kernel are in neither if programs made some too.
    `cost_ns`: wall time, as `finding.cost` says; null if it is not known. `sum_ns`: the same, summed over the requests.
    `share`: the part of `cost_ns` in `wall_ns`, the wall time in sync of all processes, or, where the cost is a sum over syncs, in `time_ns`,
        the sum of the lengths of all. The other one is null, and all three are if the cost is not of syncs.
    `shown`: the costliest requests, with the columns of the finding.
    """

    finding: Finding
    status: str
    reason: str | None = None
    syncs: int = 0
    of_syncs: int = 0
    cost_ns: int | None = None
    sum_ns: int | None = None
    share: float | None = None
    wall_ns: int | None = None
    time_ns: int | None = None
    places: tuple[Place, ...] = ()
    more_places: int = 0
    shown: tuple[dict[str, Any], ...] = ()

    @property
    def is_first(self) -> bool:
        """Whether the cost of other findings depends on this one, because something that is not recorded holds the bios."""
        return self.finding.name == _UNRECORDED and (self.share or 0) >= _MOSTLY

    @property
    def seen(self) -> str:
        """What was seen, in a sentence with figures. Empty without evidence."""
        if self.status != "found":
            return ""
        # Evidence that is no sync has nothing to count: the row of a neighbour stands for all syncs that it delayed.
        counts = "{syncs}" in self.finding.seen
        where = ", ".join(dict.fromkeys(_place(place, counts) for place in self.places))
        if self.more_places:
            where += f", and {self.more_places:,} more"
        return self.finding.seen.format(
            syncs=f"{self.syncs:,}",
            of_syncs=f"{self.of_syncs:,} sync{'s' * (self.of_syncs != 1)}",
            are="is" if self.syncs == 1 else "are",
            where=where,
        )


def advise(
    engine: SqlEngine, wanted: Iterable[str] | None = None, *, explains: bool = True
) -> list[Advice]:
    """Checks all findings, or those with the names `wanted`: those with evidence first, then the others.

    With `explains`, the reason why one was not checked also says what makes it likely, which reads more of the input.

    What the answer of `report` says first comes first here too, in its order, and then the costliest first. If bios waited for something that is not recorded most of the time, that comes first: whether another change helps depends on it.

    Raises:
        EngineError: the trace was not written by Syncline.
    """
    check_trace(engine)
    findings = [load(name) for name in (names() if wanted is None else wanted)]
    lacking = _lacking(engine)
    held = _held(engine, {need for finding in findings for need in finding.needs})
    checkable = [one for one in findings if _is_checkable(one, held)]
    _keep_shared(engine, checkable)
    ((of_syncs,),) = run_query(engine, catalogue.read_sql("findings/evidence", "of-syncs")).rows
    found = [_one(engine, finding, held, lacking, of_syncs) for finding in findings]
    if explains:
        found = [_explained(engine, one) for one in found]
    order = {"found": 0, "none": 1, "not checked": 2}
    worst = _causes(engine, found, checkable)
    place = {name: number for number, name in enumerate(worst)}
    return sorted(
        found,
        key=lambda one: (
            order[one.status],
            not one.is_first,
            place.get(one.finding.name, len(place)),
            -(one.cost_ns or 0),
        ),
    )


def with_advice(engine: SqlEngine, answer: Answer, found: Sequence[Advice] | None = None) -> Answer:
    """Returns the answer with the finding that is worth most to the program, unless there are too many syncs to look for it.

    `found` is what `advise` has found already.

    Findings about others are not among them, because the answer's own sentences are about these. Nor is there one where something that is not
    recorded held the bios most of the time, because whether a change of the program helps depends on what that is.

    Raises:
        EngineError: a query failed.
    """
    if not answer.total["known"] or not is_small(engine, answer.total):
        return answer
    worst = causes(answer.neighbours, answer.phases)[:1]
    if any(finding == "unrecorded" and share > _MOSTLY for share, finding, _ in worst):
        return answer
    of_programs = _of_programs()
    if found is None:
        found = advise(engine, of_programs, explains=False)
    worth = [
        one
        for one in found
        if one.finding.name in of_programs and one.status == "found" and (one.share or 0) >= _WORTH
    ]
    if not worth:
        is_none = not any(
            one.finding.name in of_programs and one.status == "found" for one in found
        )
        return replace(answer, has_no_advice=is_none)
    first = max(worth, key=lambda one: one.cost_ns or 0)
    said = {
        "finding": first.finding.name,
        "title": first.finding.title,
        "seen": first.seen,
        "instead": first.finding.instead,
        "inferred": first.finding.inferred or None,
        "wall_ns": first.wall_ns,
        **{name: value for name, value in asdict(first).items() if name in _FIGURES},
    }
    return replace(answer, advice=said)


def statements_of_advice() -> list[str]:
    """Returns the SQL that `with_advice` runs, for an engine that reads only what its statements name."""
    texts = [load(name).report for name in _of_programs()]
    held = [need for name in _of_programs() for need in load(name).needs if "." in need]
    columns = [
        f"SELECT {column} FROM syncline_{table}"
        for table, column in (need.split(".") for need in held)
    ]
    shown = [_OF_FILES, _LENGTHS, _FACTS, shared(OF_KERNEL)]
    shown += [
        catalogue.read_sql("findings/evidence", name) for name in ("of-syncs", "totals", "where")
    ]
    return [*shown, *columns, *(report.sql for report in texts)]


def _of_programs() -> list[str]:
    """The findings that are about the syncs of the program itself."""
    found = [(name, load(name).report.sql) for name in names() if name not in _OF_ANSWER]
    return [name for name, sql in found if DELAYS not in sql and NEIGHBOURS not in sql]


def _causes(engine: SqlEngine, found: Iterable[Advice], checked: Iterable[Finding]) -> list[str]:
    """Returns the findings that the answer says first, in its order. It need not be known if the order is no question."""
    names_found = {one.finding.name for one in found if one.status == "found"}
    if not names_found & _OF_ANSWER or len(names_found) == 1:
        return []
    has_neighbours = any(NEIGHBOURS in one.report.sql for one in checked)
    rows = run_query(engine, f"SELECT * FROM {NEIGHBOURS}").as_dicts() if has_neighbours else None
    return read_causes(engine, rows)


def _lacking(engine: SqlEngine) -> str | None:
    """Returns why the absence of evidence says nothing, whatever else the input holds; None if it has the length of a sync."""
    ((syncs, known),) = run_query(engine, _LENGTHS).rows
    if not syncs:
        if not metadata.shows_syncs(metadata.read_meta(engine)):
            return "the input has no event of a sync or a sync call, so whether there were syncs is not known"
        return "the input has no sync request"
    return (
        None
        if known
        else "it needs how long syncs took, and the input has the start and the end of none"
    )


def evidence(engine: SqlEngine, finding: Finding) -> Table:
    """Returns all evidence of a finding that can be checked, the costliest first.

    Raises:
        EngineError: the trace was not written by Syncline.
    """
    check_trace(engine)
    _keep_shared(engine, [finding])
    return run_query(engine, finding.report.sql)


def why_not(engine: SqlEngine, finding: Finding) -> str | None:
    """Returns why a finding cannot be checked, as a clause; None if the input holds what it needs."""
    held = _held(engine, finding.needs)
    return None if _is_checkable(finding, held) else _not_checked(finding, held)


def _explained(engine: SqlEngine, advice: Advice) -> Advice:
    """Adds to the reason why reads were not checked that writes are as slow as if they waited for some."""
    if advice.finding.name != _READS or advice.status != "not checked":
        return advice
    rows = run_query(engine, catalogue.read_sql("findings/evidence", "slow-parts")).rows
    if not rows:
        return advice
    (path, writes, dur_ns), more = rows[0], len(rows) - 1
    others = f" (and of {more:,} more files)" if more else ""
    said = (
        f"{writes:,} writes of parts of pages of {path} took {dur_ns / 1e6:,.1f} ms{others}, and their thread did little else meanwhile:"
        " a write of a part of a page that is not cached reads the page first, and a write of a whole page does not;"
        " whether these read, waited for a lock, or for something else, is not recorded"
    )
    return replace(advice, reason=f"{advice.reason}; {said}")


def _not_checked(finding: Finding, held: set[str]) -> str:
    """Returns what the input lacks, and which route records that."""
    lacking = [need for need in finding.needs if need not in held]
    if not lacking:
        return finding.not_checked
    _, comma, routes = finding.not_checked.partition(", which")
    return f"it needs {named(lacking)}{comma}{routes}"


def _is_checkable(finding: Finding, held: set[str]) -> bool:
    return held.issuperset(finding.needs)


def _held(engine: SqlEngine, needs: Iterable[str]) -> set[str]:
    """Returns those needs that the input meets."""
    columns = sorted(need for need in needs if "." in need)
    # One query reads each table once.
    of_tables: dict[str, list[str]] = {}
    for need in columns:
        table, _, column = need.partition(".")
        of_tables.setdefault(table, []).append(f"COUNT({column})")
    parts = [
        f"(SELECT {', '.join(counts)} FROM syncline_{table})" for table, counts in of_tables.items()
    ]
    counts = run_query(engine, f"SELECT * FROM {', '.join(parts)}").rows[0] if parts else ()
    held = {need for need, count in zip(columns, counts, strict=True) if count}
    if not run_query(engine, _OF_FILES).rows:
        # A sync of a whole file system has no file whose name could be missing.
        held |= {"sync.path", "sync.ino"}
    for key, value in run_query(engine, _FACTS).rows:
        held.add(f"fact:{key}")
        if key == "phases_seen":
            held |= {f"phase:{phase}" for phase in str(value).split(", ")}
    return held


def _keep_shared(engine: SqlEngine, findings: Iterable[Finding]) -> None:
    """Computes once what several findings read. The totals of each read which syncs are the kernel's."""
    kept = _kept.setdefault(engine, set())
    for table in SHARED:
        is_read = any(table in one.report.sql for one in findings)
        if (table == OF_KERNEL or is_read) and table not in kept:
            keep(engine, table, shared(table))
            kept.add(table)


def _one(
    engine: SqlEngine, finding: Finding, held: set[str], lacking: str | None, of_syncs: int
) -> Advice:
    if not _is_checkable(finding, held):
        return Advice(finding, "not checked", lacking or _not_checked(finding, held))
    # SQLite copies a table of WITH at each use, and refuses too many copies.
    keep(engine, _EVIDENCE, _select(finding))
    # Most findings have no evidence, whose totals would take most of the time.
    if not run_query(engine, f"SELECT 1 FROM {_EVIDENCE} LIMIT 1").rows:
        if lacking:
            return Advice(finding, "not checked", lacking)
        return Advice(finding, "none", None, 0, of_syncs)
    (total,) = _of_evidence(engine, "totals").as_dicts()
    cost_ns, whole_ns = total["cost_ns"], total["wall_ns"] or total["time_ns"]
    if cost_ns == 0:
        # Without the evidence, the program would have waited as long for its other syncs.
        return Advice(finding, "none", None, 0, of_syncs)
    places = _of_evidence(engine, "where").as_dicts()
    first = run_query(engine, f"{_select(finding)}\nLIMIT {_SHOWN};")
    return Advice(
        finding,
        "found",
        None,
        total["syncs"],
        of_syncs,
        cost_ns,
        total["sum_ns"],
        cost_ns / whole_ns if cost_ns is not None and whole_ns else None,
        total["wall_ns"],
        total["time_ns"],
        tuple(Place(place["comm"], place["place"], place["syncs"]) for place in places),
        places[0]["places"] - len(places),
        tuple(first.as_dicts()),
    )


def _select(finding: Finding) -> str:
    return finding.report.sql.rstrip().removesuffix(";")


def _of_evidence(engine: SqlEngine, name: str) -> Table:
    sql = catalogue.read_sql("findings/evidence", name)
    return run_query(engine, sql.replace("SELECT :evidence", f"SELECT * FROM {_EVIDENCE}"))


def _place(place: Place, counts: bool) -> str:
    names = " on ".join(name for name in (place.comm, place.path) if name) or "unknown thread"
    return f"{names} ({place.syncs:,})" if counts else names

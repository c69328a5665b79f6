"""The report `neighbours` for the syncs that a filter keeps, from an input without the filter."""

from __future__ import annotations

from . import catalogue
from .run import Table, check_trace, run_query
from .tables import SqlEngine

__all__ = ["Syncs", "meant", "of_meant"]

# What selects the syncs whose wait is meant, and what takes its place.
_ALL = "meant AS (SELECT run, sync_id FROM syncline_sync)"
_SOME = "meant AS (SELECT '' AS run, sync_id FROM syncline_sync WHERE sync_id IN ({}))"
# Numbers that a list can hold.
Syncs = list[int]


def meant(engine: SqlEngine) -> Syncs:
    """Returns the syncs of an input, by which another reading of it knows them."""
    return [row[0] for row in run_query(engine, "SELECT sync_id FROM syncline_sync").rows]


def of_meant(engine: SqlEngine, syncs: Syncs) -> Table:
    """Runs the report for some syncs of one run; the neighbours are those of all.

    Raises:
        EngineError: the report cannot run.
    """
    before, found, after = catalogue.load("neighbours").sql.partition(_ALL)
    assert found, "sql/reports/neighbours.sql does not select the syncs in the known way"
    check_trace(engine)
    return run_query(engine, before + _SOME.format(", ".join(map(str, syncs))) + after)

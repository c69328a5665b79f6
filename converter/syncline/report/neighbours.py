"""The report `neighbours` for the syncs that a filter keeps, from an input without the filter."""

from __future__ import annotations

from dataclasses import replace

from syncline.input import Input
from syncline.reading import Reading

from . import answer, catalogue
from .run import Table, check_trace, run_query
from .tables import SqlEngine

__all__ = ["of_filtered", "of_meant"]

# The text that selects the syncs whose waiting time counts, and the one that takes its place.
_ALL = "counted AS (SELECT run, sync_id FROM syncline_sync)"
_SOME = "counted AS (SELECT '' AS run, sync_id FROM syncline_sync WHERE sync_id IN ({}))"


def of_filtered(input: Input, reading: Reading, engine: str, filtered: SqlEngine) -> Table | None:
    """Runs the report for the syncs that a filter keeps, among all others.

    None without a filter, or if the input cannot be read a second time without it.

    Args:
        filtered: the engine that has the input with the filter.

    Raises:
        InputError, CoreError, EngineError.
    """
    if not (input.can_be_read_whole and answer.is_filtered(filtered)):
        return None
    syncs = [row[0] for row in run_query(filtered, "SELECT sync_id FROM syncline_sync").rows]
    with input.open(replace(reading, is_whole=True), engine) as whole:
        return of_meant(whole, syncs)


def of_meant(engine: SqlEngine, syncs: list[int]) -> Table:
    """Runs the report for some syncs of one run; the neighbours are those of all.

    Raises:
        EngineError: the report cannot run.
    """
    before, found, after = catalogue.load("neighbours").sql.partition(_ALL)
    assert found, "sql/reports/neighbours.sql does not select the syncs in the known way"
    check_trace(engine)
    return run_query(engine, before + _SOME.format(", ".join(map(str, syncs))) + after)

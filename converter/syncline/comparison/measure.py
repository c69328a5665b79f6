"""Measures one run: computes its figures, groups and blocks of time with the SQL of sql/reports and sql/commands/diff."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from syncline.engine import EngineError
from syncline.frames import comparable_stacks, has_nameless
from syncline.report import caveats, read_sql, run_query, run_report
from syncline.report.answer import phases
from syncline.report.run import SqlEngine

from .metrics import Group, total
from .run import Figure, Query, Run

__all__ = ["add_blocks", "measure", "read_groups"]


def measure(path: str, engine: SqlEngine, queries: Sequence[Query], *, blocks: bool) -> Run:
    """Measures a run.

    Args:
        path: the INPUT, which names the run.
        engine: the run, opened.
        blocks: also measures blocks of time.

    Raises:
        EngineError: a query fails, or returns something other than keys and numbers.
    """
    run = Run(path)
    for metric, scope, value, unit, known, syncs in run_report(engine, "summary").rows:
        run.figures[metric, scope] = Figure(value, unit, known, syncs)
    run.phases = phases(engine)
    run.groups = read_groups(engine)
    for fact, value in run_query(engine, _sql("facts")).rows:
        run.facts.setdefault(fact, []).append("" if value is None else value)
    run.caveats = caveats(engine)
    nameless = [
        group["syncs"]
        for stack, group in run.groups.get("stack", {}).items()
        if has_nameless(stack)
    ]
    # A part of `known.stack`, the number of requests with a stack.
    run.facts["nameless.stack"] = [str(int(sum(nameless)))]
    for query in queries:
        run.answers[query.digest] = _answers(engine, query)
    if blocks:
        add_blocks(run, engine)
    return run


def read_groups(engine: SqlEngine) -> dict[str, dict[str, Group]]:
    """Returns the sums of each file, thread, stack ... by kind and name.

    Raises:
        EngineError: the query failed.
    """
    groups: dict[str, dict[str, Group]] = {}
    table = run_query(engine, _sql("groups"))
    # Several stacks of the run may become one when addresses are removed.
    stacks = comparable_stacks(group for kind, group, *_ in table.rows if kind == "stack")
    for kind, group, *sums in table.rows:
        _add(
            groups.setdefault(kind, {}),
            stacks[group] if kind == "stack" else group,
            dict(zip(table.columns[2:], sums, strict=True)),
        )
    return groups


def add_blocks(run: Run, engine: SqlEngine) -> None:
    """Adds the blocks of time to a run that was measured without them."""
    table = run_query(engine, _sql("blocks"))
    for count, block, *values in table.rows:
        columns = run.blocks.setdefault(count, {})
        for metric, value in zip(table.columns[2:], values, strict=True):
            columns.setdefault(metric, [None] * count)[block] = value
    table = run_query(engine, _sql("group-blocks"))
    stacks = comparable_stacks({row[3] for row in table.rows if row[2] == "stack"})
    for count, block, kind, group, *sums in table.rows:
        key = (kind, stacks[group] if kind == "stack" else group)
        cells = run.group_blocks.setdefault(count, {}).setdefault(key, [None] * count)
        sums_by_name = dict(zip(table.columns[4:], sums, strict=True))
        cells[block] = total([cells[block] or {}, sums_by_name])
    _drop_partial_stacks(run)


@cache
def _sql(name: str) -> str:
    return read_sql("commands/diff", name)


def _add(groups: dict[str, Group], name: str, sums: Group) -> None:
    groups[name] = total([groups.get(name, {}), sums]) or sums


def _drop_partial_stacks(run: Run) -> None:
    """Drops a merged stack if the blocks hold only the costliest of the stacks that it was merged from."""
    for by in run.group_blocks.values():
        for kind, name in [key for key in by if key[0] == "stack"]:
            syncs = sum(cell["syncs"] for cell in by[kind, name] if cell)
            if syncs != run.groups[kind][name]["syncs"]:
                del by[kind, name]


def _answers(engine: SqlEngine, query: Query) -> dict[str, Figure]:
    table = run_query(engine, query.sql, is_of_user=True)
    missing = [name for name in ("key", "value") if name not in table.columns]
    if missing:
        raise EngineError(
            f"{query.path}: no column {' and '.join(missing)}; it has {', '.join(table.columns)}",
            "a query for a diff returns a key and a value in each row: SELECT path AS key, COUNT(*) AS value ...",
        )
    answers: dict[str, Figure] = {}
    for row in table.rows:
        record = dict(zip(table.columns, row, strict=True))
        key, value = str(record["key"]), record["value"]
        if key in answers:
            raise EngineError(
                f"{query.path}: two rows have the key '{key}'", "GROUP BY the key, so that each key has one row"
            )  # fmt: skip
        if value is not None and not isinstance(value, int | float):
            raise EngineError(
                f"{query.path}: the value of '{key}' is not a number: {value!r}",
                "CAST it to DOUBLE",
            )
        unit = str(record.get("unit") or "ratio")
        answers[key] = Figure(None if value is None else float(value), unit)
    return answers

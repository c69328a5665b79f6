"""A side of a diff: runs, each boiled down to its figures by the SQL of sql/reports and sql/diff."""

from __future__ import annotations

import glob
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from syncline import losses
from syncline.engine import EngineError
from syncline.errors import InputError
from syncline.inputs import Progress, Reading, opened
from syncline.recordings import is_recording
from syncline.report import caveats, run_query, run_report, sql_root

from . import baseline
from .metrics import Group, total

__all__ = ["Figure", "Query", "Run", "Side", "collect", "runs_of"]

# Of files in a folder of runs; what ends otherwise is none, and is named.
_ENDINGS = (".log", ".txt", ".pftrace", ".perfetto-trace", ".dat", ".parquet", ".csv", ".jsonl")
_PACKED = (".gz", ".zst")
_ADDRESS = re.compile(r"\b0x[0-9a-f]+\b")


@dataclass(frozen=True)
class Figure:
    """A figure of the summary, or of a query of one's own."""

    value: float | None
    unit: str
    # Requests that it is taken over, of all; None for what is counted.
    known: int | None = None
    syncs: int | None = None


@dataclass(frozen=True)
class Query:
    """A file of `--query`: SQL with the columns key and value, and perhaps unit."""

    path: str
    sql: str

    @property
    def digest(self) -> str:
        """By which a baseline knows whether it holds the answers to this very text."""
        return hashlib.sha256(self.sql.encode()).hexdigest()[:16]


@dataclass
class Run:
    """What a diff needs of one run."""

    name: str
    # By (metric, scope), in the order of the summary.
    figures: dict[tuple[str, str], Figure] = field(default_factory=dict)
    # By kind and name.
    groups: dict[str, dict[str, Group]] = field(default_factory=dict)
    facts: dict[str, list[str]] = field(default_factory=dict)
    caveats: list[str] = field(default_factory=list)
    # Digest of a query to its answers by key.
    answers: dict[str, dict[str, Figure]] = field(default_factory=dict)
    # For a run that stands alone. How many blocks, to metric, to the value in each.
    blocks: dict[int, dict[str, list[float | None]]] = field(default_factory=dict)
    # How many blocks, to (kind, name), to its sums in each.
    group_blocks: dict[int, dict[tuple[str, str], list[Group | None]]] = field(default_factory=dict)
    # Kinds whose cheapest groups a baseline left out.
    cut: tuple[str, ...] = ()

    def fact(self, name: str) -> str | None:
        """The value of a fact that has one."""
        return next(iter(self.facts.get(name, ())), None)

    def number(self, name: str) -> int | None:
        """A fact that is a number."""
        value = self.fact(name)
        return int(value) if value is not None and value.lstrip("-").isdigit() else None

    @property
    def lost(self) -> int | None:
        """How many losses; None where the input cannot tell."""
        # A high-level log alone, or a folder without that table, knows of no loss.
        tables = self.fact("tables")
        if tables is not None and "syncline_loss" not in tables:
            return None
        return sum(
            int(values[0]) for name, values in self.facts.items() if name.startswith("loss.")
        )

    def too_much_lost(self, limit: losses.Limit) -> str | None:
        """A sentence, if more is lost than the limit allows."""
        lost, events = self.lost, self.number("events") or 0
        if lost is None or limit.allows(lost, events):
            return None
        return f"{self.name}: {lost:,} of {lost + events:,} events are lost"


@dataclass
class Side:
    """`base` or `new`, and its runs."""

    name: str
    inputs: tuple[str, ...]
    runs: list[Run]


def runs_of(path: str, say: Callable[[str], None] = lambda _: None) -> list[str]:
    """The runs of an INPUT: itself, those in a folder of runs, or those that a pattern matches.

    Raises:
        InputError: there is none.
    """
    if path == "-":
        return [path]
    if not Path(path).exists():
        found = sorted(glob.glob(path)) if glob.has_magic(path) else []  # noqa: PTH207
        if not found:
            raise InputError(
                f"cannot read {path}: no such file or folder",
                "check the name; a pattern in quotes stands for several runs: 'base/*.log'",
            )
        return [run for one in found for run in runs_of(one, say)]
    if not Path(path).is_dir() or _is_run(Path(path)):
        return [path]
    runs, others = [], []
    for child in sorted(Path(path).iterdir()):
        if child.name.startswith("."):
            continue
        (runs if _is_run(child) else others).append(str(child))
    if not runs:
        raise InputError(
            f"{path} is a folder without runs: no logs, traces, recordings, tables or baselines",
            f"name the runs themselves, if they are deeper: '{path.rstrip('/')}/*/*.log'",
        )
    for other in others:
        say(f"note: {other} is taken for no run")
    return runs


def _is_run(path: Path) -> bool:
    if path.is_dir():
        return is_recording(path) or (path / "syncline_sync.parquet").is_file()
    name = path.name.lower()
    for packed in _PACKED:
        name = name.removesuffix(packed)
    return name.endswith(_ENDINGS) or baseline.is_baseline(path)


@cache
def _sql(name: str) -> str:
    return (sql_root() / "diff" / f"{name}.sql").read_text(encoding="utf-8")


def collect(
    name: str,
    inputs: Sequence[str],
    reading: Reading,
    *,
    engine: str = "auto",
    queries: Sequence[Query] = (),
    blocks: bool | None = None,
    progress: Progress | None = None,
    check: Callable[[str], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> Side:
    """Reads the runs of a side.

    Args:
        blocks: whether each run's blocks of time are wanted; by default those of a single run.
        check: called with each path before it is read; may raise.

    Raises:
        InputError, CoreError, EngineError.
    """
    paths = [run for path in inputs for run in runs_of(path, say)]
    repeated = sorted({path for path in paths if paths.count(path) > 1})
    if repeated:
        raise InputError(
            f"{name}: {repeated[0]} is named twice", "a run counts once; name each of them once"
        )
    runs: list[Run] = []
    kept = {path: baseline.load(path) for path in paths if path != "-" and baseline.is_baseline(Path(path))}  # fmt: skip
    if blocks is None:
        blocks = sum(len(kept[path]) if path in kept else 1 for path in paths) == 1
    for path in paths:
        if path in kept:
            for run in kept[path]:
                _check_answers(run, queries, path)
            runs += kept[path]
            continue
        check(path)
        with opened(path, reading, engine, progress) as open_engine:
            runs.append(_boil_down(path, open_engine, queries, blocks))
    return Side(name, tuple(inputs), runs)


def _check_answers(run: Run, queries: Sequence[Query], path: str) -> None:
    for query in queries:
        if query.digest not in run.answers:
            raise InputError(
                f"{path} does not hold the answers to {query.path}, as that file is now",
                f"save it again: syncline baseline save --query {query.path} INPUT... -o {path}",
            )


def _boil_down(path: str, engine: Any, queries: Sequence[Query], blocks: bool) -> Run:
    run = Run(path)
    for metric, scope, value, unit, known, syncs in run_report(engine, "summary").rows:
        run.figures[metric, scope] = Figure(value, unit, known, syncs)
    table = run_query(engine, _sql("groups"))
    for kind, group, *sums in table.rows:
        _add(
            run.groups.setdefault(kind, {}),
            _comparable(kind, group),
            dict(zip(table.columns[2:], sums, strict=True)),
        )
    for fact, value in run_query(engine, _sql("facts")).rows:
        run.facts.setdefault(fact, []).append("" if value is None else value)
    run.caveats = caveats(engine)
    for query in queries:
        run.answers[query.digest] = _answers(engine, query)
    if blocks:
        _add_blocks(run, engine)
    return run


def _comparable(kind: str, name: str) -> str:
    """A stack without the addresses that had no name, which are others in every process."""
    return _ADDRESS.sub("[address]", name) if kind == "stack" else name


def _add(groups: dict[str, Group], name: str, sums: Group) -> None:
    groups[name] = total([groups.get(name, {}), sums]) or sums


def _answers(engine: Any, query: Query) -> dict[str, Figure]:
    table = run_query(engine, query.sql)
    missing = [name for name in ("key", "value") if name not in table.columns]
    if missing:
        raise EngineError(
            f"{query.path}: no column {' and '.join(missing)}; it has {', '.join(table.columns)}",
            "a query for a diff gives a key and a value a row: SELECT path AS key, COUNT(*) AS value ...",
        )
    answers: dict[str, Figure] = {}
    for row in table.rows:
        record = dict(zip(table.columns, row, strict=True))
        key, value = str(record["key"]), record["value"]
        if key in answers:
            raise EngineError(
                f"{query.path}: two rows with the key '{key}'", "group by the key, so that each is one row"
            )  # fmt: skip
        if value is not None and not isinstance(value, int | float):
            raise EngineError(
                f"{query.path}: the value of '{key}' is no number: {value!r}", "CAST it to DOUBLE"
            )
        unit = str(record.get("unit") or "ratio")
        answers[key] = Figure(None if value is None else float(value), unit)
    return answers


def _add_blocks(run: Run, engine: Any) -> None:
    table = run_query(engine, _sql("blocks"))
    for count, block, *values in table.rows:
        columns = run.blocks.setdefault(count, {})
        for metric, value in zip(table.columns[2:], values, strict=True):
            columns.setdefault(metric, [None] * count)[block] = value
    table = run_query(engine, _sql("group-blocks"))
    for count, block, kind, group, *sums in table.rows:
        key = (kind, _comparable(kind, group))
        cells = run.group_blocks.setdefault(count, {}).setdefault(key, [None] * count)
        sums_by_name = dict(zip(table.columns[4:], sums, strict=True))
        cells[block] = total([cells[block] or {}, sums_by_name])

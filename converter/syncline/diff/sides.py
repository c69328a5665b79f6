"""A side of a diff: runs, each boiled down to its figures by the SQL of sql/reports and sql/diff."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from syncline import _core, losses
from syncline.engine import EngineError
from syncline.errors import InputError
from syncline.frames import comparable_stacks, has_nameless
from syncline.inputs import Progress, Reading, kind_of, opened
from syncline.recordings import is_recording
from syncline.report import caveats, run_query, run_report, sql_root

from . import baseline
from .metrics import Group, total

__all__ = ["Figure", "Query", "Run", "Side", "collect", "listed", "runs_of"]

# Of files in a folder of runs; what ends otherwise is none, and is named. A .txt is one if it begins so.
_ENDINGS = (".log", ".pftrace", ".perfetto-trace", ".dat", ".parquet", ".csv", ".jsonl")
_PACKED = (".gz", ".zst")
# A run of fewer requests than this part of its side's median, where so many runs make one.
_SHORT = 0.5
_SHORT_RUNS = 3
_NAMES = 3


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
    def identity(self) -> str | None:
        """The same for all copies and forms of one run; None where nothing tells."""
        told = self.fact("identity")
        if told is None and self.number("first_ts_ns") is not None:
            # Without a request: by its events.
            facts = (self.fact(name) for name in ("boot_id", "first_ts_ns", "last_ts_ns", "events"))
            told = " ".join(fact or "-" for fact in facts)
        return told

    @property
    def cut_off(self) -> bool:
        """Whether its recorder's last line is missing."""
        return bool(self.number("loss.cut_off"))

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
    # Of what was found when they were read.
    warnings: list[str] = field(default_factory=list)


def runs_of(
    path: str, source: str | None = None, say: Callable[[str], None] = lambda _: None
) -> list[str]:
    """The runs of an INPUT: itself, those in a folder of runs, or those that a pattern matches.

    Args:
        source: the format that all logs are said to be in.

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
        return [run for one in found for run in runs_of(one, source, say)]
    if not Path(path).is_dir() or _is_run(Path(path), source):
        return [path]
    runs, others = [], []
    for child in sorted(Path(path).iterdir()):
        if child.name.startswith("."):
            continue
        (runs if _is_run(child, source) else others).append(str(child))
    if not runs:
        raise InputError(
            f"{path} is a folder without runs: no logs, traces, recordings, tables or baselines",
            f"name the runs themselves, if they are deeper: '{path.rstrip('/')}/*/*.log'",
        )
    for other in others:
        say(f"note: {other} is taken for no run")
    return runs


def _is_run(path: Path, source: str | None) -> bool:
    if path.is_dir():
        return is_recording(path) or (path / "syncline_sync.parquet").is_file()
    name = path.name.lower()
    for packed in _PACKED:
        name = name.removesuffix(packed)
    if name.endswith(_ENDINGS) or baseline.is_baseline(path):
        return True
    return name.endswith(".txt") and (
        source is not None or kind_of(str(path)) != "log" or _core.detect_format(str(path)) is not None
    )


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
    paths = [run for path in inputs for run in runs_of(path, reading.source, say)]
    repeated = sorted({path for path in paths if paths.count(path) > 1})
    if repeated:
        raise InputError(
            f"{name}: {repeated[0]} is named twice", "a run counts once; name each of them once"
        )
    found: list[tuple[str, Run]] = []
    with tempfile.TemporaryDirectory(prefix="syncline-") as folder:
        files = {path: _readable_twice(path, Path(folder)) for path in paths}
        kept = {
            path: baseline.load(file)
            for path, file in files.items()
            if baseline.is_baseline(Path(file))
        }
        wanted = blocks
        if blocks is None:
            blocks = sum(len(kept[path]) if path in kept else 1 for path in paths) == 1
        for path, file in files.items():
            if path in kept:
                for run in kept[path]:
                    _check_answers(run, queries, path)
                    found.append((path, run))
                continue
            check(file)
            with opened(file, reading, engine, progress) as open_engine:
                found.append((path, _boil_down(path, open_engine, queries, blocks)))
        runs, warnings = _once(name, found)
        if wanted is None and len(runs) == 1 and not runs[0].blocks and runs[0].name in files:
            # What was taken for several runs is one.
            with opened(files[runs[0].name], reading, engine, progress) as open_engine:
                _add_blocks(runs[0], open_engine)
    return Side(name, tuple(inputs), runs, warnings + _too_short(name, runs))


def _readable_twice(path: str, folder: Path) -> str:
    """The file itself; of standard input or another pipe a copy, as what it is, is told by reading."""
    if path != "-" and (not Path(path).exists() or Path(path).is_file() or Path(path).is_dir()):
        return path
    copy = folder / ("standard input" if path == "-" else path.replace("/", "_"))
    with contextlib.ExitStack() as stack:
        source = sys.stdin.buffer if path == "-" else stack.enter_context(Path(path).open("rb"))
        shutil.copyfileobj(source, stack.enter_context(copy.open("wb")))
    return str(copy)


def _once(side: str, found: list[tuple[str, Run]]) -> tuple[list[Run], list[str]]:
    """Each run once, whatever its copies and forms: several of one would make chance look small.

    Args:
        found: each run with the INPUT that it was read of.
    """
    copies: dict[str, list[tuple[str, Run]]] = {}
    for place, (path, run) in enumerate(found):
        copies.setdefault(run.identity or f"unknown {place}", []).append((path, run))
    runs = []
    warnings = []
    for forms in copies.values():
        # The one that tells most: a high-level log knows of no loss.
        runs.append(max((run for _, run in forms), key=lambda run: (run.lost is not None, bool(run.blocks))))  # fmt: skip
        if len(forms) > 1:
            names = [
                run.name if run.name == path else f"{run.name} in {path}" for path, run in forms
            ]
            warnings.append(f"{side}: the same run, counted once: {', '.join(names)}")
    return runs, warnings


def _too_short(side: str, runs: list[Run]) -> list[str]:
    """Runs that ended before their time, and those that look it, for not all formats tell."""
    warnings = []
    cut = [run.name for run in runs if run.cut_off]
    if cut:
        warnings.append(
            f"{side}: cut off, so that no count and no sum has a verdict: {listed(cut)}; record"
            f" {'it' if len(cut) == 1 else 'them'} again, or leave {'it' if len(cut) == 1 else 'them'} out"
        )
    counts = [run.number("known.syncs") or 0 for run in runs]
    if len(runs) < _SHORT_RUNS:
        return warnings
    usual = median(counts)
    short = [
        f"{run.name} ({count:,})"
        for run, count in zip(runs, counts, strict=True)
        if count < _SHORT * usual and not run.cut_off
    ]
    if short:
        warnings.append(
            f"{side}: less than half the {usual:,.0f} requests of the other runs, as if cut off: {listed(short)}"
        )
    return warnings


def listed(names: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return ", ".join(names[:_NAMES]) + more


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
    # A stack without what is another in every process: several become one.
    stacks = comparable_stacks(group for kind, group, *_ in table.rows if kind == "stack")
    for kind, group, *sums in table.rows:
        _add(
            run.groups.setdefault(kind, {}),
            stacks[group] if kind == "stack" else group,
            dict(zip(table.columns[2:], sums, strict=True)),
        )
    for fact, value in run_query(engine, _sql("facts")).rows:
        run.facts.setdefault(fact, []).append("" if value is None else value)
    run.caveats = caveats(engine)
    nameless = [
        group["syncs"]
        for stack, group in run.groups.get("stack", {}).items()
        if has_nameless(stack)
    ]
    # Beside `known.stack`, of how many requests there is one at all.
    run.facts["nameless.stack"] = [str(int(sum(nameless)))]
    for query in queries:
        run.answers[query.digest] = _answers(engine, query)
    if blocks:
        _add_blocks(run, engine)
    return run


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
    stacks = comparable_stacks({row[3] for row in table.rows if row[2] == "stack"})
    for count, block, kind, group, *sums in table.rows:
        key = (kind, stacks[group] if kind == "stack" else group)
        cells = run.group_blocks.setdefault(count, {}).setdefault(key, [None] * count)
        sums_by_name = dict(zip(table.columns[4:], sums, strict=True))
        cells[block] = total([cells[block] or {}, sums_by_name])
    _drop_parts(run)


def _drop_parts(run: Run) -> None:
    """Of the stacks that became one the blocks hold the costliest alone: a part is not what the whole is."""
    for by in run.group_blocks.values():
        for kind, name in [key for key in by if key[0] == "stack"]:
            syncs = sum(cell["syncs"] for cell in by[kind, name] if cell)
            if syncs != run.groups[kind][name]["syncs"]:
                del by[kind, name]

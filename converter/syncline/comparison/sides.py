"""Reads a side of a diff: finds its runs, measures each, and counts each run once."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from statistics import median

from syncline import scratch
from syncline.errors import InputError
from syncline.input import Input
from syncline.reading import Progress, Reading

from . import baseline
from .find_runs import Named
from .measure import add_blocks, measure
from .names import first_names
from .run import Query, Run, Side

__all__ = ["collect"]

# A run is short if it has fewer requests than this share of its side's median, which says nothing about fewer than _SHORT_RUNS runs.
_SHORT = 0.5
_SHORT_RUNS = 3


def collect(
    name: str,
    named: Named,
    reading: Reading,
    *,
    engine: str = "auto",
    queries: Sequence[Query] = (),
    blocks: bool | None = None,
    progress: Progress | None = None,
    check: Callable[[Input], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> Side:
    """Reads the runs of a side.

    Args:
        named: what the user named.
        blocks: whether to measure blocks of time; by default only if the side has a single run.
        check: called with each run before it is read; may raise.
        say: called with a note on each file that is skipped.

    Raises:
        InputError, CoreError, EngineError.
    """
    found = named.runs
    for note in named.notes:
        say(note)
    paths = [one.path for one in found]
    # `where` has chosen the runs, so it does not apply to what is in them.
    reading = dataclasses.replace(reading, where=None)
    repeated = sorted({path for path in paths if paths.count(path) > 1})
    if repeated:
        raise InputError(
            f"{name}: {repeated[0]} is named twice", "a run counts once; name each run once"
        )
    measured: list[tuple[str, Run]] = []
    by_path = {one.path: one for one in found}
    with scratch.folder() as folder:
        for one in found:
            one.keep(folder)
        stored = {one.path: baseline.load(one.copy or one.path) for one in found if one.is_baseline}
        asked_for_blocks = blocks
        if blocks is None:
            blocks = sum(len(stored[path]) if path in stored else 1 for path in paths) == 1
        for one in found:
            path = one.path
            if path in stored:
                for run in stored[path]:
                    _check_answers(run, queries, path)
                    measured.append((path, run))
                continue
            check(one.input)
            with one.input.open(reading, engine, progress, perfetto=bool(queries)) as open_engine:
                measured.append((path, measure(path, open_engine, queries, blocks=blocks)))
        runs, warnings = _without_copies(name, measured)
        if (
            asked_for_blocks is None
            and len(runs) == 1
            and not runs[0].blocks
            and runs[0].name in by_path
        ):
            # Several inputs turned out to be copies of one run.
            with by_path[runs[0].name].input.open(reading, engine, progress) as open_engine:
                add_blocks(runs[0], open_engine)
    return Side(name, tuple(named.paths), runs, warnings + _length_warnings(name, runs))


def _check_answers(run: Run, queries: Sequence[Query], path: str) -> None:
    for query in queries:
        if query.digest not in run.answers:
            raise InputError(
                f"{path} does not hold the answers to the current text of {query.path}",
                f"save it again: syncline baseline save --query {query.path} INPUT... -o {path}",
            )


def _without_copies(side: str, found: list[tuple[str, Run]]) -> tuple[list[Run], list[str]]:
    """Keeps each run once. Copies of one run would make the variation between runs look small.

    Args:
        found: each run with the INPUT that it was read from.
    """
    copies: dict[str, list[tuple[str, Run]]] = {}
    for index, (path, run) in enumerate(found):
        copies.setdefault(run.identity or f"unknown {index}", []).append((path, run))
    runs = []
    warnings = []
    for forms in copies.values():
        # Prefers the most complete form: a high-level log records no losses.
        runs.append(max((run for _, run in forms), key=lambda run: (run.lost is not None, bool(run.blocks))))  # fmt: skip
        if len(forms) > 1:
            names = [
                run.name if run.name == path else f"{run.name} in {path}" for path, run in forms
            ]
            warnings.append(f"{side}: these are the same run, counted once: {', '.join(names)}")
    return runs, warnings


def _length_warnings(side: str, runs: list[Run]) -> list[str]:
    """Warns of runs that are cut off, and of runs that look cut off: not all formats record their end."""
    warnings = []
    cut_off = [run.name for run in runs if run.is_cut_off]
    if cut_off:
        them = "it" if len(cut_off) == 1 else "them"
        warnings.append(
            f"{side}: cut off, so counts and sums have no verdict: {first_names(cut_off)};"
            f" record {them} again, or leave {them} out"
        )
    counts = [run.number("known.syncs") or 0 for run in runs]
    if len(runs) < _SHORT_RUNS:
        return warnings
    usual = median(counts)
    short = [
        f"{run.name} ({count:,})"
        for run, count in zip(runs, counts, strict=True)
        if count < _SHORT * usual and not run.is_cut_off
    ]
    if short:
        warnings.append(
            f"{side}: less than half the {usual:,.0f} requests of the other runs, possibly cut off:"
            f" {first_names(short)}"
        )
    return warnings

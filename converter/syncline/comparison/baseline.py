"""Reads and writes a baseline: one small file that keeps what later diffs need of runs."""

from __future__ import annotations

import gzip
import json
import math
import zlib
from importlib import metadata
from pathlib import Path
from typing import Any

from syncline import interruptible
from syncline.errors import InputError
from syncline.formats import BASELINE
from syncline.frames import has_nameless
from syncline.structured import parse_json, text, whole_number

from .blocks import TESTED
from .run import Figure, Query, Run

__all__ = ["SCHEMA_VERSION", "is_baseline", "load", "save"]

# Increases whenever this version would misread an older file.
SCHEMA_VERSION = 2
_GZIP = b"\x1f\x8b"
# Groups kept of each kind and run: this many by time, and as many by count. Rules with patterns need more than a diff shows.
_GROUPS = 150
_DIGITS = 12


def is_baseline(path: Path) -> bool:
    """Returns whether the file begins as a baseline does."""
    try:
        with path.open("rb") as file:
            head = file.read(len(BASELINE))
            if head[:2] == _GZIP:
                file.seek(0)
                with gzip.open(file) as unpacked:
                    head = unpacked.read(len(BASELINE))
    except (OSError, EOFError, zlib.error):
        return False
    return head == BASELINE


def save(runs: list[Run], queries: list[Query], path: str) -> int:
    """Writes a baseline atomically, compressed if the name ends in .gz. Returns its size in bytes.

    Raises:
        CoreError: the file cannot be written.
    """
    names: dict[str, int] = {}
    data = {
        "syncline_baseline": SCHEMA_VERSION,
        "syncline_version": metadata.version("syncline"),
        "queries": {query.digest: query.path for query in queries},
        "runs": [_packed(run, names, with_blocks=len(runs) == 1) for run in runs],
    }
    # Group names are long, and most runs have the same ones.
    data["names"] = list(names)
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    if path.endswith(".gz"):
        text = gzip.compress(text, mtime=0)
    interruptible.write(path, text)
    return len(text)


def _packed(run: Run, names: dict[str, int], *, with_blocks: bool) -> dict[str, Any]:
    groups, truncated = {}, list(run.truncated_kinds)
    columns: list[str] = []
    for kind, all_of_kind in run.groups.items():
        kept = _costliest(all_of_kind)
        if kind == "stack":
            # A stack with missing names may match any of the kept ones.
            kept |= {name: one for name, one in all_of_kind.items() if has_nameless(name)}
        if len(kept) < len(all_of_kind) and kind not in truncated:
            truncated.append(kind)
        columns = columns or list(next(iter(kept.values()), {}))
        groups[kind] = [
            [names.setdefault(name, len(names)), *(group[column] for column in columns)]
            for name, group in kept.items()
        ]
    packed: dict[str, Any] = {
        "name": run.name,
        "facts": run.facts,
        "caveats": run.caveats,
        "figures": [
            [*key, _rounded(one.value), one.unit, one.known, one.syncs]
            for key, one in run.figures.items()
        ],
        "phases": run.phases,
        "columns": columns,
        "groups": groups,
        "cut": truncated,
        "answers": {
            digest: {key: [_rounded(one.value), one.unit] for key, one in answers.items()}
            for digest, answers in run.answers.items()
        },
    }
    if with_blocks:
        packed["blocks"] = {
            count: {metric: [_rounded(value) for value in values] for metric, values in by.items()}
            for count, by in run.blocks.items()
        }
        packed["group_blocks"] = {
            count: [
                [kind, names.setdefault(name, len(names))]
                + [cell and [cell[column] for column in columns] for cell in cells]
                for (kind, name), cells in by.items()
            ]
            for count, by in run.group_blocks.items()
        }
    return packed


def _costliest(groups: dict[str, Any]) -> dict[str, Any]:
    if len(groups) <= 2 * _GROUPS:
        return groups
    by_time = sorted(groups, key=lambda name: (-groups[name]["time_ns"], name))[:_GROUPS]
    by_count = sorted(groups, key=lambda name: (-groups[name]["syncs"], name))[:_GROUPS]
    kept = {*by_time, *by_count}
    return {name: group for name, group in groups.items() if name in kept}


def _rounded(value: float | None) -> float | None:
    """Rounds to `_DIGITS` digits, which is finer than any interval."""
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value


def _check_numbers(runs: list[Run]) -> None:
    """Refuses values that are not finite numbers: the statistics would use them.

    Raises:
        ValueError: a figure or a sum is not a finite number.
    """
    figures = [one.value for run in runs for one in run.figures.values()]
    figures += [one.value for run in runs for by in run.answers.values() for one in by.values()]
    sums = [
        value
        for run in runs
        for by in run.groups.values()
        for group in by.values()
        for value in group.values()
    ]
    times = [value for run in runs for value in run.phases.values()]
    for value in figures + sums + times:
        if value is None:
            continue
        if not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(f"{value!r} is not a finite number")


def _check_texts(runs: list[Run]) -> None:
    """Refuses values of another type than those that `save` writes.

    Raises:
        ValueError: a name or a fact is not a text, or a count is not a number.
    """
    for run in runs:
        figures = [
            *run.figures.items(),
            *(one for by in run.answers.values() for one in by.items()),
        ]
        for key, figure in figures:
            for part in (*(key if isinstance(key, tuple) else (key,)), figure.unit):
                text(part)
            for count in (figure.known, figure.syncs):
                if count is not None:
                    whole_number(count, 2**63)
        facts = [value for values in run.facts.values() for value in _list(values)]
        groups = [name for by in run.groups.values() for name in by]
        groups += [name for by in run.group_blocks.values() for _, name in by]
        names = (run.name, *run.phases, *groups, *run.truncated_kinds)
        for value in (*names, *facts, *_list(run.caveats)):
            text(value)
        for by in run.blocks.values():
            if missing := [metric for metric in TESTED if metric not in by]:
                raise ValueError(f"blocks without {missing[0]}")
        blocks = [values for by in run.blocks.values() for values in by.values()]
        for value in (value for values in blocks for value in _list(values)):
            if value is not None and not isinstance(value, int | float):
                raise ValueError(f"{value!r} is not a number")


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{value!r} is not a list")
    return value


def load(path: str) -> list[Run]:
    """Reads a baseline.

    Raises:
        InputError: the file has another schema version, or is damaged.
    """
    again = f"save it again from the runs: syncline baseline save INPUT... -o {path}"
    try:
        raw = Path(path).read_bytes()
        data = parse_json(gzip.decompress(raw) if raw[:2] == _GZIP else raw)
        version = data["syncline_baseline"]
        if version != SCHEMA_VERSION:
            raise InputError(
                f"{path} is a baseline of schema version {version}, written by syncline"
                f" {data.get('syncline_version', '?')}; this syncline reads version {SCHEMA_VERSION}",
                again,
            )
        names = data["names"]
        runs = [_unpacked(one, names) for one in data["runs"]]
        _check_numbers(runs)
        _check_texts(runs)
    except (
        OSError,
        EOFError,
        zlib.error,
        ValueError,
        KeyError,
        TypeError,
        IndexError,
        AttributeError,
    ) as error:
        raise InputError(
            f"{path} is a damaged baseline: {type(error).__name__}: {error}", again
        ) from None
    return runs


def _unpacked(packed: dict[str, Any], names: list[str]) -> Run:
    columns = packed["columns"]
    return Run(
        name=packed["name"],
        figures={
            (metric, scope): Figure(value, unit, known, syncs)
            for metric, scope, value, unit, known, syncs in packed["figures"]
        },
        groups={
            kind: {names[number]: dict(zip(columns, sums, strict=True)) for number, *sums in groups}
            for kind, groups in packed["groups"].items()
        },
        # Files of earlier development versions have none.
        phases=packed.get("phases", {}),
        facts=packed["facts"],
        caveats=packed["caveats"],
        answers={
            digest: {key: Figure(*figure) for key, figure in answers.items()}
            for digest, answers in packed["answers"].items()
        },
        blocks={int(count): by for count, by in packed.get("blocks", {}).items()},
        group_blocks={
            int(count): {
                (kind, names[number]): [
                    cell and dict(zip(columns, cell, strict=True)) for cell in cells
                ]
                for kind, number, *cells in by
            }
            for count, by in packed.get("group_blocks", {}).items()
        },
        truncated_kinds=tuple(packed["cut"]),
    )

"""For programs: everything, ns and bytes as they are."""

from __future__ import annotations

import json
import math
from typing import Any

from ..compare import Comparison, Row
from ..sides import Side

__all__ = ["render"]

# Counts up whenever a key goes or means something else.
SCHEMA_VERSION = 1


def render(comparison: Comparison, *, everything: bool = True) -> str:
    """One object; all rows, a row a line."""
    how = comparison.method
    head = {
        "syncline_diff": SCHEMA_VERSION,
        "verdict": comparison.verdict,
        "no_verdict": comparison.no_verdict,
        "base": _side(comparison.base),
        "new": _side(comparison.new),
        "method": {
            "units": how.units,
            "base_units": how.base_units,
            "new_units": how.new_units,
            "confidence": how.confidence,
            "seed": how.seed,
            "arrangements": how.arrangements,
            "exhaustive": how.exhaustive,
            "gate_alpha": how.gate_alpha,
            "gate_rows": how.gate_rows,
            "other_alpha": how.detail_alpha,
            "other_rows": how.detail_rows,
        },
        "warnings": comparison.warnings,
        "notes": comparison.notes,
        "moved": [
            {
                "metric": one.row.metric,
                "measure": one.measure,
                "unit": one.unit,
                "groups": [
                    {"kind": kind, "name": name, "base": base, "new": new}
                    for kind, name, base, new in one.groups
                ],
            }
            for one in comparison.moved
        ],
    }
    rows = ",\n".join(_json(_row(row)) for row in comparison.rows)
    return f'{_json(head)[:-1]}, "rows": [\n{rows}\n]}}\n'


def _side(side: Side) -> dict[str, Any]:
    return {"inputs": side.inputs, "runs": [run.name for run in side.runs]}


def _row(row: Row) -> dict[str, Any]:
    return {
        "kind": row.kind or "whole",
        "name": row.name,
        "metric": row.metric,
        "unit": row.unit,
        "gate": row.gate,
        "worse": row.watch.worse,
        "base": row.base,
        "new": row.new,
        "base_values": row.base_values,
        "new_values": row.new_values,
        "change": row.change,
        "low": _finite(row.interval.low),
        "high": _finite(row.interval.high),
        "relative": row.relative,
        "tolerance": row.watch.tolerance.amount,
        "tolerance_relative": row.watch.tolerance.relative,
        "confidence": row.watch.confidence,
        "worse_p": row.worse_p,
        "better_p": row.better_p,
        "verdict": row.verdict if row.verdict != "-" else None,
        "why": row.why,
    }


def _finite(value: float) -> float | None:
    # JSON has no infinity.
    return value if math.isfinite(value) else None


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)

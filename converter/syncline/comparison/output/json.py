"""JSON for programs: everything, in plain ns and bytes."""

from __future__ import annotations

import math
from typing import Any

from syncline.printable import json_text

from ..answer import Answer, Change, answer
from ..comparison import Comparison, Row
from ..run import Side
from . import wording

__all__ = ["render"]

# Increases whenever a key is removed or changes its meaning.
SCHEMA_VERSION = 1


def render(comparison: Comparison, *, everything: bool = True) -> str:
    """Renders one object with all rows, one row a line."""
    how = comparison.method
    head = {
        "schema_version": SCHEMA_VERSION,
        "verdict": comparison.verdict,
        "no_verdict_reason": comparison.no_verdict,
        "headline": wording.headline(comparison),
        "would_have_seen": wording.power(comparison) or None,
        "base": _side(comparison.base),
        "new": _side(comparison.new),
        "method": {
            "sample_unit": how.units,
            "base_samples": how.base_units,
            "new_samples": how.new_units,
            "confidence": how.confidence,
            "seed": how.seed,
            "permutations": how.permutations,
            "exhaustive": how.exhaustive,
            "gate_alpha": how.gate_alpha,
            "gate_rows": how.gate_rows,
            "other_alpha": how.other_alpha,
            "other_rows": how.other_rows,
        },
        "warnings": comparison.warnings,
        "notes": comparison.notes,
        "answer": _answer(answer(comparison.base, comparison.new)),
        "contributors": [
            {
                "metric": one.row.metric,
                "measure": one.measure.text,
                "unit": one.measure.unit,
                "groups": [
                    {"kind": kind, "name": name, "base": base, "new": new}
                    for kind, name, base, new in one.groups
                ],
            }
            for one in comparison.contributors
        ],
    }
    rows = ",\n".join(json_text(_row(row)) for row in comparison.rows)
    return f'{json_text(head)[:-1]}, "rows": [\n{rows}\n]}}\n'


def _answer(found: Answer) -> dict[str, Any]:
    base, new = found.phases
    return {
        "syncs": _change(found.syncs),
        "sync_time_ns": _change(found.time),
        "phases_ns": {"base": base, "new": new},
        "groups": [
            {"kind": kind, "name": name, "sync_time_ns": _change(one)}
            for kind, name, one in found.groups
        ],
    }


def _change(change: Change) -> dict[str, float | None]:
    return {"base": change.base, "new": change.new}


def _side(side: Side) -> dict[str, Any]:
    return {"inputs": side.inputs, "runs": [run.name for run in side.runs]}


def _row(row: Row) -> dict[str, Any]:
    return {
        "kind": row.kind or "summary",
        "name": row.name,
        "metric": row.metric,
        "unit": row.unit,
        "gate": row.gate,
        "worse": row.criteria.worse,
        "base": row.base,
        "new": row.new,
        "base_values": row.base_values,
        "new_values": row.new_values,
        "change": row.change,
        "change_low": _finite(row.interval.low),
        "change_high": _finite(row.interval.high),
        "change_is_relative": row.relative,
        "tolerance": row.criteria.tolerance.amount,
        "tolerance_is_relative": row.criteria.tolerance.relative,
        "confidence": row.criteria.confidence,
        "p_worse": row.worse_p,
        "p_better": row.better_p,
        "visible_change": row.visible,
        "verdict": row.verdict if row.verdict != "-" else None,
        "reason": row.reason,
    }


def _finite(value: float) -> float | None:
    # JSON has no infinity.
    return value if math.isfinite(value) else None

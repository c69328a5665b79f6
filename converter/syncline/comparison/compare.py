"""Compares two sides: builds the rows, judges them, and collects warnings."""

from __future__ import annotations

from collections.abc import Sequence

from .blocks import block_count
from .comparability import differences, same_runs
from .comparison import CUT_OFF, Comparison
from .contributors import contributors
from .metrics import KINDS, PHASE_METRICS, grows
from .rows import RowBuilder
from .rules import Policy
from .run import Query, Side
from .verdicts import judge_all

__all__ = ["compare"]

# Warnings of a side that are repeated in full.
_MAX_CAVEATS = 3


def compare(
    base: Side,
    new: Side,
    policy: Policy,
    queries: Sequence[Query] = (),
    *,
    seed: int = 1,
    by: Sequence[str] = KINDS,
    max_loss: str | None = None,
) -> Comparison:
    """Compares two sides.

    Args:
        by: the kinds of groups that get rows.
        max_loss: overrides the policy's.

    Raises:
        PolicyError: a metric in the policy does not exist.
    """
    blocks = len(base.runs) == len(new.runs) == 1
    notes: list[str] = []
    count = block_count(base.runs[0], new.runs[0], notes) if blocks else None
    builder = RowBuilder(base, new, policy, blocks=blocks, block_count=count)
    rows = [
        *builder.summary_rows(),
        *builder.phase_rows(),
        *builder.query_rows(queries),
        *builder.rule_rows(),
        *builder.group_rows(by),
    ]
    policy.check_used(
        [metric for run in (*base.runs, *new.runs) for metric, _ in run.figures]
        + [row.metric for row in rows]
        + [*PHASE_METRICS]
    )
    units = (count or 1, count or 1) if blocks else (len(base.runs), len(new.runs))
    method = judge_all(rows, units, policy, seed, blocks=blocks)
    comparison = Comparison(base, new, rows, method, policy, same_runs=same_runs(base, new))
    comparison.warnings = [*_warnings(base, new, blocks=blocks), *builder.warnings]
    comparison.notes = [*builder.notes(), *notes]
    _withdraw_if_cut_off(comparison)
    _check_losses(comparison, max_loss)
    _check_run_counts(comparison)
    comparison.contributors = list(contributors(comparison))
    return comparison


def _withdraw_if_cut_off(comparison: Comparison) -> None:
    """Withdraws verdicts on counts and sums: a run that was cut off has an unknown part of them."""
    sides = (comparison.base, comparison.new)
    if not any(run.is_cut_off for side in sides for run in side.runs):
        return
    for row in comparison.rows:
        # A user's query may return anything.
        if row.criteria.worse != "none" and (row.kind == "query" or grows(row.metric)):
            row.refuse_verdict(CUT_OFF)


def _check_losses(comparison: Comparison, max_loss: str | None) -> None:
    """Withdraws all verdicts if a side lost more than is allowed."""
    option = f"--max-loss {max_loss}"
    if max_loss is None:
        max_loss = comparison.policy.max_loss
        option = f"the policy's max_loss of {max_loss}"
    if max_loss is None:
        return
    for side in (comparison.base, comparison.new):
        exceeded = [text for run in side.runs if (text := run.too_much_lost(max_loss))]
        if exceeded:
            more = f" (and {len(exceeded) - 1} more runs)" if len(exceeded) > 1 else ""
            comparison.lost = True
            comparison.no_verdict = (
                f"{side.name} lost more than {option} allows: {exceeded[0]}{more}"
            )
            _withdraw_all(comparison, "too much lost")
            return
        if any(run.lost is None for run in side.runs):
            comparison.warnings.append(
                f"{side.name}: a high-level log does not record losses; {option} cannot be checked"
            )


def _check_run_counts(comparison: Comparison) -> None:
    """Withdraws all verdicts if a side has fewer runs than the policy requires."""
    least = comparison.policy.min_runs
    few = [side for side in (comparison.base, comparison.new) if len(side.runs) < least]
    if few and comparison.no_verdict is None:
        comparison.no_verdict = (
            f"too few runs: {few[0].name} has {len(few[0].runs)}, and the policy asks for"
            f" {least} of each side"
        )
        _withdraw_all(comparison, "too few runs")


def _withdraw_all(comparison: Comparison, reason: str) -> None:
    for row in comparison.rows:
        if row.criteria.worse != "none":
            row.refuse_verdict(reason)


def _warnings(base: Side, new: Side, *, blocks: bool) -> list[str]:
    found = [*base.warnings, *new.warnings, *differences(base, new)]
    if blocks:
        found.append(
            "one run of each side: chance is judged by blocks of time within the runs, which cannot"
            " show how much one run differs from the next; a difference may be that of these two runs only"
        )
    for side in (base, new):
        counts: dict[str, int] = {}
        for run in side.runs:
            for caveat in run.caveats:
                counts[caveat] = counts.get(caveat, 0) + 1
        if len(counts) <= _MAX_CAVEATS:
            found += [
                f"{side.name}: {caveat}" + (f" (in {n} runs)" if n > 1 else "")
                for caveat, n in counts.items()
            ]
        else:
            incomplete = sum(bool(run.caveats) for run in side.runs)
            found.append(
                f"{side.name}: {incomplete} of {len(side.runs)} runs are incomplete; to list the losses:"
                " syncline report INPUT losses"
            )
    return found

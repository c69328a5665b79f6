"""The answer of a diff in sentences: how the time in syncs changed, and by which phases, files and threads."""

from __future__ import annotations

from collections.abc import Iterator

from syncline import terminal
from syncline.render import answer as report_answer
from syncline.render import human
from syncline.report.answer import LAST

from ..answer import Answer, Change

__all__ = ["bars", "sentences"]

_WIDTH = 90
_MAX_PHASES = 3


def sentences(answer: Answer) -> Iterator[str]:
    """Yields one sentence for each question. Figures that no side has are left out."""
    if answer.time.base is None and answer.time.new is None:
        return
    syncs = f"{_number(answer.syncs.base)} -> {_number(answer.syncs.new)}"
    yield f"Time in syncs per run: {_change(answer.time)} (syncs: {syncs})."
    base, new = answer.phases
    if base is not None and new is not None and (base or new):
        changes = sorted(
            ((name, Change(base.get(name, 0), new.get(name, 0))) for name in {*base, *new}),
            key=lambda item: (-abs((item[1].new or 0) - (item[1].base or 0)), item[0]),
        )
        listed = "; ".join(f"{report_answer.phase_name(name)} {_change(one)}" for name, one in changes[:_MAX_PHASES])  # fmt: skip
        yield f"Phases that changed most (not tested): {listed}."
    for kind in ("file", "thread"):
        groups = [(name, change) for of, name, change in answer.groups if of == kind]
        if groups:
            listed = "; ".join(f"{human.text(name, 'text')} {_change(one)}" for name, one in groups)
            yield f"{kind.capitalize()}s that changed most (not tested): {listed}."


def bars(answer: Answer, room: int | None = None) -> Iterator[str]:
    """Yields a bar for each side: the phases as shares of the time in syncs of that side, in the same order.

    Args:
        room: the width of a terminal, on which the bars have colours.
    """
    colours = report_answer.phase_colours() if room and terminal.is_coloured() else None
    width = min(_WIDTH, (room or 10_000) - len("base  "))
    sides = dict(zip(("base", "new"), answer.phases, strict=True))
    if not any(sides.values()):
        return
    order = sorted(
        {name for phases in sides.values() for name in phases or ()},
        key=lambda name: (
            LAST.index(name) if name in LAST else -1,
            -max((phases or {}).get(name, 0) for phases in sides.values()),
            name,
        ),
    )
    for name, phases in sides.items():
        if phases is None:
            yield f"{name:<4}  phases not recorded"
        elif phases:
            ordered = {phase: round(phases[phase]) for phase in order if phases.get(phase)}
            yield f"{name:<4}  {report_answer.bar(ordered, width, colours)}"


def _change(change: Change) -> str:
    return f"{human.text(change.base, 'ns')} -> {human.text(change.new, 'ns')}"


def _number(count: float | None) -> str:
    return human.MISSING if count is None else f"{count:,.10g}"

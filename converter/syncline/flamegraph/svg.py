"""An SVG with its own zoom and search, drawn by inferno in the core (converter/core/src/stacks/flamegraph.rs)."""

from __future__ import annotations

from syncline import _core

from .picture import Picture

__all__ = ["render"]

# Percent of the width, about a tenth of a pixel. Browsers do not draw narrower frames.
_MIN_WIDTH = 0.01
_SCALES = {
    "count": (("requests", 1),),
    "ns": (("ns", 1), ("µs", 10**3), ("ms", 10**6), ("s", 10**9)),
    "bytes": (("B", 1), ("KiB", 2**10), ("MiB", 2**20), ("GiB", 2**30)),
}
# inferno shows integers, so the unit is chosen to give the total at least five digits: a precision of 0.01 %.
_DIGITS = 10_000


def render(picture: Picture) -> bytes:
    """Renders the SVG, and adds a remark on frames that it does not show."""
    rows = picture.rows()
    total = picture.new.stacks.total(picture.weight)
    unit, size = _scale(picture.what.unit, total)
    hide_under = _MIN_WIDTH if picture.hide_under is None else picture.hide_under
    ambiguous = picture.ambiguous_weights()
    svg, hidden = _core.draw(
        rows,
        title=picture.title(),
        subtitle=_subtitle(picture, is_ambiguous=bool(ambiguous)),
        notes="\n".join(_notes(picture)),
        unit=unit,
        factor=1 / size,
        frame_is=picture.how.frame_is,
        palette=picture.how.palette,
        hide_under=hide_under,
        perhaps=[([*frames], *more) for frames, more in ambiguous.items()],
    )
    if hidden:
        frames = "1 frame" if hidden == 1 else f"{hidden:,} frames"
        picture.remarks.append(f"not shown: {frames} under {hide_under:g} % of the whole")
    return svg


def _scale(unit: str, total: int) -> tuple[str, int]:
    fine = [scale for scale in _SCALES[unit] if total >= _DIGITS * scale[1]]
    return fine[-1] if fine else _SCALES[unit][0]


def _subtitle(picture: Picture, *, is_ambiguous: bool) -> str:
    """Returns what a reader needs to know about the widths, in one short line."""
    new, base = picture.new, picture.base
    parts = [picture.total_text(new)]
    if base:
        scaled = ", scaled to equal" if picture.normalize else ""
        # The line must fit a window of 900 pixels.
        total = picture.total_text(base).removesuffix(" requests")
        parts.append(f"base {total}{scaled}")
        parts.append("red + more, blue - less" + (", ? names missing" if is_ambiguous else ""))
    elif left_out := picture.left_out(new):
        parts.append(f"{left_out:,} more not known")
    if picture.hide_under is not None:
        parts.append(f"frames under {picture.hide_under:g} % not shown")
    for label, side in (("lost", new), ("base lost", base)):
        if side and side.losses:
            (reason, count), *more = side.losses
            parts.append(
                f"{label}: {reason} {count:,}" + (f" and {len(more)} more" if more else "")
            )
    return " · ".join(parts)


def _notes(picture: Picture) -> list[str]:
    notes = []
    for label, side in (("input", picture.new), ("base", picture.base)):
        if side:
            notes.append(f"{label} {side.path}: {picture.total_text(side)}")
            notes.append(f"{picture.left_out(side):,} more requests: not known")
            notes += side.caveats
    return notes

"""The answer, as data, as text, and as a notebook shows it."""

from __future__ import annotations

import html
from typing import Any

from syncline import terminal
from syncline.input import Input
from syncline.render import answer as rendered
from syncline.render import preface
from syncline.report import answer

__all__ = ["Answer"]


class Answer:
    """Who waited, for what, for which file, and who else was there.

    `str(answer)` is what `syncline report` prints; a notebook shows it with its bar.
    """

    def __init__(self, found: answer.Answer, caveats: list[str], input: Input) -> None:
        """Takes the figures. Use `Run.answer`."""
        self._found = found
        self._caveats = caveats
        self._input = input

    @property
    def data(self) -> dict[str, Any]:
        """The figures as plain values, as `syncline report --format json` prints them: times in ns, None for what is not known. `phases_ns` is by phase, the longest first."""
        return rendered.as_data(
            self._found, self._caveats, self._input.path, can_be_shown=self._input.can_be_shown
        )

    @property
    def sentences(self) -> dict[str, Any]:
        """Its sentences by their subject: `cause`, `total`, `phases`, `worst`, `slowest`, `neighbours`, ... One without figures is absent."""
        return rendered.sentences(self._found)

    def __str__(self) -> str:
        warnings, _ = preface("table", self._caveats)
        answer = rendered.render(
            self._found, self._input.path, can_be_shown=self._input.can_be_shown
        )
        return rendered.render_failures(self._found) + warnings + answer

    def __repr__(self) -> str:
        return f"<syncline.Answer: {self.sentences['total']}>"

    def _repr_html_(self) -> str:
        said = rendered.sentences_of(
            self._found, self._input.path, can_be_shown=self._input.can_be_shown
        )
        parts = [*(f"<p><b>{html.escape(one)}</b></p>" for one in said.get("failed", []))]
        parts += [f"<p>⚠ {html.escape(caveat)}</p>" for caveat in self._caveats]
        parts += [f"<p><b>{html.escape(said['cause'])}</b></p>"] if "cause" in said else []
        parts += [
            f"<p>{html.escape(said[name])}</p>"
            for name in ("runs", "total", "devices", "phases")
            if name in said
        ]
        parts.append(_bar(self._found.phases))
        meanings = "".join(f"<li>{html.escape(one)}</li>" for one in said.get("meanings", []))
        parts += [f"<ul>{meanings}</ul>"] if meanings else []
        if "worst" in said:
            rows = "".join(f"<li>{html.escape(row)}</li>" for row in said["worst"])
            parts.append(f"<p>{html.escape(said['worst_title'])}</p><ol>{rows}</ol>")
        parts += [
            f"<p>{html.escape(said[name])}</p>"
            for name in ("slowest", "neighbours", "advice")
            if name in said
        ]
        steps = "".join(
            f"<li><code>{html.escape(step['command'])}</code> {html.escape(step['shows'])}</li>"
            for step in said["next"]
        )
        return "".join([*parts, f"<p>Go on with</p><ul>{steps}</ul>"])


def _bar(phases: dict[str, int]) -> str:
    """Draws the phases to scale, with their names where a pointer rests and where there is room."""
    whole = sum(phases.values())
    if not whole:
        return ""
    colours = rendered.phase_colours()
    boxes = []
    for phase, ns in phases.items():
        share = ns / whole
        name = html.escape(rendered.phase_name(phase))
        colour = colours.get(phase, "#999999")
        letters = "#000" if terminal.is_light(colour) else "#fff"
        style = f"width:{share:.3%};background:{colour};color:{letters}"
        label = name if share > 0.08 else ""
        boxes.append(
            f'<div title="{name}: {share:.1%}" style="{style};overflow:hidden;white-space:nowrap;padding:2px 0;text-indent:3px">{label}</div>'
        )
    return f'<div style="display:flex;height:1.6em;max-width:60em">{"".join(boxes)}</div>'

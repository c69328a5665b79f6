"""The answer as Markdown, for the summary of a CI job or an issue."""

from __future__ import annotations

from collections.abc import Sequence

from syncline.report.answer import Answer

from .answer import bar, sentences
from .markdown import escaped
from .next_steps import next_steps

__all__ = ["render"]

# Width of the bar in characters.
_WIDTH = 80


def render(answer: Answer, caveats: Sequence[str], path: str, *, can_be_shown: bool) -> str:
    """Renders the answer: the cause first, in bold, then the evidence, then what to type next."""
    said = sentences(answer)
    parts = [f"**FAILED: {escaped(one)}**" for one in said.get("failed", [])]
    parts += [f"> **Warning:** {escaped(caveat)}" for caveat in caveats]
    parts += [f"**{escaped(said['cause'])}**"] if "cause" in said else []
    parts += [
        escaped(said[name]) for name in ("runs", "total", "devices", "phases") if name in said
    ]
    if answer.phases and "phases" in said:
        parts.append(f"```text\n{bar(answer.phases, _WIDTH)}\n```")
    parts += [_list(said["meanings"])] if "meanings" in said else []
    if said.get("worst"):
        parts.append(f"{escaped(said['worst_title'])}\n\n{_list(said['worst'], '1.')}")
    parts += [escaped(said[name]) for name in ("slowest", "neighbours", "advice") if name in said]
    steps = next_steps(answer, path, can_be_shown=can_be_shown)
    parts.append("\n".join(["```sh", *(f"{command}   # {why}" for command, why in steps), "```"]))
    return "\n\n".join(parts) + "\n"


def _list(lines: Sequence[str], mark: str = "-") -> str:
    return "\n".join(f"{mark} {escaped(line)}" for line in lines)

"""Writes the man pages from the help of the commands: `python -m tools.man`, with `--check` only to name stale files.

They are kept in man/, because a build of the wheel has no Syncline yet that could print its help.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click
from syncline.cli.group import cli

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "man"


def pages() -> dict[str, str]:
    """The text of each page by the name of its file: one for `syncline`, and one for each command."""
    root = click.Context(cli, info_name="syncline")
    found = {"syncline.1": _page("syncline", root, _commands(root))}
    for name in cli.list_commands(root):
        command = cli.get_command(root, name)
        assert command is not None
        context = click.Context(command, root, name)
        inner: list[str] = []
        if isinstance(command, click.Group):
            for part in command.list_commands(context):
                sub = command.commands[part]
                inner += [f".SH {_text(name.upper())} {_text(part.upper())}"]
                inner += [*_body(click.Context(sub, context, part))]
        found[f"syncline-{name}.1"] = _page(f"syncline-{name}", context, inner)
    return found


def _page(title: str, context: click.Context, more: list[str]) -> str:
    command = context.command
    summary = command.get_short_help_str(200).rstrip(".")
    lines = [
        f'.TH {title.upper()} 1 "" "Syncline" "Syncline"',
        ".SH NAME",
        f"{_text(title)} \\- {_text(summary[:1].lower() + summary[1:])}",
        ".SH SYNOPSIS",
        *_usage(context),
        ".SH DESCRIPTION",
        *_body(context, has_usage=False),
        *more,
    ]
    if title != "syncline":
        lines += [".SH SEE ALSO", ".BR syncline (1)"]
    return "\n".join(lines) + "\n"


def _usage(context: click.Context) -> list[str]:
    return [
        f".B {_text(context.command_path)}",
        _text(" ".join(context.command.collect_usage_pieces(context))),
    ]


def _body(context: click.Context, *, has_usage: bool = True) -> Iterator[str]:
    command = context.command
    if has_usage:
        yield from _usage(context)
        yield ".PP"
    for number, paragraph in enumerate(re.split(r"\n\s*\n", command.help or "")):
        if number:
            yield ".PP"
        yield _text(" ".join(paragraph.replace("\b", "").split()))
    options = [
        param for param in command.params if isinstance(param, click.Option) and not param.hidden
    ]
    if options:
        yield ".SH OPTIONS" if not has_usage else ".PP"
    for option in options:
        record = option.get_help_record(context)
        assert record is not None
        yield ".TP"
        yield f"\\fB{_text(record[0])}\\fR"
        yield _text(" ".join(record[1].split()))
    if command.epilog and not has_usage:
        title, _, examples = command.epilog.replace("\b", "").strip().partition(":")
        yield f".SH {title.upper()}"
        yield ".nf"
        yield from (_text(line.strip()) for line in examples.strip().splitlines())
        yield ".fi"


def _commands(context: click.Context) -> list[str]:
    lines = [".SH COMMANDS"]
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        lines += [".TP", f"\\fB{_text(name)}\\fR", _text(command.get_short_help_str(200))]
        lines.append(f"See \\fBsyncline\\-{_text(name)}\\fR(1).")
    return lines


def _text(text: str) -> str:
    """Text as roff takes it: a dash that can be copied, and no line that begins like a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text


def main() -> int:
    """Writes the pages, or names those that are stale."""
    made = pages()
    stale = [
        name
        for name, text in made.items()
        if not (FOLDER / name).is_file() or (FOLDER / name).read_text() != text
    ]
    stale += [file.name for file in FOLDER.glob("*.1") if file.name not in made]
    if "--check" in sys.argv:
        for name in stale:
            print(f"man/{name}: stale: python -m tools.man writes it")
        return bool(stale)
    FOLDER.mkdir(exist_ok=True)
    for name in stale:
        if name in made:
            (FOLDER / name).write_text(made[name])
        else:
            (FOLDER / name).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())

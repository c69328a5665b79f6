"""`syncline help`: the help of a command, or what a report answers and what its columns mean."""

from __future__ import annotations

import difflib

import click

from syncline import terminal
from syncline.cli.errors import Failure
from syncline.cli.options import example
from syncline.cli.output import show

# Lines longer than this are hard to read, so a file or a wide window gets none.
_WIDE = 100


def _complete(ctx: click.Context, _param: click.Parameter, begun: str) -> list[str]:
    from syncline.cli.group import COMMANDS
    from syncline.report import catalogue

    return [name for name in (*COMMANDS, *catalogue.names()) if name.startswith(begun)]


@click.command(
    "help",
    epilog=example("syncline help diff", "syncline help model fit", "syncline help bystanders"),
)
@click.argument("topic", nargs=-1, metavar="[COMMAND|REPORT]", shell_complete=_complete)
@click.pass_context
def command(ctx: click.Context, topic: tuple[str, ...]) -> None:
    """Explains a command (`help diff`, `help model fit`) or a report with its columns (`help bystanders`)."""
    root = ctx.find_root()
    found: click.Command = root.command
    context = root
    for place, name in enumerate(topic):
        inner = found.get_command(context, name) if isinstance(found, click.Group) else None
        if inner is None:
            if place == 0 and len(topic) == 1 and (text := _of_report(name)):
                show(text)
                return
            raise Failure(
                f"no command and no report is called '{' '.join(topic)}'", _hint(topic[0])
            )
        context = click.Context(inner, context, name)
        found = inner
    show(found.get_help(context) + "\n")


def _hint(name: str) -> str:
    from syncline.cli.group import COMMANDS
    from syncline.report import catalogue

    close = difflib.get_close_matches(name, [*COMMANDS, *catalogue.names()], 1)
    return (
        f"did you mean {close[0]}?"
        if close
        else "list them: syncline --help, syncline report --list"
    )


def _of_report(name: str) -> str | None:
    """Returns what a report answers, and its columns with their units; None if there is no such report."""
    from syncline.report import catalogue

    if name not in catalogue.names():
        return None
    report = catalogue.load(name)
    lines = [report.title, "", report.description, "", "Columns, as csv and json name them:"]
    wide = max(len(column.name) for column in report.columns)
    units = max(len(column.unit) for column in report.columns)
    room = min(terminal.width() or _WIDE, _WIDE)
    indent = " " * (wide + units + 6)
    for column in report.columns:
        text = click.wrap_text(
            column.text, room, f"  {column.name:{wide}}  {column.unit:{units}}  ", indent
        )
        lines.append(text)
    return "\n".join([*lines, "", f"Print it: syncline report INPUT {name}"]) + "\n"

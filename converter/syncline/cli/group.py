"""The group of all commands."""

from __future__ import annotations

import importlib
from typing import Any

import click

from syncline.printable import printable

# Commands, each with the module of the same name (`_` for `-`). A module is imported only when it is used, so
# that `--help` is fast.
COMMANDS = (
    "record",
    "convert",
    "inspect",
    "report",
    "advise",
    "query",
    "flamegraph",
    "diff",
    "baseline",
    "whatif",
    "model",
    "ingest",
    "trend",
    "open",
    "extension-server",
    "doctor",
)


class Escaped(BaseException):
    """Carries the exception that is its cause through click, which would end the process with a code of its own."""


class Commands(click.Group):
    """A group that imports the module of a command when the command is requested."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = name.replace("-", "_")
        return importlib.import_module(f"syncline.cli.{module}").command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not ctx.resilient_parsing:
            # Only a wrong name needs it.
            import difflib

            if close := difflib.get_close_matches(name, COMMANDS, 1):
                ctx.fail(f"No such command {printable(name)!r}. Did you mean {close[0]}?")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, EOFError, OSError) as error:
            raise Escaped from error


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example:  syncline report tests/data/thesis/small4.log",
)
@click.version_option(package_name="syncline", message="syncline %(version)s")
def cli() -> None:
    """Shows what fsync waits for: converts writeback logs to Perfetto traces and reports."""

"""The command line: one module per command. No other package imports this one."""

from __future__ import annotations

import importlib
import signal
import sys
from typing import NoReturn

import click

# Commands, each with the module of the same name. A module is imported only when it is used, so
# that `--help` is fast.
COMMANDS = (
    "record",
    "convert",
    "inspect",
    "report",
    "query",
    "flamegraph",
    "diff",
    "baseline",
    "open",
    "doctor",
)


class Commands(click.Group):
    """A group that imports the module of a command when the command is requested."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        return importlib.import_module(f"syncline.cli.{name}").command


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example:  syncline report tests/data/thesis/small4.log",
)
@click.version_option(package_name="syncline", message="syncline %(version)s")
def cli() -> None:
    """Shows what fsync waits for: converts writeback logs to Perfetto traces and reports."""


def _exit(number: int, _frame: object) -> NoReturn:
    sys.exit(128 + number)


def main() -> NoReturn:
    """Runs a command.

    Exit codes: 0 success, 1 a regression (diff), 2 wrong use, 3 unreadable input, 4 too many
    losses, 5 a diff without a verdict, 128 + N ended by signal N.
    """
    from syncline.cli import errors

    # So that a command that is terminated removes its temporary files.
    for number in (signal.SIGTERM, signal.SIGHUP):
        # nohup makes a command ignore SIGHUP.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _exit)
    sys.exit(errors.run(cli))

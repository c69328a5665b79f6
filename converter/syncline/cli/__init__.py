"""The command line; a file a command. Nothing imports this package."""

from __future__ import annotations

import importlib
import signal
import sys
from typing import NoReturn

import click

# Name of a command and the module that holds it, imported only when it is used: `--help` stays fast.
COMMANDS = {
    "record": "record",
    "convert": "convert",
    "inspect": "inspect",
    "report": "report",
    "query": "query",
    "flamegraph": "flamegraph",
    "diff": "diff",
    "baseline": "baseline",
    "open": "open",
    "doctor": "doctor",
}


class Commands(click.Group):
    """Commands by name, each loaded when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"syncline.cli.{COMMANDS[name]}")
        return module.command


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Example:  syncline report tests/data/thesis/small4.log",
)
@click.version_option(package_name="syncline", message="syncline %(version)s")
def cli() -> None:
    """What your fsync waits for: writeback logs become Perfetto traces and reports."""


def main() -> NoReturn:
    """Runs a command. Exit codes: 0 fine, 1 a regression (diff), 2 wrong use, 3 unreadable input, 4 too much lost, 5 a diff that cannot tell, 130 interrupted."""
    from syncline.cli import errors

    # A killed conversion removes its half-written file, as an interrupted one does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(errors.run(cli))

"""`syncline extension-server`: writes the files of an extension server of the Perfetto UI."""

from __future__ import annotations

from pathlib import Path

import click

from syncline import _core, interruptible
from syncline.cli.errors import say
from syncline.cli.options import example
from syncline.cli.types import FOLDER


@click.command("extension-server", epilog=example("syncline extension-server --out extensions"))
@click.option(
    "--out",
    required=True,
    type=FOLDER,
    metavar="DIR",
    help="Folder for the files. It is created if it does not exist; files of the same names are replaced.",
)
def command(out: str) -> None:
    """Writes the files of an extension server for the Perfetto UI.

    With it, every Perfetto UI from v55 on has the macros `Syncline: slowest syncs`, `whose data`, `empty syncs` and
    `queue against latency`, and Syncline's tables in SQL, on traces that Syncline wrote. Serve DIR with any HTTPS
    server, or commit it to a repository on GitHub, and add it in the UI: Settings > Extension Servers.
    """
    from syncline.ui import extension_server

    files = [
        (str(Path(out, name)), text.encode()) for name, text in extension_server.files().items()
    ]
    # A UI that reads half a set has macros without their tables.
    interruptible.call(lambda: _core.write_all(files))
    say(f"the extension server -> {out}: add it in the Perfetto UI at Settings > Extension Servers")

"""`syncline completion`: prints what makes a shell complete commands, options, reports and files."""

from __future__ import annotations

import click

from syncline.cli.options import example
from syncline.cli.output import show

_SHELLS = ("bash", "zsh", "fish")


@click.command(
    "completion",
    epilog=example(
        "syncline completion bash > ~/.local/share/bash-completion/completions/syncline",
        'syncline completion zsh > "${fpath[1]}/_syncline"',
        "syncline completion fish > ~/.config/fish/completions/syncline.fish",
    ),
)
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Prints the completion of a shell: of commands, options, their values, names of reports and files.

    Write it where the shell looks for completions, as below, and start a new shell.
    """
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None
    show(made(ctx.find_root().command, {}, "syncline", "_SYNCLINE_COMPLETE").source() + "\n")

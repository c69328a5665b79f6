"""The command line: one module per command. No other package imports this one."""

from __future__ import annotations

import gc
import signal


def main() -> None:
    """Runs a command and ends the process.

    Exit codes: 0 success, 1 a regression (diff), a finding (advise --fail-on) or a violated rule (check), 2 wrong use
    or an output that cannot be written, 3 unreadable input, 4 too many losses, 5 a gate without a verdict, 129, 130, 143 ended by a signal.
    """
    # Little of what a command allocates is ever garbage. To look for it every 700 objects takes a twentieth of a small report.
    gc.set_threshold(100_000)
    # Until the signals have handlers there is nothing to clean up: Ctrl-C ends the process, without a traceback.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from syncline import terminal
    from syncline.cli import errors, process
    from syncline.cli.group import cli

    terminal.use_colour("auto")
    process.open_streams()
    process.catch_signals()
    process.end(errors.run(cli))

"""The signals of the programs that tests start."""

from __future__ import annotations

import signal


def use_default_signals() -> None:
    """Makes this process obey signals again, before it runs a program.

    A background job of a script ignores SIGINT, nohup ignores SIGHUP, and children inherit that.
    """
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)

"""A process that outlives a recorder which is killed, and removes what that has left in the kernel.

Nothing else could: SIGKILL runs no handler, and a tracing instance or a probe that stays behind slows every sync of the machine
until the next recording.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from syncline.record import dynamic_events, itself, scratch, slow_syncs, tracefs, tracefs_mount

# How long the kernel may take to end the recorder.
_ENDED_WITHIN_S = 10.0


class Guard:
    """Started before the first change to the kernel, ended after the last one is undone."""

    def __init__(self, mounted: Path) -> None:
        pid, start = tracefs.owner()
        # It must not end with the terminal, or by Ctrl-C.
        command, inherited = itself.command("guard", str(mounted), str(pid), start)
        self._process = subprocess.Popen(
            command,
            pass_fds=inherited,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )

    def end(self) -> None:
        """Ends it without a further effect. It may be called again."""
        if self._process.stdin is None or self._process.stdin.closed:
            return
        with contextlib.suppress(OSError):
            self._process.stdin.write(b"\n")
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        self._process.wait()


def main(arguments: list[str]) -> None:
    """Waits for the end of a recorder: tracefs, its process id and its start time."""
    mounted, pid, start = Path(arguments[0]), int(arguments[1]), arguments[2]
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)
    if os.read(0, 1):
        return
    until = time.monotonic() + _ENDED_WITHIN_S
    while tracefs.is_running(pid, start) and time.monotonic() < until:
        time.sleep(0.05)
    slow_syncs.remove_dead(mounted)
    tracefs.remove_dead_instances(mounted)
    dynamic_events.remove_dead_groups(mounted)
    tracefs_mount.unmount_left_behind()
    scratch.remove_dead()


if __name__ == "__main__":
    main(sys.argv[1:])

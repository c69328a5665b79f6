"""A program that records events into a log while it runs, such as bpftrace."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from syncline.record.errors import RecordError
from syncline.record.log_copy import LogCopy

# A tracer that has used no CPU time for this long has attached its probes and read its buffers.
_QUIET_S = 0.5
# A busy tracer has attached its probes if it has added none for this long. The kernel may take
# seconds to verify a program.
_SETTLED_S = 20.0
_READY_WITHIN_S = 300.0
_DRAINED_WITHIN_S = 300.0
# A tracer that has got SIGINT is killed if it makes no progress for this long.
_STOP_IDLE_S = 60.0
# One that works on, as if the signal were lost, is killed after this time.
_EXIT_WITHIN_S = 300.0
# Pages of the perf buffer of each CPU. bpftrace's default of 64 fills up within a few syncs.
_ENVIRONMENT = {"BPFTRACE_PERF_RB_PAGES": "2048"}

_PR_SET_PDEATHSIG = 1
# Flag of a process in the kernel (include/linux/sched.h): it is ending.
_PF_EXITING = 0x4
# How often the recorder looks whether the tracer has read all of its buffers.
_LOOK_EVERY_NS = 10**8
# Between an event and the interrupt that wakes the tracer for it.
_WOKEN_WITHIN_NS = 5 * 10**7
# epoll_wait, epoll_pwait and epoll_pwait2.
_EPOLL = {"x86_64": (232, 281, 441), "aarch64": (22, 441)}


def which(name: str) -> str | None:
    """Finds a program on PATH or in the sbin folders."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin:/usr/local/sbin")


def stop_with_parent(number: int, parent: int) -> None:
    """Lets the kernel send a signal to this process when the recorder is killed. For `preexec_fn`."""
    if number != signal.SIGKILL:
        # A shell that starts the recorder in the background ignores SIGINT, and programs inherit that.
        signal.signal(number, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def how_it_ended(name: str, code: int | None) -> str:
    """Words the exit of a recorder that nobody has asked to exit."""
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            return f"{name} was killed by {signal.Signals(-code).name}"
    return f"{name} exited with {code}"


class Tracer:
    """A program that writes a log until it gets SIGINT."""

    def __init__(self, name: str, command: list[str], log: Path) -> None:
        """Starts the program. Its output goes to `log`, its messages to `log` with `.err` appended."""
        self.name = name
        self.command = command
        self.log = log
        self.errors = log.with_name(f"{log.name}.err")
        self._was_stopped = False
        # CLOCK_BOOTTIME until which the log has all events; 0 before it was known.
        self.known_until = 0
        self._looked_ns = 0
        source, out = os.pipe()
        self._copy = LogCopy(source, log)
        with os.fdopen(out, "wb") as pipe, self.errors.open("wb") as err:
            try:
                # A session of its own, so that Ctrl-C reaches only the recorder, which stops it.
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=pipe,
                    stderr=err,
                    env=os.environ | _ENVIRONMENT,
                    start_new_session=True,
                    preexec_fn=functools.partial(stop_with_parent, signal.SIGINT, os.getpid()),
                )
            except OSError as error:
                self._copy.finish()
                raise RecordError(f"cannot start {command[0]}: {error.strerror}") from None

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_until_attached(self) -> None:
        """Waits until the tracer has attached its probes.

        bpftrace does not report this. It is busy until then and sleeps afterwards, unless there are
        syncs all the time.

        Raises:
            RecordError: the tracer has exited, or takes too long.
        """
        until = time.monotonic() + _READY_WITHIN_S
        quiet_since = settled_since = time.monotonic()
        ticks_before, probes_before = -1, 0
        while time.monotonic() < until:
            if self._process.poll() is not None:
                raise self._exit_error()
            now, ticks, probes = time.monotonic(), self._cpu_ticks(), self._probes()
            if ticks != ticks_before:
                quiet_since, ticks_before = now, ticks
            if probes != probes_before:
                quiet_since = settled_since = now
                probes_before = probes
            is_quiet, is_settled = now - quiet_since >= _QUIET_S, now - settled_since >= _SETTLED_S
            if probes and (is_quiet or is_settled):
                return
            time.sleep(0.05)
        raise RecordError(
            f"{self.name} has not attached its probes within {_READY_WITHIN_S:.0f} s",
            f"run it by hand: {' '.join(self.command)}",
        )

    def _cpu_ticks(self) -> int:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
            return int(fields[11]) + int(fields[12])
        return -2

    def _probes(self) -> int:
        """Returns how many BPF programs, BPF maps and perf events the tracer has open."""
        count = 0
        with contextlib.suppress(OSError):
            for fd in Path(f"/proc/{self.pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    name = str(fd.readlink())
                    count += name.startswith(("anon_inode:bpf", "anon_inode:[perf_event"))
        return count

    def _exit_error(self) -> RecordError:
        text = self.errors.read_text(errors="replace").strip()
        reason = text.splitlines()[-1] if text else f"it exited with {self._process.returncode}"
        return RecordError(f"{self.name} failed: {reason}", "see `syncline doctor`")

    def failure(self) -> str | None:
        """Returns why the tracer records no more; None while it does, and after `stop`."""
        if (failed := self._copy.failed) is not None:
            return f"{self.log.name}: {(failed.strerror or '').lower()}"
        if self._was_stopped or self._process.poll() is None:
            self._look()
            return None
        return how_it_ended(self.name, self._process.returncode)

    def _look(self) -> None:
        """Notes the time if the tracer waits for events: then it has read those before it.

        What it has read last says less, because it reads the buffers of the CPUs one after the other.
        """
        now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        if now - self._looked_ns >= _LOOK_EVERY_NS:
            self._looked_ns = now
            if self._waits():
                self.known_until = now - _WOKEN_WITHIN_NS

    def _waits(self) -> bool:
        """Returns whether the tracer sleeps until there are new events."""
        with contextlib.suppress(OSError, ValueError):
            # `running` if it does not sleep.
            call = Path(f"/proc/{self.pid}/syscall").read_text().split()[0]
            # Read afterwards: a process that is killed stays in its call while the kernel detaches its probes, which takes seconds.
            flags = int(Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[6])
            is_exiting = bool(flags & _PF_EXITING)
            return not is_exiting and int(call) in _EPOLL.get(os.uname().machine, ())
        return False

    def stop(self) -> int:
        """Waits until the tracer has read its buffers, stops it and returns its exit code."""
        if self._process.poll() is None:
            self._was_stopped = True
            self._wait_until_drained()
            self._process.send_signal(signal.SIGINT)
            self._wait_for_exit()
        self._copy.finish()
        if self.errors.exists() and self.errors.stat().st_size == 0:
            self.errors.unlink()
        return self._process.returncode

    def _wait_until_drained(self) -> None:
        """Waits until the tracer has read all events up to now.

        bpftrace discards what is in its buffers when it gets a signal. It has read them when it is
        idle or, if there are new events all the time, when it has written one that is newer than now.
        """
        now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        until = time.monotonic() + _DRAINED_WITHIN_S
        quiet_since, before = time.monotonic(), -1
        while self._process.poll() is None and time.monotonic() < until:
            ticks = self._cpu_ticks()
            if ticks != before:
                quiet_since, before = time.monotonic(), ticks
            if time.monotonic() - quiet_since >= _QUIET_S or self.last_time() > now:
                return
            time.sleep(0.05)

    def last_time(self) -> int:
        """Returns the time in ns of the last event in the log; 0 if it is unknown."""
        with contextlib.suppress(OSError, ValueError), self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - (1 << 16)))
            for line in reversed(log.read().splitlines()[1:]):
                if line[:1].isdigit():
                    return int(line.split(b" ", 1)[0])
        return 0

    def _wait_for_exit(self) -> None:
        """Waits until the tracer has exited. Kills it if it makes no progress, and if it takes too long."""
        idle_since, before = time.monotonic(), (-1, -1)
        until = time.monotonic() + _EXIT_WITHIN_S
        while self._process.poll() is None:
            now = (self._cpu_ticks(), self.log.stat().st_size)
            if now != before:
                idle_since, before = time.monotonic(), now
            if time.monotonic() > min(until, idle_since + _STOP_IDLE_S):
                self._process.kill()
                self._process.wait()
                return
            time.sleep(0.02)

    def kill(self) -> None:
        """Kills the tracer if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._copy.finish()

"""Other programs that record: bpftrace with our scripts, and strace."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

from syncline.folders import folder
from syncline.record.errors import RecordError

# A tracer that has nothing to say for so long has attached its probes.
_QUIET_S = 0.5
# One that has much to say has, if nothing was added for so long: the kernel takes seconds to verify a program.
_SETTLED_S = 20.0
_READY_WITHIN_S = 300.0
_DRAINED_WITHIN_S = 300.0
# Pages for each CPU on their way out of the kernel. bpftrace's own 64 are full within a few syncs.
_ROOM = {"BPFTRACE_PERF_RB_PAGES": "2048"}


def bpf_root() -> Path:
    """The folder with the bpftrace scripts, of the package or of the checkout."""
    return folder("bpf", "stacks.bt")


def bpftrace_version(program: str) -> tuple[int, int] | None:
    """Its version, `None` where it does not say."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        said = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=30, check=False
        )
        found = re.search(r"v?(\d+)\.(\d+)", said.stdout + said.stderr)
        if found:
            return int(found[1]), int(found[2])
    return None


def script(name: str, version: tuple[int, int] | None) -> Path:
    """The variant of a script that this bpftrace reads."""
    old = bpf_root() / f"{name}-0.17.bt"
    if version is not None and version < (0, 20) and old.is_file():
        return old
    return bpf_root() / f"{name}.bt"


def fitted(path: Path, folder: Path) -> Path:
    """The script with the parts switched on that this kernel has events for; in `folder` if it has such parts.

    Raises:
        RecordError: the events cannot be looked at.
    """
    if "\n// if " not in path.read_text():
        return path
    done = subprocess.run(
        ["sh", str(path.with_name("fit.sh")), str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RecordError(f"{path.name} cannot be fitted to this kernel: {done.stderr.strip()}")
    made = folder / path.name
    made.write_text(done.stdout)
    return made


_PR_SET_PDEATHSIG = 1


def _end_with_us() -> None:
    """A tracer whose recorder is killed is told to stop by the kernel."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT)


class Tracer:
    """A program that writes a log until it is told to stop."""

    def __init__(self, name: str, command: list[str], log: Path) -> None:
        """`log` takes its output, `log` with `.err` behind its name what it has to say."""
        self.name = name
        self.command = command
        self.log = log
        self.errors = log.with_name(f"{log.name}.err")
        with log.open("wb") as out, self.errors.open("wb") as err:
            try:
                # Its own session: Ctrl-C is for us, who stop it in good order.
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    env=os.environ | _ROOM,
                    start_new_session=True,
                    preexec_fn=_end_with_us,
                )
            except OSError as error:
                raise RecordError(f"cannot start {command[0]}: {error.strerror}") from None

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_until_attached(self) -> None:
        """Returns when its probes are in place.

        bpftrace does not say when they are. It works hard until then, and sleeps after it, unless there are syncs all the time.

        Raises:
            RecordError: it has ended, or takes too long.
        """
        until = time.monotonic() + _READY_WITHIN_S
        quiet_since = settled_since = time.monotonic()
        ticks_before, probes_before = -1, 0
        while time.monotonic() < until:
            if self._process.poll() is not None:
                raise self._ended()
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
            f"try it by hand: {' '.join(self.command)}",
        )

    def _cpu_ticks(self) -> int:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
            return int(fields[11]) + int(fields[12])
        return -2

    def _probes(self) -> int:
        """Programs, maps and events of the kernel's that it holds."""
        held = 0
        with contextlib.suppress(OSError):
            for fd in Path(f"/proc/{self.pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    name = str(fd.readlink())
                    held += name.startswith(("anon_inode:bpf", "anon_inode:[perf_event"))
        return held

    def _ended(self) -> RecordError:
        text = self.errors.read_text(errors="replace").strip()
        reason = text.splitlines()[-1] if text else f"it ended with {self._process.returncode}"
        return RecordError(
            f"{self.name} failed: {reason}",
            f"all that it said is in {self.errors}; see `syncline doctor`",
        )

    @property
    def ended(self) -> bool:
        """Whether it is gone, which it should not be before it is stopped."""
        return self._process.poll() is not None

    def stop(self) -> int:
        """Lets it drain its buffers, however long that takes as long as it gets on, and returns its exit code."""
        if self._process.poll() is None:
            self._wait_until_drained()
            self._process.send_signal(signal.SIGINT)
            self._wait_while_it_works()
        if self.errors.exists() and self.errors.stat().st_size == 0:
            self.errors.unlink()
        return self._process.returncode

    def _wait_until_drained(self) -> None:
        """bpftrace throws away what is in its buffers when it is told to stop, so it is told when it has read them.

        That is when it rests, or, where new events never end, when it has come to those of after now.
        """
        now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        until = time.monotonic() + _DRAINED_WITHIN_S
        quiet_since, before = time.monotonic(), -1
        while self._process.poll() is None and time.monotonic() < until:
            ticks = self._cpu_ticks()
            if ticks != before:
                quiet_since, before = time.monotonic(), ticks
            if time.monotonic() - quiet_since >= _QUIET_S or self._last_time() > now:
                return
            time.sleep(0.05)

    def _last_time(self) -> int:
        """Time of the last event in the log, 0 where it cannot be told."""
        with contextlib.suppress(OSError, ValueError), self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - (1 << 16)))
            for line in reversed(log.read().splitlines()[1:]):
                if line[:1].isdigit():
                    return int(line.split(b" ", 1)[0])
        return 0

    def _wait_while_it_works(self) -> None:
        idle_since, before = time.monotonic(), (-1, -1)
        while self._process.poll() is None:
            now = (self._cpu_ticks(), self.log.stat().st_size)
            if now != before:
                idle_since, before = time.monotonic(), now
            elif time.monotonic() - idle_since > 60:
                self._process.kill()
                self._process.wait()
                return
            time.sleep(0.02)

    def kill(self) -> None:
        """Ends it without ceremony."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def which(name: str) -> str | None:
    """A program on PATH, or where administrators' programs are."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin:/usr/local/sbin")

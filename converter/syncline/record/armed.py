"""An armed recording: the ring buffers overwrite themselves for days, and are saved when something happens.

So nobody has to be there at the right moment. What is saved is a run directory with the seconds before and after, and the reason.
"""

from __future__ import annotations

import contextlib
import re
import signal
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from syncline.record import machine, manifest, routes, tracefs
from syncline.record.awaited import Awaited
from syncline.record.captures import KEY, Captures
from syncline.record.errors import RecordError
from syncline.record.occasions import LogLines, Pressure, Signals, wait
from syncline.record.recorders import Recorders, Say
from syncline.record.request import (
    Request,
    check_exists,
    remove_dead_instances,
    unable,
)
from syncline.record.routes import Route
from syncline.record.run_folder import RunFolder
from syncline.record.slow_syncs import Slow, SlowSyncs
from syncline.record.tracefs_mount import mounted
from syncline.record.watch import Scanner, StopSignal, stop_signal

# The routes whose buffers can overwrite themselves.
ROUTES: tuple[routes.Name, ...] = ("ring-buffer", "dynamic-events")
_BUFFER_FOLDER = ".buffers"
_FAILURE = "failure: "
# The reason of a capture that somebody asks for, which no limit of time keeps back.
_ASKED = "SIGUSR1"
# How long nothing is looked at, if nothing happens. A log is looked at more often.
_LOOK_EVERY_S = 1.0
_LOG_EVERY_S = 0.25
# Reading the kernel's tables costs milliseconds.
_FORGET_EVERY_S = 60.0
_S = 10**9
# A sync is saved with this much time before it, even if `keep_s` is shorter than the sync.
_BEFORE_S = 1.0
# After how long it is said how much time the buffers hold.
_SAY_HELD_AFTER_S = 10.0
# A sync that is longer by this than that of the last capture is saved in spite of `every_s`, because the last one may have been its harbinger.
_WORSE = 2
# A page of a buffer on which this much is wasted is usual.
_SPARE = 1.25


@dataclass(frozen=True)
class Arming:
    """When to save, how much, and how often."""

    slower_than_ns: int | None = None
    pattern: re.Pattern[str] | None = None
    # The log whose lines are compared with the pattern.
    log: str | None = None
    # The share of two seconds in which some task waits for I/O.
    pressure: float | None = None
    # How many seconds before the occasion are saved, and how many after it.
    keep_s: float = 20.0
    after_s: float = 2.0
    # The recording ends after so many captures; None for no limit.
    captures: int | None = None
    # Time from one capture to the next.
    every_s: float = 0.0
    disk_bytes: int = 1 << 30


@dataclass
class _Occasion:
    """Why a capture is saved. More may happen before it is."""

    at_ns: int
    reason: str
    slow: Slow | None = None
    more: int = 0

    @property
    def longest_ns(self) -> int:
        return self.slow.dur_ns if self.slow is not None else 0


@dataclass
class _Counts:
    saved: int = 0
    # Occasions that were not saved, by why.
    skipped: dict[str, int] = field(default_factory=dict)

    def skip(self, why: str, count: int = 1) -> None:
        self.skipped[why] = self.skipped.get(why, 0) + count


def armed(request: Request, arming: Arming, say: Say) -> int:
    """Saves captures into the folder of the request until a limit, the time of the request or a signal ends it. Returns their number.

    Raises:
        RecordError: nothing could be recorded.
    """
    check_exists(request.filter.pid)
    with mounted(say):
        remove_dead_instances(say)
        cannot = {
            name: RecordError("its log grows, and cannot overwrite itself")
            for name in routes.NAMES
            if name not in ROUTES
        }
        chosen = routes.choose(request.route, "machine", unable(request) | cannot)
        route = routes.without_program(chosen)
        captures = Captures(request.folder, arming.disk_bytes)
        captures.remove_left(_BUFFER_FOLDER)
        name = captures.folder / f"{_BUFFER_FOLDER}-{'-'.join(map(str, tracefs.owner()))}"
        with contextlib.closing(RunFolder.create(name, replace=False)) as buffers:
            try:
                with _Watch(request, arming, route, captures, buffers, say) as watch:
                    return watch.run()
            finally:
                buffers.remove()


class _Watch:
    """The recorders, what is waited for, and the captures so far."""

    def __init__(
        self,
        request: Request,
        arming: Arming,
        route: Route,
        captures: Captures,
        buffers: RunFolder,
        say: Say,
    ) -> None:
        self._request, self._arming, self._route = request, arming, route
        self._captures, self._say = captures, say
        self._buffers = buffers
        self._recorders = Recorders()
        self._scanner = Scanner()
        self._counts = _Counts()
        self._slow: SlowSyncs | None = None
        self._log: LogLines | None = None
        self._pressure: Pressure | None = None
        self._signals = Signals()
        self._stack = contextlib.ExitStack()
        # (CLOCK_BOOTTIME, time that the machine has been suspended until then), newest last.
        self._suspended: deque[tuple[int, int]] = deque(maxlen=1_000)
        self._awaited: Awaited | None = None
        self._next_at = 0.0
        # The longest sync of the last capture.
        self._last_ns = 0
        self._forget_at = time.monotonic() + _FORGET_EVERY_S

    def __enter__(self) -> _Watch:
        with contextlib.ExitStack() as stack:
            self._start(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _start(self, stack: contextlib.ExitStack) -> None:
        request, arming = self._request, self._arming
        self._say(f"route: {self._route.name}, because {self._route.why}")
        if arming.pattern is not None:
            self._log = LogLines(arming.log or "-", arming.pattern)
            stack.callback(self._log.close)
        if arming.pressure is not None:
            self._pressure = Pressure(arming.pressure)
            stack.callback(self._pressure.close)
        stack.callback(self._recorders.close)
        self._recorders.start(
            self._route,
            self._buffers.path,
            request.filter,
            request.buffer_kb,
            self._scanner.tasks,
            has_writes=request.has_writes,
            has_reads=request.has_reads,
            has_files=request.has_files,
            overwrites=True,
        )
        if arming.slower_than_ns is not None:
            tracing = tracefs.find()
            if tracing is None:
                raise RecordError("tracefs is not mounted", "see `syncline doctor`")
            self._slow = SlowSyncs(tracing, arming.slower_than_ns, request.filter)
            stack.callback(self._slow.close)
        self._stop = stack.enter_context(stop_signal())
        stack.enter_context(self._signals.handled())
        self._note_suspended()
        self._recorders.begin()
        if request.filter.pid is not None:
            self._recorders.follow(request.filter.pid)
        if request.filter.cgroup is not None or request.filter.comm is not None:
            self._scanner.scan_all()
            self._awaited = Awaited(request.filter, self._scanner, self._recorders, self._say)
        self._say(f"armed: waiting for {self._waits_for()}; Ctrl-C ends it")

    def _waits_for(self) -> str:
        arming = self._arming
        what = []
        if arming.slower_than_ns is not None:
            where = "" if self._slow is not None and self._slow.is_in_kernel else ", compared here, because this kernel cannot"  # fmt: skip
            what.append(f"a sync slower than {arming.slower_than_ns / 1e6:g} ms{where}")
        if arming.pattern is not None:
            what.append(f"a line of {arming.log or '-'} like '{arming.pattern.pattern}'")
        if self._pressure is not None:
            what.append(f"pressure on I/O of {self._pressure.share:.0%}")
        return ", ".join([*what, "SIGUSR1"]).replace(", SIGUSR1", ", or SIGUSR1")

    def run(self) -> int:
        """Waits and saves until the end. Returns the number of captures."""
        arming, stop = self._arming, self._stop
        began = time.monotonic()
        until = None if self._request.seconds is None else began + self._request.seconds
        held_at: float | None = began + _SAY_HELD_AFTER_S
        occasion: _Occasion | None = None
        save_at = 0.0
        while True:
            now = time.monotonic()
            if reason := self._end(stop, until, now):
                break
            if occasion is not None and now >= save_at:
                if self._save(occasion):
                    self._last_ns = max(occasion.longest_ns, 1)
                    self._next_at = time.monotonic() + arming.every_s
                occasion = None
                if arming.captures is not None and self._counts.saved >= arming.captures:
                    reason = f"--captures {arming.captures} is reached"
                    break
            if held_at is not None and now >= held_at:
                held_at = None
                self._say_held()
            waits = [_LOG_EVERY_S if self._log is not None else _LOOK_EVERY_S]
            waits += [save_at - now] if occasion is not None else []
            waits += [until - now] if until is not None else []
            for found in self._wait(min(waits)):
                if occasion is not None:
                    occasion.more += 1
                    if found.longest_ns > occasion.longest_ns:
                        occasion.reason, occasion.slow = found.reason, found.slow
                elif (
                    found.reason != _ASKED
                    and time.monotonic() < self._next_at
                    and found.longest_ns < _WORSE * self._last_ns
                ):
                    self._counts.skip("--every")
                else:
                    occasion, save_at = found, time.monotonic() + arming.after_s
                    self._say(f"captures {found.reason}, and {arming.after_s:g} s after it")
            self._look_after()
        if occasion is not None:
            self._save(occasion)
        self._say_end(reason)
        if reason.startswith(_FAILURE):
            raise RecordError(
                f"the recording ended early: {reason.removeprefix(_FAILURE)}",
                f"captures until then are in {self._captures.folder}",
            )
        return self._counts.saved

    def _end(self, stop: StopSignal, until: float | None, now: float) -> str | None:
        pid = self._request.filter.pid
        if stop.number is not None:
            return signal.Signals(stop.number).name
        if until is not None and now >= until:
            return "the time of --for has passed"
        if pid is not None and not Path(f"/proc/{pid}").exists():
            return f"process {pid} has ended"
        if failure := self._recorders.failure():
            return f"{_FAILURE}{failure}"
        return None

    def _wait(self, seconds: float) -> Iterator[_Occasion]:
        """Waits, and returns what has happened."""
        fds = [self._signals.fd]
        slow, log, pressure = self._slow, self._log, self._pressure
        fds += [slow.fd] if slow is not None else []
        fds += [log.fd] if log is not None and log.fd is not None else []
        ready = wait(fds, None if pressure is None else pressure.fd, seconds)
        now_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        if self._signals.take():
            yield _Occasion(now_ns, _ASKED)
        for one in slow.read() if slow is not None else ():
            if self._recorders.ring is not None and one.end_ns < self._recorders.ring.began_ns:
                self._counts.skip("while the capture before it was copied")
            elif self._is_suspend(one):
                self._counts.skip("the machine was suspended meanwhile")
            else:
                yield _Occasion(one.end_ns, one.text, one)
        for line in log.read() if log is not None else ():
            yield _Occasion(now_ns, log.text(line))  # type: ignore[union-attr]
        if pressure is not None and pressure.fd in ready:
            yield _Occasion(now_ns, pressure.text)

    def _note_suspended(self) -> None:
        boottime = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        suspended = boottime - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        if not self._suspended or suspended - self._suspended[-1][1] > _S // 100:
            self._suspended.append((boottime, suspended))

    def _is_suspend(self, slow: Slow) -> bool:
        """Returns whether a sync was slow only because the machine was suspended, which the clock counts."""
        self._note_suspended()
        began_ns = slow.end_ns - slow.dur_ns
        before = max((s for ts, s in self._suspended if ts <= began_ns), default=self._suspended[0][1])  # fmt: skip
        limit_ns = self._arming.slower_than_ns or 0
        return slow.dur_ns - (self._suspended[-1][1] - before) <= limit_ns

    def _look_after(self) -> None:
        self._note_suspended()
        if self._awaited is not None:
            self._awaited.look_if_due()
        if self._recorders.kernel is not None:
            self._recorders.kernel.forget_unused(self._arming.keep_s)
        if (now := time.monotonic()) >= self._forget_at:
            self._forget_at = now + _FORGET_EVERY_S
            if self._slow is not None:
                try:
                    self._slow.forget_ended()
                except RecordError as error:
                    self._say(f"warning: slow syncs are no longer noticed: {error.message}")
            self._scanner.tasks.forget_ended()

    def _save(self, occasion: _Occasion) -> bool:
        """Saves a capture. Returns whether it could."""
        what = f"{occasion.longest_ns // 10**6}ms" if occasion.slow else "capture"
        try:
            with contextlib.closing(
                RunFolder.create(self._captures.new_folder(what), replace=False)
            ) as folder:
                try:
                    self._write(folder, occasion)
                except BaseException:
                    folder.remove()
                    raise
        except Exception as error:
            # The next one may find room, and is worth more than the end of the recording.
            self._counts.skip("it could not be written")
            text = getattr(error, "message", None) or getattr(error, "strerror", None)
            self._say(f"warning: not captured: {text or f'{type(error).__name__}: {error}'}")
            return False
        self._counts.saved += 1
        for removed in self._captures.make_room():
            self._say(
                f"removed {removed.folder.name}, the least interesting of the captures, because they were larger than --disk"
            )
        return True

    def _write(self, folder: RunFolder, occasion: _Occasion) -> None:
        arming = self._arming
        said = manifest.begin(folder.path, self._request, self._route)
        # Maps and names of now: over days, those of all programs would be too many.
        scanner = Scanner()
        scanner.tasks = self._scanner.tasks
        scanner.scan_all()
        before_ns = max(round(arming.keep_s * _S), occasion.longest_ns + round(_BEFORE_S * _S))
        wanted_ns = occasion.at_ns - before_ns
        known_ns = self._recorders.save(
            folder.path, wanted_ns, lambda text: self._say(folder.shown(text))
        )
        manifest.write_tables(folder.path, self._recorders, scanner, lambda _: None)
        said |= {
            "ended_by": "capture",
            "exit_code": None,
            KEY: {
                "reason": occasion.reason,
                "at_ns": occasion.at_ns,
                "slow": asdict(occasion.slow) if occasion.slow is not None else None,
                "more": occasion.more,
                "arming": self._described(),
            },
            "inputs": self._recorders.inputs,
        }
        said["after"] = machine.describe()
        before = max((s for ts, s in self._suspended if ts <= known_ns), default=self._suspended[0][1])  # fmt: skip
        said["suspended_ns"] = self._suspended[-1][1] - before
        manifest.write(folder, said)
        manifest.hand_over(folder, self._say)
        held_s = (occasion.at_ns - known_ns) / _S
        self._say(f"captured in {folder.name}: {held_s:.1f} s before {occasion.reason}")
        if known_ns - wanted_ns > _S // 10 and self._is_full(known_ns):
            self._say(
                f"warning: the buffers held {held_s:.1f} s of the {before_ns / _S:g} s before it: {self._larger(held_s, before_ns / _S)}"
            )

    def _is_full(self, known_ns: int) -> bool:
        """Returns whether a capture begins where events were overwritten, and not where the recording or the last capture has."""
        ring = self._recorders.ring
        return ring is not None and known_ns > ring.began_before_ns

    def _described(self) -> dict[str, Any]:
        arming = asdict(self._arming)
        pattern = self._arming.pattern
        return arming | {"pattern": None if pattern is None else pattern.pattern}

    def _larger(self, held_s: float, wanted_s: float) -> str:
        wanted_mb = self._request.buffer_kb / 1024 * wanted_s / max(held_s, 0.01) * _SPARE
        return f"record with --buffer {max(1, round(wanted_mb))}M for each CPU"

    def _say_held(self) -> None:
        """Says how much time the buffers hold at the rate of events until now."""
        ring = self._recorders.ring
        rate = ring.bytes_per_s() if ring is not None else 0.0
        if not rate:
            return
        held_s = self._request.buffer_kb * 1024 / rate
        if held_s < self._arming.keep_s:
            self._say(
                f"warning: at the present rate of events, the buffers hold the last {held_s:.0f} s, and --keep is {self._arming.keep_s:g} s:"
                f" {self._larger(held_s, self._arming.keep_s)}"
            )
        else:
            self._say(f"at the present rate of events, the buffers hold the last {_time(held_s)}")

    def _say_end(self, reason: str) -> None:
        counts = self._counts
        text = f"{counts.saved} captures in {self._captures.folder}" if counts.saved != 1 else f"1 capture in {self._captures.folder}"  # fmt: skip
        self._say(f"ended by {reason}: {text}")
        for why, count in counts.skipped.items():
            self._say(f"not captured: {count:,} more, because of {why}" if why.startswith("--") else f"not captured: {count:,} more: {why}")  # fmt: skip
        if counts.saved:
            self._say(f"hint: syncline report {self._captures.folder}")


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 60:.0f} min" if seconds < 36_000 else f"{seconds / 3600:.0f} h"  # fmt: skip

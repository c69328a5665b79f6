"""Records on a server, from here: sends the recorder there through ssh or another command, and writes what it sends back."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shlex
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from syncline.record import errors, portable, salvage, serve, session, wire
from syncline.record import manifest as manifest_file
from syncline.record.errors import RecordError
from syncline.record.live import Show
from syncline.record.log_copy import Reserve
from syncline.record.recorders import Say
from syncline.record.request import Request
from syncline.record.run_folder import RunFolder
from syncline.record.tracefs import owner
from syncline.record.watch import StopSignal, stop_signal
from syncline.run_directory import LEFT

_SSH = ("ssh", "-T", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=5")
_SSH_FAILED = 255
_ERRORS = {
    one.__name__: one for one in (errors.RouteError, errors.NoRouteError, errors.OutputError)
}
_NO_SHELL = (126, 127)
_POLL_S = 0.2
_READ_BYTES = 1 << 20
# A login shell may print something first. This much of it is read.
_MOST_NOISE = 1 << 16
_EXIT_WITHIN_S = 10.0
# Somebody may have to type a password.
_ANSWER_WITHIN_S = 120.0
_LINES_KEPT = 5
_TERMINAL = wire.MAGIC.replace(b"\n", b"\r\n")


@dataclass(frozen=True)
class Place:
    """Where to record. Without a host, the command `via` leads there from here; with one, from the host."""

    host: str | None = None
    via: str = ""

    @property
    def name(self) -> str:
        return self.host or self.via

    def command(self) -> list[str]:
        """Returns the command that runs the recorder there."""
        via, script = shlex.split(self.via), portable.script()
        # `su -c` and `sh -c` take the command as one argument.
        there = [*via, f"exec sh -c {shlex.quote(script)}"] if via[-1:] == ["-c"] else [*via, "sh", "-c", script]  # fmt: skip
        return there if self.host is None else [*_SSH, "--", self.host, shlex.join(there)]

    def shown(self, command: str) -> str:
        """Returns what to type to run a command there."""
        via = shlex.split(self.via)
        there = [*via, command] if via[-1:] == ["-c"] else [*via, *command.split()]
        return shlex.join(there if self.host is None else ["ssh", self.host, *there])


@contextlib.contextmanager
def recorded(
    request: Request, place: Place, say: Say, show: Show | None = None
) -> Iterator[tuple[RunFolder, dict[str, Any]]]:
    """Records there into a new folder here. Yields the folder and the manifest.

    If the connection ends too early, what has arrived becomes the recording, and the manifest says so.

    Raises:
        RecordError: nothing could be recorded.
    """
    with contextlib.closing(RunFolder.create(request.folder, replace=request.force)) as folder:
        try:
            session.say_little_space(folder, say)
            try:
                with contextlib.closing(_Connection(place, say)) as connection:
                    manifest = _Arrivals(folder, place, say, show).take_all(connection, request)
            except BaseException as error:
                if not (folder.path / LEFT).exists():
                    folder.remove()
                if isinstance(error, RecordError):
                    shown = folder.shown(error.message), folder.shown(error.hint)
                    raise type(error)(*shown) from None
                raise
            yield folder, manifest
        finally:
            if folder.path.exists():
                manifest_file.hand_over(folder, say)


class _Connection:
    """The command that leads to the recorder, and what it says."""

    def __init__(self, place: Place, say: Say) -> None:
        self.place, self._say = place, say
        command = place.command()
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # Ctrl-C ends the recording in an orderly way, through the connection.
                preexec_fn=_ignore_interrupt,
            )
        except OSError as error:
            raise RecordError(
                f"cannot run {command[0]}: {(error.strerror or str(error)).lower()}",
                "install it, or name another way to the server: --via COMMAND",
            ) from None
        assert self._process.stdin and self._process.stdout and self._process.stderr  # noqa: PT018
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._in, False)
        self._buffer = bytearray()
        self._heard_at = time.monotonic()
        self._beat_at = 0.0
        self.gone_after_s = _ANSWER_WITHIN_S
        self.lines: deque[str] = deque(maxlen=_LINES_KEPT)
        self._errors = threading.Thread(target=self._relay, name="syncline-errors", daemon=True)
        self._errors.start()
        # Bytes that the pipe had no room for yet.
        self._to_send = bytearray()
        self.is_open = True
        self.stop = StopSignal()
        self._asked = False

    def _relay(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if text := line.decode(errors="replace").rstrip():
                self.lines.append(text)
                self._say(f"{self.place.name}: {text}")

    def send(self, data: bytes) -> None:
        """Sends bytes, now or while it is read."""
        self._to_send += data

    def take(self, size: int) -> bytes:
        """Reads so many bytes, or fewer at the end of the connection."""
        while len(self._buffer) < size and self.is_open:
            self._step()
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def take_magic(self) -> bytes | None:
        """Reads up to the magic that a recorder begins with. Returns what was printed instead if none comes."""
        while wire.MAGIC not in self._buffer:
            if not self.is_open or len(self._buffer) > _MOST_NOISE or _TERMINAL in self._buffer:
                return bytes(self._buffer)
            self._step()
        del self._buffer[: self._buffer.index(wire.MAGIC) + len(wire.MAGIC)]
        self.gone_after_s = wire.GONE_AFTER_S
        return None

    def _step(self) -> None:
        now = time.monotonic()
        if self.stop.number is not None and not self._asked:
            self._asked = True
            self.send(wire.STOP)
        if now - self._beat_at > wire.BEAT_EVERY_S:
            self._beat_at = now
            self.send(wire.BEAT)
        if self._to_send:
            with contextlib.suppress(BlockingIOError):
                try:
                    del self._to_send[: os.write(self._in, self._to_send)]
                except BrokenPipeError:
                    # What the other end has said is still to be read.
                    self._to_send.clear()
        wanted = [self._in] if self._to_send else []
        ready, _, _ = select.select([self._out], wanted, [], _POLL_S)
        if ready:
            data = os.read(self._out, _READ_BYTES)
            self._buffer += data
            self._heard_at = now
            self.is_open = bool(data)
        elif self.is_silent():
            self.is_open = False

    def is_silent(self) -> bool:
        """Returns whether nothing has arrived for so long that nothing will."""
        return time.monotonic() - self._heard_at > self.gone_after_s

    def exit_code(self) -> int | None:
        """Waits for the end of the command, and returns its exit code; None if it does not end."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._process.wait(_EXIT_WITHIN_S)
            self._errors.join(1.0)
            return code
        return None

    def close(self) -> None:
        """Ends the connection. The recorder there then removes all that it has made."""
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_EXIT_WITHIN_S)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._errors.join(1.0)


def _ignore_interrupt() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class _Arrivals:
    """Writes what arrives into the folder of the recording."""

    def __init__(self, folder: RunFolder, place: Place, say: Say, show: Show | None) -> None:
        self._folder, self._place, self._say = folder, place, say
        self._show = show or (lambda _: None)
        self._files: dict[str, int] = {}
        # Why it cannot be written any more.
        self._full: OSError | None = None

    def take_all(self, connection: _Connection, request: Request) -> dict[str, Any]:
        """Sends the recorder and the request, and returns the manifest. The folder is a recording then."""
        program = portable.archive()
        connection.send(b"%d\n" % len(program) + program + serve.packed(request))
        reserve = Reserve(self._folder.path)
        try:
            with stop_signal() as connection.stop:
                if (noise := connection.take_magic()) is not None:
                    raise self._no_recorder(noise, connection)
                manifest = self._take_frames(connection)
        finally:
            self._show("")
            for fd in self._files.values():
                os.close(fd)
            reserve.release()
        path = self._folder.path
        if manifest is not None:
            salvage.complete(path, manifest)
            return manifest
        why = self._why(connection)
        try:
            return salvage.salvage(path, why)
        except RecordError as error:
            raise RecordError(
                f"{why}, before a recording had arrived ({self._folder.shown(error.message)})",
                f"try whether this ends without an error: {self._place.shown('true')}",
            ) from None

    def _take_frames(self, connection: _Connection) -> dict[str, Any] | None:
        while (frame := self._read(connection)) is not None:
            if frame.kind == wire.SAY:
                self._say(frame.data.decode(errors="replace"))
            elif frame.kind == wire.LINE:
                self._show(frame.data.decode(errors="replace"))
            elif frame.kind == wire.ERROR:
                raise self._error(self._object(frame))
            elif frame.kind == wire.MANIFEST:
                return self._object(frame)
            elif frame.kind != wire.ALIVE:
                try:
                    self._write(frame)
                except OSError as error:
                    if error.errno not in session.FULL:
                        raise
                    self._full = error
                    return None
        return None

    def _read(self, connection: _Connection) -> wire.Frame | None:
        try:
            return wire.read(connection.take)
        except wire.WireError as error:
            raise self._changed(str(error)) from None

    def _object(self, frame: wire.Frame) -> dict[str, Any]:
        """Returns the object of JSON in a frame."""
        with contextlib.suppress(ValueError):
            found = json.loads(frame.data)
            if isinstance(found, dict):
                return found
        raise self._changed("what should be an object of JSON")

    def _changed(self, what: str) -> RecordError:
        return RecordError(
            f"{self._place.name} sent what no recorder sends: {what}",
            "whatever leads there must pass bytes on unchanged, without a terminal",
        )

    def _write(self, frame: wire.Frame) -> None:
        path = self._folder.path / frame.name
        if frame.kind == wire.PART:
            if frame.name not in self._files:
                path.parent.mkdir(exist_ok=True)
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
                self._files[frame.name] = os.open(path, flags, 0o600)
            at = 0
            while at < len(frame.data):
                at += os.pwrite(self._files[frame.name], frame.data[at:], frame.offset + at)
            return
        part = path.with_name(f"{path.name}.part")
        fd = self._files.pop(f"{frame.name}.part", -1)
        if fd >= 0:
            os.close(fd)
        else:
            # It is empty.
            path.parent.mkdir(exist_ok=True)
            part.write_bytes(b"")
        if frame.name == LEFT:
            # By this, others see that the recording is being made: here, this process makes it.
            facts = json.loads(part.read_text())
            part.write_text(json.dumps(facts | {"owner": owner()}))
        part.replace(path)

    def _error(self, what: dict[str, Any]) -> RecordError:
        # The other side may be in anybody's hands.
        kind = _ERRORS.get(str(what.get("kind")), RecordError)
        message = f"{self._place.name}: {what.get('message')}"
        hint = str(what.get("hint") or "")
        if "is not root" in message:
            return RecordError(message, self._as_root())
        if "syncline doctor" in hint or not hint:
            # Nothing is installed there.
            hint = f"recording there needs root, a kernel with BTF and probes (Linux 6.1 or later), and no lockdown; look: {self._place.shown('cat /sys/kernel/security/lockdown')}"
        return kind(message, hint)

    def _as_root(self) -> str:
        host, via = self._place.host, self._place.via
        if host is None:
            return f'--via "{via}" must lead to root, such as: --via "{via} sudo"'
        if via:
            return f'--via "{via}" must make you root there'
        return f"--host root@{host.rpartition('@')[2]}, or: --host {host} --via sudo"

    def _why(self, connection: _Connection) -> str:
        """Says why the recording ended before its end."""
        name = self._place.name
        if self._full is not None:
            return f"cannot write to {self._folder.name}: {(self._full.strerror or '').lower()}"
        if connection.is_silent():
            return f"{name} has said nothing for {wire.GONE_AFTER_S:.0f} s"
        code = connection.exit_code()
        last = f" ({connection.lines[-1]})" if connection.lines else ""
        if code is not None and code in (-signal.SIGKILL, 128 + signal.SIGKILL):
            return f"the recorder on {name}, or the way to it, was killed"
        return f"the connection to {name}, or the recorder there, ended{last}"

    def _no_recorder(self, noise: bytes, connection: _Connection) -> RecordError:
        """Says why the recorder has not begun."""
        name, text = self._place.name, noise.decode(errors="replace")
        if connection.stop.number is not None:
            return RecordError("stopped before the recording began")
        if _TERMINAL in noise:
            return RecordError(
                f"{name} is reached through a terminal, which changes the bytes of a recording",
                "leave out -t of docker, podman or kubectl, and RequestTTY of ssh",
            )
        if portable.NO_PYTHON in text:
            found = text.rpartition(f"{portable.NO_PYTHON}: ")[2].strip()
            has = f"only {found}" if found.startswith("Python") else "none"
            return RecordError(
                f"the recorder needs Python 3.9 or later, and {name} has {has}",
                'install python3 there, or record from a container that has it and shares the kernel: --via "docker run -i --rm --privileged --pid=host -v /sys/kernel:/sys/kernel python:3-slim"',
            )
        if connection.is_open:
            if len(noise) > _MOST_NOISE:
                return RecordError(f"{name} prints without end, and starts no recorder", f"see what it prints: {self._place.shown('true')}")  # fmt: skip
            connection.is_open = False
        if connection.is_silent():
            return RecordError(
                f"{name} has not answered for {_ANSWER_WITHIN_S:.0f} s",
                f"try whether this ends without an error: {self._place.shown('true')}",
            )
        code = connection.exit_code()
        last = connection.lines[-1] if connection.lines else text.strip().rpartition("\n")[2]
        said = f": {last}" if last else ""
        if self._place.host is not None and code == _SSH_FAILED:
            return RecordError(
                f"ssh does not reach {name}{said}",
                f"try whether this ends without an error: {self._place.shown('true')}",
            )
        if code in _NO_SHELL:
            return RecordError(
                f"{name} cannot run a shell{said}",
                "the recorder needs sh and Python 3.9 there; a pod without them gets a container with: kubectl debug --profile=sysadmin --image=python:3-slim",
            )
        return RecordError(
            f"{name} ended before the recorder began (exit code {code}){said}",
            f"try whether this ends without an error: {self._place.shown('true')}",
        )

"""Sends what a recorder writes into its folder while it writes it, so that little is lost with the connection."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from syncline.record import salvage, trace_dat, wire
from syncline.record.wire import Frame
from syncline.run_directory import LEFT

if TYPE_CHECKING:
    from syncline.record.ring_buffer import Buffer, RingBuffer

_EVERY_S = 0.2
_TRY_AGAIN_S = 0.05
_BEAT_EVERY_S = 1.0
# What may wait to be sent at most. More pages stay in the kernel, which counts what it loses.
_MOST_BYTES = 256 << 20
_LOOK_EVERY_S = 0.1


_Status = tuple[int, int, int]


class Lost(Exception):
    """Nobody is at the other end any more."""


class Channel:
    """The connection to whoever wants the recording."""

    def __init__(self, source: BinaryIO, out: int) -> None:
        self._source, self._out = source, out
        os.set_blocking(out, False)
        self._lock = threading.Lock()
        self._heard_at = self._sent_at = time.monotonic()
        self.is_lost = False

    def listen(self) -> None:
        """Begins to wait for what the other end says. `stop` ends the recording as Ctrl-C does, and the end of the connection as SIGTERM."""
        for name, target in (("syncline-listen", self._listen), ("syncline-beat", self._beat)):
            threading.Thread(target=target, name=name, daemon=True).start()

    def _listen(self) -> None:
        while line := self._source.readline(100):
            self._heard_at = time.monotonic()
            if line == wire.STOP:
                os.kill(os.getpid(), signal.SIGINT)
        self.lose()

    def lose(self) -> None:
        """Ends the recording, since nobody wants it."""
        if not self.is_lost:
            self.is_lost = True
            os.kill(os.getpid(), signal.SIGTERM)

    def _beat(self) -> None:
        # Also while the recorder starts or ends, which may take long.
        with contextlib.suppress(Lost):
            while True:
                time.sleep(_BEAT_EVERY_S)
                now = time.monotonic()
                if now - self._heard_at > wire.GONE_AFTER_S:
                    self.lose()
                elif now - self._sent_at > wire.BEAT_EVERY_S:
                    self.send(Frame(wire.ALIVE))

    def send(self, frame: Frame) -> None:
        """Sends a frame. Raises Lost."""
        self.send_bytes(frame.packed())

    def send_bytes(self, data: bytes) -> None:
        """Sends bytes that are no frame. Raises Lost."""
        rest = memoryview(data)
        with self._lock:
            while rest:
                if self.is_lost:
                    raise Lost
                try:
                    rest = rest[os.write(self._out, rest) :]
                except BlockingIOError:
                    if time.monotonic() - self._heard_at > wire.GONE_AFTER_S:
                        self.lose()
                    time.sleep(_TRY_AGAIN_S)
                except OSError:
                    self.lose()
            self._sent_at = time.monotonic()


class Mirror:
    """Sends a folder through a channel, from `attach` to `finish`. It is a `ring_buffer.Sending`."""

    def __init__(self, folder: Path, channel: Channel) -> None:
        self._folder, self._channel = folder, channel
        self._ring: RingBuffer | None = None
        # How much of each file of pages was sent.
        self._sent: dict[Path, int] = {}
        # What was sent of the others: (inode, size, time of the last change).
        self._known: dict[Path, _Status] = {}
        # The same when they were last looked at.
        self._seen: dict[Path, _Status] = {}
        self._state = ""
        most = min(shutil.disk_usage(folder).free // 2, _MOST_BYTES)
        # A half may wait to be sent. Until the end stay the stacks, and the beginning of each CPU, at which the recorder looks again.
        self._most_waiting, self._most_stacks = most // 2, most // 4
        self._kept = most // 4 // (os.cpu_count() or 1)
        self._room: dict[str, tuple[float, bool]] = {}
        self._sending = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._send_often, name="syncline-send", daemon=True)

    def attach(self, ring: RingBuffer) -> None:
        """Begins to send. Before the ring buffer starts."""
        self._ring, ring.sending = ring, self
        self._page_bytes = ring.page_bytes
        self._thread.start()

    def has_room(self, buffer: Buffer) -> bool:
        now = time.monotonic()
        looked_at, found = self._room.get(buffer.name, (0.0, True))
        if now - looked_at >= _LOOK_EVERY_S:
            waiting = sum(file.stat().st_size - self._sent.get(file, 0) for file in buffer.pages)
            found = waiting < (self._most_waiting if buffer.is_written else self._most_stacks)
            self._room[buffer.name] = (now, found)
        return found

    def send_pages(self) -> None:
        with contextlib.suppress(Lost), self._sending:
            self._send()

    def finish(self) -> None:
        """Sends what is not sent yet. Raises Lost."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        with self._sending:
            self._send_files(is_last=True)

    def close(self) -> None:
        """Ends sending. It may be called again."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _send_often(self) -> None:
        with contextlib.suppress(Lost):
            while not self._stop.wait(_EVERY_S):
                with self._sending:
                    self._send()

    def _send(self) -> None:
        # It says until when the pages are complete, so those that are there now must arrive before it.
        state = self._read_state()
        for buffer in self._ring.buffers if self._ring is not None else ():
            for file in buffer.pages if buffer.is_written else ():
                self._send_pages_of(file)
        self._send_files()
        if state and state != self._state:
            self._send_whole(salvage.STATE, state.encode())
            self._state = state

    def _read_state(self) -> str:
        with contextlib.suppress(OSError):
            line, end, _ = (self._folder / salvage.STATE).read_text().partition("\n")
            return line + end if end else ""
        return ""

    def _send_pages_of(self, file: Path) -> None:
        with contextlib.suppress(FileNotFoundError), file.open("r+b") as pages:
            if file not in self._sent:
                # A CPU without events has an empty file.
                self._channel.send(Frame(wire.PART, file.name))
            at = self._sent.setdefault(file, 0)
            size = os.fstat(pages.fileno()).st_size
            size -= size % self._page_bytes
            while at < size:
                data = os.pread(pages.fileno(), min(wire.MAX_DATA, size - at), at)
                self._channel.send(Frame(wire.PART, file.name, data, at))
                if at >= self._kept:
                    trace_dat.punch_hole(pages.fileno(), at, len(data))
                at += len(data)
                self._sent[file] = at

    def _send_files(self, *, is_last: bool = False) -> None:
        """Sends the other files that have changed, and are not being written at this moment."""
        found = [self._folder / LEFT, *self._folder.iterdir(), *self._folder.glob("maps/*")]
        for path in found:
            name = str(path.relative_to(self._folder))
            # A file gets its name only when it is written.
            is_begun = path.name.startswith(".") and name not in (LEFT, salvage.BEGUN)
            with contextlib.suppress(FileNotFoundError):
                status = _status(path)
                if is_begun or not path.is_file() or self._known.get(path) == status:
                    continue
                # These two are always whole, and without them the rest is no recording.
                may_change = not is_last and name not in (LEFT, salvage.BEGUN)
                if may_change and self._seen.get(path) != status:
                    self._seen[path] = status
                    continue
                if self._send_file(name, path, status):
                    self._known[path] = status

    def _send_file(self, name: str, path: Path, status: _Status) -> bool:
        """Sends a file. Returns whether it stayed as it was meanwhile."""
        with path.open("rb") as file:
            data = file.read(wire.MAX_DATA)
            if _status(path) != status:
                return False
            at = 0
            while data:
                self._channel.send(Frame(wire.PART, f"{name}.part", data, at))
                at += len(data)
                data = file.read(wire.MAX_DATA)
        self._channel.send(Frame(wire.WHOLE, name, offset=at))
        return _status(path) == status

    def _send_whole(self, name: str, data: bytes) -> None:
        for at in range(0, len(data), wire.MAX_DATA):
            part = data[at : at + wire.MAX_DATA]
            self._channel.send(Frame(wire.PART, f"{name}.part", part, at))
        self._channel.send(Frame(wire.WHOLE, name, offset=len(data)))


def _status(path: Path) -> _Status:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns

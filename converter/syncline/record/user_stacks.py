"""User stacks of sync calls by the ring buffer, where bpftrace is not installed.

The kernel follows frame pointers and keeps eight frames. They are written as bpftrace writes them, so
that everything that reads a log of stacks reads them too.
"""

from __future__ import annotations

import heapq
import platform
import re
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from syncline.record import ring_pages
from syncline.record.ring_buffer import CALL_EVENTS, Buffer, RingBuffer

FILE = "stacks.log"
# Frames above it are no user addresses, but the end of a shorter stack.
_USER_BELOW = 1 << 63
_COMM_BYTES = 16


class UserStacks:
    """A buffer of its own for the calls, because the option adds a stack to every event of a buffer."""

    def __init__(self, ring: RingBuffer, buffer_kb: int) -> None:
        """Adds the buffer.

        Raises:
            RecordError: the kernel has no user stacks.
        """
        self._ring = ring
        self._buffer: Buffer = ring.add("stacks", buffer_kb, is_written=False)
        self._buffer.instance.write("options/userstacktrace", "1")
        self._buffer.enable(CALL_EVENTS)

    def write(self, file: Path) -> dict[str, int]:
        """Writes the log after the recording has stopped. Returns the number of calls, stacks and lost events."""
        folder = self._buffer.instance.folder
        calls = {}
        for event in self._buffer.events:
            text = (folder / "events" / event / "format").read_text()
            end, _, call = event.partition("/sys_")[2].partition("_")
            calls[_number(r"^ID: (\d+)", text)] = f"{call}{'' if end == 'enter' else '_exit'}"
        text = (folder / "events/ftrace/user_stack/format").read_text()
        stack_id = _number(r"^ID: (\d+)", text)
        place, size = (_number(rf"caller.*{key}:(\d+)", text) for key in ("offset", "size"))
        counts: Counter[str] = Counter()
        stacks = last = 0
        with file.open("w") as out:
            out.write(_head())
            for time, tid, call, data in self._calls(calls, stack_id):
                last, frames = time, []
                if data and len(data) >= place + size:
                    found = struct.unpack_from(f"={size // 8}Q", data, place)
                    frames = [address for address in found if 0 < address < _USER_BELOW]
                counts[call] += 1
                stacks += bool(frames)
                name = _hex(self._ring.comms.get(tid, ""))
                if call.endswith("_exit"):
                    # The return value is the second 64-bit number after the common fields.
                    out.write(
                        f"{time} {tid} {name} {call} ret {struct.unpack_from('=q', data, 16)[0]}\n"
                    )
                    continue
                out.write(f"{time} {tid} {name} {call}\n")
                out.writelines(f"\t{address:x} {address:#x} ([unknown])\n" for address in frames)
                out.write("\n" if frames else "")
            out.write(f"# end {last}\n\n")
            out.writelines(f"@events[{call}]: {count}\n" for call, count in sorted(counts.items()))
        return {"calls": sum(counts.values()), "stacks": stacks, "lost": self._lost()}

    def _lost(self) -> int:
        return sum(
            numbers.get(key, 0)
            for numbers in self._buffer.instance.stats().values()
            for key in ("overrun", "commit overrun", "dropped events")
        )

    def _calls(self, calls: dict[int, str], stack_id: int) -> Iterator[tuple[int, int, str, bytes]]:
        """Returns time, thread, call and, for an entry, the record of its stack; for an exit its own record."""
        streams = [
            _with_stacks(ring_pages.events(file, self._ring.page_bytes), calls, stack_id)
            for file in self._buffer.pages
        ]
        return heapq.merge(*streams)


def _with_stacks(
    records: Iterator[tuple[int, bytes]], calls: dict[int, str], stack_id: int
) -> Iterator[tuple[int, int, str, bytes]]:
    """Joins each entry with the stack that follows it on its CPU."""
    waiting: tuple[int, int, str] | None = None
    for time, data in records:
        (event_id,), (tid,) = struct.unpack_from("=H", data), struct.unpack_from("=i", data, 4)
        if event_id == stack_id:
            if waiting and waiting[1] == tid:
                yield *waiting, data
                waiting = None
            continue
        if waiting:
            yield *waiting, b""
            waiting = None
        call = calls.get(event_id)
        if call is not None and call.endswith("_exit"):
            yield time, tid, call, data
        elif call is not None:
            waiting = (time, tid, call)
    if waiting:
        yield *waiting, b""


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text, re.MULTILINE)
    if found is None:
        raise ValueError(f"a format lacks {pattern}")
    return int(found[1])


def _hex(comm: str) -> str:
    """Returns a name as bpftrace's `%r` writes it."""
    data = comm.encode()[:_COMM_BYTES]
    plain = "".join(
        chr(byte) if 0x20 < byte < 0x7F and byte != 0x5C else f"\\x{byte:02x}" for byte in data
    )
    return plain + "\\x00" * (_COMM_BYTES - len(data))


def _head() -> str:
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text()
    return (
        "# syncline-log 1\n# script stacks 1\n# clock boottime\n# comm hex\n"
        f"# kernel {Path('/proc/version').read_text()}# boot_id {boot_id}# host {platform.node()}\n"
        f"# filter pid 0 comm - dev 0 min_ns 0\n# mountinfo\n"
        f"{Path('/proc/self/mountinfo').read_text(errors='replace')}# end mountinfo\n"
        "TIME PID COMM EVENT DATA\n"
    )

"""Files of trace-cmd that are truncated, inconsistent or unusable, each with its expected error or loss."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.reference import tracedat
from tests.reference.tracedat import Option, Shape, Writer

HUGE = 2**64 - 1


@dataclass
class Bad:
    """A file, and either a part of its error message (`said`) or the losses that are counted."""

    data: bytes
    said: str = ""
    hint: str = ""
    losses: dict[str, int] = field(default_factory=dict)
    shown: str = ""


BAD: dict[str, Callable[[], Bad]] = {}


def bad(make: Callable[[], Bad]) -> Callable[[], Bad]:
    BAD[make.__name__] = make
    return make


WORLD = tracedat.world(random.Random(3), requests=8)
V6, V7, ZLIB = Shape(version=6), Shape(), Shape(compression="zlib")


class Changed(Writer):
    """Writes a file in which callbacks or replaced methods change some parts."""

    def __init__(
        self,
        shape: Shape,
        section: Callable[[int, bytes], bytes] | None = None,
        cpu_data: Callable[[bytes], bytes] | None = None,
        page: Callable[[bytes], bytes] | None = None,
        world: tracedat.World = WORLD,
        **methods: Any,
    ) -> None:
        super().__init__(world, shape)
        self.change_section, self.change_cpu_data, self.change_page = section, cpu_data, page
        for name, method in methods.items():
            setattr(self, name, method)

    def section(self, key: int, data: bytes, packed: bool = True) -> bytes:
        data = super().section(key, data, packed)
        return self.change_section(key, data) if self.change_section else data

    def cpu_data(self, pages: list[bytes]) -> bytes:
        data = super().cpu_data(pages)
        return self.change_cpu_data(data) if self.change_cpu_data and data else data

    def page(self, ts: int, body: bytes, gap: tracedat.Gap | None) -> bytes:
        data = super().page(ts, body, gap)
        return self.change_page(data) if self.change_page else data


def good(shape: Shape) -> bytes:
    return tracedat.file(WORLD, shape)


def patched(data: bytes, at: int, fmt: str, *values: int) -> bytes:
    packed = struct.pack(f"<{fmt}", *values)
    return data[:at] + packed + data[at + len(packed) :]


def first_options(data: bytes) -> int:
    """Offset of the first options of version 7."""
    at = data.index(b"\0", len(tracedat.MAGIC)) + 7
    for _ in range(2):
        at = data.index(b"\0", at) + 1
    return struct.unpack_from("<Q", data, at)[0]


def table_of_cpus(data: bytes) -> int:
    """Offset of the table of the CPUs' pages in version 6."""
    return data.index(b"flyrecord\0") + 10


# Truncated files.


@bad
def cut_in_the_version() -> Bad:
    return Bad(good(V7)[:11], "it ends, or a part of it does, where more should follow")


@bad
def cut_in_the_header() -> Bad:
    return Bad(good(V7)[:20], "it ends, or a part of it does, where more should follow")


@bad
def cut_before_the_options() -> Bad:
    data = good(V7)
    return Bad(data[: first_options(data) - 3], "it is cut off: more is said to be at byte")


@bad
def cut_in_the_options() -> Bad:
    data = good(V7)
    return Bad(data[: first_options(data) + 40], "it is cut off: a part of it reaches from byte")


@bad
def cut_in_the_pages() -> Bad:
    return Bad(good(V7)[:-5000], "it is cut off: more is said to be at byte")


@bad
def cut_in_the_last_options() -> Bad:
    return Bad(good(ZLIB)[:-5], "it is cut off: a part of it reaches from byte")


@bad
def cut_in_the_formats_of_version_6() -> Bad:
    return Bad(good(V6)[:3000], "it ends, or a part of it does, where more should follow")


@bad
def cut_in_the_table_of_version_6() -> Bad:
    data = good(V6)
    at = table_of_cpus(data)
    return Bad(data[: at + 20], "it ends, or a part of it does, where more should follow")


@bad
def cut_in_the_pages_of_version_6() -> Bad:
    return Bad(good(V6)[:-100], "it is cut off: the events of CPU 2 reach to byte")


@bad
def recorder_killed_before_the_events() -> Bad:
    writer = Changed(V7)
    writer.buffers = dict  # type: ignore[method-assign]
    return Bad(writer.file(), "it has no events: what recorded it was ended", "trace-cmd restore")


# Inconsistent sections.


def section_size(size: int) -> Bad:
    def change(key: int, data: bytes) -> bytes:
        return patched(data, 8, "Q", size) if key == Option.EVENT_FORMATS else data

    return Bad(Changed(V7, section=change).file())


@bad
def huge_section() -> Bad:
    return Bad(section_size(HUGE).data, "it is cut off: a part of it reaches from byte")


@bad
def section_beyond_the_end() -> Bad:
    return Bad(section_size(2**31).data, "it is cut off: a part of it reaches from byte")


@bad
def empty_section() -> Bad:
    return Bad(section_size(0).data, "it ends, or a part of it does, where more should follow")


@bad
def section_of_another_kind() -> Bad:
    def change(key: int, data: bytes) -> bytes:
        return patched(data, 0, "H", 99) if key == Option.CMDLINES else data

    return Bad(Changed(V7, section=change).file(), "is not what the file says it is")


def unpacked_size(size: int) -> bytes:
    def change(key: int, data: bytes) -> bytes:
        return patched(data, 20, "I", size) if key == Option.EVENT_FORMATS else data

    return Changed(ZLIB, section=change).file()


@bad
def compressed_section_of_huge_size() -> Bad:
    return Bad(unpacked_size(2**32 - 1), "larger than any kernel writes")


@bad
def compressed_section_larger_than_its_size() -> Bad:
    return Bad(unpacked_size(100), "a compressed part should have 100 bytes")


@bad
def compressed_section_smaller_than_its_size() -> Bad:
    return Bad(unpacked_size(10**6), "a compressed part should have 1000000 bytes")


@bad
def compressed_section_of_noise() -> Bad:
    def change(key: int, data: bytes) -> bytes:
        return data[:30] + bytes(len(data) - 30) if key == Option.EVENT_FORMATS else data

    return Bad(Changed(ZLIB, section=change).file(), "a compressed part cannot be unpacked")


@bad
def compressed_section_referenced_repeatedly() -> Bad:
    # 200 MB of zeros that compress to little, referenced ten times.
    bomb = zlib.compress(bytes(200_000_000), 1)
    section = struct.pack("<HHIQII", 18, 1, 0, len(bomb) + 8, len(bomb), 200_000_000) + bomb

    writer = Changed(ZLIB)
    head = writer.head() + b"zlib\x001.0\0"
    at = len(head) + 8
    rest = writer.option_bytes([(Option.CMDLINES, struct.pack("<Q", at))] * 10, 0)
    section = patched(section, 0, "H", Option.CMDLINES)
    options_at = at + len(section)
    data = head + struct.pack("<Q", options_at) + section + writer.section(Option.DONE, rest)
    return Bad(data, "larger than any kernel writes")


@bad
def options_that_point_to_themselves() -> Bad:
    data = good(V7)
    at = first_options(data)
    (size,) = struct.unpack_from("<Q", data, at + 8)
    return Bad(patched(data, at + 16 + size - 8, "Q", at), "its options go round in a circle")


@bad
def options_in_a_circle() -> Bad:
    data = good(V7)
    first = first_options(data)
    return Bad(patched(data, len(data) - 8, "Q", first), "its options go round in a circle")


@bad
def option_that_is_too_long() -> Bad:
    data = good(V7)
    at = first_options(data)
    message = "it ends, or a part of it does, where more should follow"
    return Bad(patched(data, at + 18, "I", 2**31), message)


@bad
def largest_number_of_cpus() -> Bad:
    data = good(V7)
    at = data.rindex(b"local\0") + 10
    message = "it ends, or a part of it does, where more should follow"
    return Bad(patched(data, at, "I", 2**32 - 1), message)


@bad
def largest_number_of_cpus_in_version_6() -> Bad:
    data = good(V6)
    at = data.index(b"options  \0") - 4
    message = "it ends, or a part of it does, where more should follow"
    return Bad(patched(data, at, "I", 2**32 - 1), message)


# Inconsistent tables of CPUs and chunks.


@bad
def overlapping_events_of_two_cpus() -> Bad:
    data = good(V6)
    at = table_of_cpus(data)
    offset_and_size = struct.unpack_from("<QQ", data, at)
    message = "overlap those of another CPU"
    return Bad(patched(data, at + 16, "QQ", *offset_and_size), message)


@bad
def events_beyond_the_end() -> Bad:
    data = good(V6)
    return Bad(
        patched(data, table_of_cpus(data) + 8, "Q", HUGE), "it is cut off: the events of CPU 0"
    )


def chunk(at: int, value: int) -> bytes:
    return Changed(ZLIB, cpu_data=lambda data: patched(data, at, "I", value)).file()


@bad
def more_chunks_than_present() -> Bad:
    return Bad(chunk(0, 2**32 - 1), "the packed events of CPU 0 ")


@bad
def zero_chunks() -> Bad:
    return Bad(chunk(0, 0), "the packed events of CPU 0 are more than it says")


@bad
def huge_chunk() -> Bad:
    return Bad(chunk(4, 2**32 - 1), "the packed events of CPU 0 extend into the data after them")


@bad
def empty_chunk() -> Bad:
    return Bad(chunk(8, 0), "the packed events of CPU 0 have an impossible size, 0 bytes at once")


@bad
def chunk_of_huge_size() -> Bad:
    return Bad(chunk(8, 2**32 - 1), "the packed events of CPU 0 have an impossible size")


@bad
def chunk_smaller_than_its_size() -> Bad:
    return Bad(chunk(8, 40960), "a compressed part should have 40960 bytes")


@bad
def chunk_of_noise() -> Bad:
    writer = Changed(ZLIB, cpu_data=lambda data: data[:12] + bytes(len(data) - 12))
    return Bad(writer.file(), "a compressed part cannot be unpacked")


@bad
def pages_of_size_zero() -> Bad:
    return Bad(patched(good(V6), 14, "I", 0), "its pages have an impossible size, 0 bytes")


@bad
def pages_of_a_gigabyte() -> Bad:
    return Bad(patched(good(V6), 14, "I", 2**30), "its pages have an impossible size")


# Damaged pages and records. Readable events are used; unreadable ones are counted.


@bad
def page_longer_than_the_page_size() -> Bad:
    def change(data: bytes) -> bytes:
        return patched(data, 8, "Q", 5000) if b"idle\0" in data else data

    data = Changed(V7, page=change, world=small()).file()
    return Bad(data, losses={"unparsed_line": 1}, shown="a page of CPU 1")


@bad
def record_longer_than_its_page() -> Bad:
    # The last record of the last CPU's only page.
    def change(data: bytes) -> bytes:
        (used,) = struct.unpack_from("<Q", data, 8)
        return patched(data, 8, "Q", used - 4)

    data = Changed(V7, page=change, world=small(cpus=1)).file()
    return Bad(data, losses={"unparsed_line": 1, "end_missing": 1}, shown="a page of CPU 0")


@bad
def events_without_a_format() -> Bad:
    shape = Shape(undescribed=("wb_tracer:bio_complete",))
    world = small()
    losses = {"unparsed_line": 1, "never_completed": 1}
    return Bad(tracedat.file(world, shape), losses=losses, shown="event number")


@bad
def event_without_a_required_field() -> Bad:
    shape = Shape(drop_fields={"wb_tracer:bio_complete": ("bio",)})
    losses = {"unparsed_line": 1, "never_completed": 1}
    shown = "bio_complete: its format has no usable field 'bio'"
    return Bad(tracedat.file(small(), shape), losses=losses, shown=shown)


@bad
def events_dropped_by_a_full_buffer() -> Bad:
    stats = "entries: 5\noverrun: 0\ncommit overrun: 2\ndropped events: 40\nread events: 7"
    data = tracedat.file(small(), Shape(stats=stats))
    return Bad(data, losses={"lost_by_tracer": 84})


def small(cpus: int = 2) -> tracedat.World:
    """One request with one bio, all on CPU 0."""
    ts, events = 10**9, []
    for name, fields in (
        ("sys_enter_fsync", {"__syscall_nr": 74, "fd": 3}),
        (
            "sync_start",
            {
                "id": 1,
                "dev": 5,
                "ino": 2,
                "start": 0,
                "end": 9,
                "datasync": 0,
                "fs": "x",
                "path": "/",
            },
        ),
        ("bio_add_folio", {"id": 1, "bio": 5, "start": 0, "len": 4096, "dev": 5, "ino": 2}),
        ("bio_submit", {"id": 1, "bio": 5, "dev": 5, "sector": 8, "bytes": 4096, "opf": 1}),
        ("bio_complete", {"bio": 5, "status": 0}),
        ("sync_end", {"id": 1, "ret": 0}),
    ):
        ts += 1000
        system = "syscalls" if name.startswith("sys_") else "wb_tracer"
        events.append(tracedat.Event(ts, 0, 7, f"{system}:{name}", fields))
    for cpu in range(1, cpus):
        for end in (0, ts + 5):
            events.append(tracedat.Event(end, cpu, 0, "odd:long", {"text": "idle"}))
    events.sort(key=lambda event: event.ts)
    return tracedat.World(events, {7: "wl"}, [], cpus)


# Unusable files.


@bad
def version_8() -> Bad:
    data = good(V7).replace(b"tracing7", b"tracing8")
    return Bad(
        data, "its format is version 8, and Syncline reads versions 6 and 7", "--file-version 7"
    )


@bad
def unknown_compression() -> Bad:
    data = good(ZLIB).replace(b"zlib\0", b"lz99\0")
    return Bad(data, "it is compressed by 'lz99'", "--compression none")


@bad
def text_of_a_latency_tracer() -> Bad:
    writer = Changed(V7)
    options = writer.option_bytes([(Option.BUFFER_TEXT, bytes(8) + b"\0local\0")], 0)
    head = writer.head() + b"none\0\0"
    data = head + struct.pack("<Q", len(head) + 8) + writer.section(Option.DONE, options)
    return Bad(data, "it holds the text of a latency tracer, and no events", "record events")


@bad
def text_of_a_latency_tracer_in_version_6() -> Bad:
    data = good(V6)
    data = data[: data.index(b"options  \0")] + b"latency  \0# tracer: irqsoff\n"
    return Bad(data, "it holds the text of a latency tracer, and no events", "record events")


@bad
def no_events() -> Bad:
    world = tracedat.World([], {}, [], 2)
    message = "no event that has to do with a sync"
    return Bad(tracedat.file(world, V7), message, "trace-cmd record -e wb_tracer")


@bad
def no_event_of_a_sync() -> Bad:
    events = [event for event in WORLD.events if event.name.startswith("odd:")]
    world = tracedat.World(events, {}, [], WORLD.cpus)
    message = f"none of its {len(events)} events has to do with a sync"
    return Bad(tracedat.file(world, V7), message, "trace-cmd record -e wb_tracer")


@bad
def clock_that_counts_events() -> Bad:
    return Bad(
        tracedat.file(WORLD, Shape(clock="counter")), "its clock, counter, counts events", "-C boot"
    )


@bad
def clock_that_counts_cycles() -> Bad:
    return Bad(
        tracedat.file(WORLD, Shape(clock="x86-tsc")), "its clock, x86-tsc, counts cycles", "-C boot"
    )


@bad
def buffers_with_different_clocks() -> Bad:
    data = tracedat.file(in_buffers(WORLD), V7)
    at = data.rindex(b"local\0")
    data = data[:at] + b"monox\0" + data[at + 6 :]
    return Bad(data, "its buffers have different clocks, local and monox", "-C boot")


def in_buffers(world: tracedat.World) -> tracedat.World:
    """Moves every third event to a second buffer."""
    events = [
        tracedat.replace(event, buffer="other one" if number % 3 == 0 else "")
        for number, event in enumerate(world.events)
    ]
    return tracedat.replace(world, events=events)


@bad
def unusable_description_of_pages() -> Bad:
    data = good(V7).replace(
        b"local_t commit;\toffset:8;\tsize:8;", b"local_t commit;\toffset:8;\tsize:3;"
    )
    return Bad(data, "the description of its pages is not understood")


@bad
def unknown_byte_order() -> Bad:
    data = good(V7)
    at = data.index(b"\0", len(tracedat.MAGIC)) + 1
    return Bad(patched(data, at, "B", 7), "its byte order is neither little nor big endian")

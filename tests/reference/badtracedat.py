"""Files of trace-cmd that are cut, lie or are of no use, each with what has to be said of it."""

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
    """A file, and either words of the message or what is counted as lost."""

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
    """Writes a file in which some parts are others."""

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
        self.of_section, self.of_cpu, self.of_page = section, cpu_data, page
        for name, method in methods.items():
            setattr(self, name, method)

    def section(self, key: int, data: bytes, packed: bool = True) -> bytes:
        made = super().section(key, data, packed)
        return self.of_section(key, made) if self.of_section else made

    def cpu_data(self, pages: list[bytes]) -> bytes:
        made = super().cpu_data(pages)
        return self.of_cpu(made) if self.of_cpu and made else made

    def page(self, ts: int, body: bytes, gap: tracedat.Gap | None) -> bytes:
        made = super().page(ts, body, gap)
        return self.of_page(made) if self.of_page else made


def good(shape: Shape) -> bytes:
    return tracedat.file(WORLD, shape)


def patched(data: bytes, at: int, fmt: str, *values: int) -> bytes:
    made = struct.pack(f"<{fmt}", *values)
    return data[:at] + made + data[at + len(made) :]


def first_options(data: bytes) -> int:
    """Where the first options of version 7 are."""
    at = data.index(b"\0", len(tracedat.MAGIC)) + 7
    for _ in range(2):
        at = data.index(b"\0", at) + 1
    return struct.unpack_from("<Q", data, at)[0]


def table_of_cpus(data: bytes) -> int:
    """Where the places of the CPUs' pages are in version 6."""
    return data.index(b"flyrecord\0") + 10


# Cut off.


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
def ended_before_there_were_events() -> Bad:
    made = Changed(V7)
    made.buffers = dict  # type: ignore[method-assign]
    return Bad(made.file(), "it has no events: what recorded it was ended", "trace-cmd restore")


# Lies of sections.


def section_size(size: int) -> Bad:
    def lie(key: int, made: bytes) -> bytes:
        return patched(made, 8, "Q", size) if key == Option.EVENT_FORMATS else made

    return Bad(Changed(V7, section=lie).file())


@bad
def huge_section() -> Bad:
    return Bad(section_size(HUGE).data, "it is cut off: a part of it reaches from byte")


@bad
def section_beyond_the_end() -> Bad:
    return Bad(section_size(2**31).data, "it is cut off: a part of it reaches from byte")


@bad
def section_of_nothing() -> Bad:
    return Bad(section_size(0).data, "it ends, or a part of it does, where more should follow")


@bad
def section_of_another_kind() -> Bad:
    def lie(key: int, made: bytes) -> bytes:
        return patched(made, 0, "H", 99) if key == Option.CMDLINES else made

    return Bad(Changed(V7, section=lie).file(), "is not what the file says it is")


def unpacked_size(size: int) -> bytes:
    def lie(key: int, made: bytes) -> bytes:
        return patched(made, 20, "I", size) if key == Option.EVENT_FORMATS else made

    return Changed(ZLIB, section=lie).file()


@bad
def packed_section_that_would_be_huge() -> Bad:
    return Bad(unpacked_size(2**32 - 1), "larger than any kernel writes")


@bad
def packed_section_that_is_larger() -> Bad:
    return Bad(unpacked_size(100), "a compressed part should have 100 bytes")


@bad
def packed_section_that_is_smaller() -> Bad:
    return Bad(unpacked_size(10**6), "a compressed part should have 1000000 bytes")


@bad
def packed_section_of_noise() -> Bad:
    def lie(key: int, made: bytes) -> bytes:
        return made[:30] + bytes(len(made) - 30) if key == Option.EVENT_FORMATS else made

    return Bad(Changed(ZLIB, section=lie).file(), "a compressed part cannot be unpacked")


@bad
def formats_that_are_told_again_and_again() -> Bad:
    # Small when packed, 200 MB when not, and ten times.
    bomb = zlib.compress(bytes(200_000_000), 1)
    section = struct.pack("<HHIQII", 18, 1, 0, len(bomb) + 8, len(bomb), 200_000_000) + bomb

    made = Changed(ZLIB)
    head = made.head() + b"zlib\x001.0\0"
    at = len(head) + 8
    rest = made.option_bytes([(Option.CMDLINES, struct.pack("<Q", at))] * 10, 0)
    section = patched(section, 0, "H", Option.CMDLINES)
    options_at = at + len(section)
    data = head + struct.pack("<Q", options_at) + section + made.section(Option.DONE, rest)
    return Bad(data, "larger than any kernel writes")


@bad
def options_that_follow_themselves() -> Bad:
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
    said = "it ends, or a part of it does, where more should follow"
    return Bad(patched(data, at + 18, "I", 2**31), said)


@bad
def as_many_cpus_as_can_be_said() -> Bad:
    data = good(V7)
    at = data.rindex(b"local\0") + 10
    said = "it ends, or a part of it does, where more should follow"
    return Bad(patched(data, at, "I", 2**32 - 1), said)


@bad
def as_many_cpus_as_can_be_said_in_version_6() -> Bad:
    data = good(V6)
    at = data.index(b"options  \0") - 4
    said = "it ends, or a part of it does, where more should follow"
    return Bad(patched(data, at, "I", 2**32 - 1), said)


# Lies of CPUs and of their chunks.


@bad
def events_of_two_cpus_in_one_place() -> Bad:
    data = good(V6)
    at = table_of_cpus(data)
    place = struct.unpack_from("<QQ", data, at)
    said = "lie within those of another"
    return Bad(patched(data, at + 16, "QQ", place[0], place[1]), said)


@bad
def events_beyond_the_end() -> Bad:
    data = good(V6)
    return Bad(
        patched(data, table_of_cpus(data) + 8, "Q", HUGE), "it is cut off: the events of CPU 0"
    )


def chunk(at: int, value: int) -> bytes:
    return Changed(ZLIB, cpu_data=lambda made: patched(made, at, "I", value)).file()


@bad
def more_chunks_than_there_are() -> Bad:
    return Bad(chunk(0, 2**32 - 1), "the packed events of CPU 0 ")


@bad
def no_chunks() -> Bad:
    return Bad(chunk(0, 0), "the packed events of CPU 0 are more than it says")


@bad
def huge_chunk() -> Bad:
    return Bad(chunk(4, 2**32 - 1), "the packed events of CPU 0 extend into the data after them")


@bad
def chunk_of_nothing() -> Bad:
    return Bad(chunk(8, 0), "the packed events of CPU 0 have an impossible size, 0 bytes at once")


@bad
def chunk_that_would_be_huge() -> Bad:
    return Bad(chunk(8, 2**32 - 1), "the packed events of CPU 0 have an impossible size")


@bad
def chunk_that_is_smaller() -> Bad:
    return Bad(chunk(8, 40960), "a compressed part should have 40960 bytes")


@bad
def chunk_of_noise() -> Bad:
    made = Changed(ZLIB, cpu_data=lambda made: made[:12] + bytes(len(made) - 12))
    return Bad(made.file(), "a compressed part cannot be unpacked")


@bad
def pages_of_no_size() -> Bad:
    return Bad(patched(good(V6), 14, "I", 0), "its pages have an impossible size, 0 bytes")


@bad
def pages_of_a_gigabyte() -> Bad:
    return Bad(patched(good(V6), 14, "I", 2**30), "its pages have an impossible size")


# Pages and records. What can be read is read; what cannot is counted.


@bad
def page_that_says_that_it_is_longer() -> Bad:
    def lie(made: bytes) -> bytes:
        return patched(made, 8, "Q", 5000) if b"idle\0" in made else made

    data = Changed(V7, page=lie, world=small()).file()
    return Bad(data, losses={"unparsed_line": 1}, shown="a page of CPU 1")


@bad
def record_that_is_longer_than_its_page() -> Bad:
    # The last record of the last CPU's only page.
    def lie(made: bytes) -> bytes:
        (used,) = struct.unpack_from("<Q", made, 8)
        return patched(made, 8, "Q", used - 4)

    data = Changed(V7, page=lie, world=small(cpus=1)).file()
    return Bad(data, losses={"unparsed_line": 1, "end_missing": 1}, shown="a page of CPU 0")


@bad
def events_that_are_not_described() -> Bad:
    shape = Shape(undescribed=("wb_tracer:bio_complete",))
    world = small()
    losses = {"unparsed_line": 1, "never_completed": 1}
    return Bad(tracedat.file(world, shape), losses=losses, shown="event number")


@bad
def event_without_a_field_that_is_needed() -> Bad:
    shape = Shape(drop_fields={"wb_tracer:bio_complete": ("bio",)})
    losses = {"unparsed_line": 1, "never_completed": 1}
    shown = "bio_complete: its format has no usable field 'bio'"
    return Bad(tracedat.file(small(), shape), losses=losses, shown=shown)


@bad
def dropped_for_want_of_room() -> Bad:
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


# Of no use.


@bad
def version_8() -> Bad:
    data = good(V7).replace(b"tracing7", b"tracing8")
    return Bad(
        data, "its format is version 8, and Syncline reads versions 6 and 7", "--file-version 7"
    )


@bad
def compressed_in_an_unknown_way() -> Bad:
    data = good(ZLIB).replace(b"zlib\0", b"lz99\0")
    return Bad(data, "it is compressed by 'lz99'", "--compression none")


@bad
def text_of_a_latency_tracer() -> Bad:
    made = Changed(V7)
    options = made.option_bytes([(Option.BUFFER_TEXT, bytes(8) + b"\0local\0")], 0)
    head = made.head() + b"none\0\0"
    data = head + struct.pack("<Q", len(head) + 8) + made.section(Option.DONE, options)
    return Bad(data, "it holds the text of a latency tracer, and no events", "record events")


@bad
def text_of_a_latency_tracer_in_version_6() -> Bad:
    data = good(V6)
    data = data[: data.index(b"options  \0")] + b"latency  \0# tracer: irqsoff\n"
    return Bad(data, "it holds the text of a latency tracer, and no events", "record events")


@bad
def no_events() -> Bad:
    world = tracedat.World([], {}, [], 2)
    said = "no event that has to do with a sync"
    return Bad(tracedat.file(world, V7), said, "trace-cmd record -e wb_tracer")


@bad
def no_event_of_a_sync() -> Bad:
    events = [event for event in WORLD.events if event.name.startswith("odd:")]
    world = tracedat.World(events, {}, [], WORLD.cpus)
    said = "no event that has to do with a sync"
    return Bad(tracedat.file(world, V7), said, "trace-cmd record -e wb_tracer")


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


def in_buffers(of: tracedat.World) -> tracedat.World:
    """Every third event is in a buffer of its own."""
    events = [
        tracedat.replace(event, buffer="other one" if number % 3 == 0 else "")
        for number, event in enumerate(of.events)
    ]
    return tracedat.replace(of, events=events)


@bad
def pages_without_a_description() -> Bad:
    data = good(V7).replace(
        b"local_t commit;\toffset:8;\tsize:8;", b"local_t commit;\toffset:8;\tsize:3;"
    )
    return Bad(data, "the description of its pages is not understood")


@bad
def a_third_byte_order() -> Bad:
    data = good(V7)
    at = data.index(b"\0", len(tracedat.MAGIC)) + 1
    return Bad(patched(data, at, "B", 7), "its byte order is neither little nor big endian")

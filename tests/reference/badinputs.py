"""Broken, foreign and extreme inputs, and the result that each must have.

`INPUTS` maps a name to a function that returns the bytes and the expected result. The counts are
those of a conversion with `--from bpftrace`. `foreign`: without that option the format must not be
detected. `unreadable`: the input must be rejected in any case.
"""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class BadInput:
    data: bytes
    losses: dict[str, int] = field(default_factory=dict)  # all reasons and their counts
    sync: int = 0  # rows of each table
    bio: int = 0
    call: int = 0
    bytes: int = 0  # of all bios
    foreign: bool = False
    unreadable: bool = False
    big: bool = False  # too slow for the reference, whose time is quadratic
    shown: tuple[str, ...] = ()  # texts that the tables must have as a comm, path or stack


INPUTS: dict[str, Callable[..., BadInput]] = {}


def bad_input(make: Callable[..., BadInput]) -> Callable[..., BadInput]:
    INPUTS[make.__name__] = make
    return make


HEADER = b"TIME PID COMM EVENT DATA\nAttaching 8 probes...\n"


def request(
    *,
    t: int = 1000,
    tid: int = 5,
    id: bytes = b"7",
    comm: bytes = b"wl",
    path: bytes = b"/a",
    length: bytes = b"4096",
    offset: bytes = b"0",
    frame: bytes = b"main+3",
) -> list[bytes]:
    """The lines of one good request: call with a stack, start, folio, submit, complete, exit."""

    def at(step: int) -> bytes:
        return b"%d %d %s " % (t + step, tid, comm)

    bio = b"bio 0xff%08x" % t
    return [
        at(0) + b"fsync",
        b"        " + frame,
        at(1) + b"start id %s start 0 end 9223372036854775807 datasync 0 path %s" % (id, path),
        at(2) + b"bio_add_folio id %s %s start %s len %s" % (id, bio, offset, length),
        at(3) + b"bio_submit id %s %s" % (id, bio),
        at(4) + b"bio_complete " + bio,
        at(5) + b"exit id %s ret 0" % id,
    ]


GOOD = {"sync": 1, "bio": 1, "call": 1, "bytes": 4096}


def text(*lines: bytes) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def foreign(data: bytes) -> BadInput:
    lines = [line for line in data.split(b"\n") if line.strip(b" \t\r")]
    losses = {"unparsed_line": len(lines)} if lines else {}
    return BadInput(data, losses, foreign=True)


# inputs of other formats


@bad_input
def empty_file() -> BadInput:
    return foreign(b"")


@bad_input
def only_blank_lines() -> BadInput:
    return foreign(b"\n\n   \n\t\n\n")


@bad_input
def random_bytes() -> BadInput:
    return foreign(random.Random(1).randbytes(100_000))


@bad_input
def zero_bytes() -> BadInput:
    return foreign(bytes(100_000))


@bad_input
def elf_head() -> BadInput:
    return foreign(
        bytes.fromhex("7f454c46020101000000000000000000 03003e0001000000")
        + bytes.fromhex("5010000000000000 4000000000000000 f83b000000000000")
        + bytes(200)
        + b"/lib64/ld-linux-x86-64.so.2\x00GNU\x00\n\x00fsync\x00"
    )


@bad_input
def png_head() -> BadInput:
    head = "89504e470d0a1a0a 0000000d49484452 00000010000000100806000000 1ff3ff61"
    return foreign(bytes.fromhex(head) + random.Random(2).randbytes(500))


@bad_input
def utf16() -> BadInput:
    """It is decoded, so nothing of it is lost."""
    data = (HEADER + text(*request())).decode().encode("utf-16")
    return BadInput(data, {}, **GOOD)


@bad_input
def ltrace_text() -> BadInput:
    return foreign(
        text(
            b'1783 1700000000.123456 fopen("/a", "r+") = 0x55d0e8b1a2a0',
            b"1783 1700000000.123999 fileno(0x55d0e8b1a2a0) = 3",
            b"1783 1700000000.130000 malloc(24 <unfinished ...>",
            b"1783 1700000000.130100 free(0x55d0e8b1a2a0) = <void>",
            b"1783 1700000000.131000 <... malloc resumed> ) = 0x55d0e8b1a480",
        )
    )


@bad_input
def json_lines() -> BadInput:
    return foreign(
        text(
            b'{"level": "info", "probes": 8}',
            b'{"level": "info", "msg": "1000 5 wl fsync\\n"}',
            b"[1, 2, 3]",
        )
    )


@bad_input
def perf_data() -> BadInput:
    return foreign(b"PERFILE2" + (104).to_bytes(8, "little") + bytes(200))


# cut and broken lines


@bad_input
def cut_in_a_time() -> BadInput:
    return BadInput(text(*request()) + b"10", {"unparsed_line": 1}, **GOOD)


@bad_input
def cut_in_an_event_name() -> BadInput:
    return BadInput(text(*request()) + b"1010 5 wl bio_comp", {"unparsed_line": 1}, **GOOD)


@bad_input
def cut_in_the_data() -> BadInput:
    return BadInput(text(*request()) + b"1010 5 wl exit id 8 ret", {"unparsed_line": 1}, **GOOD)


@bad_input
def cut_in_an_address() -> BadInput:
    # The rest is a valid line, but no bio was submitted at this address.
    data = text(*request()) + b"1010 5 wl bio_complete bio 0xff"
    return BadInput(data, {"unmatched_complete": 1}, **GOOD)


@bad_input
def no_newline_at_the_end() -> BadInput:
    return BadInput(text(*request())[:-1], **GOOD)


@bad_input
def crlf() -> BadInput:
    data = (HEADER + text(*request())).replace(b"\n", b"\r\n")
    return BadInput(data, shown=("/a", "main"), **GOOD)


@bad_input
def line_of_a_megabyte() -> BadInput:
    return BadInput(text(*request(), b"x" * 2**20), {"unparsed_line": 1}, **GOOD)


@bad_input
def line_of_a_megabyte_before_the_first_event() -> BadInput:
    # The first line is longer than the head; the format must be detected from the lines after it.
    data = text(b"x" * 2**20, *request())
    return BadInput(data, {"unparsed_line": 1}, **GOOD)


@bad_input
def line_of_a_megabyte_of_pairs() -> BadInput:
    data = text(*request(), b"1 5 wl bio_submit" + b" a b" * 2**18)
    return BadInput(data, {"unparsed_line": 1}, **GOOD)


@bad_input
def comm_of_a_megabyte() -> BadInput:
    data = text(*request(), b"1 5 " + b"c" * 2**20 + b" fsync")
    return BadInput(data, {"unparsed_line": 1}, **GOOD)


@bad_input
def comm_of_16_bytes() -> BadInput:
    return BadInput(text(b"1 5 " + b"c" * 16 + b" fsync", *request()), {"unparsed_line": 1}, **GOOD)


@bad_input
def path_of_a_megabyte() -> BadInput:
    path = b"/" + b"p" * 2**20
    return BadInput(text(*request(path=path)), shown=(path.decode(),), **GOOD)


@bad_input
def stack_of_many_frames() -> BadInput:
    lines = request()
    lines[1:2] = [b"        f%d+1" % i for i in range(2_000)]
    return BadInput(text(*lines), **GOOD)


@bad_input
def path_with_a_newline() -> BadInput:
    data = text(*request(path=b"/a\nb fsync"))
    return BadInput(data, {"unparsed_line": 1}, shown=("/a",), **GOOD)


@bad_input
def path_with_a_newline_and_an_event() -> BadInput:
    # The second half of such a path cannot be distinguished from a separate line.
    data = text(*request(path=b"/a\n1001 6 fake fsync"))
    return BadInput(data, {"unmatched_call": 1}, shown=("/a", "fake"), **(GOOD | {"call": 2}))


@bad_input
def comm_with_a_newline() -> BadInput:
    # The newline splits every line of this thread: the first half lacks the event, the second TIME.
    data = text(*request(comm=b"a\nb"), *request(t=2000, tid=6))
    return BadInput(data, {"unparsed_line": 13}, **GOOD)


# bytes


@bad_input
def invalid_utf8() -> BadInput:
    lines = request(comm=b"c\xff\xfe", path=b"/p\xe2\x82/\x80", frame=b"f\xc0\xaf+1")
    return BadInput(
        text(*lines), shown=("c\\xff\\xfe", "/p\\xe2\\x82/\\x80", "f\\xc0\\xaf"), **GOOD
    )


@bad_input
def nul_bytes() -> BadInput:
    lines = request(comm=b"c\x00d", path=b"/p\x00q", frame=b"f\x00g+1")
    return BadInput(text(*lines), shown=(r"c\x00d", r"/p\x00q", r"f\x00g"), **GOOD)


@bad_input
def nul_bytes_in_numbers() -> BadInput:
    data = text(*request(), b"10\x0010 5 wl fsync", b"1010 5 wl bio_complete bio 0xff\x00")
    return BadInput(data, {"unparsed_line": 2}, **GOOD)


@bad_input
def hole_of_zeros() -> BadInput:
    # A file system may leave such a hole after a crash.
    good = request()
    data = text(*good[:4]) + bytes(4096) + b"\n" + text(*good[4:])
    return BadInput(data, {"unparsed_line": 1}, **GOOD)


# numbers


@bad_input
def negative_length() -> BadInput:
    losses = {"unparsed_line": 1, "folios_missing": 1}
    return BadInput(text(*request(length=b"-4096")), losses, **(GOOD | {"bytes": 0}))


@bad_input
def negative_offset() -> BadInput:
    losses = {"unparsed_line": 1, "folios_missing": 1}
    return BadInput(text(*request(offset=b"-1")), losses, **(GOOD | {"bytes": 0}))


@bad_input
def length_beyond_u64() -> BadInput:
    losses = {"unparsed_line": 1, "folios_missing": 1}
    data = text(*request(length=b"18446744073709551616"))
    return BadInput(data, losses, **(GOOD | {"bytes": 0}))


@bad_input
def folio_that_ends_beyond_any_file() -> BadInput:
    losses = {"unparsed_line": 1, "folios_missing": 1}
    data = text(*request(offset=b"9223372036854775807", length=b"1"))
    return BadInput(data, losses, **(GOOD | {"bytes": 0}))


@bad_input
def length_beyond_a_tebibyte() -> BadInput:
    losses = {"unparsed_line": 1, "folios_missing": 1}
    return BadInput(text(*request(length=b"1099511627777")), losses, **(GOOD | {"bytes": 0}))


@bad_input
def last_byte_of_the_longest_file() -> BadInput:
    lines = request(offset=b"9223372036854771711", length=b"4096")
    return BadInput(text(*lines), **GOOD)


@bad_input
def end_printed_as_signed() -> BadInput:
    data = text(*request()).replace(b" end 9223372036854775807 ", b" end -1 ")
    return BadInput(data, **GOOD)


@bad_input
def largest_id() -> BadInput:
    return BadInput(text(*request(id=b"18446744073709551614")), **GOOD)


@bad_input
def largest_u64_means_no_id() -> BadInput:
    losses = {"unparsed_line": 4, "unmatched_complete": 1, "unmatched_call": 1}
    return BadInput(text(*request(id=b"18446744073709551615")), losses, call=1)


@bad_input
def id_beyond_u64() -> BadInput:
    # start, folio, submit and exit contain the id; the call and the completion do not.
    losses = {"unparsed_line": 4, "unmatched_complete": 1, "unmatched_call": 1}
    return BadInput(text(*request(id=b"18446744073709551616")), losses, call=1)


@bad_input
def time_beyond_i64() -> BadInput:
    data = text(b"9223372036854775808 5 wl fsync", b"9" * 400 + b" 5 wl fsync", *request())
    return BadInput(data, {"unparsed_line": 2}, **GOOD)


@bad_input
def pid_beyond_i32() -> BadInput:
    data = text(b"1 2147483648 wl fsync", b"1 " + b"9" * 400 + b" wl fsync", *request())
    return BadInput(data, {"unparsed_line": 2}, **GOOD)


@bad_input
def numbers_of_a_megabyte() -> BadInput:
    digits = b"9" * 2**20
    lines = [digits + b" 5 wl fsync", b"1 " + digits + b" wl fsync", b"Lost " + digits + b" events"]
    lines.append(b"1 5 wl exit id 7 ret -" + digits)
    return BadInput(text(*request(), *lines), {"unparsed_line": 4}, **GOOD)


@bad_input
def address_beyond_u64() -> BadInput:
    data = text(b"1 5 wl bio_complete bio 0x1ffffffffffffffff", *request())
    return BadInput(data, {"unparsed_line": 1}, **GOOD)


@bad_input
def texts_that_are_not_numbers() -> BadInput:
    lines = [
        b"1 5 wl exit id x ret 0",
        b"1 5 wl exit id +7 ret 0",
        b"1 5 wl exit id 0x7 ret 0",
        b"1 5 wl exit id 7 ret 0.5",
        b"1 5 wl exit id  ret 0",
        b"-1 5 wl fsync",
        b"1 -5 wl fsync",
        b"1.5 5 wl fsync",
        "\N{FULLWIDTH DIGIT ONE} 5 wl fsync".encode(),
        b"1 5 wl bio_complete bio ff11",
        b"1 5 wl bio_complete bio 0x",
    ]
    return BadInput(text(*lines, *request()), {"unparsed_line": len(lines)}, **GOOD)


@bad_input
def id_of_a_request_that_begins_later() -> BadInput:
    """A thread submits a bio with an id that is not its request's. Then another thread starts a request with that id."""
    lines = [
        b"100 4 wl start id 2 start 0 end 1 datasync 0 path /a",
        b"200 4 wl bio_submit id 1 bio 0xff01",
        b"300 5 wl start id 1 start 0 end 1 datasync 0 path /b",
        b"400 4 wl bio_add_folio id 1 bio 0xff02 start 0 len 4096",
        b"500 5 wl exit id 1 ret 0",
    ]
    losses = {
        "end_missing": 2,
        "start_missing": 1,
        "never_submitted": 1,
        "never_completed": 1,
        "folios_missing": 1,
    }
    return BadInput(text(*lines), losses, sync=3, bio=2, bytes=4096)


@bad_input
def data_that_does_not_match_its_event() -> BadInput:
    lines = [
        b"1 5 wl bio_submit id 7",
        b"1 5 wl bio_submit bio 0xff",
        b"1 5 wl bio_submit id 7 bio 0xff more",
        b"1 5 wl bio_submit id 7 id 7 bio 0xff",
        b"1 5 wl start id 7 start 0 end 1 datasync 2 path /a",
        b"1 5 wl start id 7 start 0 end 1 datasync 0",
        b"1 5 wl start id 7 start 0 end 1 path /a",
        b"1 5 wl exit id 7",
        b"1 5 wl fsync 3",
        b"1 5 wl bio_complete",
        b"1 5 wl",
        b"1 5",
        b"1",
    ]
    return BadInput(text(*lines, *request()), {"unparsed_line": len(lines)}, **GOOD)


@bad_input
def lost_counts_that_are_not_u64() -> BadInput:
    data = text(
        b"Lost 18446744073709551616 events", b"Lost -3 events", b"Lost 3 events", *request()
    )
    return BadInput(data, {"lost_by_tracer": 3, "unparsed_line": 2}, **GOOD)


@bad_input
def lost_counts_whose_sum_exceeds_i64() -> BadInput:
    # The count saturates at the largest value of the column and does not wrap around.
    data = text(*[b"Lost 18446744073709551615 events"] * 2, *request())
    return BadInput(data, {"lost_by_tracer": 2**63 - 1}, **GOOD)


@bad_input
def lines_torn_into_each_other() -> BadInput:
    lines = [
        b"1 5 wl fsync id 7 bio 0xff",
        b"1 5 wl bio_submit id 7 bio 0xff 41756190615 0",
        b"1 5 wl bio_complete bio 0xff bio 0xff",
        b"1 5 wl exit id 7 ret 0 1 5 wl exit id 7 ret 0",
        b"@\x80: 5",
        b"[1, 2)  3 |@@|",
    ]
    return BadInput(text(*lines, *request()), {"unparsed_line": len(lines)}, **GOOD)


# order


@bad_input
def all_lines_in_reverse_order() -> BadInput:
    lines = request()
    call = lines[0] + b"\n" + lines[1]
    return BadInput(text(*reversed(lines[2:]), call), **GOOD)


@bad_input
def event_later_than_the_window(count: int = 80_000) -> BadInput:
    # A line from the first second arrives after 100 s of log time, and after more lines than are
    # read at once.
    lines = [*request(), *request(t=100 * 10**9, id=b"8")]
    lines += [b"%d 6 filler fsync" % (100 * 10**9 + i) for i in range(count)]
    lines.append(b"500 7 late fsync")
    losses = {"late_event": 1, "unmatched_call": count + 1}
    rows = {"sync": 2, "bio": 2, "call": count + 3, "bytes": 8192}
    return BadInput(text(*lines), losses, shown=("late",), **rows)


@bad_input
def more_than_the_window_holds(count: int = 300_000) -> BadInput:
    lines = [b"%d 5 wl fsync" % t for t in range(1000, 1000 + count)]
    # A log that holds only calls has call-only requests.
    losses = {"late_event": 1, "call_only": count + 1, "ends_not_recorded": count + 1}
    rows = {"sync": count + 1, "call": count + 1}
    return BadInput(text(*lines, b"500 6 late fsync"), losses, **rows)


# amounts


@bad_input
def a_thousand_threads() -> BadInput:
    lines = [
        line for i in range(1_000) for line in request(t=1000 + 10 * i, tid=i, id=b"%d" % (i + 1))
    ]
    rows = {"sync": 1_000, "bio": 1_000, "call": 1_000, "bytes": 4_096_000}
    return BadInput(text(*lines), **rows)


@bad_input
def a_thousand_open_requests() -> BadInput:
    lines = [
        b"%d %d wl start id %d start 0 end 1 datasync 0 path /%d" % (1000 + i, i, i + 1, i)
        for i in range(1_000)
    ]
    return BadInput(text(*lines), {"end_missing": 1_000}, sync=1_000)


@bad_input
def more_requests_wait_than_may() -> BadInput:
    # Each request ends before its bio completes. The first two bios complete last. By then the
    # first request has been given up: 65,537 requests wait for bios, and the limit is 65,536.
    count = 65_537
    lines: list[bytes] = []
    for i in range(count):
        lines_of_request = request(t=1000 + 10 * i, tid=5 + i, id=b"%d" % (i + 1))
        # Without a call, nothing says that it waits for its bio.
        lines += [*lines_of_request[1:5], lines_of_request[6]]
    for i in (0, 1):
        lines.append(b"%d 0 swapper/0 bio_complete bio 0xff%08x" % (10**7, 1000 + 10 * i))
    losses = {"unmatched_complete": 1, "completed_after_end": 1, "never_completed": count - 1}
    rows = {"sync": count, "bio": count, "bytes": count * 4096}
    return BadInput(text(*lines), losses, **rows, big=True)


@bad_input
def only_unparsed_lines() -> BadInput:
    return BadInput(HEADER + b"nonsense\n" * 100_000, {"unparsed_line": 100_000})


# inputs without an event


@bad_input
def only_the_header() -> BadInput:
    return BadInput(HEADER)


@bad_input
def only_stack_lines() -> BadInput:
    return BadInput(
        text(b"        main+3", b"\t4a0 start_thread+9 (/lib/x.so)"), {"unparsed_line": 2}
    )


@bad_input
def stack_lines_without_a_call() -> BadInput:
    lines = request()
    stray = [b"        main+3", b"        __libc_start_call_main+120"]
    data = text(*stray, *lines[:3], *stray, *lines[3:], *stray)
    return BadInput(data, {"unparsed_line": 6}, **GOOD)


# compressed


@bad_input
def gzip_of_a_log() -> BadInput:
    return BadInput(gzip.compress(text(*request()), mtime=0), **GOOD)


@bad_input
def truncated_gzip() -> BadInput:
    return BadInput(gzip.compress(text(*request()) * 100, mtime=0)[:-20], unreadable=True)


@bad_input
def gzip_with_a_wrong_checksum() -> BadInput:
    data = bytearray(gzip.compress(text(*request()), mtime=0))
    data[-6] ^= 1
    return BadInput(bytes(data), unreadable=True)


@bad_input
def only_the_magic_of_gzip() -> BadInput:
    return BadInput(b"\x1f\x8b", unreadable=True)


@bad_input
def only_the_magic_of_zstd() -> BadInput:
    return BadInput(b"\x28\xb5\x2f\xfd", unreadable=True)

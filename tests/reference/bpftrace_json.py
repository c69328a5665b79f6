"""A plain reader and a writer of the output of `bpftrace -f json`.

The reader returns the text that the script prints without `-f json`, and the events that it prints
for btetto. The writer converts a text log. Both are written from bpftrace's src/output.cpp (0.17,
0.23) and src/output/json.cpp (0.24 and later), from btetto's README and from
docs/reference/formats.md.
"""

from __future__ import annotations

import json
import random
import re
from typing import Any

Row = dict[str, Any]

CALLS = ("fsync", "fdatasync", "msync", "sync", "syncfs", "sync_file_range")
STARTS = ("ext4_sync_file_enter", "f2fs_sync_file_enter", "xfs_file_fsync", "btrfs_sync_file")
ENDS = ("ext4_sync_file_exit", "f2fs_sync_file_exit")
BLOCKS = ("block_bio_queue", "block_rq_complete")
LOST = re.compile(
    rb'\{"type": "lost_events"(, "count": [0-9a-f]+)?, "data": \{"events": ([0-9a-f]+)\}\}'
)
PRINTED = ("printf", "cat", "time", "syscall")


def _object(line: bytes) -> Any:
    """Parses a line. Bytes that are not UTF-8 become surrogates (surrogateescape)."""

    def escape(match: re.Match[str]) -> str:
        return chr(0xDC00 + int(match[1], 16)) if match[1] else match[0]

    text = line.decode("utf-8", "surrogateescape")
    return json.loads(re.sub(r"\\(?:uffffff([89a-f][0-9a-f])|.)", escape, text))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def text(data: bytes) -> bytes:
    """The output without `-f json`, except values and maps other than `@events`."""
    out = bytearray()
    in_hex = False
    for line in data.splitlines():
        if not line.startswith(b"{"):
            out += line + b"\n"
            continue
        if lost := LOST.fullmatch(line):
            out += b"Lost %d events\n" % int(lost[2], 16 if lost[1] and in_hex else 10)
            continue
        message = _object(line)
        kind = message.get("type")
        if kind in PRINTED:
            out += _bytes(message["data"])
        elif kind == "join":
            out += _bytes(message["data"]) + b"\n"
        elif kind == "map":
            for name, count in message["data"].get("@events", {}).items():
                out += b"@events[%s]: %d\n" % (_bytes(name), int(count))
        elif kind is None:
            out += line + b"\n"
        # From the first `\u` escape on, 0.24 and later prints the counts of lost events in hex.
        in_hex |= re.search(rb"(?<!\\)(?:\\\\)*\\u", line) is not None
    return bytes(out)


def _int(value: Any) -> int:
    return int(value)


def _dev(value: Any) -> str:
    return value if isinstance(value, str) else f"{value >> 20},{value & 0xFFFFF}"


def _event_name(name: str, phase: str) -> str | None:
    """The event name in the low-level log, or None if Syncline does not know the event."""
    point = name.rsplit(":", 1)[-1] if name.startswith(("tracepoint:", "rawtracepoint:")) else name
    call = re.fullmatch(r"sys_(enter|exit)_(\w+)", point)
    call = call if call and call[2] in CALLS else None
    if phase == "INSTANT":
        return point if call or point in (*STARTS, *ENDS, *BLOCKS) else None
    is_fs_sync = re.fullmatch(r"(ext4|f2fs)_sync_file", point)
    if phase == "BEGIN":
        if name in CALLS or point in STARTS or (call and call[1] == "enter"):
            return point
        return f"{point}_enter" if is_fs_sync else None
    if phase == "END":
        if name in CALLS:
            return f"{name}_exit"
        if call:
            return f"sys_exit_{call[2]}"
        fs_sync = re.fullmatch(r"((?:ext4|f2fs)_sync_file)(_enter|_exit)?", point)
        return f"{fs_sync[1]}_exit" if fs_sync else None
    return None


def is_used_block_event(name: str, values: dict[str, Any]) -> bool:
    """Something with a place, a flush, or the completion of a write that was flushed. Not what manages zones."""
    if name not in BLOCKS:
        return False
    rwbs = values["rwbs"].removeprefix("F")
    is_flush = rwbs != values["rwbs"]
    operations = ("WZ", "ZA", "W", "R", "D", "F", "N")
    operation = next((one for one in operations if rwbs.startswith(one)), None)
    if operation is None and not is_flush:
        return False
    if values["nr_sector"]:
        return True
    if operation in ("WZ", "R", "D") or (operation == "N" and not is_flush):
        return False
    if name == "block_rq_complete":
        return True
    # The request of a flush is no write.
    return is_flush and (name != "block_rq_issue" or operation in (None, "F", "N"))


def rows(data: bytes) -> list[Row]:
    """The rows of the low-level log for the events that are printed for btetto."""
    result = []
    for line in data.splitlines():
        if not line.startswith(b'{"type": "value"'):
            continue
        kind, *pairs = _object(line)["data"]
        if kind not in ("track_event", "call_stack"):
            continue
        values = dict(pairs)
        name = values.pop("name", kind)
        row: Row = {"ts_ns": _int(values.pop("ts"))}
        for key in ("tid", "pid"):
            if key in values:
                row[key] = _int(values.pop(key))
        if "thread_name" in values:
            row["comm"] = values.pop("thread_name")
        event_name = _event_name(name, values.get("type", ""))
        row["event"] = event_name or (f"track_event {name}" if name in CALLS else name)
        if event_name in STARTS:
            row["datasync"] = _int(values.pop("datasync", 0))
            if "dev" in values:
                row["dev"] = _dev(values.pop("dev"))
            if "ino" in values:
                row["ino"] = _int(values.pop("ino"))
            row["fs"] = event_name.split("_")[0]
        elif is_used_block_event(event_name, values):
            row["dev"] = _dev(values.pop("dev"))
            # A flush has all ones there, which stay as they are printed.
            if _int(values["sector"]) < 2**63:
                row["sector"] = _int(values.pop("sector"))
            row["bytes"] = values["nr_sector"] * 512
        elif event_name and "ustack" in values and "enter" in event_name:
            stack = [line for line in values.pop("ustack").split("\n") if line.strip()]
            if stack:
                row["stack"] = [line.strip() for line in stack]
        elif event_name and "ret" in values:
            row["ret"] = _int(values.pop("ret"))
        for key, value in values.items():
            if isinstance(value, list):
                row[key] = json.dumps(value, separators=(",", ":"))
            else:
                # Not every JSON reader reads integers of more than 18 digits exactly.
                is_long = isinstance(value, int) and abs(value) >= 10**18
                row[key] = str(value) if is_long else value
        result.append(row)
    return result


def _quoted(text: bytes, signed: bool) -> bytes:
    out = bytearray(b'"')
    short = {0x22: b'\\"', 0x5C: b"\\\\", 0x0A: b"\\n", 0x0D: b"\\r", 0x09: b"\\t"}
    for byte in text:
        if byte in short:
            out += short[byte]
        elif byte < 0x20:
            out += b"\\u%04x" % byte
        elif byte >= 0x80 and signed:
            out += b"\\u%08x" % (byte + 0xFFFFFF00)
        else:
            out.append(byte)
    return bytes(out) + b'"'


def write(log: bytes, rng: random.Random, version: int = 23, signed: bool = True) -> bytes:
    """Writes a text log as `bpftrace -f json` does. Messages may end anywhere in a line.

    `signed`: whether `char` is signed in C++, as on x86-64.
    """
    out = bytearray()
    in_hex = False

    def put(kind: bytes, data: bytes, count: bytes = b"") -> None:
        nonlocal out
        out += b'{"type": "%s"%s, "data": %s}\n' % (kind, count, data)

    def flush() -> None:
        nonlocal in_hex
        text, at = bytes(pending), 0
        pending.clear()
        while at < len(text):
            is_line = rng.random() >= 0.3
            end = text.find(b"\n", at) + 1 if is_line else at + rng.choice((1, 7, 60, 400))
            part = _quoted(text[at : end or len(text)], signed)
            in_hex |= re.search(rb"(?<!\\)(?:\\\\)*\\u", part) is not None
            put(b"cat" if rng.random() < 0.1 else b"printf", part)
            at = end or len(text)

    put(b"attached_probes", b'{"probes": 9}', b', "count": 9' if version >= 24 else b"")
    pending = bytearray()
    for line in log.splitlines(keepends=True):
        lost = re.fullmatch(rb"Lost (\d+) events\n", line)
        counted = re.fullmatch(rb"@events\[(\w+)\]: (\d+)\n", line)
        if lost:
            flush()
            number = b"%x" % int(lost[1]) if version >= 24 and in_hex else lost[1]
            count = b', "count": ' + number if version >= 24 else b""
            put(b"lost_events", b'{"events": %s}' % number, count)
        elif counted:
            flush()
            put(b"map", b'{"@events": {"%s": %s}}' % counted.groups())
        else:
            pending += line
    flush()
    return bytes(out)

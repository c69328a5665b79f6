"""What `bpftrace -f json` writes: a plain reader, and a writer that makes it of a log as text.

The reader gives the text that the script would have printed without `-f json`, and the events that it
prints for btetto. Both are written from bpftrace's src/output.cpp (0.17, 0.23) and
src/output/json.cpp (0.24 and later), from btetto's README and from docs/reference/formats.md.
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
    """A line's object; a byte that is no ASCII is one of the characters that stand for it in Python."""

    def escape(found: re.Match[str]) -> str:
        return chr(0xDC00 + int(found[1], 16)) if found[1] else found[0]

    text = line.decode("utf-8", "surrogateescape")
    return json.loads(re.sub(r"\\(?:uffffff([89a-f][0-9a-f])|.)", escape, text))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def text(data: bytes) -> bytes:
    """What would have been printed without `-f json`, but for values and for maps other than `@events`."""
    out = bytearray()
    in_hex = False
    for line in data.splitlines():
        if not line.startswith(b"{"):
            out += line + b"\n"
            continue
        if lost := LOST.fullmatch(line):
            out += b"Lost %d events\n" % int(lost[2], 16 if lost[1] and in_hex else 10)
            continue
        said = _object(line)
        kind = said.get("type")
        if kind in PRINTED:
            out += _bytes(said["data"])
        elif kind == "join":
            out += _bytes(said["data"]) + b"\n"
        elif kind == "map":
            for word, count in said["data"].get("@events", {}).items():
                out += b"@events[%s]: %d\n" % (_bytes(word), int(count))
        elif kind is None:
            out += line + b"\n"
        # The stream of 0.24 and later stays in hex.
        in_hex |= re.search(rb"(?<!\\)(?:\\\\)*\\u", line) is not None
    return bytes(out)


def _int(value: Any) -> int:
    return int(value)


def _dev(value: Any) -> str:
    return value if isinstance(value, str) else f"{value >> 20},{value & 0xFFFFF}"


def _meaning(name: str, phase: str) -> str | None:
    """The name in the low-level log of what Syncline knows."""
    point = name.rsplit(":", 1)[-1] if name.startswith(("tracepoint:", "rawtracepoint:")) else name
    call = re.fullmatch(r"sys_(enter|exit)_(\w+)", point)
    call = call if call and call[2] in CALLS else None
    if phase == "INSTANT":
        return point if call or point in (*STARTS, *ENDS, *BLOCKS) else None
    of_fs = re.fullmatch(r"(ext4|f2fs)_sync_file", point)
    if phase == "BEGIN":
        if name in CALLS or point in STARTS or (call and call[1] == "enter"):
            return point
        return f"{point}_enter" if of_fs else None
    if phase == "END":
        if name in CALLS:
            return f"{name}_exit"
        if call:
            return f"sys_exit_{call[2]}"
        whole = re.fullmatch(r"((?:ext4|f2fs)_sync_file)(_enter|_exit)?", point)
        return f"{whole[1]}_exit" if whole else None
    return None


def rows(data: bytes) -> list[Row]:
    """The low-level log of the events that are printed for btetto."""
    found = []
    for line in data.splitlines():
        if not line.startswith(b'{"type": "value"'):
            continue
        what, *pairs = _object(line)["data"]
        if what not in ("track_event", "call_stack"):
            continue
        said = dict(pairs)
        name = said.pop("name", what)
        row: Row = {"ts_ns": _int(said.pop("ts"))}
        for key in ("tid", "pid"):
            if key in said:
                row[key] = _int(said.pop(key))
        if "thread_name" in said:
            row["comm"] = said.pop("thread_name")
        meaning = _meaning(name, said.get("type", ""))
        row["event"] = meaning or (f"track_event {name}" if name in CALLS else name)
        if meaning in STARTS:
            row["datasync"] = _int(said.pop("datasync", 0))
            if "dev" in said:
                row["dev"] = _dev(said.pop("dev"))
            if "ino" in said:
                row["ino"] = _int(said.pop("ino"))
            row["fs"] = meaning.split("_")[0]
        elif meaning in BLOCKS and "W" in said["rwbs"] and said["nr_sector"]:
            row["dev"], row["sector"] = _dev(said.pop("dev")), _int(said.pop("sector"))
            row["bytes"] = said["nr_sector"] * 512
        elif meaning and "ustack" in said and "enter" in meaning:
            stack = [line for line in said.pop("ustack").split("\n") if line.strip()]
            if stack:
                row["stack"] = [line.strip() for line in stack]
        elif meaning and "ret" in said:
            row["ret"] = _int(said.pop("ret"))
        for key, value in said.items():
            if isinstance(value, list):
                row[key] = json.dumps(value, separators=(",", ":"))
            else:
                # No number of more than 18 digits is one in every JSON reader.
                is_long = isinstance(value, int) and abs(value) >= 10**18
                row[key] = str(value) if is_long else value
        found.append(row)
    return found


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
    """A log as text as `bpftrace -f json` would have written it, the text cut anywhere.

    `signed`: whether C++'s `char` has a sign, as on x86-64.
    """
    out = bytearray()
    in_hex = False

    def put(kind: bytes, data: bytes, count: bytes = b"") -> None:
        nonlocal out
        out += b'{"type": "%s"%s, "data": %s}\n' % (kind, count, data)

    def flush() -> None:
        nonlocal pending, in_hex
        while pending:
            size = rng.choice((1, 7, 60, 400)) if rng.random() < 0.3 else pending.find(b"\n") + 1
            size = size or len(pending)
            part = _quoted(pending[:size], signed)
            in_hex |= re.search(rb"(?<!\\)(?:\\\\)*\\u", part) is not None
            put(b"cat" if rng.random() < 0.1 else b"printf", part)
            pending = pending[size:]

    put(b"attached_probes", b'{"probes": 9}', b', "count": 9' if version >= 24 else b"")
    pending = b""
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

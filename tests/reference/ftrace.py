"""A plain reader of the ring buffer's text, and a printer of known events in every layout.

The reader has one regular expression for each layout. It knows the events of the kernel patch, the
syscalls, ext4's sync and the block layer. The printer writes the events of a `tracedat.World` as the
kernel's trace_output.c and trace-cmd's trace-read.c do.

    python -m tests.reference.ftrace --bytes 100000000 > big.txt
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tests.reference import tracedat
from tests.reference.tracedat import World

NORMAL = re.compile(
    r"\s*(?P<comm>\S.{0,14}?|)-(?P<tid>\d+)\s+(?:\(\s*(?P<pid>\d+|-+)\)\s+)?\[\d+\](?:-0x[0-9a-f]+|\s+[^\s\d:]\S*|)"
    r"\s+(?P<time>\d+\.\d+): (?P<event>.*)"
)
LATENCY = re.compile(
    r"\s*(?P<comm>\S.{0,7}?|)-(?P<tid>\d+)\s+\d+(?:-0x[0-9a-f]+|[^\s\d:]\S*)\s+(?P<time>\d+\.\d+|\d+us[ +!#*@$]): (?P<event>.*)"
)
CALL = re.compile(r"sys_(?P<call>\w+)\((?P<args>.*)\)")
RETURN = re.compile(r"sys_(?P<call>\w+) -> (?P<ret>0x[0-9a-f]+)")
NAME_AND_DATA = re.compile(r"(?:\(\+\d+\)\s+)?(?P<name>\w+):\s*(?P<data>.*)")

# The text after `name:`, as the event's print format writes it.
DATA = {
    "sync_start": r"id=(?P<id>\d+) start=(?P<start>\d+) end=(?P<end>\d+) datasync=(?P<datasync>\d)"
    r" dev=(?P<dev>\S+) ino=(?P<ino>\d+)(?: op=(?P<op>\w+))?(?: fs=(?P<fs>\w+))? path=(?P<path>.*)",
    "sync_end": r"id=(?P<id>\d+) ret=(?P<ret>-?\d+)",
    "bio_add_folio": r"id=(?P<id>\d+) bio=(?:0x)?(?P<bio>[0-9a-f]+)x? start=(?P<start>\d+) len=(?P<len>\d+)"
    r" dev=(?P<dev>\S+) ino=(?P<ino>\d+)",
    "bio_submit": r"id=(?P<id>\d+) bio=(?:0x)?(?P<bio>[0-9a-f]+)x? dev=(?P<dev>\S+) sector=(?P<sector>\d+)"
    r" bytes=(?P<bytes>\d+) opf=(?P<opf>\S+)(?: origin=(?P<origin>\w+))?",
    "bio_complete": r"bio=(?:0x)?(?P<bio>[0-9a-f]+)x? status=(?P<status>-?\d+)",
    "ext4_sync_file_enter": r"dev (?P<dev>\S+) ino (?P<ino>\d+) parent (?P<parent>\d+) datasync (?P<datasync>\d) ?",
    "ext4_sync_file_exit": r"dev (?P<dev>\S+) ino (?P<ino>\d+) ret (?P<ret>-?\d+)",
    "block_bio_queue": r"(?P<dev>\d+,\d+) (?P<rwbs>\S+) (?P<sector>\d+) \+ (?P<nr_sector>\d+) \[(?P<data_comm>.+)\]",
    "block_rq_issue": r"(?P<dev>\d+,\d+) (?P<rwbs>\S+) (?P<bytes>\d+) \((?P<cmd>.*)\) (?P<sector>\d+) \+ (?P<nr_sector>\d+)"
    r" (?P<ioprio>\S+) \[(?P<data_comm>.+)\]",
    "block_rq_complete": r"(?P<dev>\d+,\d+) (?P<rwbs>\S+) \((?P<cmd>.*)\) (?P<sector>\d+) \+ (?P<nr_sector>\d+)"
    r" (?P<ioprio>\S+) \[(?P<error>-?\d+)\]",
    "jbd2_start_commit": r"dev (?P<dev>\S+) transaction (?P<transaction>\d+) sync (?P<sync>\d)",
    "writeback_dirty_folio": r"bdi (?P<name>\S+): ino=(?P<ino>\d+) index=(?P<index>\d+)",
}
DATA["block_rq_insert"] = DATA["block_rq_issue"]


@dataclass
class Event:
    """An event of a text. `fields` is `None` if the reader does not know the print format."""

    ts: int
    tid: int
    pid: int | None
    comm: str
    name: str
    fields: dict[str, Any] | None


def _time(text: str) -> int:
    if "us" in text:
        return int(text.split("us")[0]) * 1000
    return int(Decimal(text) * 10**9)


def _value(text: str, base: int = 0) -> int | str:
    number = re.fullmatch(r"0x[0-9a-f]+|-?\d+", text) if base == 0 else text
    try:
        return int(text, base) if number else text
    except ValueError:
        return text


def _fields(name: str, data: str) -> dict[str, Any] | None:
    if name.startswith("sys_exit_"):
        return {"ret": _signed(int(data, 16))}
    if name.startswith("sys_enter_"):
        return {k: int(v, 16) for k, v in re.findall(r"(\w+): 0x([0-9a-f]+)", data)}
    if name not in DATA:
        return None
    match = re.fullmatch(DATA[name], data)
    assert match, (name, data)
    fields = {k: v for k, v in match.groupdict().items() if v is not None}
    if "bio" in fields:
        # %px prints no 0x, and trace-cmd appends an x to %p.
        fields["bio"] = f"0x{fields['bio']}"
    texts = ("path", "data_comm", "cmd")
    return {key: value if key in texts else _value(value) for key, value in fields.items()}


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def read(text: str) -> Iterator[Event]:
    """The events of a text, in file order. Other lines are skipped."""
    for line in text.splitlines():
        row = NORMAL.fullmatch(line) or LATENCY.fullmatch(line)
        if row is None:
            assert re.match(r"#|cpus=|CPU|$", line), line
            continue
        event = row["event"]
        if call := CALL.fullmatch(event):
            name = f"sys_enter_{call['call']}"
            fields: Any = {
                k: int(v, 16) for k, v in re.findall(r"(\w+): ([0-9a-f]+)", call["args"])
            }
        elif call := RETURN.fullmatch(event):
            name, fields = f"sys_exit_{call['call']}", {"ret": _signed(int(call["ret"], 16))}
        else:
            name_and_data = NAME_AND_DATA.fullmatch(
                event.strip(" ") if event.startswith(" ") else event
            )
            assert name_and_data, line
            name, fields = (
                name_and_data["name"],
                _fields(name_and_data["name"], name_and_data["data"]),
            )
        groups = row.groupdict()
        pid = groups.get("pid")
        yield Event(
            _time(row["time"]),
            int(row["tid"]),
            int(pid) if pid and pid.isdigit() else None,
            row["comm"],
            name,
            fields,
        )


def as_thesis(events: list[Event]) -> bytes:
    """Writes the events of the kernel patch and of the sync calls in the thesis's line format."""
    lines = []
    for event in events:
        fields = dict(event.fields or {})
        if event.name.startswith(("sys_enter_", "sys_exit_")):
            name = event.name.removeprefix("sys_enter_")
            if name.removeprefix("sys_exit_") not in tracedat.CALLS:
                continue
            data = f"ret {fields['ret']}" if name.startswith("sys_exit_") else ""
        elif event.name in (
            "sync_start",
            "sync_end",
            "bio_add_folio",
            "bio_submit",
            "bio_complete",
        ):
            name = event.name
            if "bio" in fields:
                fields["bio"] = f"0x{fields['bio']:x}"
            data = " ".join(f"{key} {value}" for key, value in fields.items())
        else:
            continue
        lines.append(f"{event.ts} {event.tid} {event.comm} {name} {data}".rstrip() + "\n")
    return "".join(lines).encode()


# ---------------------------------------------------------------- the printer


@dataclass(frozen=True)
class Layout:
    """How a text is printed."""

    trace_cmd: bool = False
    latency: bool = False
    tgid: bool = False
    flags: str = "....."
    digits: int = 9  # of the fraction of a second
    diff: bool = False
    prefix: str = ""
    raw: bool = False  # trace-cmd report -R
    stripped: bool = False  # leading blanks were lost when the text was copied
    crlf: bool = False


def _dev(value: int) -> str:
    return f"{value >> 20},{value & 0xFFFFF}"


def _print(event: tracedat.Event, layout: Layout) -> str:
    name, fields = event.name.split(":")[1], dict(event.fields)
    system = event.name.split(":")[0]
    pad = 21 if layout.trace_cmd else 0
    if system == "syscalls":
        call = name.split("_", 2)[2]
        fields.pop("__syscall_nr")
        if not layout.trace_cmd and name.startswith("sys_enter_"):
            return f"sys_{call}(" + ", ".join(f"{k}: {v:x}" for k, v in fields.items()) + ")"
        if not layout.trace_cmd:
            return f"sys_{call} -> {fields['ret'] % 2**64:#x}"
        if layout.raw:
            return f"{name + ':':{pad}} __syscall_nr=74 " + " ".join(
                f"{k}={v:#x}" if k == "fd" else f"{k}={v}" for k, v in fields.items()
            )
        if name.startswith("sys_enter_"):
            return f"{name + ':':{pad}} " + ", ".join(f"{k}: {v:#010x}" for k, v in fields.items())
        return f"{name + ':':{pad}} {fields['ret'] % 2**64:#x}"
    path = fields.pop("path", None)
    if path is not None:
        escaped = path.replace("\\", "\\134").replace("\n", "\\012")
        fields["path"] = escaped
    if not layout.raw and "dev" in fields:
        fields["dev"] = _dev(fields["dev"])
    if "bio" in fields:
        fields["bio"] = f"{fields['bio']:#x}" + ("x" if layout.trace_cmd and not layout.raw else "")
    if "opf" in fields:
        fields["opf"] = f"{fields['opf']:#x}"
    data = " ".join(f"{key}={value}" for key, value in fields.items())
    return f"{name + ':':{pad}} {data}" if pad else f"{name}: {data}"


def write(world: World, layout: Layout) -> str:
    """Prints the events of a world, one on each line, and the losses between them."""
    lines = []
    if layout.trace_cmd:
        lines.append(f"{layout.prefix}cpus={world.cpus}")
    else:
        lines += [
            "# tracer: nop",
            "#",
            f"# entries-in-buffer/entries-written: 9/9   #P:{world.cpus}",
            "#",
        ]
    gaps = {gap.before: gap for gap in world.gaps}
    last = None
    for number, event in enumerate(world.events):
        if gap := gaps.get(number):
            count = "" if gap.count is None else f"{gap.count} "
            lost = f"[{count}EVENTS DROPPED]" if layout.trace_cmd else f"[LOST {count}EVENTS]"
            lines.append(f"{layout.prefix}CPU:{gap.cpu} {lost}")
        comm = world.comms.get(event.tid, "<...>")
        ts = event.ts // 10 ** (9 - layout.digits)
        time = f"{ts // 10**layout.digits:5}.{ts % 10**layout.digits:0{layout.digits}}"
        flags = "-0x0" if layout.raw else layout.flags
        if layout.latency:
            width = 5 if layout.trace_cmd else 7
            head = f"{comm[:8]:>8}-{event.tid:<{width}} {event.cpu:3}{flags} {time}: "
        else:
            width = 5 if layout.trace_cmd else 7
            head = f"{comm:>16}-{event.tid:<{width}} "
            if layout.tgid:
                head += f"({event.tid // 2:7}) " if event.tid else "(-------) "
            head += f"[{event.cpu:03}]"
            head += (flags if layout.raw else f" {flags}" if flags else "") + f" {time}: "
        if layout.diff:
            head += f"{'' if last is None else f'(+{ts - last})':8} "
            last = ts
        line = layout.prefix + head + _print(event, layout)
        if layout.stripped and not layout.prefix:
            line = line.lstrip()
        lines.append(line)
    end = "\r\n" if layout.crlf else "\n"
    return "".join(line + end for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bytes", type=int, default=10**8)
    options = parser.parse_args()
    written, first, seed = 0, 40 * 10**9, 0
    header = True
    while written < options.bytes:
        world = tracedat.world(random.Random(seed % 50), requests=400, first=first)
        text = write(world, Layout(digits=6, flags="d..1."))
        if not header:
            text = text.split("#\n", 2)[-1]
        header = False
        sys.stdout.write(text)
        written += len(text)
        first = world.events[-1].ts + 10**9
        seed += 1


if __name__ == "__main__":
    main()

"""The events of babeltrace2's text, by regular expressions, and the same events as perf prints them: the reference for `babeltrace/`.

perf's text has the kernel's names and forms, and is read by other code of the core. So both texts of the same events must give the same rows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

_LINE = re.compile(
    r"\[(?P<time>[^\]]+)\] (?:\(\+(?P<delta>[\d.?]+)\) )?(?:(?P<host>\S+) )?(?P<name>[\w:]+): (?P<rest>\{.*\})$"
)
_SCOPE = re.compile(r'\{((?:"(?:\\.|[^"\\])*"|\[[^\]]*(?:\[\d+\][^\[\]]*)*\]|[^{}"\[\]])*)\}')
_FIELD = re.compile(r'(\w+) = ("(?:\\.|[^"\\])*"|\[ .*? \](?=,|$| \})|\(.*?\)|[^,]+?)(?=, |\s*$)')
_LETTERS = ((1 << 9, "F"), (1 << 3, "A"), (1 << 5, "S"), (1 << 6, "M"))
GROUPS = ("block", "ext4", "jbd2", "sched", "writeback")


@dataclass
class Event:
    """Times are in ns since the midnight before the first day, since 1970, or since what the counter counts from."""

    ts: int
    name: str
    comm: str
    pid: int
    tid: int
    fields: dict[str, str]


def _ns(time: str) -> int:
    whole, dot, fraction = time.partition(".")
    if not dot:
        return int(whole)
    if ":" not in whole:
        return int(whole) * 10**9 + int(fraction)
    of_day = whole if " " in whole else f"1970-01-02 {whole}"
    at = datetime.strptime(of_day, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    return int(at.timestamp()) * 10**9 + int(fraction)


def _fields(text: str) -> dict[str, str]:
    fields = {key: value.strip() for key, value in _FIELD.findall(text.strip())}
    return {
        key: re.sub(r"\\(.)", r"\1", v[1:-1]) if v.startswith('"') else v
        for key, v in fields.items()
    }


def read(text: str) -> list[Event]:
    """The events of the text that name their thread, in its order."""
    events = []
    for line in text.splitlines():
        found = _LINE.match(line.rstrip())
        if found is None:
            continue
        scopes = [_fields(scope) for scope in _SCOPE.findall(found["rest"])]
        context: dict[str, str] = {}
        for scope in scopes[:-1]:
            context |= scope
        fields = scopes[-1]
        tid = context.get("tid") or fields.get("perf_tid")
        pid = context.get("pid") or fields.get("perf_pid") or "-1"
        comm = context.get("procname", "")
        if tid is None and found["name"].startswith("block_") and "tid" in fields:
            tid, comm = fields["tid"], fields["comm"]
        if tid is not None:
            name = found["name"].replace("syscall_entry_", "sys_enter_")
            name = name.replace("syscall_exit_", "sys_exit_").rpartition(":")[2]
            events.append(Event(_ns(found["time"]), name, comm, int(pid), int(tid), fields))
    return events


def _rwbs(value: str) -> str:
    if not value.isdigit():
        return value
    bits = int(value)
    operation = next(
        (letter for bit, letter in ((2, "D"), (1, "W"), (4, "R"), (1 << 8, "F")) if bits & bit), "N"
    )
    more = "".join(letter for bit, letter in _LETTERS if bits & bit)
    return ("F" if bits & 1 << 10 else "") + operation + more


def _dev(value: str) -> str:
    return f"{int(value) >> 20},{int(value) & 0xFFFFF}"


def _data(event: Event) -> tuple[str, str] | None:
    """The group of a tracepoint, and its fields as the kernel prints them."""
    f, name = event.fields, event.name
    if name.startswith("sys_enter_"):
        return "syscalls", ", ".join(f"{key}: 0x0" for key in f if key == "fd")
    if name.startswith("sys_exit_"):
        return "syscalls", f["ret"]
    group = next((group for group in GROUPS if name.startswith(f"{group}_")), None)
    if name.startswith("block_"):
        at = f"{_dev(f['dev'])} {_rwbs(f['rwbs'])}"
        where = f"{f['sector']} + {f['nr_sector']}"
        if name == "block_bio_remap":
            return "block", f"{at} {where} <- ({_dev(f['old_dev'])}) {f['old_sector']}"
        if name in ("block_rq_complete", "block_bio_complete"):
            return "block", f"{at} {'() ' * ('_rq_' in name)}{where} [{f['error']}]"
        if name in ("block_rq_issue", "block_rq_insert"):
            return "block", f"{at} {f['bytes']} () {where} [{f['comm']}]"
        return "block", f"{at} {where} [{f['comm']}]"
    if name.startswith("ext4_sync_file"):
        last = "parent datasync" if name.endswith("enter") else "ret"
        rest = " ".join(f"{key} {f[key]}" for key in last.split())
        return "ext4", f"dev {_dev(f['dev'])} ino {f['ino']} {rest}"
    if name.startswith("jbd2_"):
        return (
            "jbd2",
            f"dev {_dev(f['dev'])} transaction {f['transaction']} sync {f['sync_commit']}",
        )
    if name == "sched_switch":
        state = "R" if int(f["prev_state"]) & 0xFF == 0 else "D"
        before = (
            f"prev_comm={f['prev_comm']} prev_pid={f['prev_tid']} prev_prio=0 prev_state={state}"
        )
        after = f"next_comm={f['next_comm']} next_pid={f['next_tid']} next_prio=0"
        return "sched", f"{before} ==> {after}"
    if name == "sched_waking":
        return "sched", f"comm={f['comm']} pid={f['tid']} prio=0 target_cpu={f['target_cpu']}"
    if group == "writeback":
        return None
    return "other", ""


def as_perf(events: list[Event]) -> str:
    """The events as `perf script --ns -F +pid` prints them."""
    lines = []
    for event in events:
        data = _data(event)
        if data is None:
            continue
        pid = event.pid
        at = f"{event.ts // 10**9}.{event.ts % 10**9:09}"
        group, text = data
        lines.append(
            f"{event.comm or ':x':>16} {pid}/{event.tid} [000] {at}: {group}:{event.name}: {text}\n"
        )
    return "".join(lines)

"""Reads marks from the log of an application: a line is a mark, at the time of day that it has.

Text (PostgreSQL, Redis, syslog, klog, most others) and JSON, an object a line (etcd, journalctl -o json).
"""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from syncline.errors import InputError

from .mark import Mark

__all__ = ["read"]

# Lines that decide whether a file is a log.
_HEAD = 40
# A time is at the begin of a line, behind a host, a process id or an address.
_PREFIX = 80
_NAME = 200
_MONTH_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_MONTH = "(?P<month>" + "|".join(_MONTHS) + ")"
_TIME = r"(?P<time>\d\d:\d\d:\d\d)(?:[.,](?P<part>\d{1,9}))?"
# Names of zones that a log may have instead of an offset. Other words behind a time, such as INFO, are no zones.
_ZONES = (
    "AEDT AEST AKDT AKST BST CDT CEST CET CST EDT EEST EET EST HST IST JST KST MDT MSK MST NZDT NZST PDT PST"
    " SAST SGT WEST WET"
).replace(" ", "|")
_ZONE = rf"(?: ?(?P<zone>Z|UTC|GMT|[+-]\d\d(?::?\d\d)?|{_ZONES})\b)?"
_FORMS = [
    re.compile(form)
    for form in (
        rf"(?<!\d)(?P<year>\d{{4}})[-/](?P<month>\d\d)[-/](?P<day>\d\d)[T ]{_TIME}{_ZONE}",
        rf"(?<!\d)(?P<day>\d{{1,2}})[ /-]{_MONTH}[ /-](?P<year>\d{{4}})[ :]{_TIME}{_ZONE}",
        rf"\b{_MONTH} +(?P<day>\d{{1,2}}) {_TIME}(?:{_ZONE} (?P<year>\d{{4}})\b)?",
        rf"^[IWEF](?P<month>\d\d)(?P<day>\d\d) {_TIME}",
        # CockroachDB writes the year too, and its times are in UTC.
        rf"^[IWEF](?P<short_year>\d\d)(?P<month>\d\d)(?P<day>\d\d) {_TIME}",
        r"^\[?(?P<epoch>\d{10})(?:[.,](?P<part>\d{1,9}))?(?=[\] \t])",
    )
]
# Fields of JSON, the likeliest first.
_TIMES = ("ts", "time", "timestamp", "@timestamp", "__REALTIME_TIMESTAMP", "datetime", "date", "t", "asctime")  # fmt: skip
_MESSAGES = ("msg", "message", "MESSAGE", "event", "log", "text")
_DURATION = re.compile(
    r"(?<![\w-])(?:took(?: too long)?|duration(?: of)?|elapsed|latency|ongoing for)[\"']?\s*[:=(]?\s*[\"'(]?"
    r"(?P<length>(?:\d+(?:\.\d+)? ?(?:ns|us|µs|μs|ms|s|m|h)(?![a-zA-Z]))+)"
)
# What PostgreSQL says at the end of a checkpoint.
_CHECKPOINT = re.compile(r"checkpoint complete: .* total=(?P<length>\d+(?:\.\d+)? s)")
_PART = re.compile(r"(?P<number>\d+(?:\.\d+)?) ?(?P<unit>ns|us|µs|μs|ms|s|m|h)")
_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}  # fmt: skip
# Names of fields of JSON whose number has a unit: duration_ms, durationMillis.
_LENGTH = r"^(?:took|duration|elapsed|latency)(?:_time)?_?(?:{})$"
_SUFFIXES = {"ns|nanos": 1, "us|micros": 10**3, "ms|millis": 10**6, "s|secs|seconds": 10**9}
_LENGTHS = {
    re.compile(_LENGTH.format(suffix), re.IGNORECASE): unit for suffix, unit in _SUFFIXES.items()
}
# A mark ends before 2262, when ns since 1970 have more than 63 bits.
_END_NS = 2**63
# A program reads the clock for its line some time after what the line is about.
_LATE_NS = 10**6


class _At(NamedTuple):
    """A time of day in ns since 1970, and the unit of the last digit that the log prints of it."""

    ns: int
    resolution_ns: int


def read(path: Path) -> tuple[list[Mark], int] | None:
    """Reads a log. Returns its marks in ns since 1970, and the number of its lines without a time; None if few of the first ones have one.

    A line that says how long something took was written after its end. So its mark begins before by that much, and by 1 ms or the resolution
    of the time, so that a sync that the line is about begins within the mark.

    Raises:
        OSError: the file cannot be read.
        InputError: it is not known in which zone a time is.
    """
    reader = _Reader(path)
    with path.open(encoding="utf-8-sig", errors="replace", newline="\n") as stream:
        lines = ((number, line) for number, line in enumerate(stream, 1) if line.strip())
        head = list(islice(lines, _HEAD))
        found = [reader.mark(number, line) for number, line in head]
        if 2 * sum(mark is not None for mark in found) <= len(head):
            return None
        found += (reader.mark(number, line) for number, line in lines)
    marks = [mark for mark in found if mark is not None]
    return marks, len(found) - len(marks)


class _Reader:
    def __init__(self, path: Path) -> None:
        self.path = path
        # A time without a year is of the last one in which it is not later than the file.
        self._latest = datetime.fromtimestamp(path.stat().st_mtime) + timedelta(days=1)

    def mark(self, number: int, line: str) -> Mark | None:
        """Returns the mark of a line; None if it has no time."""
        line = line.rstrip()
        if line.lstrip().startswith("{"):
            found = self._of_json(number, line)
            if found is not None:
                return found
        for form in _FORMS:
            match = form.search(line[:_PREFIX])
            at = match and self._time(number, match)
            if match and at:
                # The time may be cut at the end of the prefix, but not what follows.
                rest = line[match.end() :].lstrip(" \t]|:,;-")
                name = rest or line[: match.start()].rstrip(" \t[|:,;-")
                return _mark(at, name, _length(rest), number)
        return None

    def _of_json(self, number: int, line: str) -> Mark | None:
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError):
            return None
        if not isinstance(fields, dict):
            return None
        for name in _TIMES:
            at = self._json_time(number, fields.get(name))
            if at is not None:
                texts = (fields[key] for key in _MESSAGES if isinstance(fields.get(key), str))
                return _mark(at, next(texts, line), _json_length(fields), number)
        return None

    def _json_time(self, number: int, value: Any) -> _At | None:
        if isinstance(value, dict):
            # {"$date": "..."} of MongoDB.
            value = value.get("$date")
        if isinstance(value, str) and not re.fullmatch(r"\d{10,19}(\.\d+)?", value):
            match = _FORMS[0].match(value)
            return None if match is None else self._time(number, match)
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            return None
        text = f"{value:.6f}" if isinstance(value, float) else str(value)
        whole, _, part = text.partition(".")
        # Seconds, ms, us or ns since 1970, which have 10, 13, 16 and 19 digits until the year 2286.
        scale = {10: 10**9, 13: 10**6, 16: 10**3, 19: 1}.get(len(whole))
        if scale is None or not whole.isdigit():
            return None
        ns = int(whole) * scale + int(part.ljust(9, "0")[:9]) * scale // 10**9
        return _At(ns, scale if not part else 1) if ns < _END_NS else None

    def _time(self, number: int, match: re.Match[str]) -> _At | None:
        """Returns a time of day; None if there is no such time, as 25:00:00, or not of this age, such as the year 1 that Go prints for no time."""
        parts = match.groupdict()
        part = parts.get("part") or ""
        seconds = int(parts["epoch"]) if parts.get("epoch") else self._seconds(number, parts)
        if seconds is None or not 0 <= seconds * 10**9 < _END_NS:
            return None
        return _At(seconds * 10**9 + int(part.ljust(9, "0")), 10 ** (9 - len(part)))

    def _seconds(self, number: int, parts: dict[str, str | None]) -> int | None:
        """Returns a date and its time in s since 1970; None if there is no such date."""
        month = _MONTHS.get(parts["month"] or "") or int(parts["month"] or 0)
        hour, minute, second = map(int, (parts["time"] or "").split(":"))
        year, zone = parts.get("year"), parts.get("zone")
        if short_year := parts.get("short_year"):
            year, zone = f"20{short_year}", "UTC"
        for one in [int(year)] if year else [self._latest.year, self._latest.year - 1]:
            try:
                at = datetime(one, month, int(parts["day"] or 0), hour, minute, second)
                if year or at <= self._latest:
                    aware = at.replace(tzinfo=self._zone(number, zone)) if zone else at.astimezone()
                    return int(aware.timestamp())
            except (ValueError, OverflowError, OSError):
                continue
        return None

    def _zone(self, number: int, zone: str) -> Any:
        if zone in ("Z", "UTC", "GMT"):
            return UTC
        if zone[0] in "+-":
            digits = zone[1:].replace(":", "")
            minutes = int(digits[:2]) * 60 + int(digits[2:] or 0)
            return timezone(timedelta(minutes=minutes if zone[0] == "+" else -minutes))
        if zone in time.tzname:
            # Local time. Which of the two names it is decides in the hour that comes twice.
            offset = time.timezone if zone == time.tzname[0] else time.altzone
            return timezone(timedelta(seconds=-offset))
        raise InputError(
            f"{self.path}:{number}: the time zone {zone} has several meanings",
            "name the one of the log: TZ=Europe/Berlin syncline ...",
        )


def _mark(end: _At, name: str, length_ns: int | None, line: int) -> Mark:
    name = " ".join(name.split())
    if len(name) > _NAME:
        name = name[: _NAME - 1] + "…"
    if length_ns is None or length_ns > end.ns - _LATE_NS:
        # Nothing that a log says took longer than since 1970.
        return Mark(end.ns, name, None, line)
    length_ns += max(end.resolution_ns, _LATE_NS)
    begin_ns = max(end.ns - length_ns, 0)
    return Mark(begin_ns, name, end.ns - begin_ns, line)


def _length(text: str) -> int | None:
    """Returns how long something took, in ns, if the text says so."""
    match = _CHECKPOINT.search(text) or _DURATION.search(text)
    return None if match is None else _sum(match["length"])


def _sum(text: str) -> int:
    """Returns the ns of a text such as `1.2s`, `1m2.5s` or `123.4 ms`."""
    return sum(round(float(part["number"]) * _UNITS[part["unit"]]) for part in _PART.finditer(text))


def _json_length(fields: dict[str, Any]) -> int | None:
    for name in ("took", "duration", "elapsed", "latency"):
        value = fields.get(name)
        if isinstance(value, str) and "".join(match[0] for match in _PART.finditer(value)) == value:
            return _sum(value) if value else None
    for name, value in fields.items():
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _END_NS:
            for pattern, unit in _LENGTHS.items():
                if pattern.match(name):
                    return round(value * unit)
    # MongoDB has what a line is about in a field of its own.
    about = fields.get("attr")
    return _json_length(about) if isinstance(about, dict) else None

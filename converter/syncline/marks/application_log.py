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
from typing import Any

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
        r"^\[?(?P<epoch>\d{10})(?:[.,](?P<part>\d{1,9}))?(?=[\] \t])",
    )
]
# Fields of JSON, the likeliest first.
_TIMES = ("ts", "time", "timestamp", "@timestamp", "__REALTIME_TIMESTAMP", "datetime", "date", "t", "asctime")  # fmt: skip
_MESSAGES = ("msg", "message", "MESSAGE", "event", "log", "text")
_DURATION = re.compile(
    r"(?<![\w-])(?:took(?: too long)?|duration(?: of)?|elapsed)[\"']?\s*[:=(]?\s*[\"'(]?"
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
# A program reads the clock for its line some time after what the line is about.
_LATE_NS = 10**6


def read(path: Path) -> list[Mark] | None:
    """Reads a log. Returns its marks in ns since 1970; None if few of the first lines have a time of day.

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
    return [mark for mark in found if mark is not None]


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
            if match is None:
                continue
            ns = self._time(number, match)
            if ns is None:
                continue
            # The time may be cut at the end of the prefix, but not what follows.
            rest = line[match.end() :].lstrip(" \t]|:,;-")
            digits = len(match.groupdict().get("part") or "")
            name = rest or line[: match.start()].rstrip(" \t[|:,;-")
            return _mark(ns, name, _length(rest), number, 10 ** (9 - digits))
        return None

    def _of_json(self, number: int, line: str) -> Mark | None:
        try:
            fields = json.loads(line)
        except ValueError:
            return None
        if not isinstance(fields, dict):
            return None
        for name in _TIMES:
            ns = self._json_time(number, fields.get(name))
            if ns is not None:
                message = next(
                    (fields[key] for key in _MESSAGES if isinstance(fields.get(key), str)), line
                )
                return _mark(ns, message, _json_length(fields), number, _LATE_NS)
        return None

    def _json_time(self, number: int, value: Any) -> int | None:
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
        return int(whole) * scale + int(part.ljust(9, "0")[:9] or 0) * scale // 10**9

    def _time(self, number: int, match: re.Match[str]) -> int | None:
        """Returns ns since 1970; None if it is no time, such as 25:00:00."""
        parts = match.groupdict()
        fraction = int((parts.get("part") or "0").ljust(9, "0"))
        if parts.get("epoch"):
            return int(parts["epoch"]) * 10**9 + fraction
        month = _MONTHS.get(parts["month"]) or int(parts["month"])
        hour, minute, second = map(int, parts["time"].split(":"))
        year = int(parts["year"]) if parts.get("year") else None
        years = [year] if year is not None else [self._latest.year, self._latest.year - 1]
        for year in years:
            try:
                at = datetime(year, month, int(parts["day"]), hour, minute, second)
                if parts.get("year") or at <= self._latest:
                    zone = parts.get("zone")
                    at = (
                        at.astimezone()
                        if zone is None
                        else at.replace(tzinfo=self._zone(number, zone))
                    )
                    return int(at.timestamp()) * 10**9 + fraction
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


def _mark(end_ns: int, name: str, length_ns: int | None, line: int, resolution_ns: int) -> Mark:
    name = " ".join(name.split())
    if len(name) > _NAME:
        name = name[: _NAME - 1] + "…"
    if length_ns is None:
        return Mark(end_ns, name, None, line)
    length_ns += max(resolution_ns, _LATE_NS)
    return Mark(end_ns - length_ns, name, length_ns, line)


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
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
            for pattern, unit in _LENGTHS.items():
                if pattern.match(name):
                    return round(value * unit)
    return None

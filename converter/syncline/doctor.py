"""What this machine can do: engines, recorders and kernel features.

`collect` runs the checks, `render` and `to_json` print them. No check raises: what cannot be
determined is reported as a warning.
"""

from __future__ import annotations

import json
import platform
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

from syncline.engine import checks as engine_checks
from syncline.health import Checker, Health, Status
from syncline.record import checks as record_checks

__all__ = ["Check", "collect", "render", "to_json"]


@dataclass(frozen=True)
class Check:
    """One line of the report. `hint` says what to type; it is empty if the status is ok."""

    name: str
    status: Status
    detail: str
    hint: str = ""


def collect(root: Path = Path("/")) -> list[Check]:
    """Runs all checks. `root` is the folder that holds /sys and /proc; tests use another one."""
    checks = []
    for name, check in _CHECKS:
        try:
            checks.append(Check(name, *check(root)))
        except Exception as error:
            checks.append(Check(name, "warn", f"unknown: {type(error).__name__}: {error}"))
    return checks


def render(checks: Sequence[Check], room: int | None = None) -> str:
    """Returns plain text: a line per check, with its hint in the next line.

    Args:
        room: the width of the terminal, at which longer lines continue below their beginning; None for whole lines.
    """
    width = max((len(check.name) for check in checks), default=0)
    lines = []
    for check in checks:
        lines += _hanging(f"{check.status:<7}  {check.name:<{width}}  ", check.detail, room)
        if check.hint:
            lines += _hanging(f"{'':<{9 + width}}  -> ", check.hint, room)
    return "\n".join(lines) + "\n"


def _hanging(begin: str, text: str, room: int | None) -> list[str]:
    if room is None or len(begin) + len(text) <= room:
        return [f"{begin}{text}".rstrip()]
    return textwrap.wrap(
        text,
        room,
        initial_indent=begin,
        subsequent_indent=" " * len(begin),
        # A path or a command stays one word, so that it can be copied.
        break_long_words=False,
        break_on_hyphens=False,
    )


def to_json(checks: Sequence[Check]) -> str:
    """Returns a JSON array of objects with the fields of `Check`."""
    return json.dumps([asdict(check) for check in checks], indent=2) + "\n"


def _python(_root: Path) -> Health:
    return Health("ok", f"{platform.python_version()} ({sys.executable})")


def _sql(_root: Path) -> Health:
    from syncline.report.catalogue import sql_root

    package = sql_root() / "tables" / "perfetto"
    if not (package / "sync_call.sql").is_file():
        return Health("missing", f"{package} is incomplete", "Install Syncline again.")
    return Health("ok", f"{package} (dev.syncline, for Perfetto's own tools)")


def _package(name: str) -> Checker:
    def check(_root: Path) -> Health:
        try:
            return Health("ok", metadata.version(name))
        except metadata.PackageNotFoundError:
            return Health("missing", "not installed", f"pip install {name}")

    return check


_CHECKS: tuple[tuple[str, Checker], ...] = (
    ("python", _python),
    ("embedded engine", engine_checks.embedded),
    ("native engine", engine_checks.native),
    ("engine cache", engine_checks.cache),
    ("SQL package", _sql),
    ("duckdb", _package("duckdb")),
    ("perfetto", _package("perfetto")),
    ("UI", engine_checks.perfetto_ui),
    ("browser", engine_checks.browser),
    ("kernel", record_checks.kernel),
    ("privileges", record_checks.privileges),
    ("tracefs", record_checks.tracefs_mount),
    ("patched tracepoints", record_checks.patched_tracepoints),
    ("BTF", record_checks.btf),
    ("probes", record_checks.probes),
    ("route", record_checks.route),
    ("lockdown", record_checks.lockdown),
    ("perf_event_paranoid", record_checks.perf_event_paranoid),
    ("bpftrace", record_checks.program("bpftrace")),
    ("trace-cmd", record_checks.program("trace-cmd")),
    ("strace", record_checks.program("strace")),
)

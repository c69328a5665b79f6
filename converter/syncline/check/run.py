"""Runs rules on an input. SQL finds what was synced before what; Python fills in the patterns of a rule."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from syncline.report import catalogue, run_query
from syncline.report.run import keep
from syncline.report.tables import SqlEngine

from .rules import PATTERNS, Rule

__all__ = ["RECORD", "Checked", "Outcome", "Unanswerable", "check", "statements", "warnings"]

_PREFIX = "_syncline_check_"
# In the order in which they are built. Each is a file of sql/commands/check/.
_TABLES = ("order", "step", "name", "renamed", "op", "life", "folder", "ended")
# Tables that only others need, by the last one that reads them: each has a row for each operation, so they go at once.
_DONE_WITH = {"step": ("order",), "op": ("step",), "life": ("name",)}
# Renames of a file, one after the other, as a power of two. A log of a billion lines has fewer.
_MOST_DOUBLINGS = 32
_PARAMETER = re.compile(r":(folder|sockets|suffix)\b")
_LOST = (
    "SELECT reason, CAST(SUM(count) AS BIGINT) FROM lost_steps!() GROUP BY reason ORDER BY reason"
)
# How to record what rules are about: sync() is in no class of strace.
RECORD = "strace -f -y -T -ttt -s 0 -e trace=%file,%desc,%process,%network,sync -o LOG COMMAND"
_RECORD_THEM = f"record them: {RECORD}, or as root: syncline record --files -o RUN -- COMMAND"


class Unanswerable(Exception):
    """The recording cannot answer any rule. `hint` says how to record one that can."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@dataclass(frozen=True)
class Checked:
    """A verdict on a file that is not ok, with the steps that it is of; the columns are those of `shown.sql`."""

    verdict: str
    row: dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What came of one rule.

    `files`: the number of files with each verdict. `unanswered`: why the rule says nothing, as a clause; None if it does.
    """

    rule: Rule
    files: dict[str, int]
    shown: tuple[Checked, ...]
    unanswered: str | None = None

    @property
    def verdict(self) -> str:
        """The worst verdict of a file, or `not checked`."""
        if self.unanswered:
            return "not checked"
        return next(one for one in ("violated", "cannot tell", "ok") if self.files.get(one))


def statements() -> list[str]:
    """Returns the SQL that reads tables of the input, so that only these are read."""
    names = ("order", "step", "doubt")
    return [catalogue.read_sql("commands/check", name) for name in names]


def check(engine: SqlEngine, rules: Iterable[Rule]) -> list[Outcome]:
    """Checks each rule.

    Raises:
        Unanswerable: no operations on files are recorded.
        EngineError: the input is damaged.
    """
    _refuse_without_writes(engine)
    _prepare(engine)
    return [_outcome(engine, rule) for rule in rules]


def warnings(engine: SqlEngine) -> list[str]:
    """Returns what a reader must know of the recording, after `check`: what is lost, and what may not have been recorded at all."""
    found = [
        f"{count:,} lost: {reason}, so no verdict is certain"
        for reason, count in run_query(engine, _LOST).rows
    ]
    if not run_query(engine, f"SELECT 1 FROM {_PREFIX}op WHERE is_sync = 1 LIMIT 1").rows:
        found.append(
            f"the recording has no sync at all: if strace was not asked for them, record again: {RECORD}"
        )
    return found


def _refuse_without_writes(engine: SqlEngine) -> None:
    ops = {op for (op,) in run_query(engine, "SELECT DISTINCT op FROM syncline_file_op").rows}
    if not ops - {"exit"}:
        raise Unanswerable("no operations on files are recorded", _RECORD_THEM)
    if not ops & {"write", "truncate", "allocate", "map"}:
        raise Unanswerable("no writes are recorded", _RECORD_THEM)


def _prepare(engine: SqlEngine) -> None:
    """Builds the tables that all rules read."""
    for table in _TABLES:
        keep(engine, _PREFIX + table, _sql(table))
        if table == "renamed":
            _follow_renames(engine)
        for done in _DONE_WITH.get(table, ()):
            engine.query(f"DROP TABLE {_PREFIX}{done}")


def _follow_renames(engine: SqlEngine) -> None:
    """Follows each name back to the first one, through twice as many renames each time."""
    for _ in range(_MOST_DOUBLINGS):
        keep(engine, f"{_PREFIX}further", _sql("further"))
        ((moved,),) = run_query(engine, f"SELECT SUM(moved) FROM {_PREFIX}further").rows
        if not moved:
            return
        keep(engine, f"{_PREFIX}renamed", f"SELECT name_id, file_id FROM {_PREFIX}further")


def _outcome(engine: SqlEngine, rule: Rule) -> Outcome:
    keep(engine, f"{_PREFIX}match", _match(rule))
    roles = {role for (role,) in run_query(engine, f"SELECT DISTINCT role FROM {_PREFIX}match").rows}  # fmt: skip
    for role in ("files", "log"):
        if rule.values.get(role) and role not in roles and not rule.values.get("sockets"):
            return Outcome(rule, {}, (), _no_file(role, rule))
    keep(engine, f"{_PREFIX}doubt", f"{_sql('doubt')}\nUNION ALL\n{_moved(engine)}")
    keep(engine, f"{_PREFIX}result", _filled(rule))
    keep(engine, f"{_PREFIX}found", _sql("found"))
    files = {str(verdict): int(count) for verdict, count in run_query(engine, _sql("counts")).rows}
    if not files:
        return Outcome(rule, {}, (), f"no operation that {rule.kind.name} is about is recorded for {_patterns(rule.values['files'])}")  # fmt: skip
    shown = run_query(engine, _sql("shown")).as_dicts()
    return Outcome(rule, files, tuple(Checked(row["verdict"], row) for row in shown))


def _no_file(role: str, rule: Rule) -> str:
    return f"no file of the recording matches {role} = {_patterns(rule.values[role])}"


def _patterns(patterns: Iterable[str]) -> str:
    return " or ".join(f"'{one}'" for one in patterns)


def _moved(engine: SqlEngine) -> str:
    """Returns the SQL of the files whose folder moved. To look for them is slow, and few programs rename a folder."""
    moved = run_query(
        engine,
        f"SELECT 1 FROM {_PREFIX}op AS step JOIN {_PREFIX}folder AS folder"
        " ON folder.run = step.run AND folder.path = step.path WHERE step.op = 'rename' LIMIT 1",
    ).rows
    if moved:
        keep(engine, f"{_PREFIX}moved", _sql("moved"))
        return f"SELECT * FROM {_PREFIX}moved"
    return "SELECT '', '', 0, 0, '', 0, 0 WHERE FALSE"


def _match(rule: Rule) -> str:
    """Returns the SQL of the paths that match the patterns of a rule, each with its role."""
    selects = []
    for role in PATTERNS:
        patterns = rule.values.get(role)
        if not patterns or role == "except":
            continue
        wanted = " OR ".join(f"path GLOB {_quoted(one)}" for one in patterns)
        # An answer may go through a pipe or to a terminal, which no sync makes durable.
        stored = " AND is_stored!(path) = 1" if role == "files" else ""
        left_out = "".join(f" AND NOT path GLOB {_quoted(one)}" for one in rule.values.get("except", ()))  # fmt: skip
        selects.append(
            f"SELECT run, path, '{role}' AS role FROM _syncline_file WHERE ({wanted}){left_out}{stored}"
        )
    union = "\nUNION ALL\n".join(selects).replace("_syncline_file", f"(SELECT DISTINCT run, path FROM {_PREFIX}life) AS file")  # fmt: skip
    return union


def _filled(rule: Rule) -> str:
    """Returns the SQL of a rule with the values of its parameters."""

    def value(found: re.Match[str]) -> str:
        given = rule.values[found[1]]
        return _quoted(given) if isinstance(given, str) else str(given).upper()

    return _PARAMETER.sub(value, rule.kind.sql)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _sql(name: str) -> str:
    text = catalogue.read_sql("commands/check", name)
    return re.sub(r"\A(--[^\n]*\n)+", "", text).rstrip().removesuffix(";")

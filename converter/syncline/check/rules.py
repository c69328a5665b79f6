"""Reads rules: those of a file, or a set that has a name. A kind of rule is a file of sql/rules/.

The head comment of a kind is that of a report, with paragraphs that begin with a name; `Parameters:` lists what a rule may set.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from syncline.report import catalogue
from syncline.structured import parse_toml

__all__ = ["PATTERNS", "Kind", "Rule", "RuleError", "kinds", "load_kind", "load_rules", "sets"]

# Parameters that are patterns of paths, as a text or a list; their values select the files of a role.
PATTERNS = ("files", "except", "log")
_DEFAULTS: dict[str, Any] = {"files": ("*",), "except": (), "log": (), "folder": True, "sockets": False, "suffix": ""}  # fmt: skip
# A kind is about these, so a rule without them would match all files, or none.
_REQUIRED = {
    "removed-after-sync": ("files", "suffix"),
    "written-after-sync": ("files", "suffix"),
    "acknowledged-after-sync": ("files",),
}
_PARAGRAPH = re.compile(r"^([A-Z][a-z]+): (.*?)(?:\n\n|\Z)", re.M | re.S)
_COMMENT = re.compile(r"\A(--[^\n]*\n)+")
_AT_LINE = re.compile(r"line (\d+)")
_FILE = "sets.toml"


class RuleError(Exception):
    """Rules cannot be used. The message has the file, the line and its text; `hint` says what to write."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


@dataclass(frozen=True)
class Kind:
    """A kind of rule: what it demands, what a rule of it may set, and the SQL that finds its files."""

    name: str
    title: str
    said: dict[str, str]
    parameters: tuple[str, ...]
    sql: str


@dataclass(frozen=True)
class Rule:
    """A rule: its kind, and the values of all parameters of the kind. `place` is where it was read."""

    name: str
    kind: Kind
    values: dict[str, Any]
    place: str


def kinds() -> list[str]:
    """Returns the names of all kinds."""
    return sorted(file.stem for file in (catalogue.sql_root() / "rules").glob("*.sql"))


@functools.cache
def load_kind(name: str) -> Kind:
    """Reads a kind that exists."""
    text = catalogue.read_sql("rules", name)
    parsed = catalogue.parse(name, text)
    said = {one[1]: " ".join(one[2].split()) for one in _PARAGRAPH.finditer(parsed.description)}
    parameters = tuple(said.pop("Parameters").split(", "))
    sql = _COMMENT.sub("", text).rstrip().removesuffix(";")
    return Kind(name, parsed.title, said, parameters, sql)


def sets() -> dict[str, str]:
    """Returns the sets that have a name, and what each is for."""
    return {name: table["about"] for name, table in _sets().items()}


@functools.cache
def _sets() -> dict[str, Any]:
    return parse_toml((catalogue.sql_root() / "rules" / _FILE).read_bytes())


def load_rules(name: str) -> list[Rule]:
    """Reads the rules of a set or of a file. A set comes first, and a file of its name is ./NAME.

    Raises:
        RuleError: there is neither, or the file is not one of rules.
    """
    known = _sets()
    if name in known:
        return _Reader(name, "").rules({"rule": known[name]["rule"]})
    path = Path(name)
    try:
        data = path.read_bytes()
    except OSError as error:
        if "/" in name or path.exists():
            raise RuleError(
                f"cannot read {name}: {(error.strerror or str(error)).lower()}", _sets_hint()
            ) from None
        close = difflib.get_close_matches(name, known, 1)
        guess = f", did you mean {close[0]}?" if close else ""
        raise RuleError(
            f"no rules '{name}': it is neither a file nor a set{guess}", _sets_hint()
        ) from None
    try:
        text = data.decode("utf-8-sig")
        table = parse_toml(data)
    except ValueError as error:
        found = _AT_LINE.search(str(error))
        lines = data.decode("utf-8", "replace").splitlines()
        number = int(found[1]) if found else len(lines)
        shown = lines[number - 1].strip() if 0 < number <= len(lines) else ""
        raise RuleError(
            f"{name}:{number}: not valid TOML: {error}: {shown}",
            "docs/reference/check.md has an example of a rule file",
        ) from None
    return _Reader(name, text).rules(table)


def _sets_hint() -> str:
    return f"name a file of rules, or one of: {', '.join(_sets())}"


class _Reader:
    """Reads one file. Every error names the file, the line and its text."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.lines = text.splitlines()

    def rules(self, table: dict[str, Any]) -> list[Rule]:
        for key in table:
            if key != "rule":
                self.fail(0, key, f"unknown key '{key}'", "write each rule below a line [[rule]]")
        given = table.get("rule", [])
        if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
            self.fail(0, "rule", "'rule' is no list of tables", "write [[rule]] in double brackets")
        if not given:
            raise RuleError(f"{self.name}: no rules", "write each rule below a line [[rule]]")
        return [self.rule(number, one) for number, one in enumerate(given, 1)]

    def rule(self, number: int, table: dict[str, Any]) -> Rule:
        kind_name = table.get("kind")
        if kind_name is None:
            self.fail(number, "", "the rule has no kind", f"add one: kind = \"{kinds()[0]}\"; the kinds are {', '.join(kinds())}")  # fmt: skip
        if kind_name not in kinds():
            close = difflib.get_close_matches(str(kind_name), kinds(), 1)
            guess = f", did you mean {close[0]}?" if close else ""
            self.fail(number, "kind", f"no kind of rule '{kind_name}'{guess}", f"the kinds are: {', '.join(kinds())}")  # fmt: skip
        kind = load_kind(str(kind_name))
        known = ("kind", "name", *kind.parameters)
        for key in table:
            if key not in known:
                close = difflib.get_close_matches(key, known, 1)
                guess = f", did you mean {close[0]}?" if close else ""
                self.fail(number, key, f"a rule of kind {kind.name} has no '{key}'{guess}", f"it may have: {', '.join(known)}")  # fmt: skip
        for key in _REQUIRED.get(kind.name, ()):
            if not table.get(key):
                self.fail(number, "kind", f"a rule of kind {kind.name} needs '{key}'", f'add a line such as {key} = "*-journal"')  # fmt: skip
        values = {key: self.value(number, key, table) for key in kind.parameters}
        if "log" in values and not (values["log"] or values["sockets"]):
            self.fail(number, "kind", "the rule does not say what an acknowledgement is", 'add log = "*/replies.log" or sockets = true')  # fmt: skip
        title = table.get("name", kind.name)
        if not isinstance(title, str) or not title:
            self.fail(number, "name", "the name is no text", 'write name = "..."')
        line = self.line(number, "kind")
        return Rule(title, kind, values, f"{self.name}:{line}" if line else self.name)

    def value(self, number: int, key: str, table: dict[str, Any]) -> Any:
        """Returns the value of a parameter, as the SQL takes it."""
        default = _DEFAULTS[key]
        if key not in table:
            return default
        given = table[key]
        if key in PATTERNS:
            patterns = (given,) if isinstance(given, str) else given
            if not isinstance(patterns, list | tuple) or not _are_texts(patterns):
                self.fail(number, key, f"'{key}' is no pattern", f'write {key} = "/var/lib/db/*", or a list of such texts')  # fmt: skip
            return tuple(patterns)
        if type(given) is not type(default):
            example = "true" if isinstance(default, bool) else '"-journal"'
            self.fail(number, key, f"'{key}' is {given!r}", f"write {key} = {example}")
        return given

    def fail(self, number: int, key: str, problem: str, hint: str) -> NoReturn:
        line = self.line(number, key)
        if not line:
            raise RuleError(f"{self.name}: {problem}", hint)
        raise RuleError(f"{self.name}:{line}: {problem}: {self.lines[line - 1].strip()}", hint)

    def line(self, number: int, key: str) -> int | None:
        """Returns the line of a key of the rule with this number, or of the rule; None if it is not found, as in `rule = [...]`."""
        heads = [at for at, line in enumerate(self.lines, 1) if re.match(r"\s*\[\[\s*rule\s*\]\]", line)]  # fmt: skip
        if number > len(heads):
            return None
        first = heads[number - 1] if number else 1
        last = heads[number] - 1 if number < len(heads) else len(self.lines)
        named = re.compile(rf"\s*(?:\[+\s*)?[\"']?{re.escape(key)}[\"']?\s*(?:=|\.|\]|\Z)")
        within = (at for at in range(first, last + 1) if key and named.match(self.lines[at - 1]))
        return next(within, first if number else None)


def _are_texts(values: Iterable[object]) -> bool:
    return all(isinstance(one, str) and one for one in values)

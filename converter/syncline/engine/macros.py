"""Expands the macros of sql/macros/: `name!(arguments)` in SQL becomes the text that the macro stands for.

The engines have no macros in common, so they get the expanded text, and one text of a report runs on all of them. A file of sql/macros/
holds one macro in the form of PerfettoSQL, `CREATE PERFETTO MACRO name(argument Type, ...) RETURNS Type AS body`, below a head comment.
A second CREATE below a line `-- Engine: duckdb` is the body for that engine.

Three rules make the text safe to read and to nest:

- The expansion has as many lines as the call, so that an engine that names a line of what it got names a line of what was written.
- A name in a body that begins with `_` is private: it becomes `_macro_name`, so that no table of the caller is hidden by it.
- An argument of the type ColumnNameList is written in parentheses, and a body uses it as a list: `GROUP BY $groups`.

`same!(a, b, (x, y))` and `of!(a, (x, y))` are built in, because SQL has no form for them: `a.x IS NOT DISTINCT FROM b.x AND ...`, and
`a.x, a.y`.

As a program, `python macros.py FOLDER ENGINE` expands a JSON array of texts from its input, for builds without Python.
"""

from __future__ import annotations

import difflib
import json
import re
import sys
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

__all__ = [
    "ENGINES",
    "SPAN",
    "Argument",
    "Macro",
    "MacroError",
    "expand",
    "load",
    "without_comments",
]

# A body is for all engines, or for one of these.
ENGINES = ("duckdb", "perfetto", "spark")
# Any other text of the form `name!(...)` is a macro of Perfetto, which expands it itself.
_DEEPEST = 20

# Text and comments, in which no name is a name and no bracket a bracket.
SPAN = r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*[\s\S]*?\*/"""
_CALL = re.compile(rf"{SPAN}|(?<![\w.$])(?P<name>[A-Za-z_]\w*)!\s*\(")
_BRACKETS = re.compile(rf"{SPAN}|[(),]")
_COMMENT = re.compile(rf"(?P<comment>--[^\n]*|/\*[\s\S]*?\*/)|{SPAN}")
_BLANKS = re.compile(rf"(?P<blanks>\s+)|{SPAN}")
_PRIVATE = re.compile(rf"{SPAN}|(?<![\w$.])_(?P<name>[a-z]\w*)|(?<=\.)_(?P<column>[a-z]\w*)")
_USE = re.compile(rf"{SPAN}|\$(?P<name>[a-z_]\w*)")
_CREATE = re.compile(
    r"(?P<head>(?:^--[^\n]*\n)*)^CREATE PERFETTO MACRO (?P<name>\w+)\s*\((?P<arguments>[^()]*)\)\s*"
    r"RETURNS\s+(?P<returns>\w+)\s+AS\s+(?P<body>.*?);[ \t]*$(?=\n*(?:^--|^CREATE PERFETTO MACRO|\Z))",
    re.S | re.M,
)
_ARGUMENT = re.compile(r"(?P<doc>(?:\s*--[^\n]*\n)*)\s*(?P<name>\w+)\s+(?P<type>\w+)\s*")
_ENGINE = re.compile(r"^-- Engine: (\w+)", re.M)


class MacroError(ValueError):
    """A macro cannot be expanded. `hint` says what to write; it may be empty."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


@dataclass(frozen=True)
class Argument:
    """An argument of a macro: its name, its type in PerfettoSQL, and what it means."""

    name: str
    type: str
    text: str

    @property
    def is_list(self) -> bool:
        return self.type == "ColumnNameList"


@dataclass(frozen=True)
class Macro:
    """A macro: its head comment, its arguments, and its body, by the engine ("" for all that have none of their own)."""

    name: str
    text: str
    arguments: tuple[Argument, ...]
    returns: str
    bodies: dict[str, str]

    @property
    def signature(self) -> str:
        """How a call is written."""
        names = (f"({one.name})" if one.is_list else one.name for one in self.arguments)
        return f"{self.name}!({', '.join(names)})"


@lru_cache
def load(folder: Path) -> dict[str, Macro]:
    """Returns the macros of a folder by their names.

    Raises:
        MacroError: a file is not in the form that the module describes.
    """
    return {file.stem: _parsed(file) for file in sorted(folder.glob("*.sql"))}


def _parsed(file: Path) -> Macro:
    found = [*_CREATE.finditer(file.read_text(encoding="utf-8"))]
    if not found or {one["name"] for one in found} != {file.stem}:
        raise MacroError(f"{file}: not one macro of the name {file.stem}")
    bodies = {}
    for one in found:
        engine = _ENGINE.search(one["head"])
        name = engine[1] if engine else ""
        if name not in ("", *ENGINES) or name in bodies:
            raise MacroError(f"{file}: no engine, or a second body for one: {name}")
        bodies[name] = _private(_one_line(one["body"]), file.stem)
    first = found[0]
    return Macro(
        file.stem,
        _comment(first["head"]),
        tuple(
            Argument(one["name"], one["type"], _comment(one["doc"]))
            for one in map(_argument, _parts_of_list(first["arguments"]))
        ),
        first["returns"],
        bodies,
    )


def _argument(text: str) -> re.Match[str]:
    found = _ARGUMENT.fullmatch(text)
    if not found:
        raise MacroError(f"not an argument of a macro: {text.strip()}")
    return found


def _comment(text: str) -> str:
    return "\n".join(line.strip().removeprefix("--").removeprefix(" ") for line in text.splitlines() if line.strip())  # fmt: skip


def _private(body: str, macro: str) -> str:
    def renamed(match: re.Match[str]) -> str:
        name = match["name"] or match["column"]
        return f"_{macro}_{name}" if name else match[0]

    return _PRIVATE.sub(renamed, body)


def without_comments(sql: str) -> str:
    """Returns SQL without its comments."""
    return _COMMENT.sub(lambda match: " " if match["comment"] else match[0], sql)


def _one_line(sql: str) -> str:
    return _BLANKS.sub(
        lambda match: " " if match["blanks"] else match[0], without_comments(sql)
    ).strip()


def expand(sql: str, macros: dict[str, Macro], engine: str) -> str:
    """Returns SQL with each call of a macro replaced, in as many lines.

    Args:
        macros: those of `load`. In the SQL of `perfetto`, other calls of the form are left to the engine.
        engine: one of ENGINES.

    Raises:
        MacroError: there is no such macro, or a call has the wrong arguments. It names the line.
    """
    return _expand(sql, macros, engine, 0, 1) if "!" in sql else sql


def _expand(sql: str, macros: dict[str, Macro], engine: str, depth: int, first: int) -> str:
    """Expands a text that begins on the line `first` of the SQL, or a body, which is `depth` macros deep."""
    parts = []
    done = 0
    for call in _CALL.finditer(sql):
        name = call["name"]
        if name is None or call.start() < done:
            continue
        is_known = name in macros or name in _BUILT_IN
        if not is_known and engine == "perfetto":
            continue
        line = first + sql.count("\n", 0, call.start())
        try:
            if not is_known:
                raise MacroError(f"there is no macro {name}", _hint(name, macros))
            if depth == _DEEPEST:
                raise MacroError(f"the macro {name} expands to itself")
            arguments, end = _arguments(sql, call.end())
            # A call in an argument is expanded first, so that it has the lines of its own text.
            inner, head = [], sql.count("\n", call.start(), call.end())
            begin = line + head
            for one in arguments:
                inner.append(_expand(one, macros, engine, depth, begin))
                begin += one.count("\n")
            if name in _BUILT_IN:
                text = _BUILT_IN[name](inner)
            else:
                text = _filled(macros[name], engine, inner, head)
                text = _expand(text, macros, engine, depth + 1, line)
        except MacroError as error:
            if depth or error.reason.startswith("line "):
                raise
            raise MacroError(f"line {line}: {error.reason}", error.hint) from None
        lines = sql.count("\n", call.start(), end)
        parts += [sql[done : call.start()], text, "\n" * (lines - text.count("\n"))]
        done = end
    return "".join([*parts, sql[done:]])


def _hint(name: str, macros: dict[str, Macro]) -> str:
    close = difflib.get_close_matches(name.lower(), [*macros, *_BUILT_IN], 1)
    if close:
        meant = macros[close[0]].signature if close[0] in macros else f"{close[0]}!(...)"
        return f"Did you mean {meant}?"
    return f"The macros are: {', '.join([*macros, *_BUILT_IN])}."


def _arguments(sql: str, start: int) -> tuple[list[str], int]:
    """Returns the arguments of a call whose parenthesis was opened before `start`, and where the call ends."""
    found = []
    depth, begin = 1, start
    for token in _BRACKETS.finditer(sql, start):
        if token[0] == "(":
            depth += 1
        elif token[0] == ")":
            depth -= 1
        if depth == 0 or (depth == 1 and token[0] == ","):
            found.append(sql[begin : token.start()])
            begin = token.end()
        if depth == 0:
            return ([] if found == [""] else found), token.end()
    raise MacroError("a parenthesis is not closed")


def _parts_of_list(text: str) -> list[str]:
    """Splits at the commas outside of comments and parentheses."""
    return _arguments(f"{text})", 0)[0]


def _list(text: str, form: str) -> list[str]:
    """Returns the columns of an argument `(a, b)` of a call in this form."""
    bare = _one_line(text)
    if not (bare.startswith("(") and bare.endswith(")")):
        raise MacroError(
            f"a list of columns is written in parentheses, not as {bare or 'nothing'}",
            f"Write {form}.",
        )
    columns = [one.strip() for one in _parts_of_list(bare[1:-1])]
    if not columns or not all(re.fullmatch(r'\w+|"[^"]+"', one) for one in columns):
        raise MacroError(f"a list of columns holds names of columns, not {bare}", f"Write {form}.")
    return columns


def _ended(text: str) -> str:
    """Returns a text without a comment on its last line, which would hide what follows."""
    return without_comments(text) if "--" in text.rpartition("\n")[2] else text


def _filled(macro: Macro, engine: str, arguments: list[str], line: int) -> str:
    """Returns the body with the arguments of a call.

    Args:
        line: how many lines of the call are before its first argument.
    """
    if len(arguments) != len(macro.arguments):
        raise MacroError(
            f"the macro {macro.name} has {len(macro.arguments)} arguments, not {len(arguments)}",
            f"Write {macro.signature}.",
        )
    texts, starts = {}, {}
    for one, text in zip(macro.arguments, arguments, strict=True):
        starts[one.name] = line + text[: len(text) - len(text.lstrip())].count("\n")
        line += text.count("\n")
        if one.is_list:
            texts[one.name] = ", ".join(_list(text, macro.signature))
        elif bare := without_comments(text).strip():
            is_plain = one.type != "Expr" or re.fullmatch(r"[\w.]+", bare)
            # An expression stays one, whatever is next to it in the body.
            texts[one.name] = text.strip() if is_plain else f"({_ended(text.strip())})"
        else:
            raise MacroError(f"the argument {one.name} of {macro.name} is empty", f"Write {macro.signature}.")  # fmt: skip
    body = macro.bodies.get(engine) or macro.bodies.get("")
    if body is None:
        raise MacroError(f"the macro {macro.name} has no body for {engine}")
    waiting = [one.name for one in macro.arguments]
    at = 0

    def is_used(name: str, after: int) -> bool:
        return any(one["name"] == name for one in _USE.finditer(body, after))

    def used(match: re.Match[str]) -> str:
        nonlocal at
        name = match["name"]
        if name is None:
            return match[0]
        if name not in texts:
            raise MacroError(f"the macro {macro.name} has no argument {name}")
        while waiting and waiting[0] != name and not is_used(waiting[0], match.end()):
            del waiting[0]
        if not waiting or waiting[0] != name:
            return _one_line(texts[name])
        # One use of each argument, in their order, is on the line on which the argument is written.
        del waiting[0]
        text, blank = _ended(texts[name]), "\n" * (starts[name] - at)
        at = starts[name] + text.count("\n")
        return f"{blank}{text}"

    filled = _USE.sub(used, body)
    is_bracketed = filled.startswith("(") and _arguments(filled, 1)[1] == len(filled)
    return filled if is_bracketed else f"({filled})"


def _same(arguments: list[str]) -> str:
    left, right, columns = _two_and_columns("same", "same!(a, b, (columns))", arguments, 3)
    return (
        f"({' AND '.join(f'{left}.{one} IS NOT DISTINCT FROM {right}.{one}' for one in columns)})"
    )


def _of(arguments: list[str]) -> str:
    table, _, columns = _two_and_columns("of", "of!(a, (columns))", arguments, 2)
    return ", ".join(f"{table}.{one}" for one in columns)


def _two_and_columns(
    name: str, form: str, arguments: list[str], number: int
) -> tuple[str, str, list[str]]:
    if len(arguments) != number:
        raise MacroError(f"the macro {name} has {number} arguments, not {len(arguments)}", f"Write {form}.")  # fmt: skip
    return _one_line(arguments[0]), _one_line(arguments[-2]), _list(arguments[-1], form)


_BUILT_IN = {"same": _same, "of": _of}


def main() -> int:
    """Expands a JSON array of texts from the input."""
    folder, engine = sys.argv[1:]
    try:
        texts = [expand(text, load(Path(folder)), engine) for text in json.load(sys.stdin)]
    except MacroError as error:
        print(f"{error.reason}\n{error.hint}", file=sys.stderr)  # noqa: T201
        return 1
    json.dump(texts, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())

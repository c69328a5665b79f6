"""Writes the declarations of columns from sql/columns.toml: `python -m tools.columns`, with `--check` only to name stale files.

The head comment of sql/columns.toml lists the files and says how to add a column.
"""

from __future__ import annotations

import re
import sys
import textwrap
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from syncline.engine.expanded import expanded

from tools import sqlfmt

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "sql" / "columns.toml"
NOTE = "Generated from sql/columns.toml by `python -m tools.columns`."
WIDTH = 80  # of SQL
RUST_WIDTH = 120  # converter/rustfmt.toml

# Types in PerfettoSQL, in DuckDB's files, in DuckDB's views, in the core.
TYPES = {
    "timestamp": ("TIMESTAMP", "BIGINT", "BIGINT", "Int"),
    "duration": ("DURATION", "BIGINT", "BIGINT", "Int"),
    "int": ("LONG", "BIGINT", "BIGINT", "Int"),
    "uint": ("LONG", "UBIGINT", "BIGINT", "UInt"),
    "bool": ("BOOL", "BOOLEAN", "BOOLEAN", "Bool"),
    "text": ("STRING", "VARCHAR", "VARCHAR", "Text"),
}
VIEWS = {
    "sync": "Sync requests",
    "bio": "Block I/O",
    "call": "Sync calls",
    "wait": "Waits of sync requests",
    "phase": "Phases of sync requests",
    "journal": "Commits of journals",
    "write_wait": "Waits of writes",
    "file_op": "Operations on files",
    "loss": "Losses",
    "mark": "Marks",
}
# Tables that are made of others: the macro that each engine's table is. A native trace processor reads its files without macros, so there
# the macro is written out, as the subquery `FROM (...)` at the left margin.
DERIVED_TABLES = {
    "sync_call": "sync_calls!()",
    "parallel": "flight_edges!()",
    "stack": "stack_frames!()",
}
RUN = "Always '' here, because a trace holds one run. Joins over several runs need it."
# SQL in both engines has signed integers; files hold the value unsigned.
SIGNED = """\
  -- Files hold it unsigned; trace_processor only has signed integers.
  CAST(CASE
    WHEN {0} > 9223372036854775807 THEN CAST({0} AS HUGEINT)
    - 18446744073709551616
    ELSE {0}
  END AS BIGINT) AS {0}"""


@dataclass(frozen=True)
class Column:
    """A column as sql/columns.toml declares it."""

    name: str
    type: str
    meaning: str
    unit: str = ""
    null: str = ""
    docs: str = ""
    expression: bool = False
    only_with_bio: bool = False
    default: str = ""

    @property
    def comment(self) -> str:
        return f"{self.meaning} {self.null}".strip()


@dataclass(frozen=True)
class Group:
    """Columns that the same routes record."""

    columns: tuple[str, ...]
    routes: tuple[str, ...]
    text: str
    rest: str
    only_if: str = ""


def load() -> tuple[dict[str, list[Column]], list[Group]]:
    """The columns of each table, and the groups of request columns.

    Raises:
        ValueError: a declaration is wrong.
    """
    data = tomllib.loads(SOURCE.read_text())
    groups = [
        Group(**group | {key: tuple(group[key]) for key in ("columns", "routes")})
        for group in data.pop("recorded_by")
    ]
    tables = {
        table: [Column(name, **keys) for name, keys in columns.items()]
        for table, columns in data.items()
    }
    for table, columns in tables.items():
        for column in columns:
            what = f"{SOURCE.name}: {table}.{column.name}"
            if column.type not in TYPES:
                raise ValueError(f"{what}: no type {column.type!r}: {', '.join(TYPES)}")
            if (column.unit == "ns" or column.type in ("timestamp", "duration")) != (
                column.name.endswith("_ns")
            ):
                raise ValueError(f"{what}: a column in ns is called ..._ns, and no other is")
            for text in filter(None, (column.meaning, column.null, column.docs)):
                if not text.endswith((".", "...")):
                    raise ValueError(f"{what}: not a sentence: {text!r}")
    listed = [column for group in groups for column in group.columns]
    known = {column.name for column in tables["sync"]}
    if wrong := [name for name in listed if name not in known or listed.count(name) > 1]:
        raise ValueError(f"{SOURCE.name}: recorded_by: unknown or listed twice: {', '.join(wrong)}")
    if missing := [c.name for c in tables["sync"] if c.null and c.name not in {*listed, *_DERIVED}]:
        raise ValueError(f"{SOURCE.name}: add to a [[recorded_by]] group: {', '.join(missing)}")
    return tables, groups


# Null for a reason that no recorder can change.
_DERIVED = ("first_offset", "last_offset", "incomplete")


def perfetto(columns: list[Column], text: str) -> str:
    """A module of sql/tables/perfetto/ with the column list and the SELECT list of its table."""
    lines = []
    for name, kind, comment in (
        *((c.name, TYPES[c.type][0], c.comment) for c in columns),
        ("run", "STRING", RUN),
    ):
        lines += textwrap.wrap(
            comment, WIDTH, initial_indent="  -- ", subsequent_indent="  -- ", **_WRAP
        )
        lines.append(f"  {name} {kind},")
    declared = "\n".join(lines).removesuffix(",")
    text = re.sub(
        r"(CREATE OR REPLACE PERFETTO TABLE syncline_\w+ \(\n).*?(\n\) AS\n)",
        lambda match: match[1] + declared + match[2],
        text,
        count=1,
        flags=re.S,
    )

    def select(match: re.Match[str]) -> str:
        by_hand = {item.split()[-1]: item for item in split_items(match["items"])}
        items = []
        for column in columns:
            if not column.expression:
                argument = f"extract_arg(arg_set_id, 'debug.{column.name}')"
                items.append(f"  {argument} AS {column.name}")
            elif column.name in by_hand:
                items.append(by_hand[column.name])
            else:
                raise ValueError(f"no expression `... AS {column.name}` in the SELECT")
        return match["head"] + ",\n".join([*items, "  '' AS run"]) + "\nFROM "

    # The SELECT of the table is the one at the left margin.
    return re.sub(
        r"(?P<head>^SELECT\n)(?P<items>.*?)\nFROM ", select, text, count=1, flags=re.S | re.M
    )


def written_out(macro: str, text: str) -> str:
    """A module of sql/tables/perfetto/ with the subquery that stands for a macro. Its names need no prefix, because it has no caller."""
    body = expanded(macro, "perfetto").replace(f"_{macro.partition('!')[0]}_", "")
    found = re.sub(
        r"^FROM \(.*?\)(?=;|\nORDER BY [\w, ]+;)",
        lambda _: f"FROM {body}",
        text,
        count=1,
        flags=re.S | re.M,
    )
    if "\nFROM (" not in text:
        raise ValueError(f"no subquery `FROM (...)` for {macro}")
    return found


_WRAP = {"break_long_words": False, "break_on_hyphens": False}


def split_items(text: str) -> list[str]:
    """The items of a SELECT list, each with its comments: split at the commas outside parentheses."""
    items, depth, start = [], 0, 0
    for match in re.finditer(r"--[^\n]*|'[^']*'|[(),]", text):
        depth += (match[0] == "(") - (match[0] == ")")
        if match[0] == "," and depth == 0:
            items.append(text[start : match.start()])
            start = match.end()
    return [item.strip("\n") for item in (*items, text[start:])]


def file_columns(tables: dict[str, list[Column]]) -> str:
    text = f'''\
"""The columns of the files that DuckDB and Spark read as tables, with their types in DuckDB. docs/reference/tables.md describes them.

A file may lack a column, which is then null, or a whole table, which is then empty. {NOTE}
"""

FILE_COLUMNS = {{
'''
    for table, columns in tables.items():
        body = "".join(f'        "{c.name}": "{TYPES[c.type][1]}",\n' for c in columns)
        text += f'    "{table}": {{\n{body}    }},\n'
    return f"{text}}}\n"


def duckdb_view(table: str, columns: list[Column]) -> str:
    items = [
        SIGNED.format(c.name)
        if c.type == "uint"
        else f"  COALESCE({c.name}, {c.default}) AS {c.name}"
        if c.default
        else f"  {c.name}"
        for c in (*columns, Column("run", "text", ""))
    ]
    head = textwrap.fill(
        f"{VIEWS[table]}. The columns are those of sql/tables/perfetto/{table}.sql. {NOTE}",
        WIDTH,
        initial_indent="-- ",
        subsequent_indent="-- ",
        **_WRAP,
    )
    body = "SELECT\n" + ",\n".join(items) + f"\nFROM _syncline_file_{table}"
    return f"{head}\n\nCREATE OR REPLACE VIEW syncline_{table} AS\n{body};\n"


def known(columns: list[Column], groups: list[Group]) -> str:
    listed = {name for group in groups for name in group.columns}
    # Each has a line of its own, with a comma: syncline/report/inspect.py leaves out lines.
    counts = "\n".join(f"  COUNT({c.name}) AS {c.name}," for c in columns if c.name in listed)
    return f"""\
-- Known: the number of requests in which each column is known.
--
-- One row. `syncs` counts all requests, `with_bios` those with a bio: only they
-- have a time before the first bio and after the last one. The other columns
-- are those of syncline_sync.
--
-- {NOTE}
SELECT
{counts}
  COUNT(*) AS syncs,
  SUM(CASE WHEN bios > 0 THEN 1 ELSE 0 END) AS with_bios
FROM syncline_sync;
"""


def rust(tables: dict[str, list[Column]]) -> str:
    text = f"//! The columns of the tables, in their order. {NOTE}\n\nuse super::Type;\n"
    for table, columns in tables.items():
        head = f"pub const {table.upper()}: &[(&str, Type)] ="
        items = [f'("{column.name}", Type::{TYPES[column.type][3]})' for column in columns]
        one = f"&[{', '.join(items)}];"
        # As rustfmt formats it.
        if len(f"{head} {one}") <= RUST_WIDTH:
            body = f" {one}"
        elif len(f"    {one}") <= RUST_WIDTH:
            body = f"\n    {one}"
        else:
            body = " &[\n" + "".join(f"    {item},\n" for item in items) + "];"
        text += f"\n{head}{body}\n"
    return text


def python(tables: dict[str, list[Column]], groups: list[Group]) -> str:
    def quoted(names: tuple[str, ...]) -> str:
        return "(" + ", ".join(f'"{n}"' for n in names) + ("," if len(names) == 1 else "") + ")"

    text = f'"""What records the columns of requests. {NOTE}"""\n'
    text += "\nGROUPS: tuple[tuple[tuple[str, ...], tuple[str, ...], str, str, str], ...] = (\n"
    for group in groups:
        parts = [quoted(group.columns), quoted(group.routes)]
        parts += [f'"{part}"' for part in (group.text, group.rest, group.only_if)]
        text += "    (\n" + "".join(f"        {part},\n" for part in parts) + "    ),\n"
    bios = tuple(column.name for column in tables["sync"] if column.only_with_bio)
    return f"{text})\n\n# Null in a request without a bio.\nONLY_WITH_BIO = {quoted(bios)}\n"


def table_in_docs(columns: list[Column]) -> str:
    """The table of the columns, and below it the sentences that a reader would not look for in a cell."""
    lines = ["| column | type | unit | meaning | null |", "|---|---|---|---|---|"]
    below = []
    for column in columns:
        unit = column.unit or ("ns" if column.type in ("timestamp", "duration") else "")
        meaning, rest = in_cell(column.meaning)
        null, more = in_cell(column.null, words=0)
        null = null.removeprefix("Null ").removesuffix(".") or "never"
        cells = (column.name, TYPES[column.type][2], unit, meaning, null)
        lines.append(f"| {' | '.join(cell.replace('|', BAR) for cell in cells)} |")
        if text := " ".join(filter(None, (rest, more, column.docs))):
            below.append(f"- **{column.name}**: {text}")
    return "\n".join([*lines, *([""] if below else []), *below])


BAR = r"\|"


def in_cell(text: str, words: int = 25) -> tuple[str, str]:
    """The sentences with up to so many words, at least one, and the rest."""
    first, *others = re.split(r"(?<=[.])\s+(?=[A-Z0-9`])", text)
    while others and len(f"{first} {others[0]}".split()) <= words:
        first = f"{first} {others.pop(0)}"
    return first, " ".join(others)


def groups_in_docs(groups: list[Group]) -> str:
    lines = ["| columns | routes of `record` | recorded by |", "|---|---|---|"]
    lines += [f"| {', '.join(g.columns)} | {', '.join(g.routes)} | {g.text} |" for g in groups]
    return "\n".join(lines)


def between_markers(blocks: dict[str, str], text: str) -> str:
    """The page with each block between `<!-- columns NAME -->` and `<!-- end -->`."""
    for name, block in blocks.items():
        begin = f"<!-- columns {name} -->"
        pattern = re.compile(rf"{re.escape(begin)}\n.*?<!-- end -->", re.S)
        if not pattern.search(text):
            raise ValueError(f"no `{begin}` ... `<!-- end -->`")
        text = pattern.sub(lambda _, b=begin, t=block: f"{b}\n{t}\n<!-- end -->", text)
    return text


def outputs() -> dict[Path, Callable[[str], str]]:
    """Each file that is written, with what makes its text of the text that it has."""
    tables, groups = load()
    sql, converter, docs = ROOT / "sql", ROOT / "converter", ROOT / "docs"

    def whole(text: str) -> Callable[[str], str]:
        return lambda _: text

    return {
        **{
            sql / "tables" / "perfetto" / f"{t}.sql": partial(perfetto, c)
            for t, c in tables.items()
        },
        **{
            sql / "tables" / "perfetto" / f"{t}.sql": partial(written_out, macro)
            for t, macro in DERIVED_TABLES.items()
        },
        **{sql / "tables" / "duckdb" / f"{t}.sql": whole(duckdb_view(t, tables[t])) for t in VIEWS},
        sql / "commands" / "inspect" / "known.sql": whole(known(tables["sync"], groups)),
        converter / "core" / "src" / "rows" / "columns.rs": whole(rust(tables)),
        converter / "syncline" / "engine" / "file_columns.py": whole(file_columns(tables)),
        converter / "syncline" / "report" / "recorded_by.py": whole(python(tables, groups)),
        docs / "reference" / "tables.md": partial(
            between_markers, {f"syncline_{t}": table_in_docs(c) for t, c in tables.items()}
        ),
        docs / "reference" / "inspect.md": partial(
            between_markers, {"recorded_by": groups_in_docs(groups)}
        ),
    }


def stale() -> dict[Path, str]:
    """The files that differ from what sql/columns.toml says, with the text that they should have."""
    found = {}
    for path, make in outputs().items():
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        try:
            new = make(old)
        except ValueError as error:
            raise ValueError(f"{path.relative_to(ROOT)}: {error}") from error
        if path.suffix == ".sql":
            new = sqlfmt.formatted(new, report=sqlfmt.is_report(path))
        if new != old:
            found[path] = new
    return found


def main() -> int:
    try:
        found = stale()
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    if "--check" in sys.argv[1:]:
        for path in found:
            print(f"{path.relative_to(ROOT)}: stale (python -m tools.columns)")
        return 1 if found else 0
    for path, text in found.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())

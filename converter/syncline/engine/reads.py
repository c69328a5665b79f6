"""Which tables and columns a text of SQL may read. It is for the SQL of Syncline, which reads each table in a subquery of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

__all__ = ["reads"]

# Comments and strings come first, because they may hold what looks like something else.
_TOKEN = re.compile(r"""--[^\n]*|/\*[\s\S]*?\*/|'(?:[^']|'')*'|"(?:[^"]|"")*"|\w+|[()*;]""")
_TABLE = "syncline_"
# Texts. Each is worked out when it is announced, and again when it is run.
_KEPT = 100


@dataclass
class _Part:
    """The text between two parentheses, with all that is nested in it."""

    words: set[str] = field(default_factory=set)
    tables: set[str] = field(default_factory=set)
    # `*` also multiplies. Then more columns are read than are needed.
    has_star: bool = False


@lru_cache(_KEPT)
def reads(sql: str) -> frozenset[str]:
    """Returns the tables of Syncline that SQL names, and `TABLE.COLUMN` for what it may read of each.

    These are all words of the subquery that names the table, so not all of them are columns. `TABLE.*` stands for every column: the
    subquery has a `*`, or no list of columns. What follows from a view that SQL names is not in it.
    """
    found: set[str] = set()
    parts = [_Part()]

    def end_part() -> None:
        part = parts.pop()
        if parts and "select" not in part.words:
            # Parentheses around a table or a join: the query around them selects.
            parts[-1].tables |= part.tables
            part.tables = set()
        is_whole = part.has_star or "select" not in part.words or "columns" in part.words
        for table in part.tables:
            found.add(table)
            columns = {"*"} if is_whole else part.words
            found.update(f"{table}.{column}" for column in columns)
        if parts:
            parts[-1].words |= part.words

    for token in _TOKEN.findall(sql.lower()):
        if token == "(":
            parts.append(_Part())
        elif token == ")":
            if len(parts) > 1:
                end_part()
        elif token == "*":
            parts[-1].has_star = True
        elif token == ";":
            while parts:
                end_part()
            parts.append(_Part())
        elif token[0] not in "'-/":
            name = token.strip('"')
            parts[-1].words.add(name)
            if name.startswith(_TABLE):
                parts[-1].tables.add(name)
    while parts:
        end_part()
    return frozenset(found)

"""The SQL of sql/views/timeline/ and of the tables that it reads, in the forms in which the Perfetto UI takes it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from syncline.engine.expanded import expanded
from syncline.engine.package import read_package
from syncline.report.catalogue import read_sql, sql_root
from syncline.report.tables import NAMESPACE, wanted

__all__ = ["NAMESPACE", "included", "inlined", "modules", "select"]

_INCLUDE = re.compile(r"^INCLUDE PERFETTO MODULE ([\w.]+);\n", re.M)
_COMMENT = re.compile(r"^ *--.*\n", re.M)


def select(name: str) -> str:
    """Returns the SELECT of a file of sql/views/timeline/, without comments and without a semicolon."""
    return (
        _packed(expanded(read_sql("views/timeline", name), "perfetto")).rstrip().removesuffix(";")
    )


def modules() -> dict[str, str]:
    """Returns the SQL of each module of the tables by its name, such as `dev.syncline.sync`."""
    return read_package(NAMESPACE, sql_root() / "tables" / "perfetto")


def included(statements: Iterable[str]) -> str:
    """Returns SQL that builds the tables that statements name, for a UI that has the modules."""
    return "".join(
        f"INCLUDE PERFETTO MODULE {NAMESPACE}.{table};\n" for table in _tables(statements)
    )


def inlined(statements: Iterable[str]) -> str:
    """Returns SQL that builds the tables that statements name, for a UI that does not have the modules."""
    texts = modules()
    done: list[str] = []

    def add(module: str) -> None:
        for needed in _INCLUDE.findall(texts[module]):
            if needed not in done:
                add(needed)
        done.append(module)

    for table in _tables(statements):
        if f"{NAMESPACE}.{table}" not in done:
            add(f"{NAMESPACE}.{table}")
    return "".join(_packed(_INCLUDE.sub("", texts[module])) for module in done)


def _tables(statements: Iterable[str]) -> list[str]:
    return sorted({table for sql in statements for table in wanted(sql)})


def _packed(sql: str) -> str:
    """Leaves out comment lines, indentation and empty lines: an address carries the SQL."""
    return re.sub(r"\n\s*", "\n", _COMMENT.sub("", sql)).lstrip()

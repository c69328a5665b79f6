"""SQL with the macros of sql/macros/ expanded, as each engine gets it."""

from __future__ import annotations

from functools import cache, lru_cache

from syncline.folders import folder

from . import macros
from .errors import SqlError

__all__ = ["expanded", "known"]

_KEPT = 200


@cache
def known() -> dict[str, macros.Macro]:
    """Returns the macros of sql/macros/ by their names."""
    return macros.load(folder("sql", "macros") / "macros")


@lru_cache(_KEPT)
def expanded(sql: str, engine: str) -> str:
    """Returns SQL without calls of macros, in as many lines.

    Args:
        sql: one or more statements.
        engine: one of macros.ENGINES.

    Raises:
        SqlError: there is no such macro, or a call has the wrong arguments. It names the line, and has a hint.
    """
    if "!" not in sql:
        return sql
    try:
        return macros.expand(sql, known(), engine)
    except macros.MacroError as error:
        raise SqlError(error.reason, error.hint) from None

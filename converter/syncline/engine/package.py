"""SQL packages for the trace processor."""

from __future__ import annotations

from pathlib import Path

from .errors import EngineError
from .expanded import expanded


def read_package(namespace: str, folder: Path) -> dict[str, str]:
    """Returns the SQL of each module of a package by its name, as `--add-sql-package` names them, without calls of macros.

    Raises:
        EngineError: the folder does not exist or holds no SQL.
    """
    modules = {}
    for file in sorted(folder.rglob("*.sql")):
        inner = file.relative_to(folder).with_suffix("")
        # A dot in a path would look like one more level. Perfetto's shell skips such files too.
        if "." not in str(inner):
            modules[".".join((namespace, *inner.parts))] = expanded(
                file.read_text(encoding="utf-8"), "perfetto"
            )
    if not modules:
        raise EngineError(
            f"{folder}: no SQL files for the package {namespace}",
            f"Name a folder with SQL files: its x.sql becomes the module {namespace}.x.",
        )
    return modules

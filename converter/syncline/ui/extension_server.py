"""The files of an extension server of the Perfetto UI: Syncline's macros, and the SQL modules of its tables.

Perfetto documents the format (docs/visualization/extension-server-protocol.md of google/perfetto). The UI leaves out a
whole list if one name in it does not begin with the namespace.
"""

from __future__ import annotations

import json
from typing import Any

from . import timeline
from .macros import MACROS

__all__ = ["files"]


def files() -> dict[str, str]:
    """Returns the text of each file by its path below the server's address."""
    contents: dict[str, Any] = {
        "manifest": {
            "name": "Syncline",
            "namespace": timeline.NAMESPACE,
            "features": [{"name": "macros"}, {"name": "sql_modules"}],
            "modules": [{"id": "default", "name": "Syncline"}],
        },
        "modules/default/macros": {
            "macros": [
                {
                    "id": f"{timeline.NAMESPACE}.{macro.id}",
                    "name": macro.name,
                    "run": macro.commands(timeline.included),
                }
                for macro in MACROS
            ]
        },
        "modules/default/sql_modules": {
            "sql_modules": [
                {"name": name, "sql": sql} for name, sql in sorted(timeline.modules().items())
            ]
        },
    }
    return {path: json.dumps(value, indent=1) + "\n" for path, value in contents.items()}

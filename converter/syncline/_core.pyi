# What type checkers see of the core, which is compiled. Its functions describe themselves: help(syncline._core.convert).
from typing import Any

class CoreError(Exception):
    # (message, hint or None, class of the error)
    args: tuple[Any, ...]
    # What is wrong, the beginning of the text, and whether it looks like a log. Only of a text without events.
    unread: tuple[str, bytes, bool]

def __getattr__(name: str) -> Any: ...

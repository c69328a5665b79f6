# What type checkers see of the core, which is compiled. Its functions describe themselves: help(syncline._core.convert).
from typing import Any

class CoreError(Exception):
    # (message, hint or None, class of the error)
    args: tuple[Any, ...]

def __getattr__(name: str) -> Any: ...

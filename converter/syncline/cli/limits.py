"""The limits of the process (ulimit), by which a command may fail without a reason of its own."""

from __future__ import annotations

import os
import resource

__all__ = ["check_address_space"]

# Commands that read no input.
_WITHOUT_INPUT = ("record", "extension-server", "summary-spec", "doctor")
# What DuckDB, the core and their threads reserve before they read an input. With less, they end the process without a message. A text log of
# 190 MB needed no more; where an input does, its command says so.
_NEEDED_KB = 1 << 20
_OF_EACH_CPU_KB = 80 << 10


def check_address_space(command: str) -> None:
    """Raises MemoryError, with a message and a hint, if the limit on the address space is too small for a command."""
    if command in _WITHOUT_INPUT:
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    needed = _NEEDED_KB + _OF_EACH_CPU_KB * max(0, len(os.sched_getaffinity(0)) - 2)
    if limit != resource.RLIM_INFINITY and limit >> 10 < needed:
        raise MemoryError(
            f"the address space is limited to {limit >> 10:,} kB (ulimit -v), and Syncline needs {needed:,} kB to begin with",
            "ulimit -v unlimited; the limit of memory that it keeps to is SYNCLINE_MEMORY=2G",
        )

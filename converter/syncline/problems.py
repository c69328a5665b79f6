"""Puts any error of an input, an engine or the machine into words: what is wrong, what to do, and whose fault it is.

The command line prints these words, and the Python API raises them, so that both say the same.
"""

from __future__ import annotations

import errno
import resource
from dataclasses import dataclass
from typing import Literal

from syncline import _core
from syncline.engine import EngineError, SqlError
from syncline.errors import InputError
from syncline.unread import explained, named

__all__ = ["Kind", "Problem", "described"]

# `usage`: what was asked for makes no sense. `output`: the place of an output, or the machine. `input`: the input cannot be read.
# `loss`: more was lost than is allowed. `interrupted`: somebody stopped it. `closed`: the reader of standard output has ended.
Kind = Literal["usage", "output", "input", "loss", "interrupted", "closed"]

_OF_CORE: dict[str, Kind] = {
    "usage": "usage",
    "output": "output",
    "input": "input",
    "foreign": "input",
    "loss": "loss",
    "interrupted": "interrupted",
    "closed": "closed",
}


@dataclass(frozen=True)
class Problem:
    """An error in words.

    `hint`: what to type next; empty if nothing helps. `has_lines`: the message has several lines, as errors of SQL do.
    """

    message: str
    hint: str
    kind: Kind
    has_lines: bool = False


def described(error: BaseException) -> Problem | None:
    """Returns an error in words. None for an error that is a fault of Syncline."""
    if isinstance(error, _core.CoreError):
        return _of_core(error)
    if isinstance(error, EngineError | InputError):
        is_of_sql = isinstance(error, SqlError)
        has_lines = isinstance(error, EngineError)
        return Problem(
            error.message, error.hint or "", "usage" if is_of_sql else "input", has_lines
        )
    if isinstance(error, OSError) and error.errno is not None:
        where = f": {error.filename}" if error.filename else ""
        reason = (error.strerror or str(error)).lower()
        return Problem(f"{reason}{where}", _os_hint(error), "output")
    if isinstance(error, RuntimeError) and "start new thread" in str(error):
        return Problem(
            "no thread can be started: the limit on processes is reached",
            "raise it: ulimit -u, or pids.max of the control group",
            "output",
        )
    if isinstance(error, UnicodeDecodeError):
        return Problem(
            "the input is damaged: a name in it is not UTF-8", "convert the log again", "input"
        )
    if isinstance(error, UnicodeEncodeError):
        return Problem(
            f"the name {error.object} is not UTF-8",
            "rename it; or connect a log to standard input: syncline ... - < FILE",
            "usage",
        )
    if isinstance(error, MemoryError):
        return _of_memory(error)
    return None


def _of_core(error: _core.CoreError) -> Problem:
    message, hint, kind = error.args
    # The core gives the beginning of a text without events, which may come from a tool that people use instead.
    wrong, head, looks_like_log, other_text = getattr(error, "unread", ("", b"", False, b""))
    if text := explained(head, looks_like_log=looks_like_log):
        return Problem(f"{wrong}: {text.message}", text.hint, _OF_CORE[kind], text.has_lines)
    if others := named(other_text):
        message += "; beside its own lines it has " + ", and ".join(others)
    return Problem(message, hint or "", _OF_CORE[kind])


def _of_memory(error: MemoryError) -> Problem:
    if len(error.args) == 2:
        return Problem(str(error.args[0]), str(error.args[1]), "output")
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return Problem(
            "not enough memory", "close other programs, or use a larger machine", "output"
        )
    return Problem(
        f"not enough memory: the address space is limited to {limit >> 10:,} kB (ulimit -v)",
        "ulimit -v unlimited",
        "output",
    )


def _os_hint(error: OSError) -> str:
    """Returns what to do about an error of the system."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return "allow more open files: ulimit -n 1024"
    if error.errno == errno.EAGAIN:
        return "the limit on processes may be reached: ulimit -u"
    if error.errno == errno.ENAMETOOLONG:
        return "a name has at most 255 bytes, and a path 4,095"
    return "temporary files are in TMPDIR, or else in /tmp"

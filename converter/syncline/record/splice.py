"""splice(2), which Python has only since 3.10."""

from __future__ import annotations

import ctypes
import errno
import os

_libc = ctypes.CDLL(None, use_errno=True)
_libc.splice.restype = ctypes.c_ssize_t
_libc.splice.argtypes = [
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_uint,
]


def splice(source: int, out: int, count: int) -> int:
    """Moves up to `count` bytes between two files, of which one is a pipe, and returns their number. Raises OSError."""
    while True:
        taken: int = _libc.splice(source, None, out, None, count, 0)
        if taken >= 0:
            return taken
        if (number := ctypes.get_errno()) != errno.EINTR:
            raise OSError(number, os.strerror(number))

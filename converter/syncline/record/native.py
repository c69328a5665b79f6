"""What the core does for a recorder, and what Python does instead in the recorder that travels, which has no compiled part."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections import deque
from collections.abc import Iterable
from pathlib import Path

from syncline.record import elf
from syncline.record.errors import RecordError
from syncline.users import is_trusted

try:
    from syncline import _core
except ImportError:
    _core = None  # type: ignore[assignment]

__all__ = ["functions_at", "open_above", "unresolved_addresses"]

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_MAX_LINKS = 40
_ESCAPED = re.compile(r"\\x([0-9a-f]{2})")


def functions_at(file: str, offsets: list[int]) -> list[str | None]:
    """Returns the functions at offsets in an ELF file, as `function+offset`; None for an offset without a symbol. Raises OSError."""
    if _core is None:
        return elf.functions_at(file, offsets)
    return _core.functions_at(file, offsets)


def unresolved_addresses(logs: Iterable[Path]) -> list[tuple[int, str, set[int]]]:
    """Returns thread, name and addresses of the unresolved frames in logs of stacks."""
    if _core is None:
        return [one for log in logs for one in unresolved_in(log)]
    with contextlib.suppress(_core.CoreError):
        return _core.unresolved_addresses([str(log) for log in logs])
    return []


def unresolved_in(log: Path) -> list[tuple[int, str, set[int]]]:
    """Returns the same of one log as `user_stacks` writes it, whose frames are all unresolved."""
    found: dict[tuple[int, str], set[int]] = {}
    thread: tuple[int, str] | None = None
    with log.open(errors="replace") as lines:
        for line in lines:
            if line.startswith("\t"):
                if thread is not None:
                    found.setdefault(thread, set()).add(int(line.split()[0], 16))
            else:
                parts = line.split()
                is_call = len(parts) == 4 and parts[0].isdigit() and parts[1].isdigit()
                thread = (int(parts[1]), _plain(parts[2])) if is_call else None
    return [(tid, comm, addresses) for (tid, comm), addresses in found.items()]


def _plain(name: str) -> str:
    """Returns a name of bpftrace's `%r`."""
    data = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), name).encode("latin-1", "replace")
    return data.partition(b"\0")[0].decode(errors="replace")


def open_above(path: Path) -> tuple[int, str]:
    """Opens the folder above a path, and creates those that are missing. As root, a symbolic link of another user is not followed.

    Returns:
        The open folder, and the name in it.

    Raises:
        RecordError: it cannot be reached.
    """
    if _core is None:
        return open_above_in_python(path)
    try:
        return _core.open_above(str(path))
    except _core.CoreError as error:
        message, hint, _ = error.args
        raise RecordError(message, hint or "") from None


def open_above_in_python(path: Path) -> tuple[int, str]:
    """The same without the core."""
    names, links_left = deque(path.parts), _MAX_LINKS
    at, reached = os.open(".", _FOLDER), Path()
    try:
        while names:
            name = names.popleft()
            if name == "/":
                below = os.open("/", _FOLDER)
                reached = Path("/")
            else:
                target = _link(at, name, path, reached / name)
                if target is not None:
                    links_left -= 1
                    if links_left < 0:
                        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                    names.extendleft(reversed(target.parts))
                    continue
                if not names:
                    return at, name
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o777, dir_fd=at)
                below = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=at)
                reached /= name
            os.close(at)
            at = below
        return at, "."
    except BaseException as error:
        os.close(at)
        if isinstance(error, OSError):
            raise RecordError(f"cannot write {path}: {(error.strerror or '').lower()}") from None
        raise


def _link(folder: int, name: str, path: Path, link: Path) -> Path | None:
    """Returns the target of a symbolic link; None if it is no link.

    Raises:
        RecordError: as root, it is one of another user.
    """
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISLNK(status.st_mode):
        return None
    if os.geteuid() == 0 and not is_trusted(status.st_uid):
        raise RecordError(
            f"cannot write {path}: {link} is a symbolic link of another user",
            "name a path without it",
        )
    return Path(os.readlink(name, dir_fd=folder))

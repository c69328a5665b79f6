"""Files by name and by descriptor, as a log of calls changes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from weakref import WeakSet

__all__ = ["Description", "Descriptor", "File", "Files", "Process"]


@dataclass(eq=False)
class File:
    """A file. Its pages become clean when it has neither a name nor an open description."""

    # How the model calls it: no two files have the same.
    key: str
    # Its name in tables: the last one it had.
    shown: str
    names: set[str] = field(default_factory=set)
    # Its end, as far as it was written in the log. `is_end_known`: the log shows how large the file was at first.
    end: int = 0
    is_end_known: bool = False
    # Number of open descriptions.
    opens: int = 0


@dataclass(eq=False)
class Description:
    """What an open creates. Descriptors share it after dup and fork."""

    file: File
    # The name that it was opened by, also after a rename.
    name: str
    flags: frozenset[str]
    position: int = 0
    descriptors: int = 0


@dataclass(frozen=True)
class Descriptor:
    """An entry of a process' table."""

    description: Description
    is_cloexec: bool = False


@dataclass(eq=False)
class _Table:
    descriptors: dict[int, Descriptor] = field(default_factory=dict)
    processes: int = 1


@dataclass(eq=False)
class _Folder:
    # None: it never changed in the log, and is not printed. Relative names stay relative.
    path: str | None = None


@dataclass(eq=False)
class Process:
    """A process with its threads, as far as they are known."""

    table: _Table = field(default_factory=_Table)
    folder: _Folder = field(default_factory=_Folder)
    threads: set[int] = field(default_factory=set)
    # What it has of its parent is known.
    has_parent: bool = False


class Files:
    """All names and descriptors. `delete` is called with a file that is gone."""

    def __init__(self, delete: Callable[[File], None]) -> None:
        self._delete = delete
        self._names: dict[str, File] = {}
        self._keys: set[str] = set()
        self._descriptions: set[Description] = set()
        # Those of living processes.
        self._folders: WeakSet[_Folder] = WeakSet()
        # Folders as programs name them, where they are others: a link is on the way.
        self._others: dict[str, str] = {}

    # Names.

    def learn(self, named: str, path: str) -> None:
        """A program has named a file, and strace prints its path: the folder may have a link on the way."""
        folder, _, name = named.rpartition("/")
        real, _, same = path.rpartition("/")
        if name == same and folder != real:
            self._others[folder] = real

    def real(self, path: str) -> str:
        """Returns a path without the links on the way that are known."""
        folder, below = path, ""
        while self._others and "/" in folder:
            folder, _, step = folder.rpartition("/")
            below = f"/{step}{below}"
            if folder in self._others:
                return self._others[folder] + below
        return path

    def at_or_new(self, path: str) -> File:
        """Returns the file of a name."""
        file = self._names.get(path)
        if file is None:
            file = self.without_name(path)
            self._bind(path, file)
        return file

    def without_name(self, path: str) -> File:
        """Returns a new file. `path` is only shown."""
        key, number = path, 1
        while key in self._keys:
            number += 1
            key = f"{path} (file {number})"
        self._keys.add(key)
        return File(key, path)

    def _bind(self, path: str, file: File) -> None:
        self._names[path] = file
        if not file.names:
            file.shown = path
        file.names.add(path)

    def unlink(self, path: str) -> bool:
        """Removes a name. Returns whether it is known."""
        self._others.pop(path, None)
        file = self._names.pop(path, None)
        if file is None:
            return False
        file.names.discard(path)
        if file.shown == path and file.names:
            file.shown = min(file.names)
        self._check(file)
        return True

    def link(self, file: File, path: str) -> None:
        """Gives a file one more name."""
        self.unlink(path)
        self._bind(path, file)

    def rename(self, old: str, new: str) -> None:
        """Renames a file, or a folder with all that is below. A file that had the new name loses it."""
        file = self._names.get(old)
        if old == new or (file is not None and file is self._names.get(new)):
            # Two names of one file: the kernel does nothing.
            return
        self._others.pop(old, None)
        self.unlink(new)
        self._move({old: new})

    def exchange(self, one: str, two: str) -> None:
        """Swaps two names, with all that is below."""
        self._others.pop(one, None)
        self._others.pop(two, None)
        self._move({one: two, two: one})

    def _move(self, moves: dict[str, str]) -> None:
        def moved(path: str) -> str:
            for old, new in moves.items():
                if path == old or path.startswith(f"{old}/"):
                    return new + path[len(old) :]
            return path

        found = {path: file for path, file in self._names.items() if moved(path) != path}
        for path, file in found.items():
            del self._names[path]
            file.names.discard(path)
        for path, file in found.items():
            new = moved(path)
            self._names[new] = file
            file.names.add(new)
            if file.shown == path:
                file.shown = new
        for each in self._descriptions:
            each.name = moved(each.name)
        for folder in self._folders:
            folder.path = folder.path and moved(folder.path)

    def is_right(self, description: Description, name: str, *, is_deleted: bool) -> bool:
        """Takes over the name that strace prints with a descriptor. Returns whether it was known."""
        if is_deleted:
            if self._names.get(description.name) is not description.file:
                return True
            self.unlink(description.name)
            return False
        if description.name == name:
            return True
        if self._names.get(description.name) is description.file:
            self.rename(description.name, name)
        else:
            self.link(description.file, name)
        description.name = name
        return False

    # Descriptors.

    def process(self) -> Process:
        """Returns a process without an open file."""
        found = Process()
        self._folders.add(found.folder)
        return found

    def child(self, parent: Process, *, has_files: bool, has_folder: bool) -> Process:
        """Returns a child, which shares or copies descriptors and working directory."""
        if has_files:
            table = parent.table
            table.processes += 1
        else:
            table = self._copied(parent.table)
        folder = parent.folder if has_folder else _Folder(parent.folder.path)
        if not has_folder:
            self._folders.add(folder)
        return Process(table, folder, has_parent=True)

    def adopt(self, parent: Process, child: Process) -> None:
        """A process that ran before its parent was known gets the descriptors of the parent that it has not."""
        child.has_parent = True
        child.folder.path = child.folder.path or parent.folder.path
        for number, one in parent.table.descriptors.items():
            if number not in child.table.descriptors:
                self.put(child, number, one.description, is_cloexec=one.is_cloexec)

    def _copied(self, table: _Table) -> _Table:
        found = _Table(dict(table.descriptors))
        for one in found.descriptors.values():
            one.description.descriptors += 1
        return found

    def unshare(self, process: Process) -> None:
        """Gives a process a table of its own."""
        if process.table.processes > 1:
            process.table.processes -= 1
            process.table = self._copied(process.table)

    def open(self, process: Process, number: int, file: File, name: str, flags: frozenset[str]) -> None:  # fmt: skip
        """Opens a file as a descriptor."""
        description = Description(file, name, flags)
        self._descriptions.add(description)
        file.opens += 1
        self.put(process, number, description, is_cloexec="O_CLOEXEC" in flags)

    def put(self, process: Process, number: int, description: Description, *, is_cloexec: bool) -> None:  # fmt: skip
        """Gives a description one more descriptor. One of the same number is closed."""
        description.descriptors += 1
        self.close(process, number)
        process.table.descriptors[number] = Descriptor(description, is_cloexec)

    def close(self, process: Process, number: int) -> None:
        """Closes a descriptor, if it is open."""
        one = process.table.descriptors.pop(number, None)
        if one is None:
            return
        description = one.description
        description.descriptors -= 1
        if description.descriptors == 0:
            self._descriptions.discard(description)
            description.file.opens -= 1
            self._check(description.file)

    def close_all(self, process: Process, numbers: Iterable[int]) -> None:
        """Closes several descriptors."""
        for number in list(numbers):
            self.close(process, number)

    def end(self, process: Process) -> None:
        """Ends a process. Its descriptors are closed, unless another process shares them."""
        process.table.processes -= 1
        if process.table.processes == 0:
            self.close_all(process, list(process.table.descriptors))

    def _check(self, file: File) -> None:
        if not file.names and file.opens == 0:
            self._delete(file)

"""Writes of a log of strace: finds the place of each write from the calls before it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from syncline.errors import InputError

from .strace_files import Description, Descriptor, File, Files, Process
from .strace_text import Named, annotation, folder_of_process, named_in, normal
from .writes import Cut, Write, Writes, kind_of_flags

__all__ = ["from_calls"]

_OPENS = ("open", "openat", "openat2", "creat")
_WRITES = ("write", "pwrite64", "writev", "pwritev", "pwritev2")
_SYNCS = ("fsync", "fdatasync")
# These sync all files.
_SYNCS_OF_ALL = ("sync", "syncfs")
_DELETES = ("unlink", "unlinkat")
_RENAMES = ("rename", "renameat", "renameat2")
_LINKS = ("link", "linkat")
_EXECS = ("execve", "execveat")
_FOLDERS = ("chdir", "fchdir", "getcwd")
# Their writes are in memory, which strace does not print.
_SUBMITS = ("io_submit", "io_uring_enter")
_CLONES = ("clone", "clone3", "fork", "vfork")
# Sockets, pipes and character devices, as strace -yy prints them.
_NO_FILE = re.compile(r"\d+<(?:pipe|socket|anon_inode|TCP|UDP|UNIX|NETLINK)|\d+<[^>]*<char ")
_DURABLE = ("O_SYNC", "O_DSYNC")
# By F_SETFL, of those that matter here.
_CHANGEABLE = frozenset({"O_APPEND", "O_DIRECT"})
_OWN_DESCRIPTOR = re.compile(r"/proc/(?:self|thread-self|\d+)/fd/(\d+)")
_WITHOUT_RETURN = "calls whose return is not in the log"
_UNKNOWN = "renames, links, deletions and truncations whose file or size is not known"

_Row = Mapping[str, Any]


class _Reader:
    """Follows the names of files, and the descriptors of each process."""

    def __init__(self) -> None:
        self.writes: list[Write] = []
        self.cuts: list[Cut] = []
        self.has_deletions = False
        self.unused: Counter[str] = Counter()
        # Names that changed without a call in the log, as strace shows afterwards.
        self.surprises = 0
        self._now = 0
        self._files = Files(lambda file: self._cut(file, 0))
        self._processes: dict[int, Process] = {}
        # By thread: processes in an unfinished call that makes a child, and its arguments.
        self._creating: dict[int, tuple[Process, str]] = {}
        self._unknown_folders = 0

    def read(self, row: _Row) -> None:
        match row["part"]:
            case "entry":
                self.unused[_WITHOUT_RETURN] += 1
                if row["event"] in _CLONES:
                    self._creating[row["tid"]] = (self._process(row), row["args"] or "")
            case "return":
                self.unused["returns of calls whose start is not in the log"] += 1
            case _:
                self.unused[_WITHOUT_RETURN] -= row["has_entry"]
                self._now = row["start_ns"]
                if row["event"] == "ended":
                    self._end_thread(row)
                else:
                    self._complete(row["event"], row, self._process(row))

    def _process(self, row: _Row) -> Process:
        thread = row["tid"]
        number = row["pid"] or thread
        process = self._processes.get(number)
        if process is None:
            # With a process id, it is known whose child the thread is.
            child = self._running_child(thread) if row["pid"] is not None else None
            process = child or self._files.process()
            self._processes[number] = process
        process.threads.add(thread)
        return process

    def _running_child(self, thread: int) -> Process | None:
        """Returns a child that runs before the call that makes it has returned. With two such calls, its parent is not known."""
        creating = [one for creator, one in self._creating.items() if creator != thread]
        return self._child(*creating[0]) if len(creating) == 1 else None

    def _child(self, parent: Process, args: str) -> Process:
        if "CLONE_THREAD" in args:
            return parent
        return self._files.child(parent, has_files="CLONE_FILES" in args, has_folder="CLONE_FS" in args)  # fmt: skip

    def _end_thread(self, row: _Row) -> None:
        """Ends a thread, and its process if it was the last one."""
        if (row["args"] or "").startswith("superseded"):
            # Another thread called exec, and has its id from now on.
            return
        process = self._process(row)
        self._creating.pop(row["tid"], None)
        process.threads.discard(row["tid"])
        # Without a process id, other threads may have the same descriptors.
        if row["pid"] is not None and not process.threads:
            self._files.end(process)
            self._processes.pop(row["pid"], None)

    def _complete(self, event: str, row: _Row, process: Process) -> None:
        args, result = row["args"] or "", row["ret"]
        # The data that a program writes may look like anything.
        if event not in _WRITES and (folder := folder_of_process(args)) is not None:
            process.folder.path = folder
        found = re.match(r"(\d+)", args)
        number = int(found[1]) if found else -1
        descriptor = self._descriptor(process, number, args)
        if event in _CLONES:
            self._creating.pop(row["tid"], None)
        if event == "close":
            # It is closed even if close returns an error.
            self._files.close(process, number)
        elif result is None or result < 0:
            if event in (*_WRITES, *_SYNCS):
                self.unused["calls that failed"] += 1
        elif event in _OPENS:
            self._open(event, row, args, process)
        elif event in _CLONES:
            self._clone(row, args, process)
        elif event in _EXECS:
            self._exec(row["tid"], process)
        elif event == "close_range":
            self._close_range(args, process)
        elif event in ("dup", "dup2", "dup3") or (event == "fcntl" and "F_DUPFD" in args):
            self._duplicate(number, result, args, descriptor, process)
        elif event == "fcntl" and "F_SETFL" in args:
            if descriptor is not None:
                opened = descriptor.description
                opened.flags = (opened.flags - _CHANGEABLE) | (_named_flags(args) & _CHANGEABLE)
        elif event in ("fcntl", "ioctl"):
            if descriptor is not None and ("F_SETFD" in args or event == "ioctl"):
                is_set = "FD_CLOEXEC" in args or "FIOCLEX" in args
                process.table.descriptors[number] = Descriptor(descriptor.description, is_set)
        elif event == "lseek":
            if descriptor is not None:
                descriptor.description.position = result
                if args.endswith(", 0, SEEK_END"):
                    file = descriptor.description.file
                    file.end, file.is_end_known = result, True
        elif event in _FOLDERS:
            self._change_folder(event, args, descriptor, process)
        elif event in _SUBMITS:
            self.unused["asynchronous submissions (io_submit, io_uring), which may be writes"] += 1
        elif event in (*_DELETES, *_RENAMES, *_LINKS, "truncate", "ftruncate"):
            self._change_names(event, args, descriptor, process)
        elif event in _SYNCS_OF_ALL:
            if row["dur_ns"] is None:
                self.unused["calls without a duration (strace -T)"] += 1
            else:
                self.writes.append(Write(row["start_ns"], row["dur_ns"], "sync", "", 0, 0))
        elif event in (*_WRITES, *_SYNCS):
            self._use(event, row, args, descriptor.description if descriptor else None)

    # Descriptors.

    def _descriptor(self, process: Process, number: int, args: str) -> Descriptor | None:
        """Returns the descriptor with which the arguments begin. The path that strace prints for it shows renames that are not in the log."""
        found = process.table.descriptors.get(number)
        if found is None or not found.description.name.startswith("/"):
            return found
        printed = annotation(args)
        if printed is not None:
            name, is_deleted = printed
            self.surprises += not self._files.is_right(found.description, name, is_deleted=is_deleted)  # fmt: skip
        return found

    def _open(self, event: str, row: _Row, args: str, process: Process) -> None:
        flags = _named_flags(args)
        printed = row["path"] or ""
        named = named_in(args)
        # strace prints the path of the descriptor (-y), or else only what the program has named.
        path = self._path(named[0], process) if named else None
        if printed.startswith("/"):
            if path is not None:
                self._files.learn(path, normal(printed))
            path = normal(printed)
        if "O_TMPFILE" in flags:
            file = self._files.without_name(printed or path or "a file without a name")
        elif path is None:
            file = self._files.without_name(printed)
        else:
            if "O_EXCL" in flags and "O_CREAT" in flags:
                # The name was free.
                self.surprises += self._files.unlink(path)
            file = self._files.at_or_new(path)
        if "O_TRUNC" in flags or event == "creat":
            self.has_deletions = self.has_deletions or file.end > 0
            self._cut(file, 0)
        if "O_TMPFILE" in flags or {"O_CREAT", "O_EXCL"} <= flags:
            file.is_end_known = True
        self._files.open(process, row["ret"], file, path or printed, flags)

    def _clone(self, row: _Row, args: str, process: Process) -> None:
        child = row["ret"]
        if "CLONE_THREAD" in args:
            process.threads.add(child)
            if row["pid"] is None:
                # Its lines have no process id either.
                self._processes[child] = process
        elif child not in self._processes:
            self._processes[child] = self._child(process, args)
            self._processes[child].threads.add(child)
        elif not self._processes[child].has_parent:
            self._files.adopt(process, self._processes[child])

    def _exec(self, thread: int, process: Process) -> None:
        """A process has only the thread that called, and its own descriptors without O_CLOEXEC."""
        process.threads.clear()
        process.threads.add(thread)
        self._files.unshare(process)
        descriptors = process.table.descriptors
        self._files.close_all(process, [n for n, one in descriptors.items() if one.is_cloexec])

    def _close_range(self, args: str, process: Process) -> None:
        found = re.match(r"(\d+), (\d+)", args)
        if found is None:
            self.unused["calls of close_range whose range is not printed"] += 1
            return
        first, last = map(int, found.groups())
        if "CLOSE_RANGE_UNSHARE" in args:
            self._files.unshare(process)
        numbers = [number for number in process.table.descriptors if first <= number <= last]
        if "CLOSE_RANGE_CLOEXEC" not in args:
            return self._files.close_all(process, numbers)
        for number in numbers:
            description = process.table.descriptors[number].description
            process.table.descriptors[number] = Descriptor(description, True)
        return None

    def _duplicate(
        self, number: int, result: int, args: str, descriptor: Descriptor | None, process: Process
    ) -> None:
        if descriptor is None:
            # What had the number is closed.
            self._files.close(process, result)
        elif number != result:
            is_cloexec = "O_CLOEXEC" in args or "F_DUPFD_CLOEXEC" in args
            self._files.put(process, result, descriptor.description, is_cloexec=is_cloexec)

    # Names.

    def _path(self, named: Named | None, process: Process) -> str | None:
        """Returns the path of a file that an argument names; None if its folder is not known."""
        if named is None:
            return None
        if named.name.startswith("/"):
            return self._files.real(normal(named.name))
        folder = named.folder
        if folder is None and named.number is not None:
            descriptor = process.table.descriptors.get(named.number)
            folder = descriptor.description.name if descriptor else None
            if folder is None:
                return None
        folder = folder or process.folder.path
        return self._files.real(normal(named.name if folder is None else f"{folder}/{named.name}"))

    def _change_folder(
        self, event: str, args: str, descriptor: Descriptor | None, process: Process
    ) -> None:
        path = None
        if event == "fchdir":
            printed = annotation(args)
            path = printed[0] if printed else (descriptor.description.name if descriptor else None)
        elif (named := named_in(args)) and named[0] is not None:
            is_known = named[0].name.startswith("/") or process.folder.path is not None
            path = self._path(named[0], process) if is_known else None
        if path is None:
            # Not the folder that relative names had before.
            self._unknown_folders += 1
            path = f"(unknown folder {self._unknown_folders})"
        process.folder.path = path

    def _change_names(
        self, event: str, args: str, descriptor: Descriptor | None, process: Process
    ) -> None:
        if event == "unlinkat" and "AT_REMOVEDIR" in _flags(args):
            return
        self.has_deletions = self.has_deletions or event not in _LINKS
        paths = [self._path(one, process) for one in named_in(args)]
        if event in ("truncate", "ftruncate"):
            size = _size(args)
            file = descriptor.description.file if descriptor else None
            if event == "truncate":
                file = self._files.at_or_new(paths[0]) if paths and paths[0] else None
            if file is None or size is None:
                self.unused[_UNKNOWN] += 1
            else:
                self._cut(file, size)
        elif len(paths) != (1 if event in _DELETES else 2) or None in paths:
            self.unused[_UNKNOWN] += 1
        elif event in _DELETES:
            if not self._files.unlink(str(paths[0])):
                self.unused["deletions of names that no other call has"] += 1
        else:
            old, new = map(str, paths)
            if event in _LINKS:
                self._link(args, old, new, descriptor, process)
            elif "RENAME_EXCHANGE" in _flags(args):
                self._files.exchange(old, new)
            else:
                self._files.rename(old, new)

    def _link(
        self, args: str, old: str, new: str, descriptor: Descriptor | None, process: Process
    ) -> None:
        """Gives a file one more name. One of O_TMPFILE is named by its descriptor."""
        if own := _OWN_DESCRIPTOR.fullmatch(old):
            descriptor = process.table.descriptors.get(int(own[1]))
        elif "AT_EMPTY_PATH" not in _flags(args):
            return self._files.link(self._files.at_or_new(old), new)
        if descriptor is None:
            self.unused[_UNKNOWN] += 1
            return None
        return self._files.link(descriptor.description.file, new)

    def _cut(self, file: File, size: int) -> None:
        file.end, file.is_end_known = size, True
        self.cuts.append(Cut(self._now, file.key, size))

    # Writes.

    def _use(self, event: str, row: _Row, args: str, opened: Description | None) -> None:
        if opened is None or not opened.name or opened.name.startswith(("/dev/", "/proc/", "/sys/")):  # fmt: skip
            is_no_file = opened is not None or _NO_FILE.match(args)
            reason = "calls on something else than a file" if is_no_file else "calls on a file that was opened before the log begins"  # fmt: skip
            self.unused[reason] += 1
            return
        if row["dur_ns"] is None:
            self.unused["calls without a duration (strace -T)"] += 1
            return
        size, offset = 0, 0
        file = opened.file
        file_size = None
        is_datasync = event == "fdatasync"
        if event in _SYNCS:
            kind = "sync"
        else:
            size = row["ret"]
            offset = self._place(event, args, opened)
            if offset < 0:
                self.unused["calls whose place is not printed"] += 1
                return
            called = _flags(args)
            is_durable = any(flag in opened.flags for flag in _DURABLE) or "RWF_DSYNC" in called or "RWF_SYNC" in called  # fmt: skip
            is_datasync = is_durable and "O_SYNC" not in opened.flags and "RWF_SYNC" not in called
            kind = kind_of_flags(is_direct="O_DIRECT" in opened.flags, is_synchronized=is_durable)
            # In append mode a write extends its file, however large that is.
            if file.is_end_known or _appends(event, args, opened):
                file_size = file.end
            file.end = max(file.end, offset + size)
            if _moves(event, args):
                opened.position = offset + size
        key = None if file.key == file.shown else file.key
        self.writes.append(Write(row["start_ns"], row["dur_ns"], kind, file.shown, offset, size, file=key, file_size=file_size, is_datasync=is_datasync))  # fmt: skip

    def _place(self, event: str, args: str, opened: Description) -> int:
        """Returns where a write begins; -1 if unknown."""
        if _appends(event, args, opened):
            return opened.file.end
        if _moves(event, args):
            return opened.position
        return int(_offset(event, args)) if _offset(event, args).isdigit() else -1


def _named_flags(args: str) -> frozenset[str]:
    return frozenset(re.findall(r"O_[A-Z]+", _flags(args)))


def _offset(event: str, args: str) -> str:
    """Returns the offset of a call that has one, as printed."""
    words = args.rsplit(", ", 2)
    return words[-2] if event == "pwritev2" else words[-1]


def _moves(event: str, args: str) -> bool:
    """Returns whether a write begins at the position of its descriptor, and moves it."""
    return event in ("write", "writev") or (event == "pwritev2" and _offset(event, args) == "-1")


def _appends(event: str, args: str, opened: Description) -> bool:
    """Returns whether a write begins at the end of its file: in append mode, Linux ignores the offset of a call."""
    called = _flags(args) if event == "pwritev2" else ""
    return "RWF_APPEND" in called or ("O_APPEND" in opened.flags and "RWF_NOAPPEND" not in called)


def _flags(args: str) -> str:
    """Returns what follows the last string. A name may look like a flag."""
    return args.rpartition('"')[2]


def _size(args: str) -> int | None:
    """Returns the last argument; None if it is not a number."""
    last = args.rsplit(", ", 1)[-1]
    return int(last) if last.isdecimal() else None


def from_calls(rows: Iterable[Mapping[str, Any]]) -> Writes:
    """Returns the writes of calls, which `sql/commands/write_model/calls.sql` selects, in the order of the log.

    Raises:
        InputError: no write to a file is in the log.
    """
    reader = _Reader()
    for row in rows:
        reader.read(row)
    notes = [
        f"not used: {reason} ({number:,})"
        for reason, number in reader.unused.most_common()
        if number > 0
    ]
    if reader.surprises:
        notes.append(f"{reader.surprises:,} names of files changed without a call in the log, as later lines show")  # fmt: skip
    if not any(one.kind != "sync" for one in reader.writes):
        raise InputError(
            "no write to a file is in the recording" + (f": {'; '.join(notes)}" if notes else ""),
            "record with: syncline record --writes -o run -- COMMAND",
        )
    return Writes(
        sorted(reader.writes, key=lambda one: one.start_ns),
        notes,
        cuts=sorted(reader.cuts, key=lambda one: one.time_ns),
        has_deletions=reader.has_deletions,
        has_overhead=True,
    )

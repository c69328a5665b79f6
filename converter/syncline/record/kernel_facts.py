"""What the running kernel has, as far as probes need it: functions, types, features."""

from __future__ import annotations

import contextlib
import functools
import platform
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from syncline.record.btf import Btf, BtfError
from syncline.record.errors import RecordError
from syncline.record.probes import Features, Kernel

# Machines with CONFIG_KPROBES_ON_FTRACE.
_FAST_KPROBES = ("x86_64", "ppc64le", "s390x", "riscv64", "loongarch64")
_BTF = "sys/kernel/btf"
_COMPLETION = re.compile(r" [tT] \w*(end\w*(io|bio|write|flush|swap)|(io|bio|write)\w*(end|done))")


class Types(Mapping[str, "Btf | None"]):
    """BTF by module; "" is the kernel itself. Each file is read once, when it is needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, Btf | None] = {}
        # Why a file could not be used.
        self.problems: dict[str, str] = {}

    def __getitem__(self, module: str) -> Btf | None:
        if module not in self._read:
            self._read[module] = None
            base = self[""] if module else None
            try:
                if not module:
                    status = (self._folder / "vmlinux").stat()
                    self._read[module] = _of_kernel(self._folder / "vmlinux", status.st_mtime_ns)
                elif base is not None:
                    self._read[module] = Btf.read(self._folder / module, base)
            except (OSError, BtfError) as error:
                self.problems[module] = str(error)
        return self._read[module]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read)

    def __len__(self) -> int:
        return len(self._read)

    def forget_modules(self) -> None:
        """Forgets the types of modules, which may have been loaded again since."""
        self._read = {name: btf for name, btf in self._read.items() if not name}


@functools.cache
def _of_kernel(file: Path, _changed_ns: int) -> Btf:
    """Returns the types of the kernel. To index them takes the longest part of the start, and they stay the same until the next boot."""
    return Btf.read(file)


def read_kernel(tracefs: Path, wanted: Iterable[str], root: Path = Path("/")) -> Kernel:
    """Reads what the kernel has of the wanted functions.

    Raises:
        RecordError: it has no dynamic events, no BTF, or does not let them be used. The message says why.
    """
    mode = _lockdown(root)
    if mode == "confidentiality":
        raise RecordError(
            "the kernel is locked down (confidentiality), which forbids probes",
            "turn Secure Boot off, or boot without lockdown=",
        )
    if not (tracefs / "dynamic_events").exists():
        raise RecordError("the kernel has no dynamic events (CONFIG_KPROBE_EVENTS)")
    try:
        features = Features.of((tracefs / "README").read_text())
    except OSError as error:
        raise RecordError(f"{tracefs}/README cannot be read: {error.strerror}") from None
    if not features.fprobes and not features.kprobes:
        raise RecordError("the kernel has no probes (CONFIG_FPROBE_EVENTS, CONFIG_KPROBE_EVENTS)")
    types = Types(root / _BTF)
    if types[""] is None:
        raise RecordError(
            f"the kernel does not describe its types (CONFIG_DEBUG_INFO_BTF): {types.problems['']}"
        )
    wanted = frozenset(wanted)
    functions, ambiguous = _functions(tracefs, root, wanted, _modules(root))
    tracepoints = {name for name in wanted if "/" in name and (tracefs / "events" / name).is_dir()}
    functions = functions | dict.fromkeys(tracepoints, "")
    fast = platform.machine() in _FAST_KPROBES
    return Kernel(features, functions, types, release(), fast, ambiguous)


def release(text: str = "") -> tuple[int, ...]:
    """Returns the first numbers of the kernel's release: (6, 12)."""
    found = re.match(r"(\d+)\.(\d+)", text or platform.release())
    return (int(found[1]), int(found[2])) if found else ()


def is_kept_from_kprobes(function: str, root: Path = Path("/")) -> bool:
    """Returns whether a function is on the kernel's list of those that must not have a kprobe, as far as it can be read."""
    with contextlib.suppress(OSError):
        lines = (root / "sys/kernel/debug/kprobes/blacklist").read_text().splitlines()
        return any(line.split()[1:2] == [function] for line in lines)
    return False


def completion_symbols(root: Path = Path("/")) -> str:
    """Returns the lines of /proc/kallsyms for functions that end a bio, by their names."""
    with contextlib.suppress(OSError), (root / "proc/kallsyms").open() as lines:
        return "".join(line for line in lines if _COMPLETION.search(line))
    return ""


def _lockdown(root: Path) -> str:
    try:
        text = (root / "sys/kernel/security/lockdown").read_text()
    except OSError:
        return ""
    mode = re.search(r"\[(\w+)\]", text)
    return mode[1] if mode else ""


def _modules(root: Path) -> str:
    with contextlib.suppress(OSError):
        lines = (root / "proc/modules").read_text().splitlines()
        return " ".join(line.split(" ")[0] for line in lines)
    return ""


@functools.cache
def _functions(
    tracefs: Path, root: Path, wanted: frozenset[str], _modules: str
) -> tuple[dict[str, str], frozenset[str]]:
    """Returns the wanted functions that can be probed, with their modules, and those that are there twice.

    The list of the kernel is long, so it is read again only if other modules are loaded.
    """
    found: dict[str, str] = {}
    twice = set()
    for name, module in _listed(tracefs, root):
        if name in wanted:
            if name in found:
                twice.add(name)
            found[name] = module
    return found, frozenset(twice)


def _listed(tracefs: Path, root: Path) -> Iterator[tuple[str, str]]:
    try:
        with (tracefs / "available_filter_functions").open() as lines:
            for line in lines:
                name, _, module = line.rstrip().partition(" ")
                yield name, module.strip("[]")
        return
    except FileNotFoundError:
        # A kernel without function tracing. Kprobes take any function.
        pass
    except OSError as error:
        raise RecordError(
            f"{tracefs}/available_filter_functions cannot be read: {error.strerror}",
            "record as root on a kernel that is not locked down",
        ) from None
    with (root / "proc/kallsyms").open() as lines:
        for line in lines:
            columns = line.split()
            if columns[1] in "tT":
                yield columns[2], columns[3].strip("[]") if len(columns) > 3 else ""

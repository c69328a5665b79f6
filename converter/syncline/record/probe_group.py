"""The probes of one recording: defines them, says what could not be defined, and removes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from syncline.record import dynamic_events, kernel_facts, probes
from syncline.record.errors import RecordError
from syncline.record.probes import Definition, Kernel, Probe, Unavailable

# Defines a text with the name of the group in it. Raises RecordError.
Define = Callable[[str], None]


@dataclass
class Report:
    """Which functions are probed, and what is missing, for the manifest and for messages."""

    # By event: (function, kind of probe).
    probed: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    # By event, the file systems for which it is needed. None of them is mounted.
    not_mounted: dict[str, list[str]] = field(default_factory=dict)
    # By event, why it is not recorded.
    unavailable: dict[str, str] = field(default_factory=dict)
    # By event, the fields that are not recorded, and why.
    missing_fields: dict[str, dict[str, str]] = field(default_factory=dict)
    # By event, functions that were refused although another one is used.
    refused: dict[str, dict[str, str]] = field(default_factory=dict)
    # By function that the kernel refused and that a mounted file system calls: why, and what is probed instead.
    gaps: dict[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Returns it for the manifest."""
        return asdict(self)

    def summary(self, gives: dict[str, str]) -> str:
        """Returns one line: how many events are recorded, and which facts are not."""
        functions = {function for pairs in self.probed.values() for function, _ in pairs}
        kinds = sorted({kind for pairs in self.probed.values() for _, kind in pairs})
        text = f"{len(self.probed)} events by {' and '.join(kinds)} on {len(functions)} functions"
        lost = list(dict.fromkeys(gives[event] for event in self.unavailable))
        fields = sorted({name for names in self.missing_fields.values() for name in names})
        if lost:
            text += f"; not recorded: {'; '.join(lost)}"
        if fields:
            text += f"; without the fields {', '.join(fields)}"
        return text

    def gap_texts(self) -> list[str]:
        """Returns a sentence for each function of a mounted file system that is not probed."""
        return [f"{function} cannot be probed: {why}" for function, why in self.gaps.items()]


class ProbeGroup:
    """The probes of one group. `define` may be called again, when a module has been loaded."""

    def __init__(
        self,
        tracefs: Path,
        *,
        has_writes: bool = False,
        has_reads: bool = True,
        has_files: bool = False,
    ) -> None:
        self.tracefs = tracefs
        self.name = dynamic_events.free_group(tracefs)
        found, self.tracepoints = probes.load()
        self.probes = [
            probe
            for probe in found
            if (has_writes or not probe.of_writes)
            and (has_reads or not probe.of_reads)
            and (has_files or not probe.of_files)
        ]
        self.report = Report()
        # Whether fields with the address of a function have its name. Known after `define`.
        self.has_symbol_text = True
        # Those of all probes, as for the choice of the route, since the kernel's list of functions is long and is then read once.
        self._functions = {name for probe in found for _, name in probe.functions}
        self._done: set[tuple[str, str]] = set()
        # Events that existed when an fprobe was added to them.
        self.added_to: set[str] = set()
        # By event, a condition on its fields.
        self._filters: dict[str, str] = {}
        # (alternatives, function): functions whose entry the kernel refused. An end without a start is of no use.
        self._no_entry: set[tuple[tuple[tuple[str, str], ...], str]] = set()

    def summary(self) -> str:
        """Returns one line: how many events are recorded, and which facts are not."""
        return self.report.summary({probe.event: probe.gives for probe in self.probes})

    @property
    def functions_probed(self) -> set[str]:
        """The functions that have a probe."""
        return {function for _, function in self._done}

    def define(self, mounted: set[str]) -> list[str]:
        """Defines the probes that this kernel takes and that do not exist yet. Returns the new events.

        Raises:
            RecordError: the kernel has no probes, or lacks what the route needs.
        """
        before = set(self.report.probed)
        kernel = kernel_facts.read_kernel(self.tracefs, self._functions)
        self._define_all(kernel, mounted, self._write)
        return [f"{self.name}/{event}" for event in self.report.probed if event not in before]

    def plan(self, mounted: set[str], root: Path = Path("/")) -> Report:
        """Returns what `define` would define if the kernel takes it, and defines nothing.

        Raises:
            RecordError: the kernel has no probes, or lacks what the route needs.
        """
        kernel = kernel_facts.read_kernel(self.tracefs, self._functions, root)
        self._define_all(kernel, mounted, lambda _text: None)
        return self.report

    def _write(self, text: str) -> None:
        dynamic_events.define(self.tracefs, text.format(group=self.name))

    def _define_all(self, kernel: Kernel, mounted: set[str], write: Define) -> None:
        self.has_symbol_text = kernel.features.symbol_text
        for probe in self.probes:
            self._define(probe, kernel, mounted, write)
        for probe in self.probes:
            if probe.required and probe.event not in self.report.probed:
                raise RecordError(
                    f"no probe records {probe.gives}: {self.report.unavailable[probe.event]}"
                )

    def _define(self, probe: Probe, kernel: Kernel, mounted: set[str], write: Define) -> None:
        names = probes.candidates(probe, kernel, mounted)
        report, event = self.report, probe.event
        if probe.file_systems and not probe.file_systems & mounted:
            report.not_mounted[event] = sorted(probe.file_systems)
            return
        report.not_mounted.pop(event, None)
        reasons: dict[str, str] = {}
        for function in names:
            if event in report.probed and not probe.is_each:
                break
            if (event, function) in self._done:
                continue
            if why := self._define_one(probe, function, kernel, write):
                reasons[function] = why
        if reasons and probe.is_each:
            self._fill_gaps(probe, reasons, kernel, write)
        if event in report.probed:
            report.unavailable.pop(event, None)
            if reasons:
                report.refused[event] = reasons
        elif reasons:
            report.unavailable[event] = "; ".join(f"{name}: {why}" for name, why in reasons.items())
        else:
            report.unavailable[event] = _absent(probe, kernel)

    def _fill_gaps(
        self, probe: Probe, reasons: dict[str, str], kernel: Kernel, write: Define
    ) -> None:
        """Probes what all file systems call, because the function of one of them is refused."""
        event, instead = probe.event, ""
        for function in probes.others(probe, kernel):
            done = (event, function) in self._done
            if done or not self._define_one(probe, function, kernel, write):
                instead = function
                break
        for function, why in reasons.items():
            what = f"{instead} is probed instead" if instead else f"not recorded: {probe.gives}"
            self.report.gaps.setdefault(function, f"{why}; {what}")

    def _define_one(self, probe: Probe, function: str, kernel: Kernel, write: Define) -> str:
        """Defines a probe on a function. Returns why it cannot be; empty if it is defined."""
        if probe.on == "return" and (probe.functions, function) in self._no_entry:
            return "its entry cannot be probed"
        try:
            definition = probes.define(probe, function, kernel)
            kind = _write_best(definition, write)
        except (Unavailable, RecordError) as error:
            if probe.on == "entry":
                self._no_entry.add((probe.functions, function))
            if not isinstance(error, RecordError):
                return str(error)
            is_kept = kernel_facts.is_kept_from_kprobes(function)
            return "the kernel keeps it from kprobes" if is_kept else error.message
        self._done.add((probe.event, function))
        if kind == "fprobe" and probe.event in self.report.probed:
            self.added_to.add(f"{self.name}/{probe.event}")
        self._filters[probe.event] = definition.filter
        self.report.probed.setdefault(probe.event, []).append((function, kind))
        if definition.missing:
            self.report.missing_fields[probe.event] = dict(definition.missing)
        return ""

    def functions_of(self, event: str) -> list[str]:
        """Returns the functions that are probed for an event."""
        return [function for function, _ in self.report.probed.get(event, [])]

    def define_others(self, event: str) -> list[str]:
        """Probes the next function that an event may use, since those that are probed have no effect.

        Its other events, such as that of the return, are probed there too. Returns the new functions; none if there is no other.
        """
        (functions,) = {probe.functions for probe in self.probes if probe.event == event}
        kernel = kernel_facts.read_kernel(self.tracefs, self._functions)
        before = set(self.functions_of(event))
        for probe in self.probes:
            if probe.functions == functions and probe.event in self.report.probed:
                done = set(self.functions_of(probe.event))
                for function in probes.others(probe, kernel):
                    if function in done or self._define_one(probe, function, kernel, self._write):
                        continue
                    break
        return [function for function in self.functions_of(event) if function not in before]

    def remove(self) -> list[str]:
        """Removes the probes. They must be off. Returns the events that are in use elsewhere."""
        return dynamic_events.remove_group(self.tracefs, self.name)

    def is_counted(self, event: str) -> bool:
        """Returns whether an event of this group is only counted, and not recorded."""
        name = event.rpartition("/")[2]
        return any(probe.event == name and probe.counted for probe in self.probes)

    def is_of_files(self, event: str) -> bool:
        """Returns whether an event of this group is of an operation on files."""
        name = event.rpartition("/")[2]
        return any(probe.event == name and probe.of_files for probe in self.probes)

    def fields_of(self, event: str) -> list[str]:
        """Returns the fields of an event of this group on this kernel."""
        name = event.rpartition("/")[2]
        missing = self.report.missing_fields.get(name, {})
        (arguments,) = (probe.arguments for probe in self.probes if probe.event == name)
        return [field for field, _ in arguments if field not in missing]

    def filter_of(self, event: str) -> str:
        """Returns the filter of an event of this group on this kernel; empty without one."""
        return self._filters.get(event.rpartition("/")[2], "")


def _write_best(definition: Definition, write: Define) -> str:
    """Defines a probe by the best of its texts that the kernel takes, and returns the kind."""
    first: RecordError | None = None
    for text in definition.texts:
        try:
            write(text)
        except RecordError as error:
            first = first or error
        else:
            return {"f": "fprobe", "e": "eprobe"}.get(text[0], "kprobe")
    raise first or RecordError("the kernel has no probe of this kind")


def _absent(probe: Probe, kernel: Kernel) -> str:
    """Returns why a kernel has no function of a probe."""
    names = [name for _, name in probe.functions]
    described = [kernel.types[""], kernel.types[probe.module] if probe.module else None]
    inlined = [
        name
        for name in names
        if any(btf is not None and btf.parameters(name) is not None for btf in described)
    ]
    if inlined:
        return f"{', '.join(inlined)}: inlined, or not open to probes"
    if probe.module and described[1] is None:
        return f"{probe.module} is not loaded"
    return f"the kernel has no function {' or '.join(names)}"

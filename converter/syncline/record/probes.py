"""The probes of the route `dynamic-events`: reads probes.toml and writes each probe as this kernel takes it."""

from __future__ import annotations

import json
import pkgutil
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from syncline.record.btf import Btf

_FILE = Path(__file__).with_name("probes.toml")
# The same in the recorder that travels.
JSON = "probes.json"
# The kernel's limit for one expression (MAX_ARGSTR_LEN).
_MAX_EXPRESSION = 63
# Syncs sleep, so many threads can be in a function at once. The kernel's default is a few for each CPU.
_MAX_ACTIVE = 1024
_ELSE, _ALWAYS = "else", "always"
_PATH = r"(?:(?:->|\.)\w+)*"
_EXPRESSION = re.compile(rf"(\$?\w+)({_PATH})(?:(?: - (\d+))? as (\w+)({_PATH}))?(?::(\w+))?")
_VARIABLE = re.compile(r"(@\w+)(?:\[(\w+)\.(\w+)\])?:(\w+)")
# Size of an element of a list of the kernel.
_ELEMENT_BYTES = 8
_STEP = re.compile(r"(->|\.)(\w+)")
_NAMED = re.compile(r"<(\w+)>")
_CONSTANT = re.compile(r"\{(\w+)\.(\w+)\}")


class Unavailable(Exception):
    """This kernel cannot record an argument or a probe. The text says why."""


@dataclass(frozen=True)
class Features:
    """What dynamic_events of a kernel takes."""

    fprobes: bool
    kprobes: bool
    # Members of arguments by their names, from BTF.
    names: bool
    # The type `symstr`: the text of a symbol. `symbol` is only its address.
    symbol_text: bool
    # Events with fields that are reached from those of a tracepoint, and conditions on its fields.
    eprobes: bool = False

    @classmethod
    def of(cls, readme: str) -> Features:
        """Reads them from the text of tracefs/README."""
        return cls(
            fprobes="<func-name>[%return]" in readme,
            kprobes="place: [<module>:]<symbol>" in readme,
            names="<argname>" in readme,
            symbol_text="symstr" in readme,
            eprobes="<attached-group>.<attached-event> [<args>] [if <filter>]" in readme,
        )


@dataclass(frozen=True)
class Probe:
    """One event of probes.toml. Its head describes the fields."""

    event: str
    on: Literal["entry", "return", "tracepoint"]
    # (file system or "", function)
    functions: tuple[tuple[str, str], ...]
    parameters: tuple[str, ...]
    # (name, alternatives)
    arguments: tuple[tuple[str, tuple[str, ...]], ...]
    optional: frozenset[str]
    gives: str
    module: str = ""
    file_systems: frozenset[str] = frozenset()
    in_interrupts: bool = False
    filter: str = ""
    filter_from: tuple[int, ...] = ()
    required: bool = False
    expects: str = ""
    counted: bool = False
    of_writes: bool = False
    of_reads: bool = False
    of_files: bool = False
    inside: str = ""
    condition: str = ""

    @property
    def is_each(self) -> bool:
        """Whether all functions are probed, and not only the first one that can be."""
        return any(name for name, _ in self.functions)


@dataclass(frozen=True)
class Tracepoints:
    """Tracepoints that are recorded with the probes: (`SYSTEM/EVENT`, filter)."""

    everywhere: tuple[tuple[str, str], ...]
    of_threads: tuple[str, ...]
    # Only if writes are recorded.
    of_writes: tuple[str, ...] = ()
    # Only on a patched kernel.
    of_patched: tuple[tuple[str, str], ...] = ()
    # Only if reads are recorded: events of the others, with a condition that is added to theirs.
    of_reads: tuple[tuple[str, str], ...] = ()
    of_patched_reads: tuple[tuple[str, str], ...] = ()

    def recorded(self, *, has_reads: bool, is_patched: bool = False) -> list[tuple[str, str]]:
        """Returns the tracepoints of all threads with their conditions, on a patched kernel or with probes."""
        events = dict(self.everywhere + (self.of_patched if is_patched else ()))
        more = self.of_reads + (self.of_patched_reads if is_patched else ())
        for event, condition in more if has_reads else ():
            events[event] += f" || {condition}"
        return list(events.items())


@dataclass(frozen=True)
class Definition:
    """A probe on one function, as text for dynamic_events. `missing` are optional fields left out, with the reason."""

    event: str
    function: str
    # Best first: fprobe, then kprobe. {group} is to be replaced.
    texts: tuple[str, ...]
    missing: tuple[tuple[str, str], ...] = ()
    # A condition on the fields, for the kernel.
    filter: str = ""


@dataclass
class Kernel:
    """What a kernel has, as far as probes need it."""

    features: Features
    # The functions that can be probed, and their modules ("" for the kernel itself). A tracepoint is `SYSTEM/EVENT`.
    functions: Mapping[str, str]
    # By module.
    types: Mapping[str, Btf | None]
    release: tuple[int, ...] = ()
    # Whether a kprobe at the start of a function is a call, as an fprobe is. Elsewhere it is a trap.
    has_fast_kprobes: bool = True
    # Names that several functions have.
    ambiguous: frozenset[str] = field(default_factory=frozenset)


def load(text: bytes | None = None) -> tuple[list[Probe], Tracepoints]:
    """Reads probes.toml, or a text like it.

    Raises:
        ValueError: it is damaged.
    """
    data = _data(text)
    probes: dict[str, Probe] = {}
    conditions = data.get("conditions", {})
    for one in data["probe"]:
        condition = _NAMED.sub(lambda found: conditions[found[1]], one.get("filter", ""))
        probe = _probe(one | {"filter": condition}, probes)
        if probe.event in probes:
            raise ValueError(f"the event {probe.event} is there twice")
        probes[probe.event] = probe
    names = data["tracepoints"]
    return list(probes.values()), Tracepoints(
        _with_filters(names["names"]),
        tuple(names["of_threads"]),
        tuple(names.get("of_writes", ())),
        *(
            _with_filters(names.get(key, ()))
            for key in ("of_patched", "of_reads", "of_patched_reads")
        ),
    )


def as_json() -> bytes:
    """Returns probes.toml as JSON, for the recorder that travels: Python reads TOML only since 3.11."""
    return json.dumps(_data()).encode()


def _data(text: bytes | None = None) -> dict[str, Any]:
    if text is None and not _FILE.exists():
        found: dict[str, Any] = json.loads(pkgutil.get_data(__package__, JSON) or b"")
        return found
    from syncline.structured import parse_toml

    return parse_toml(_FILE.read_bytes() if text is None else text)


def _with_filters(names: Iterable[str]) -> tuple[tuple[str, str], ...]:
    parts = (name.partition(" if ") for name in names)
    return tuple((event.strip(), condition.strip()) for event, _, condition in parts)


def _probe(one: dict[str, Any], before: dict[str, Probe]) -> Probe:
    functions = one["functions"]
    if isinstance(functions, dict):
        pairs = before[functions["same_as"]].functions
    else:
        named = [name.rpartition(": ") for name in functions]
        pairs = tuple((owner, function) for owner, _, function in named)
    arguments = {
        name: (text,) if isinstance(text, str) else tuple(text)
        for name, text in one.get("arguments", {}).items()
    }
    optional = frozenset(one.get("optional", ()))
    if one["on"] not in ("entry", "return", "tracepoint") or not optional <= set(arguments):
        raise ValueError(f"the event {one['event']} is damaged")
    return Probe(
        one["event"],
        one["on"],
        pairs,
        tuple(one.get("parameters", ())),
        tuple(arguments.items()),
        optional,
        one["gives"],
        one.get("module", ""),
        frozenset(one.get("file_systems", ())),
        one.get("in_interrupts", False),
        one.get("filter", ""),
        tuple(int(number) for number in one.get("filter_from", "0").split(".")),
        one.get("required", False),
        one.get("expects", ""),
        one.get("counted", False),
        one.get("of_writes", False),
        one.get("of_reads", False),
        one.get("of_files", False),
        one.get("inside", ""),
        one.get("condition", ""),
    )


def candidates(probe: Probe, kernel: Kernel, mounted: set[str]) -> list[str]:
    """Returns the functions that a probe may use and the kernel has, best first.

    Args:
        probe: the probe.
        kernel: what it has.
        mounted: the types of mounted file systems that are on a device or need a sync function.
    """
    has = [(owner, name) for owner, name in probe.functions if name in kernel.functions]
    if not probe.is_each:
        return [name for _, name in has]
    used = [(owner, name) for owner, name in has if owner in mounted or owner == _ALWAYS]
    if mounted - {owner for owner, _ in used}:
        used += [(owner, name) for owner, name in has if owner == _ELSE]
    return list(dict.fromkeys(name for _, name in used))


def others(probe: Probe, kernel: Kernel) -> list[str]:
    """Returns the functions that a probe may use whatever is mounted, best first, if those that it uses have no effect."""
    owners = (_ELSE,) if probe.is_each else ("",)
    return [name for owner, name in probe.functions if owner in owners and name in kernel.functions]


def define(probe: Probe, function: str, kernel: Kernel) -> Definition:
    """Returns the texts that define a probe on a function.

    Raises:
        Unavailable: a field that is not optional cannot be recorded, or the function is ambiguous.
    """
    if function in kernel.ambiguous:
        raise Unavailable(f"the kernel has several functions {function}")
    arguments, missing = [], []
    btf = kernel.types.get(kernel.functions[function])
    for name, alternatives in probe.arguments:
        try:
            arguments.append(f"{name}={_argument(probe, function, alternatives, btf, kernel)}")
        except Unavailable as error:
            if name not in probe.optional:
                raise
            missing.append((name, str(error)))
    texts = _texts(probe, function, arguments, kernel)
    # A kernel that does not name its variables refuses the whole probe.
    without = [argument for argument in arguments if "=@" not in argument]
    if len(without) < len(arguments):
        texts += _texts(probe, function, without, kernel)
    return Definition(probe.event, function, tuple(texts), tuple(missing), _filter(probe, kernel))


def _texts(probe: Probe, function: str, arguments: list[str], kernel: Kernel) -> list[str]:
    """Returns the texts that define a probe with these fields, best first."""
    fields = "".join(f" {argument}" for argument in arguments)
    if probe.on == "tracepoint":
        if not kernel.features.eprobes:
            raise Unavailable("the kernel has no events on tracepoints with a condition")
        place = function.replace("/", ".")
        only_if = f" if {probe.condition}" if probe.condition else ""
        return [f"e:{{group}}/{probe.event} {place}{fields}{only_if}"]
    name = f":{{group}}/{probe.event} {function}"
    if probe.on == "entry":
        fprobes, kprobes = [f"f{name}{fields}"], [f"p{name}{fields}"]
    else:
        # Kernels differ in whether an fprobe takes a number.
        fprobes = [f"f{_MAX_ACTIVE}{name}%return{fields}", f"f{name}%return{fields}"]
        kprobes = [f"r{_MAX_ACTIVE}{name}{fields}"]
    fprobes = fprobes if kernel.features.fprobes else []
    kprobes = kprobes if kernel.features.kprobes else []
    first_fprobes = probe.in_interrupts or not kernel.has_fast_kprobes
    return fprobes + kprobes if first_fprobes else kprobes + fprobes


def _filter(probe: Probe, kernel: Kernel) -> str:
    """Returns the filter of a probe on this kernel, with the values of its constants; empty without one."""
    if kernel.release < probe.filter_from:
        return ""

    def value(found: re.Match[str]) -> str:
        btf = kernel.types.get(probe.module) or kernel.types.get("")
        number = btf.enumerator(found[1], found[2]) if btf is not None else None
        if number is None:
            raise Unavailable(f"BTF does not describe {found[2]}")
        return str(number)

    return _CONSTANT.sub(value, probe.filter)


def _argument(
    probe: Probe, function: str, alternatives: tuple[str, ...], btf: Btf | None, kernel: Kernel
) -> str:
    reasons = []
    for expression in alternatives:
        try:
            return _expression(probe, function, expression, btf, kernel.features)
        except Unavailable as error:
            reasons.append(str(error))
    raise Unavailable(reasons[0])


def _expression(
    probe: Probe, function: str, expression: str, btf: Btf | None, features: Features
) -> str:
    """Returns an expression by the names of members if the kernel takes it, else by their offsets."""
    if variable := _VARIABLE.fullmatch(expression):
        return _variable(variable, btf)
    found = _EXPRESSION.fullmatch(expression)
    if found is None:
        raise ValueError(f"{expression!r} is no expression")
    root, path, mark, other, other_path, kind = found.groups()
    if root == "$retval" and other is None:
        return expression
    if btf is None:
        raise Unavailable(f"there is no BTF for {function}")
    if probe.on == "tracepoint":
        return _inside(probe, (root, path), (mark, other, other_path), kind, btf)
    if root == "$retval":
        return _pointed(root, other or "", other_path or "", kind, btf)
    parameters = btf.parameters(function)
    position = probe.parameters.index(root)
    if parameters is None or position >= len(parameters):
        raise Unavailable(f"BTF does not describe {root} of {function}")
    if kind == "symbol" and features.symbol_text:
        kind = "symstr"
    name, type_id = parameters[position]
    if other is not None:
        return _pointed(f"$arg{position + 1}", other, other_path or "", kind, btf)
    # Also done if the names are used: so a member that does not exist is found before the kernel refuses it.
    raw = _raw(f"$arg{position + 1}", type_id, path, kind, btf)
    by_name = f"{name}{path}" + (f":{kind}" if kind else "")
    if features.names and len(by_name) <= _MAX_EXPRESSION:
        return by_name
    if len(raw) > _MAX_EXPRESSION:
        raise Unavailable(f"{expression} is too long for the kernel")
    return raw


def _pointed(address: str, name: str, path: str, kind: str | None, btf: Btf) -> str:
    """Returns an expression for a member of the struct at an address."""
    struct = btf.struct(name)
    if struct is None:
        raise Unavailable(f"BTF does not describe {name}")
    text = _raw(address, struct, path, kind, btf, 0)
    if len(text) > _MAX_EXPRESSION:
        raise Unavailable(f"{name}{path} is too long for the kernel")
    return text


def _variable(found: re.Match[str], btf: Btf | None) -> str:
    """Returns the address of a variable of the kernel, or of an element of a list, with its type."""
    variable, enum, name, kind = found.groups()
    if enum is None:
        return f"{variable}:{kind}"
    number = btf.enumerator(enum, name) if btf is not None else None
    if number is None:
        raise Unavailable(f"BTF does not describe {name}")
    return f"{variable}+{number * _ELEMENT_BYTES}:{kind}"


def _inside(
    probe: Probe,
    of_struct: tuple[str, str],
    more: tuple[str | None, str | None, str | None],
    kind: str | None,
    btf: Btf,
) -> str:
    """Returns an expression that begins at the struct whose member has the address in a field of a tracepoint."""
    (root, path), (mark, other, other_path) = of_struct, more
    field_text = f"${probe.parameters[0]}"
    if root == probe.parameters[0]:
        return f"{field_text}:{kind or 'x64'}"
    struct_name, _, member_name = probe.inside.partition(".")
    struct = btf.struct(struct_name)
    member = btf.member(struct, member_name) if struct is not None else None
    if struct is None or member is None:
        raise Unavailable(f"BTF does not describe {probe.inside}")
    at = member.bit_offset // 8
    if root == "offset":
        return f"\\{at}:{kind or 'u32'}"
    if root != struct_name:
        raise ValueError(f"{root} is neither {struct_name} nor a field")
    if other is None or other_path is None:
        return _raw(field_text, struct, path, kind, btf, -at)
    # A number that is an address, with marks in its lowest bits.
    address = _raw(field_text, struct, path, "x64", btf, -at).removesuffix(":x64")
    pointed = btf.struct(other)
    if pointed is None:
        raise Unavailable(f"BTF does not describe {other}")
    return _raw(address, pointed, other_path, kind, btf, -int(mark or 0))


def _raw(
    text: str, type_id: int, path: str, kind: str | None, btf: Btf, start: int | None = None
) -> str:
    """Returns an expression by the offsets of members. With `start`, `text` is the address of a struct of this type, less `start` bytes."""
    offset = None if start is None else start * 8
    bits = 0
    for arrow, name in _STEP.findall(path):
        if start is not None:
            # The first member is one of the struct itself.
            start, arrow = None, "."
        if arrow == "->":
            text = text if offset is None else f"{offset // 8:+d}({text})"
            target = btf.pointed_to(type_id)
            if target is None:
                raise Unavailable(f"what is before ->{name} is no pointer")
            type_id, offset = target, 0
        member = btf.member(type_id, name)
        if member is None or offset is None:
            raise Unavailable(f"there is no member {name}")
        type_id, bits = member.type_id, member.bits
        offset += member.bit_offset
    if offset is not None:
        container = 32 if bits else 8
        text = f"{offset // container * container // 8:+d}({text})"
        if bits:
            if offset % container + bits > container:
                raise Unavailable(f"the bit field {path} is not in one word")
            return f"{text}:b{bits}@{offset % container}/{container}"
    if kind == "string":
        return f"{text}:string" if btf.is_text(type_id) else f"+0({text}):string"
    kind = kind or btf.scalar(type_id)
    if kind is None:
        raise Unavailable(f"{path} is no number")
    return f"{text}:{kind}"

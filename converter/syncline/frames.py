"""Frames of call stacks: which have no name, and what of them is alike in two runs.

The one place where stacks are made comparable: `diff`, `flamegraph --diff` and the page with a base all ask here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from syncline import _core

__all__ = [
    "ADDRESS",
    "NO_CALL",
    "NO_STACK",
    "UNKNOWN_FILE",
    "Partners",
    "comparable",
    "comparable_stacks",
    "doubts",
    "has_nameless",
    "is_nameless",
    "readable",
    "readable_stacks",
]

# What addresses are taken for: they are others in every process.
ADDRESS = "[address]"
NO_STACK, UNKNOWN_FILE, NO_CALL = "[no stack]", "[unknown file]", "[no call]"
# Words that stand for what a log does not tell; any other name in brackets is a library's.
_OURS = {NO_STACK, UNKNOWN_FILE, NO_CALL, "[no name]"}
_HEX = re.compile(r"\b0x[0-9a-f]+\b", re.I)
_OFFSET = re.compile(r"(?<=.)\+(?:0x[0-9a-f]+|\d+)$", re.I)
_LIBRARY = re.compile(r"\[?([^\s\[\]]+\.so(?:\.\d+)*)(?: \(deleted\))?\]?")
# A runtime's own names of its code, in a file that is named after its process.
_OF_PROCESS = re.compile(r"\[perf-\d+\.map\]")


def readable(names: Iterable[str]) -> dict[str, str]:
    """Names as people read them: C++ and Rust demangled, Rust's without the hash that differs from build to build."""
    known = list(names)
    return dict(zip(known, _core.readable(known), strict=True))


@lru_cache(1 << 16)
def comparable(frame: str) -> str:
    """A readable frame without what differs from process to process: an address, an offset in a function or a library."""
    if frame in _OURS:
        return frame
    bare = _OFFSET.sub("", frame)
    if _HEX.fullmatch(bare) or bare == "[unknown]":
        return ADDRESS
    if library := _LIBRARY.fullmatch(bare):
        return f"[{library[1]}]"
    if _OF_PROCESS.fullmatch(bare):
        return "[perf.map]"
    return _HEX.sub(ADDRESS, bare)


def readable_stacks(stacks: Iterable[str]) -> dict[str, str]:
    """Folded stacks of which each frame is readable, by what they are made of."""
    known = list(stacks)
    names = readable({frame for stack in known for frame in stack.split(";")})
    return {stack: ";".join(names[frame] for frame in stack.split(";")) for stack in known}


def comparable_stacks(stacks: Iterable[str]) -> dict[str, str]:
    """Folded stacks as another run may have them, too, by what they are made of."""
    return {
        raw: ";".join(map(comparable, stack.split(";")))
        for raw, stack in readable_stacks(stacks).items()
    }


def is_nameless(frame: str) -> bool:
    """An address, or a library of which no more is known."""
    if _HEX.fullmatch(frame):
        return True
    return frame not in _OURS and frame.startswith("[") and frame.endswith("]")


def has_nameless(stack: str) -> bool:
    """Whether a folded stack has a frame without a name."""
    return any(map(is_nameless, stack.split(";")))


def _may_be_one(a: str, b: str) -> bool:
    """Whether two comparable frames may be one function, of which a name is missing here or there."""
    if a == b:
        return True
    if a in _OURS or b in _OURS:
        return False
    # Of two libraries it is known that they are two.
    return ADDRESS in (a, b) or is_nameless(a) != is_nameless(b)


class Partners:
    """Among comparable stacks those that may be the same call path: where their frames differ, a name is missing.

    Whether a function has a name is the luck of a recording: its process had gone when it was looked up, or
    symbols were not installed. So requests of one call path may be counted under several stacks.
    """

    def __init__(self, stacks: Iterable[str]) -> None:
        self._by_depth: dict[int, list[tuple[str, list[str], bool]]] = {}
        for stack in stacks:
            frames = stack.split(";")
            self._by_depth.setdefault(len(frames), []).append((stack, frames, has_nameless(stack)))

    def of(self, stack: str) -> list[str]:
        """The other stacks that may be this one."""
        frames, lacks = stack.split(";"), has_nameless(stack)
        return [
            other
            for other, its, nameless in self._by_depth.get(len(frames), ())
            if (lacks or nameless) and other != stack and all(map(_may_be_one, frames, its))
        ]


@dataclass
class _Node:
    """A frame with all that it called, of two runs."""

    children: dict[str, _Node] = field(default_factory=dict)
    new: float = 0
    base: float = 0

    def alike(self, frame: str) -> Iterator[_Node]:
        """Called frames that may be this one, itself included."""
        if frame in self.children:
            yield self.children[frame]
        for name, child in self.children.items() if is_nameless(frame) else self._nameless():
            if name != frame and _may_be_one(frame, name):
                yield child

    def _nameless(self) -> list[tuple[str, _Node]]:
        return [(name, child) for name, child in self.children.items() if is_nameless(name)]


def doubts(
    stacks: Iterable[tuple[tuple[str, ...], float, float]], named: int = 0
) -> dict[tuple[str, ...], tuple[float, float]]:
    """How much more each frame of a flame graph may be, on either side, if frames that lack names are the same.

    As `Partners`, but of a frame with its callers. The weights of frames of which nothing is in doubt are left out.

    Args:
        stacks: comparable frames, outermost first, and their weights, new and base.
        named: so many outermost frames are no functions, and lack no names.
    """
    root = _Node()
    for frames, new, base in stacks:
        node = root
        for frame in frames:
            node = node.children.setdefault(frame, _Node())
            node.new += new
            node.base += base
    found: dict[tuple[str, ...], tuple[float, float]] = {}
    # A frame, its callers, and what else may be it.
    open_: list[tuple[_Node, tuple[str, ...], list[_Node]]] = [(root, (), [])]
    while open_:
        node, path, others = open_.pop()
        for frame, child in node.children.items():
            here = (*path, frame)
            rest: list[_Node] = []
            if len(path) >= named:
                rest = [one for parent in (node, *others) for one in parent.alike(frame) if one is not child]  # fmt: skip
            if rest:
                found[here] = (sum(one.new for one in rest), sum(one.base for one in rest))
            open_.append((child, here, rest))
    return found

"""Frames of call stacks: which lack a name, and how stacks of two runs are compared.

`diff`, `flamegraph --diff` and the HTML page with a base all compare stacks with the functions of this module.
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
    "PossibleMatches",
    "ambiguous_weights",
    "comparable",
    "comparable_stacks",
    "has_nameless",
    "is_nameless",
    "readable",
    "readable_stacks",
]

# Replaces an address, which differs from process to process.
ADDRESS = "[address]"
NO_STACK, UNKNOWN_FILE, NO_CALL = "[no stack]", "[unknown file]", "[no call]"
# Placeholders for what a log does not record. Any other name in brackets is a library.
_PLACEHOLDERS = {NO_STACK, UNKNOWN_FILE, NO_CALL, "[no name]"}
_HEX = re.compile(r"\b0x[0-9a-f]+\b", re.I)
_OFFSET = re.compile(r"(?<=.)\+(?:0x[0-9a-f]+|\d+)$", re.I)
_LIBRARY = re.compile(r"\[?([^\s\[\]]+\.so(?:\.\d+)*)(?: \(deleted\))?\]?")
# The file in which a runtime names its generated code. Its name contains the pid.
_OF_PROCESS = re.compile(r"\[perf-\d+\.map\]")


def readable(names: Iterable[str]) -> dict[str, str]:
    """Demangles C++ and Rust names, and removes the hash of Rust names, which differs from build to build."""
    known = list(names)
    return dict(zip(known, _core.readable(known), strict=True))


@lru_cache(1 << 16)
def comparable(frame: str) -> str:
    """Removes what differs from process to process from a readable frame: addresses, and offsets in a function or library."""
    if frame in _PLACEHOLDERS:
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
    """Returns each folded stack with readable frames, by the original stack."""
    known = list(stacks)
    names = readable({frame for stack in known for frame in stack.split(";")})
    return {stack: ";".join(names[frame] for frame in stack.split(";")) for stack in known}


def comparable_stacks(stacks: Iterable[str]) -> dict[str, str]:
    """Returns each folded stack with comparable frames, by the original stack."""
    return {
        raw: ";".join(map(comparable, stack.split(";")))
        for raw, stack in readable_stacks(stacks).items()
    }


def is_nameless(frame: str) -> bool:
    """Returns whether a frame is only an address, or only a library."""
    if _HEX.fullmatch(frame):
        return True
    return frame not in _PLACEHOLDERS and frame.startswith("[") and frame.endswith("]")


def has_nameless(stack: str) -> bool:
    """Returns whether a folded stack has a frame without a name."""
    return any(map(is_nameless, stack.split(";")))


def _may_match(a: str, b: str) -> bool:
    """Returns whether two comparable frames may be the same function, because one of them lacks its name."""
    if a == b:
        return True
    if a in _PLACEHOLDERS or b in _PLACEHOLDERS:
        return False
    # Two different libraries are never the same function.
    return ADDRESS in (a, b) or is_nameless(a) != is_nameless(b)


class PossibleMatches:
    """Finds comparable stacks that may be the same call path: where their frames differ, one lacks a name.

    A recorder cannot name a function if its process has ended before the lookup, or if symbols are not installed.
    Requests of one call path may therefore be counted under several stacks.
    """

    def __init__(self, stacks: Iterable[str]) -> None:
        self._by_depth: dict[int, list[tuple[str, list[str], bool]]] = {}
        for stack in stacks:
            frames = stack.split(";")
            self._by_depth.setdefault(len(frames), []).append((stack, frames, has_nameless(stack)))

    def of(self, stack: str) -> list[str]:
        """Returns the other stacks that may be the same call path."""
        frames, lacks_names = stack.split(";"), has_nameless(stack)
        return [
            other
            for other, other_frames, nameless in self._by_depth.get(len(frames), ())
            if (lacks_names or nameless)
            and other != stack
            and all(map(_may_match, frames, other_frames))
        ]


@dataclass
class _Node:
    """A frame with the frames that it called, in two runs."""

    children: dict[str, _Node] = field(default_factory=dict)
    new: float = 0
    base: float = 0

    def matches(self, frame: str) -> Iterator[_Node]:
        """Yields the called frames that may be this one, including itself."""
        if frame in self.children:
            yield self.children[frame]
        for name, child in self.children.items() if is_nameless(frame) else self._nameless():
            if name != frame and _may_match(frame, name):
                yield child

    def _nameless(self) -> list[tuple[str, _Node]]:
        return [(name, child) for name, child in self.children.items() if is_nameless(name)]


def ambiguous_weights(
    stacks: Iterable[tuple[tuple[str, ...], float, float]], named: int = 0
) -> dict[tuple[str, ...], tuple[float, float]]:
    """Returns the weight, in new and in base, of other frames that may be the same as a frame with its callers.

    The rule is that of `PossibleMatches`. Frames without a possible match are left out.

    Args:
        stacks: comparable frames, outermost first, and their weights in new and in base.
        named: number of outermost frames that are not functions, and therefore do not lack names.
    """
    root = _Node()
    for frames, new, base in stacks:
        node = root
        for frame in frames:
            node = node.children.setdefault(frame, _Node())
            node.new += new
            node.base += base
    found: dict[tuple[str, ...], tuple[float, float]] = {}
    # A frame, its path, and the other frames that may be the same.
    pending: list[tuple[_Node, tuple[str, ...], list[_Node]]] = [(root, (), [])]
    while pending:
        node, path, others = pending.pop()
        for frame, child in node.children.items():
            here = (*path, frame)
            rest: list[_Node] = []
            if len(path) >= named:
                rest = [one for parent in (node, *others) for one in parent.matches(frame) if one is not child]  # fmt: skip
            if rest:
                found[here] = (sum(one.new for one in rest), sum(one.base for one in rest))
            pending.append((child, here, rest))
    return found

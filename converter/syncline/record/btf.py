"""Reads BTF, the kernel's description of its own types (Documentation/bpf/btf.rst).

Only what the expressions of probes need: parameters of functions, and offsets and types of members.
"""

from __future__ import annotations

import struct
from array import array
from dataclasses import dataclass
from pathlib import Path

_MAGIC = 0xEB9F
_INT, _PTR, _ARRAY, _STRUCT, _UNION, _ENUM, _FWD, _TYPEDEF = range(1, 9)
_VOLATILE, _CONST, _RESTRICT, _FUNC, _FUNC_PROTO, _VAR, _DATASEC = range(9, 16)
_FLOAT, _DECL_TAG, _TYPE_TAG, _ENUM64 = range(16, 20)
# By kind: the number of 32-bit words after the three that every type has, and of those of each member.
_WORDS = {
    _INT: (1, 0), _PTR: (0, 0), _ARRAY: (3, 0), _STRUCT: (0, 3), _UNION: (0, 3), _ENUM: (0, 2),
    _FWD: (0, 0), _TYPEDEF: (0, 0), _VOLATILE: (0, 0), _CONST: (0, 0), _RESTRICT: (0, 0),
    _FUNC: (0, 0), _FUNC_PROTO: (0, 2), _VAR: (1, 0), _DATASEC: (0, 3), _FLOAT: (0, 0),
    _DECL_TAG: (1, 0), _TYPE_TAG: (0, 0), _ENUM64: (0, 3),
}  # fmt: skip
_MODIFIERS = (_TYPEDEF, _VOLATILE, _CONST, _RESTRICT, _TYPE_TAG)
_SIGNED = 1
_KIND_FLAG = 1 << 31


class BtfError(ValueError):
    """The data is no BTF that this reader knows, or it lacks what was asked for."""


@dataclass(frozen=True)
class Member:
    """A member of a struct: its type, and its place in bits from the start of the struct."""

    type_id: int
    bit_offset: int
    # The number of bits of a bit field; 0 for any other member.
    bits: int


class Btf:
    """The types of the kernel or, with `base`, of one module."""

    def __init__(self, data: bytes, base: Btf | None = None) -> None:
        """Indexes the types.

        Raises:
            BtfError: the data is damaged, or has a kind of type that this reader does not know.
        """
        self._base = base
        order = {b"\x9f\xeb": "<", b"\xeb\x9f": ">"}.get(data[:2])
        if order is None or len(data) < 24:
            raise BtfError("it does not begin with the magic number of BTF")
        header_bytes, types_at, types_bytes, names_at, names_bytes = struct.unpack_from(
            f"{order}IIIII", data, 4
        )
        start = header_bytes + types_at
        names = header_bytes + names_at
        if start + types_bytes > len(data) or names + names_bytes > len(data) or types_bytes % 4:
            raise BtfError("it is cut off")
        self._words = array("I", data[start : start + types_bytes])
        if (order == "<") != (struct.pack("=H", 1) == b"\x01\x00"):
            self._words.byteswap()
        self._names = data[names : names + names_bytes]
        # Types and names of a module continue those of the kernel.
        self._first_type = base.end_type if base else 1
        self._first_name = base.end_name if base else 0
        self.end_name = self._first_name + names_bytes
        self._places, self._functions = self._index()
        self.end_type = self._first_type + len(self._places)

    @classmethod
    def read(cls, file: Path, base: Btf | None = None) -> Btf:
        """Reads a file of /sys/kernel/btf.

        Raises:
            OSError: it cannot be read.
            BtfError: it is damaged.
        """
        try:
            return cls(file.read_bytes(), base)
        except BtfError as error:
            raise BtfError(f"{file}: {error}") from None

    def _index(self) -> tuple[array[int], dict[int, int]]:
        """Returns the place of each type, and the functions by the offset of their name."""
        words, at, number = self._words, 0, self._first_type
        places, functions = array("I"), {}
        try:
            while at < len(words):
                places.append(at)
                info = words[at + 1]
                kind = info >> 24 & 0x1F
                if kind == _FUNC:
                    functions[words[at]] = number
                fixed, each = _WORDS[kind]
                at += 3 + fixed + each * (info & 0xFFFF)
                number += 1
        except (IndexError, KeyError):
            raise BtfError(f"type {number} is damaged, or of an unknown kind") from None
        return places, functions

    def parameters(self, function: str) -> list[tuple[str, int]] | None:
        """Returns name and type of the parameters of a function; None if it is not described."""
        name = self._find_name(function)
        number = self._functions.get(name) if name is not None else None
        if number is None:
            return None
        btf, at = self._at(number)
        btf, at = self._at(btf._words[at + 2])
        if btf._kind(at) != _FUNC_PROTO:
            raise BtfError(f"the type of {function} is damaged")
        count = btf._words[at + 1] & 0xFFFF
        pairs = btf._words[at + 3 : at + 3 + 2 * count]
        return [(self._name(pairs[2 * i]), pairs[2 * i + 1]) for i in range(count)]

    def struct(self, name: str) -> int | None:
        """Returns the type of a struct; None if it is not described."""
        return self._named(name, _STRUCT)

    def enumerator(self, enum: str, name: str) -> int | None:
        """Returns the value of a name in an enum; None if it is not described."""
        number = self._named(enum, _ENUM)
        if number is None:
            return None
        btf, at = self._at(number)
        for i in range(btf._words[at + 1] & 0xFFFF):
            if btf._name(btf._words[at + 3 + 2 * i]) == name:
                return btf._words[at + 4 + 2 * i]
        return None

    def _named(self, name: str, kind: int) -> int | None:
        """Returns the type of this name and kind, of the module or else of the kernel."""
        offset = self._find_name(name)
        if offset is not None:
            for i, at in enumerate(self._places):
                if self._words[at] == offset and self._kind(at) == kind:
                    return self._first_type + i
        return self._base._named(name, kind) if self._base else None

    def pointed_to(self, type_id: int) -> int | None:
        """Returns the type that a pointer points to; None if the type is no pointer."""
        btf, at = self._resolved(type_id)
        return btf._words[at + 2] if btf is not None and btf._kind(at) == _PTR else None

    def member(self, type_id: int, name: str) -> Member | None:
        """Returns a member of a struct or a union, also of an anonymous one in it; None without it."""
        btf, at = self._resolved(type_id)
        if btf is None or btf._kind(at) not in (_STRUCT, _UNION):
            return None
        info = btf._words[at + 1]
        for i in range(info & 0xFFFF):
            place = at + 3 + 3 * i
            name_at, member_type, offset = btf._words[place : place + 3]
            bits = offset >> 24 if info & _KIND_FLAG else 0
            offset = offset & 0xFFFFFF if info & _KIND_FLAG else offset
            found = self._name(name_at)
            if found == name:
                return Member(member_type, offset, bits)
            if not found and (inner := self.member(member_type, name)) is not None:
                return Member(inner.type_id, offset + inner.bit_offset, inner.bits)
        return None

    def scalar(self, type_id: int) -> str | None:
        """Returns the type of a number as probes name it: `u32`, `s64`, `x64`; None for any other type."""
        btf, at = self._resolved(type_id)
        if btf is None:
            return None
        kind, size = btf._kind(at), btf._words[at + 2]
        if kind == _PTR:
            return "x64"
        if kind in (_ENUM, _ENUM64):
            return f"s{size * 8}"
        if kind != _INT or size not in (1, 2, 4, 8):
            return None
        signed = btf._words[at + 3] >> 24 & _SIGNED
        return f"{'s' if signed else 'u'}{size * 8}"

    def is_text(self, type_id: int) -> bool:
        """Returns whether the type is an array of characters."""
        btf, at = self._resolved(type_id)
        return (
            btf is not None
            and btf._kind(at) == _ARRAY
            and self.scalar(btf._words[at + 3]) in ("u8", "s8")
        )

    def _resolved(self, type_id: int) -> tuple[Btf | None, int]:
        """Returns the place of a type without typedef, const and the like; (None, 0) for void."""
        for _ in range(64):
            if type_id == 0:
                return None, 0
            btf, at = self._at(type_id)
            if btf._kind(at) not in _MODIFIERS:
                return btf, at
            type_id = btf._words[at + 2]
        raise BtfError(f"type {type_id} refers to itself")

    def _at(self, type_id: int) -> tuple[Btf, int]:
        if type_id < self._first_type:
            if self._base is None:
                raise BtfError(f"there is no type {type_id}")
            return self._base._at(type_id)
        try:
            return self, self._places[type_id - self._first_type]
        except IndexError:
            raise BtfError(f"there is no type {type_id}") from None

    def _kind(self, at: int) -> int:
        return self._words[at + 1] >> 24 & 0x1F

    def _name(self, offset: int) -> str:
        if offset < self._first_name:
            return self._base._name(offset) if self._base else ""
        offset -= self._first_name
        return self._names[offset : self._names.find(b"\0", offset)].decode(errors="replace")

    def _find_name(self, name: str) -> int | None:
        """Returns the offset of a name. Each one is stored once."""
        at = self._names.find(b"\0" + name.encode() + b"\0")
        if at >= 0:
            return self._first_name + at + 1
        # The names of a module do not begin with the empty one.
        if self._names.startswith(name.encode() + b"\0"):
            return self._first_name
        return self._base._find_name(name) if self._base else None

"""Writes the table of Perfetto's messages of ftrace events: `python -m tools.ftrace_protos`, with `--check` only to say whether it is stale.

The numbers and names come from the installed package `perfetto`, which holds Perfetto's protos. The core reads the messages by this table.
"""

from __future__ import annotations

import sys
from pathlib import Path

from google.protobuf.descriptor import FieldDescriptor
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import FtraceEvent

TABLE = Path(__file__).parents[1] / "converter/core/src/source/perfetto/table.rs"
HEAD = """\
//! Perfetto's messages of ftrace events: for each the number of its field in `FtraceEvent`, its name, and its own fields as
//! NUMBER TYPE NAME. The types are those of `FieldType::of_letter`.
//!
//! Generated from the package `perfetto` by `python -m tools.ftrace_protos`.

#[rustfmt::skip]
pub(super) static MESSAGES: &[(u32, &str, &str)] = &[
"""
TYPES = {
    FieldDescriptor.TYPE_INT32: "i",
    FieldDescriptor.TYPE_UINT32: "u",
    FieldDescriptor.TYPE_INT64: "I",
    FieldDescriptor.TYPE_UINT64: "U",
    FieldDescriptor.TYPE_ENUM: "u",
    FieldDescriptor.TYPE_STRING: "s",
    FieldDescriptor.TYPE_BYTES: "b",
}
# It holds names and values of its own, and the source reads it by hand.
BY_HAND = {"generic"}


def table() -> str:
    """Returns the text of the file."""
    lines = []
    for message in sorted(FtraceEvent.DESCRIPTOR.fields, key=lambda field: field.number):
        if message.message_type is None or message.name in BY_HAND:
            continue
        fields = [
            f"{field.number}{'r' if field.is_repeated else TYPES[field.type]} {field.name}"
            for field in sorted(message.message_type.fields, key=lambda field: field.number)
        ]
        lines.append(f'    ({message.number}, "{message.name}", "{" ".join(fields)}"),\n')
    return HEAD + "".join(lines) + "];\n"


def main() -> int:
    text = table()
    if sys.argv[1:] == ["--check"]:
        is_stale = TABLE.read_text() != text
        if is_stale:
            print(f"{TABLE} is stale: python -m tools.ftrace_protos", file=sys.stderr)
        return int(is_stale)
    TABLE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

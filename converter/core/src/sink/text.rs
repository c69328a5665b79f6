//! Values as text, as the CSV and JSON writers share them.

use std::io::Write as _;

use crate::names::text_of;
use crate::rows::Value;

/// Appends a value that needs no quoting in CSV: a number, a bool, a keyword or an address. Appends nothing for another.
pub(super) fn unquoted(buffer: &mut Vec<u8>, value: Value) {
    let mut digits = itoa::Buffer::new();
    match value {
        Value::Int(n) => buffer.extend_from_slice(digits.format(n).as_bytes()),
        Value::UInt(n) => buffer.extend_from_slice(digits.format(n).as_bytes()),
        Value::Bool(b) => buffer.extend_from_slice(if b { b"true" } else { b"false" }),
        Value::Word(word) => buffer.extend_from_slice(word.as_bytes()),
        Value::Address(address) => {
            let _ = write!(buffer, "0x{address:x}");
        }
        Value::Null | Value::Name(_) | Value::Dev(_) => {}
    }
}

/// Appends `"key":`. The key must need no escapes.
pub(super) fn json_key(buffer: &mut Vec<u8>, key: &str) {
    buffer.push(b'"');
    buffer.extend_from_slice(key.as_bytes());
    buffer.extend_from_slice(b"\":");
}

/// Appends bytes as a JSON string; those that are not UTF-8 appear as `\xNN`.
pub(super) fn json_string(buffer: &mut Vec<u8>, bytes: &[u8]) {
    // Writing to memory does not fail, and a string is always valid JSON.
    let _ = serde_json::to_writer(buffer, text_of(bytes).as_ref());
}

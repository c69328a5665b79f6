//! A line of the low-level log.

use std::cell::OnceCell;

use serde_json::{Map, Value};

use crate::source::cursor::{Cursor, whole};

pub(in crate::source) struct LogObject<'a> {
    map: &'a Map<String, Value>,
    /// The text of a mark that is printed as a number.
    mark: OnceCell<String>,
}

impl<'a> LogObject<'a> {
    pub(in crate::source) fn new(map: &'a Map<String, Value>) -> Self {
        Self { map, mark: OnceCell::new() }
    }

    pub(in crate::source) fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key)
    }

    pub(in crate::source) fn has(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    pub(in crate::source) fn iter(&self) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.map.iter().map(|(key, value)| (key.as_str(), value))
    }

    pub(in crate::source) fn unsigned(&self, key: &str) -> Option<u64> {
        self.get(key)?.as_u64()
    }

    pub(in crate::source) fn signed(&self, key: &str) -> Option<i64> {
        self.get(key)?.as_i64()
    }

    pub(in crate::source) fn word(&self, key: &str) -> Option<&'a str> {
        self.get(key)?.as_str()
    }

    pub(in crate::source) fn is_true(&self, key: &str) -> bool {
        self.get(key).and_then(Value::as_bool) == Some(true)
    }

    /// A number as a tracer prints it; negative values are in two's complement.
    pub(in crate::source) fn number(&self, key: &str) -> Option<u64> {
        match self.get(key)? {
            Value::Number(number) => number.as_u64().or_else(|| number.as_i64().map(|value| value as u64)),
            // A number with more digits than every reader of JSON keeps is a text.
            Value::String(digits) => whole(digits.as_bytes(), Cursor::decimal)
                .or_else(|| whole(digits.as_bytes(), Cursor::signed).map(|value| value as u64)),
            _ => None,
        }
    }

    /// Returns a text field, or its exact bytes from the field `KEY_hex`.
    pub(in crate::source) fn bytes(&self, key: &str) -> Option<Vec<u8>> {
        if let Some(hex) = self.get(&format!("{key}_hex")) {
            return unhex(hex.as_str()?);
        }
        Some(self.word(key)?.as_bytes().to_vec())
    }

    /// The text of a mark. The binary ring buffer names it `buf`.
    pub(in crate::source) fn mark(&self) -> &str {
        self.mark.get_or_init(|| self.get("text").or_else(|| self.get("buf")).map(text_of).unwrap_or_default())
    }
}

/// The text of an extra field. The log has it as a number if it is one.
pub(in crate::source) fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

pub(super) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits
        .chunks(2)
        .map(|pair| std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok()))
        .collect()
}

//! Tables that the recorder writes next to its log: one JSON object a line.

pub mod files;
pub mod threads;
pub mod writers;

use serde_json::{Map, Value};

/// A line of a table. Errors are reasons that complete "the line cannot be used: ...".
pub struct Row(Map<String, Value>);

impl Row {
    pub fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    pub fn number(&self, key: &str) -> Result<u64, String> {
        self.0.get(key).and_then(Value::as_u64).ok_or(format!("it has no number `{key}`"))
    }

    pub fn number_32(&self, key: &str) -> Result<u32, String> {
        u32::try_from(self.number(key)?).map_err(|_| format!("`{key}` is out of range"))
    }

    pub fn text(&self, key: &str) -> Option<String> {
        self.0.get(key).and_then(Value::as_str).map(str::to_owned)
    }
}

/// Calls `add` for each line that is not blank. Fails with the number of the first line that is not an object or that `add` refuses, and the
/// reason.
pub fn each_row(text: &[u8], mut add: impl FnMut(&Row) -> Result<(), String>) -> Result<(), (usize, String)> {
    for (number, line) in text.split(|&b| b == b'\n').enumerate() {
        if !line.trim_ascii().is_empty() {
            let row = serde_json::from_slice(line).map_err(|why| why.to_string());
            row.and_then(|object| add(&Row(object))).map_err(|why| (number + 1, why))?;
        }
    }
    Ok(())
}

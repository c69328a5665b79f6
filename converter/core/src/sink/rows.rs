//! The high-level log as CSV and JSONL: one row a request.

use std::io::Write as _;
use std::path::Path;

use super::{Group, RunFacts, Sink};
use crate::error::Result;
use crate::losses::Losses;
use crate::names::{Names, text_of};
use crate::output::Output;
use crate::rows::{Request, Row as _, Value};

pub struct Csv {
    out: Output,
}

impl Csv {
    pub fn create(path: &Path) -> Result<Self> {
        let mut out = Output::create(path, false)?;
        let header: Vec<_> = Request::COLUMNS.iter().map(|&(name, _)| name).collect();
        out.buffer().extend_from_slice(header.join(",").as_bytes());
        out.buffer().push(b'\n');
        Ok(Self { out })
    }
}

impl Sink for Csv {
    fn group(&mut self, group: &Group<'_>, names: &Names) -> Result<()> {
        for r in group.requests {
            let buffer = self.out.buffer();
            r.request.visit(&mut |_, value| {
                match value {
                    Value::Null => {}
                    Value::Name(name) => csv_text(buffer, &names.text(name)),
                    Value::Dev(dev) => csv_text(buffer, &dev.to_string()),
                    other => plain(buffer, other),
                }
                buffer.push(b',');
            });
            buffer.pop();
            buffer.push(b'\n');
            self.out.spill()?;
        }
        Ok(())
    }

    fn finish(&mut self, _: &RunFacts, _: &Losses, _: &Names) -> Result<()> {
        self.out.commit()
    }
}

fn csv_text(buffer: &mut Vec<u8>, text: &str) {
    if text.is_empty() || text.bytes().any(|b| matches!(b, b',' | b'"' | b'\n' | b'\r')) {
        buffer.push(b'"');
        buffer.extend_from_slice(text.replace('"', "\"\"").as_bytes());
        buffer.push(b'"');
    } else {
        buffer.extend_from_slice(text.as_bytes());
    }
}

/// Numbers and words that need no quoting.
fn plain(buffer: &mut Vec<u8>, value: Value) {
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

pub struct Jsonl {
    out: Output,
}

impl Jsonl {
    pub fn create(path: &Path) -> Result<Self> {
        Ok(Self { out: Output::create(path, false)? })
    }
}

impl Sink for Jsonl {
    fn group(&mut self, group: &Group<'_>, names: &Names) -> Result<()> {
        for r in group.requests {
            let buffer = self.out.buffer();
            buffer.push(b'{');
            r.request.visit(&mut |column, value| {
                json_key(buffer, column);
                match value {
                    Value::Null => buffer.extend_from_slice(b"null"),
                    Value::Name(name) => json_string(buffer, names.get(name)),
                    Value::Dev(dev) => json_string(buffer, dev.to_string().as_bytes()),
                    Value::Word(word) => json_string(buffer, word.as_bytes()),
                    other => plain(buffer, other),
                }
                buffer.push(b',');
            });
            buffer.pop();
            buffer.extend_from_slice(b"}\n");
            self.out.spill()?;
        }
        Ok(())
    }

    fn finish(&mut self, _: &RunFacts, _: &Losses, _: &Names) -> Result<()> {
        self.out.commit()
    }
}

pub(super) fn json_key(buffer: &mut Vec<u8>, key: &str) {
    buffer.push(b'"');
    buffer.extend_from_slice(key.as_bytes());
    buffer.extend_from_slice(b"\":");
}

/// Bytes as a JSON string; those that are not UTF-8 appear as `\xNN`.
pub(super) fn json_string(buffer: &mut Vec<u8>, bytes: &[u8]) {
    buffer.push(b'"');
    for byte in text_of(bytes).bytes() {
        match byte {
            b'"' | b'\\' => buffer.extend_from_slice(&[b'\\', byte]),
            b'\n' => buffer.extend_from_slice(b"\\n"),
            b'\r' => buffer.extend_from_slice(b"\\r"),
            b'\t' => buffer.extend_from_slice(b"\\t"),
            0..0x20 | 0x7f => {
                let _ = write!(buffer, "\\u{byte:04x}");
            }
            _ => buffer.push(byte),
        }
    }
    buffer.push(b'"');
}

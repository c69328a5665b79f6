//! The high-level log as CSV: a header, then one line a request.

use std::borrow::Cow;
use std::path::Path;

use super::text::unquoted;
use super::{Group, RunFacts, Sink};
use crate::error::Result;
use crate::losses::Losses;
use crate::names::Names;
use crate::output::Output;
use crate::rows::{Request, Row as _, Value};

/// The characters that a spreadsheet takes for the begin of a formula.
pub const FORMULA_STARTS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

pub struct Csv {
    out: Output,
    /// Writes a quote before a text that a spreadsheet would take for a formula.
    quotes_formulas: bool,
}

impl Csv {
    pub fn create(path: &Path, quotes_formulas: bool) -> Result<Self> {
        let mut out = Output::create(path, false)?;
        let header: Vec<_> = Request::COLUMNS.iter().map(|&(name, _)| name).collect();
        out.buffer().extend_from_slice(header.join(",").as_bytes());
        out.buffer().push(b'\n');
        Ok(Self { out, quotes_formulas })
    }
}

impl Sink for Csv {
    fn group(&mut self, group: &Group<'_>, names: &Names) -> Result<()> {
        for r in group.requests {
            let quotes_formulas = self.quotes_formulas;
            let buffer = self.out.buffer();
            let text = |buffer: &mut Vec<u8>, text: &str| {
                let is_formula = quotes_formulas && text.starts_with(FORMULA_STARTS);
                field(buffer, if is_formula { format!("'{text}").into() } else { Cow::Borrowed(text) }.as_ref());
            };
            r.request.visit(&mut |_, value| {
                match value {
                    Value::Null => {}
                    Value::Name(name) => text(buffer, &names.text(name)),
                    Value::Dev(dev) => text(buffer, &dev.to_string()),
                    other => unquoted(buffer, other),
                }
                buffer.push(b',');
            });
            // The comma after the last column.
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

/// Appends text, quoted where it must be. Empty text is quoted: an empty field is null.
fn field(buffer: &mut Vec<u8>, text: &str) {
    if text.is_empty() || text.bytes().any(|b| matches!(b, b',' | b'"' | b'\n' | b'\r')) {
        buffer.push(b'"');
        buffer.extend_from_slice(text.replace('"', "\"\"").as_bytes());
        buffer.push(b'"');
    } else {
        buffer.extend_from_slice(text.as_bytes());
    }
}

//! The high-level log as JSONL: one object a request, with every column of `syncline_sync`.

use std::path::Path;

use super::text::{json_key, json_string, unquoted};
use super::{Group, RunFacts, Sink};
use crate::error::Result;
use crate::losses::Losses;
use crate::names::Names;
use crate::output::Output;
use crate::rows::{Row as _, Value};

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
                    other => unquoted(buffer, other),
                }
                buffer.push(b',');
            });
            // The comma after the last column.
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

//! Folded stacks, as flamegraph.pl and inferno read them: one line `comm;outermost;...;innermost WEIGHT` a stack, sorted.

use std::fmt::Write as _;
use std::path::Path;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::samples::{By, Weight, thread_name};
use super::{Group, RunFacts, Sink};
use crate::error::Result;
use crate::losses::Losses;
use crate::names::{NameId, Names};
use crate::output::Output;

/// Returns one line of folded text. With `base`, the weight in the run that is compared with, the line is one of difffolded.pl and
/// inferno-diff-folded: `FRAMES BASE WEIGHT`.
pub fn folded_line(frames: &str, base: Option<u64>, weight: u64) -> String {
    let mut line = String::with_capacity(frames.len() + 24);
    line.push_str(frames);
    if let Some(base) = base {
        let _ = write!(line, " {base}");
    }
    let _ = writeln!(line, " {weight}");
    line
}

/// Writes folded stacks, the weights of each summed over the run.
pub struct Folded {
    out: Output,
    weight: Weight,
    by: By,
    /// By the thread's name and the name of the frames, of `names`.
    sums: HashMap<(NameId, NameId), u64, FixedState>,
    /// The run forgets stacks and paths that no open row has.
    names: Names,
    unweighted: u64,
}

impl Folded {
    pub fn create(path: &Path, weight: Weight, by: By) -> Result<Self> {
        Ok(Self {
            out: Output::create(path, false)?,
            weight,
            by,
            sums: HashMap::default(),
            names: Names::default(),
            unweighted: 0,
        })
    }
}

impl Sink for Folded {
    fn group(&mut self, group: &Group<'_>, names: &Names) -> Result<()> {
        for r in group.requests {
            match self.weight.value(r.request) {
                Some(0) => {}
                Some(value) => {
                    let comm = self.names.intern(names.get(r.request.comm));
                    let frames = self.names.intern(&self.by.frames_name(r.request, names));
                    *self.sums.entry((comm, frames)).or_default() += value;
                }
                None => self.unweighted += 1,
            }
        }
        Ok(())
    }

    fn finish(&mut self, _: &RunFacts, _: &Losses, _: &Names) -> Result<()> {
        let names = &self.names;
        let mut lines: Vec<String> = self
            .sums
            .iter()
            .map(|(&(comm, name), &sum)| {
                // `;` separates frames.
                let comm = thread_name(&names.text(comm)).replace(';', ":");
                folded_line(&format!("{comm};{}", self.by.folded_frames(names.get(name))), None, sum)
            })
            .collect();
        lines.sort_unstable();
        for line in lines {
            self.out.buffer().extend_from_slice(line.as_bytes());
            self.out.spill()?;
        }
        self.out.commit()
    }

    fn unweighted_requests(&self) -> u64 {
        self.unweighted
    }
}

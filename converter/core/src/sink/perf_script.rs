//! Text as `perf script` prints it, one sample a request. `stackcollapse-perf.pl` and inferno read it.

use std::io::Write as _;
use std::path::Path;

use super::samples::{By, Weight, thread_name};
use super::{Group, RunFacts, Sink};
use crate::error::Result;
use crate::event::UNKNOWN_TASK;
use crate::losses::Losses;
use crate::names::Names;
use crate::output::Output;

/// Appends one sample. `frames` are innermost first.
pub fn write_sample<'a>(
    buffer: &mut Vec<u8>,
    comm: &str,
    task: u32,
    ts_ns: i64,
    value: u64,
    weight: Weight,
    frames: impl Iterator<Item = &'a str>,
) {
    let comm = thread_name(comm);
    let (seconds, ns) = (ts_ns / 1_000_000_000, ts_ns % 1_000_000_000);
    // No space before the last colon: the collapse scripts take the number before `EVENT:` as the period.
    let _ = writeln!(buffer, "{comm} {task} {seconds}.{ns:09}: {value} {}: ", weight.event_name());
    for frame in frames {
        let _ = writeln!(buffer, "\t{:16x} {frame} ([unknown])", 0);
    }
    buffer.push(b'\n');
}

/// Writes perf-script text.
pub struct PerfScript {
    out: Output,
    weight: Weight,
    by: By,
    unweighted: u64,
}

impl PerfScript {
    pub fn create(path: &Path, weight: Weight, by: By) -> Result<Self> {
        Ok(Self { out: Output::create(path, false)?, weight, by, unweighted: 0 })
    }
}

impl Sink for PerfScript {
    fn group(&mut self, group: &Group<'_>, names: &Names) -> Result<()> {
        for r in group.requests {
            let request = r.request;
            let Some(value) = self.weight.value(request) else {
                self.unweighted += 1;
                continue;
            };
            if value == 0 {
                // It adds nothing, and stackcollapse-perf.pl reads a period of 0 as 1.
                continue;
            }
            let buffer = self.out.buffer();
            let comm = names.text(request.comm);
            let task = if request.tid == UNKNOWN_TASK { request.pid } else { request.tid };
            let folded = self.by.folded_frames(&self.by.frames_name(request, names));
            write_sample(buffer, &comm, task, request.ts(), value, self.weight, folded.rsplit(';'));
            self.out.spill()?;
        }
        Ok(())
    }

    fn finish(&mut self, _: &RunFacts, _: &Losses, _: &Names) -> Result<()> {
        self.out.commit()
    }

    fn unweighted_requests(&self) -> u64 {
        self.unweighted
    }
}

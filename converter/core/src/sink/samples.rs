//! Samples for flame graphs: perf-script text, which FlameGraph and inferno collapse, and folded stacks.

use std::io::Write as _;
use std::path::Path;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::{Group, RunFacts, Sink};
use crate::error::Result;
use crate::event::UNKNOWN_TASK;
use crate::losses::Losses;
use crate::names::{NameId, Names, text_of};
use crate::output::Output;
use crate::rows::Request;
use crate::stacks::demangle::plain;

/// What a sample counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    Count,
    SyscallNs,
    WritebackNs,
    JournalNs,
    FlushNs,
    Bytes,
}

impl Weight {
    pub const NAMES: &'static [(&'static str, Self)] = &[
        ("count", Self::Count),
        ("syscall", Self::SyscallNs),
        ("writeback", Self::WritebackNs),
        ("journal", Self::JournalNs),
        ("flush", Self::FlushNs),
        ("bytes", Self::Bytes),
    ];

    /// `None` where the request does not tell.
    fn of(self, request: &Request) -> Option<u64> {
        match self {
            Self::Count => Some(1),
            Self::SyscallNs => request.syscall().map(|ns| ns.max(0) as u64),
            Self::WritebackNs => request.writeback().map(|ns| ns.max(0) as u64),
            Self::JournalNs => request.journal().map(|ns| ns.max(0) as u64),
            Self::FlushNs => request.flush().map(|ns| ns.max(0) as u64),
            Self::Bytes => request.bytes(),
        }
    }

    /// Event name in perf-script text.
    fn event(self) -> &'static str {
        match self {
            Self::Count => "syncs",
            Self::SyscallNs => "syscall_ns",
            Self::WritebackNs => "writeback_ns",
            Self::JournalNs => "journal_ns",
            Self::FlushNs => "flush_ns",
            Self::Bytes => "bytes",
        }
    }
}

/// What the frames of a sample are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Stack,
    File,
}

impl By {
    pub const NAMES: &'static [(&'static str, Self)] = &[("stack", Self::Stack), ("file", Self::File)];

    fn name(self, request: &Request) -> NameId {
        match self {
            Self::Stack => request.call.map_or(NameId::NONE, |c| c.stack),
            Self::File => request.path,
        }
    }

    /// Frames folded by `;`, outermost first.
    fn folded(self, name: NameId, names: &Names) -> String {
        match self {
            _ if !name.is_some() && self == Self::Stack => "[no stack]".into(),
            _ if !name.is_some() => "[unknown file]".into(),
            Self::Stack => names.text(name).into_owned(),
            Self::File => folded_path(names.get(name)),
        }
    }
}

/// `/run/mnt/a` becomes `/;run;mnt;a`, so that the flame graph is the tree of folders.
fn folded_path(path: &[u8]) -> String {
    let text = text_of(path);
    let mut frames = Vec::new();
    if text.starts_with('/') {
        frames.push("/".to_owned());
    }
    frames.extend(text.split('/').filter(|part| !part.is_empty()).map(plain));
    frames.join(";")
}

/// One sample of perf-script text; `frames` come innermost first.
pub fn write_sample<'a>(
    buffer: &mut Vec<u8>,
    comm: &str,
    task: u32,
    ts_ns: i64,
    weight: u64,
    what: Weight,
    frames: impl Iterator<Item = &'a str>,
) {
    let comm = if comm.trim().is_empty() { "[no name]" } else { comm };
    let (seconds, ns) = (ts_ns / 1_000_000_000, ts_ns % 1_000_000_000);
    // The colon must touch the event: that is where the collapsers look for the number before it.
    let _ = writeln!(buffer, "{comm} {task} {seconds}.{ns:09}: {weight} {}: ", what.event());
    for frame in frames {
        let _ = writeln!(buffer, "\t{:16x} {frame} ([unknown])", 0);
    }
    buffer.push(b'\n');
}

/// perf-script text: a sample a request.
pub struct PerfScript {
    out: Output,
    weight: Weight,
    by: By,
    left_out: u64,
}

impl PerfScript {
    pub fn create(path: &Path, weight: Weight, by: By) -> Result<Self> {
        Ok(Self { out: Output::create(path, false)?, weight, by, left_out: 0 })
    }
}

impl Sink for PerfScript {
    fn group(&mut self, group: &Group<'_>, names: &Names) -> Result<()> {
        for r in group.requests {
            let request = r.request;
            let Some(weight) = self.weight.of(request) else {
                self.left_out += 1;
                continue;
            };
            if weight == 0 {
                // It adds nothing, and stackcollapse-perf.pl takes 0 for 1.
                continue;
            }
            let buffer = self.out.buffer();
            let comm = names.text(request.comm);
            let task = if request.tid == UNKNOWN_TASK { request.pid } else { request.tid };
            let folded = self.by.folded(self.by.name(request), names);
            write_sample(buffer, &comm, task, request.ts(), weight, self.weight, folded.rsplit(';'));
            self.out.spill()?;
        }
        Ok(())
    }

    fn finish(&mut self, _: &RunFacts, _: &Losses, _: &Names) -> Result<()> {
        self.out.commit()
    }

    fn left_out(&self) -> u64 {
        self.left_out
    }
}

/// Folded stacks: `comm;outermost;...;innermost N`, summed.
pub struct Folded {
    out: Output,
    weight: Weight,
    by: By,
    sums: HashMap<(NameId, NameId), u64, FixedState>,
    left_out: u64,
}

impl Folded {
    pub fn create(path: &Path, weight: Weight, by: By) -> Result<Self> {
        Ok(Self { out: Output::create(path, false)?, weight, by, sums: HashMap::default(), left_out: 0 })
    }
}

impl Sink for Folded {
    fn group(&mut self, group: &Group<'_>, _: &Names) -> Result<()> {
        for r in group.requests {
            match self.weight.of(r.request) {
                Some(0) => {}
                Some(weight) => *self.sums.entry((r.request.comm, self.by.name(r.request))).or_default() += weight,
                None => self.left_out += 1,
            }
        }
        Ok(())
    }

    fn finish(&mut self, _: &RunFacts, _: &Losses, names: &Names) -> Result<()> {
        let mut lines: Vec<String> = self
            .sums
            .iter()
            .map(|(&(comm, name), sum)| {
                let comm = names.text(comm).replace(';', ":");
                format!("{comm};{} {sum}\n", self.by.folded(name, names))
            })
            .collect();
        lines.sort_unstable();
        for line in lines {
            self.out.buffer().extend_from_slice(line.as_bytes());
            self.out.spill()?;
        }
        self.out.commit()
    }

    fn left_out(&self) -> u64 {
        self.left_out
    }
}

//! Thread names, which blktrace records once for each thread and name.

use std::ops::Range;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::record::Record;

const COMM_BYTES: usize = 16;

/// A thread name from a notification.
struct Name {
    /// Number of name notifications before this one.
    number: u32,
    time: u64,
    comm: [u8; COMM_BYTES],
}

impl Name {
    fn comm(&self) -> &[u8] {
        &self.comm[..memchr::memchr(0, &self.comm).unwrap_or(COMM_BYTES)]
    }
}

/// All names of one thread.
struct Thread {
    /// Number of its first notification.
    first: u32,
    /// Ordered by time; names with equal times keep their input order.
    names: Vec<Name>,
}

#[derive(Default)]
pub(super) struct Names {
    by_thread: HashMap<(u32, u32), Thread, FixedState>,
    pub(super) count: u32,
}

impl Names {
    /// Returns the key of a record's thread. The idle threads of all CPUs have PID 0, so their key includes the CPU.
    pub(super) fn key(record: &Record<'_>) -> (u32, u32) {
        (record.pid, if record.pid == 0 { record.cpu } else { 0 })
    }

    pub(super) fn has(&self, key: (u32, u32)) -> bool {
        self.by_thread.contains_key(&key)
    }

    pub(super) fn add(&mut self, note: &Record<'_>) {
        let mut comm = [0; COMM_BYTES];
        let text = note.text();
        let len = text.len().min(COMM_BYTES - 1);
        comm[..len].copy_from_slice(&text[..len]);
        let name = Name { number: self.count, time: note.time, comm };
        let new = || Thread { first: name.number, names: Vec::new() };
        let names = &mut self.by_thread.entry(Self::key(note)).or_insert_with(new).names;
        let at = names.partition_point(|other| other.time <= name.time);
        names.insert(at, name);
        self.count += 1;
    }

    /// Returns the name of a thread at `time`, considering only the first `known` notifications, and the time range in which the name
    /// holds. This is the last name up to that time or, if there is none, the thread's first name.
    pub(super) fn find(&self, key: (u32, u32), time: u64, known: u32) -> Option<(&[u8], Range<u64>)> {
        let thread = self.by_thread.get(&key).filter(|thread| thread.first < known)?;
        let next = thread.names.partition_point(|name| name.time <= time);
        let until = thread.names.get(next).map_or(u64::MAX, |name| name.time);
        if let Some(name) = thread.names[..next].iter().rfind(|name| name.number < known) {
            return Some((name.comm(), name.time..until));
        }
        let first = thread.names.iter().find(|name| name.number == thread.first)?;
        Some((first.comm(), 0..until))
    }
}

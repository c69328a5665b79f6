//! Rows of bios that wait until it is known whether their threads were in a sync.

use std::collections::VecDeque;

use crate::names::NameId;
use crate::rows::Bio;

/// The bios of a thread that belong to no request: which of them may be of a sync. The numbers are ids of bios.
#[derive(Debug, Default)]
pub(in crate::pair) struct Origins {
    /// Whether the bios before this one are of a sync is decided.
    pub(in crate::pair) decided: u64,
    /// These may be of the sync that had no start, when that was last decided.
    pub(in crate::pair) unknown: (u64, u64),
    /// Complete rows that wait for a decision.
    pub(in crate::pair) waiting: VecDeque<Waiting>,
}

/// A complete row, and the other threads that may be in the sync that it is of.
#[derive(Debug)]
pub(in crate::pair) struct Waiting {
    pub(in crate::pair) row: Bio,
    pub(in crate::pair) others: Vec<u32>,
}

/// The rows that wait, of all threads.
#[derive(Debug, Default)]
pub(in crate::pair) struct WaitingOrigins {
    pub(in crate::pair) rows: usize,
    /// The threads with such rows, and since when the first one waits. Those that have none any more are among them.
    pub(in crate::pair) threads: VecDeque<(i64, u32)>,
}

impl Origins {
    /// Notes that the thread may have been in a sync until now, without saying whether. Rows that wait keep waiting, because their numbers decide
    /// their order.
    pub(in crate::pair) fn forget_before(&mut self, next_bio: u64) {
        if self.decided < next_bio {
            (self.unknown, self.decided) = ((self.decided, next_bio), next_bio);
            // Those before one that an earlier line has marked are marked too.
            let unmarked = self.waiting.iter_mut().rev().take_while(|waiting| !waiting.row.origin_unknown);
            unmarked.for_each(|waiting| waiting.row.forget_origin());
        }
    }

    /// Visits every name of the rows that wait.
    pub(in crate::pair) fn visit_names(&self, f: &mut dyn FnMut(NameId)) {
        self.waiting.iter().map(|waiting| waiting.row.path).for_each(f);
    }
}

//! The open waits of a request.

use crate::event::WaitKind;

/// The waits of a request whose end has not come, as indexes into the row's waits.
#[derive(Debug, Default)]
pub(in crate::pair) struct OpenWaits {
    /// (start, index) by kind, in the order of the starts.
    by_kind: [Vec<(i64, usize)>; WaitKind::ALL.len()],
}

impl OpenWaits {
    pub(in crate::pair) fn clear(&mut self) {
        self.by_kind.iter_mut().for_each(Vec::clear);
    }

    /// Whether a wait of a kind is open.
    pub(in crate::pair) fn is_waiting(&self, wait: WaitKind) -> bool {
        !self.by_kind[wait as usize].is_empty()
    }

    pub(in crate::pair) fn push(&mut self, wait: WaitKind, start: i64, index: usize) {
        let waits = &mut self.by_kind[wait as usize];
        waits.insert(waits.partition_point(|&(before, _)| before <= start), (start, index));
    }

    /// Removes and returns the last wait of a kind that began by `ts`.
    pub(in crate::pair) fn end(&mut self, wait: WaitKind, ts: i64) -> Option<usize> {
        let waits = &mut self.by_kind[wait as usize];
        let last = waits.partition_point(|&(start, _)| start <= ts).checked_sub(1)?;
        Some(waits.remove(last).1)
    }

    /// Removes and returns all of them, in their order.
    pub(in crate::pair) fn take(&mut self) -> Vec<usize> {
        let mut indexes: Vec<usize> =
            self.by_kind.iter_mut().flat_map(|waits| waits.drain(..)).map(|(_, index)| index).collect();
        indexes.sort_unstable();
        indexes
    }
}

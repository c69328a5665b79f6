//! The ids of background writeback, by which its events are distinguished from those of requests.

use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::HashSet;

const MAX_BACKGROUND_IDS: usize = 65_536;

/// The ids of background writeback that were seen last.
#[derive(Debug, Default)]
pub(crate) struct BackgroundIds {
    ids: HashSet<u64, FixedState>,
    order: VecDeque<u64>,
}

impl BackgroundIds {
    pub(crate) fn insert(&mut self, id: u64) {
        if self.ids.insert(id) {
            self.order.push_back(id);
            if self.order.len() > MAX_BACKGROUND_IDS
                && let Some(old) = self.order.pop_front()
            {
                self.ids.remove(&old);
            }
        }
    }

    pub(crate) fn contains(&self, id: u64) -> bool {
        !self.ids.is_empty() && self.ids.contains(&id)
    }
}

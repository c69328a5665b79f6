//! The keys that were seen last: a set that forgets the oldest one when it is full.

use std::collections::VecDeque;
use std::hash::Hash;

use foldhash::fast::FixedState;
use hashbrown::HashSet;

/// At most `LIMIT` keys.
#[derive(Debug)]
pub(crate) struct Recent<K, const LIMIT: usize> {
    keys: HashSet<K, FixedState>,
    order: VecDeque<K>,
}

impl<K, const LIMIT: usize> Default for Recent<K, LIMIT> {
    fn default() -> Self {
        Self { keys: HashSet::default(), order: VecDeque::new() }
    }
}

impl<K: Copy + Eq + Hash, const LIMIT: usize> Recent<K, LIMIT> {
    pub(crate) fn insert(&mut self, key: K) {
        if self.keys.insert(key) {
            self.order.push_back(key);
            if self.order.len() > LIMIT
                && let Some(oldest) = self.order.pop_front()
            {
                self.keys.remove(&oldest);
            }
        }
    }

    pub(crate) fn contains(&self, key: K) -> bool {
        !self.keys.is_empty() && self.keys.contains(&key)
    }
}

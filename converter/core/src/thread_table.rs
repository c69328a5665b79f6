//! Which process a thread is of, where a recorder has noted it beside its log.

use std::collections::HashMap;

use crate::event::UNKNOWN_TASK;

#[derive(Clone, Debug, Default)]
pub struct ThreadTable {
    process_of: HashMap<u32, u32>,
    names: HashMap<u32, String>,
}

impl ThreadTable {
    /// `process_of`: threads and their processes. A thread that is told to be of two, since its number was used again, is of none.
    pub fn new(process_of: impl IntoIterator<Item = (u32, u32)>, names: HashMap<u32, String>) -> Self {
        let mut known = HashMap::new();
        for (tid, pid) in process_of {
            let of = *known.entry(tid).or_insert(pid);
            if of != pid {
                known.insert(tid, UNKNOWN_TASK);
            }
        }
        known.retain(|_, pid| *pid != UNKNOWN_TASK);
        Self { process_of: known, names }
    }

    pub fn is_empty(&self) -> bool {
        self.process_of.is_empty() && self.names.is_empty()
    }

    /// `UNKNOWN_TASK` where it is not known.
    pub fn process_of(&self, tid: u32) -> u32 {
        self.process_of.get(&tid).copied().unwrap_or(UNKNOWN_TASK)
    }

    /// Names of processes.
    pub fn names(&self) -> impl Iterator<Item = (u32, &str)> {
        self.names.iter().map(|(&pid, name)| (pid, name.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_was_used_again_is_of_no_process() {
        let tasks = ThreadTable::new([(7, 7), (8, 7), (9, 7), (9, 9), (9, 7)], HashMap::new());
        assert_eq!([7, 8, 9, 10].map(|tid| tasks.process_of(tid)), [7, 7, UNKNOWN_TASK, UNKNOWN_TASK]);
    }
}

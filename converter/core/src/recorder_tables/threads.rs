//! The processes of threads, for logs that do not record them. The recorder writes the table next to its log.

use std::collections::{BTreeMap, HashMap};

use crate::event::UNKNOWN_TASK;

#[derive(Clone, Debug, Default)]
pub struct ThreadTable {
    process_of: HashMap<u32, u32>,
    /// In an order that does not change between runs, because outputs number names as they come.
    process_names: BTreeMap<u32, String>,
    /// Control groups, by process.
    cgroups: BTreeMap<u32, String>,
}

impl ThreadTable {
    /// `process_of` are pairs of a thread and its process, `process_names` and `cgroups` are keyed by process.
    ///
    /// A thread id that was reused by another process has two processes here. Its process is then unknown.
    pub fn new(
        process_of: impl IntoIterator<Item = (u32, u32)>,
        process_names: BTreeMap<u32, String>,
        cgroups: BTreeMap<u32, String>,
    ) -> Self {
        let mut known = HashMap::new();
        for (tid, pid) in process_of {
            let first = *known.entry(tid).or_insert(pid);
            if first != pid {
                known.insert(tid, UNKNOWN_TASK);
            }
        }
        known.retain(|_, pid| *pid != UNKNOWN_TASK);
        Self { process_of: known, process_names, cgroups }
    }

    pub fn is_empty(&self) -> bool {
        self.process_of.is_empty() && self.process_names.is_empty()
    }

    /// Returns the process of a thread, `UNKNOWN_TASK` if it is not known.
    pub fn process_of(&self, tid: u32) -> u32 {
        self.process_of.get(&tid).copied().unwrap_or(UNKNOWN_TASK)
    }

    pub fn process_names(&self) -> impl Iterator<Item = (u32, &str)> {
        self.process_names.iter().map(|(&pid, name)| (pid, name.as_str()))
    }

    /// Returns the path of the control group of each process, where it is known.
    pub fn cgroups(&self) -> impl Iterator<Item = (u32, &str)> {
        self.cgroups.iter().map(|(&pid, name)| (pid, name.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reused_thread_id_has_no_known_process() {
        let threads = ThreadTable::new([(7, 7), (8, 7), (9, 7), (9, 9), (9, 7)], BTreeMap::new(), BTreeMap::new());
        assert_eq!([7, 8, 9, 10].map(|tid| threads.process_of(tid)), [7, 7, UNKNOWN_TASK, UNKNOWN_TASK]);
    }
}

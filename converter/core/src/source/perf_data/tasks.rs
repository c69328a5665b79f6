//! The names of threads and the mapped files of processes, as they change in the course of a recording.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use foldhash::fast::FixedState;
use hashbrown::HashMap as FastMap;

/// perf gives it to the mappings of the kernel.
const KERNEL_PID: u32 = u32::MAX;
/// Addresses in the upper half belong to the kernel.
pub(super) const KERNEL: u64 = 1 << 63;
/// perf marks the kind of the frames that follow by one of the highest numbers, instead of an address.
const FIRST_MARK: u64 = u64::MAX - 4095;
/// The mark of frames that another record holds. The value after it is no address.
const DEFERRED: u64 = u64::MAX - 639;
/// A process has at most so many by default (`vm.max_map_count`).
const MAX_MAPPINGS: usize = 65_530;
/// Limit for all processes together. Mappings beyond it are not known.
const MAX_MAPPINGS_TOTAL: usize = 4_000_000;

/// Name of a thread, up to a NUL.
pub(super) type Comm = [u8; 16];

/// Index of a mapped file in `Files`.
pub(super) type FileId = u32;
pub(super) const NO_FILE: FileId = u32::MAX;

/// The names of all mapped files, shared with the threads that parse.
#[derive(Default)]
pub(super) struct Files(RwLock<Vec<Arc<[u8]>>>);

impl Files {
    pub(super) fn get(&self, id: FileId) -> Option<Arc<[u8]>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(id as usize).cloned()
    }

    fn add(&self, name: Arc<[u8]>) -> FileId {
        let mut names = self.0.write().unwrap_or_else(PoisonError::into_inner);
        names.push(name);
        names.len() as FileId - 1
    }
}

/// Mappings by their start: their end and their file. A child shares those of its parent until one of them changes.
type Mappings = Arc<BTreeMap<u64, (u64, FileId)>>;

#[derive(Default)]
pub(super) struct Tasks {
    comms: FastMap<u32, Comm, FixedState>,
    /// By process.
    mappings: FastMap<u32, Mappings, FixedState>,
    /// Number of mappings in all maps that are not shared.
    total: usize,
    ids: HashMap<Arc<[u8]>, FileId>,
    pub(super) files: Arc<Files>,
}

/// Copies a thread's name.
fn comm_of(name: &[u8]) -> Comm {
    let mut comm = Comm::default();
    let len = name.iter().position(|&b| b == 0).unwrap_or(name.len()).min(comm.len());
    comm[..len].copy_from_slice(&name[..len]);
    comm
}

impl Tasks {
    /// Returns the name of a thread; empty if it is not known.
    #[inline]
    pub(super) fn comm(&self, tid: u32) -> Comm {
        match self.comms.get(&tid) {
            Some(comm) => *comm,
            // perf knows the name of the idle tasks without a record.
            None if tid == 0 => comm_of(b"swapper"),
            None => Comm::default(),
        }
    }

    /// A thread gets a name. `exec`: its process runs another program from now on.
    pub(super) fn rename(&mut self, pid: u32, tid: u32, name: &[u8], exec: bool) {
        self.comms.insert(tid, comm_of(name));
        if exec {
            self.drop_mappings(pid);
        }
    }

    /// A thread begins. It has the name of its parent, and a process the mappings of its parent, unless they follow (`copies`).
    pub(super) fn fork(&mut self, (pid, tid): (u32, u32), (parent_pid, parent_tid): (u32, u32), copies: bool) {
        match self.comms.get(&parent_tid).copied() {
            Some(comm) => self.comms.insert(tid, comm),
            None => self.comms.remove(&tid),
        };
        if pid != parent_pid {
            self.drop_mappings(pid);
            if let Some(mappings) = self.mappings.get(&parent_pid).filter(|_| copies) {
                self.mappings.insert(pid, Arc::clone(mappings));
            }
        }
    }

    /// A thread ends. Its name stays: it may still be on a CPU.
    pub(super) fn exit(&mut self, pid: u32, tid: u32) {
        if pid == tid {
            self.drop_mappings(pid);
        }
    }

    fn drop_mappings(&mut self, pid: u32) {
        if let Some(mappings) = self.mappings.remove(&pid).and_then(Arc::into_inner) {
            self.total -= mappings.len();
        }
    }

    /// A file is mapped. It replaces what was mapped at these addresses.
    pub(super) fn map(&mut self, pid: u32, start: u64, len: u64, name: &[u8]) {
        let pid = if start & KERNEL != 0 { KERNEL_PID } else { pid };
        let end = start.saturating_add(len);
        let name = name.split(|&b| b == 0).next().unwrap_or_default();
        if start >= end || name.is_empty() {
            return;
        }
        let file = self.file_id(&shown_name(name, pid == KERNEL_PID));
        let mappings = self.mappings.entry(pid).or_default();
        let is_copy = Arc::get_mut(mappings).is_none();
        let added = if is_copy { mappings.len() } else { 0 };
        if self.total + added >= MAX_MAPPINGS_TOTAL || mappings.len() >= MAX_MAPPINGS {
            return;
        }
        let mappings = Arc::make_mut(mappings);
        let before = if is_copy { 0 } else { mappings.len() };
        insert(mappings, (start, end), file);
        self.total = self.total + mappings.len() - before;
    }

    fn file_id(&mut self, name: &[u8]) -> FileId {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let name: Arc<[u8]> = name.into();
        let id = self.files.add(Arc::clone(&name));
        self.ids.insert(name, id);
        id
    }

    /// Passes the frames of a call chain to `take`: address and mapped file. `chain` yields addresses, innermost first.
    pub(super) fn frames(
        &self,
        pid: u32,
        chain: impl Iterator<Item = u64>,
        only_user: bool,
        mut take: impl FnMut(u64, FileId),
    ) {
        let (user, kernel) = (self.mappings.get(&pid), self.mappings.get(&KERNEL_PID));
        let chain = chain.take_while(|&address| address != DEFERRED);
        for address in chain.filter(|&address| address < FIRST_MARK) {
            let is_kernel = address & KERNEL != 0;
            if is_kernel && only_user {
                continue;
            }
            let mappings = if is_kernel { kernel } else { user };
            let found = mappings.and_then(|mappings| mappings.range(..=address).next_back());
            take(address, found.filter(|(_, (end, _))| address < *end).map_or(NO_FILE, |(_, (_, file))| *file));
        }
    }
}

fn insert(mappings: &mut BTreeMap<u64, (u64, FileId)>, (start, end): (u64, u64), file: FileId) {
    // The part before the new mapping and the part after it remain.
    let before = mappings.range(..start).next_back().map(|(from, (to, file))| (*from, *to, *file));
    if let Some((from, to, old)) = before.filter(|(_, to, _)| *to > start) {
        mappings.insert(from, (start, old));
        if to > end {
            mappings.insert(end, (to, old));
        }
    }
    while let Some((&from, &(to, old))) = mappings.range(start..end).next() {
        mappings.remove(&from);
        if to > end {
            mappings.insert(end, (to, old));
        }
    }
    mappings.insert(start, (end, file));
}

/// Returns the name of a mapping as `perf script` shows it: `[kernel.kallsyms]` and `[jbd2]` for code of the kernel.
fn shown_name(name: &[u8], is_kernel: bool) -> Vec<u8> {
    if !is_kernel {
        return name.to_vec();
    }
    if name.starts_with(b"[") {
        let end = name.iter().position(|&b| b == b']').map_or(name.len(), |at| at + 1);
        return name[..end].to_vec();
    }
    let file = name.rsplit(|&b| b == b'/').next().unwrap_or(name);
    let module = file.split(|&b| b == b'.').next().unwrap_or(file);
    [b"[", module, b"]"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(tasks: &Tasks, pid: u32, addresses: &[u64]) -> Vec<String> {
        let mut found = Vec::new();
        tasks.frames(pid, addresses.iter().copied(), false, |_, file| {
            found.push(tasks.files.get(file).map_or("-".into(), |name| String::from_utf8_lossy(&name).into_owned()));
        });
        found
    }

    #[test]
    fn a_mapping_replaces_what_it_covers() {
        let mut tasks = Tasks::default();
        tasks.map(7, 100, 100, b"/a\0\0");
        tasks.map(7, 120, 20, b"/b");
        tasks.map(7, 190, 50, b"/c");
        let addresses = [99, 100, 119, 120, 139, 140, 189, 190, 239, 240];
        assert_eq!(frames(&tasks, 7, &addresses), ["-", "/a", "/a", "/b", "/b", "/a", "/a", "/c", "/c", "-"]);
        tasks.map(7, 0, 1000, b"/d");
        assert_eq!(frames(&tasks, 7, &[0, 150, 999]), ["/d"; 3]);
        assert_eq!(tasks.total, 1);
    }

    #[test]
    fn children_have_the_names_and_mappings_of_their_parent() {
        let mut tasks = Tasks::default();
        tasks.rename(7, 7, b"parent\0", false);
        tasks.map(7, 100, 100, b"/a");
        tasks.fork((8, 8), (7, 7), true);
        tasks.fork((8, 9), (8, 8), true);
        assert_eq!(tasks.comm(9), comm_of(b"parent"));
        tasks.map(8, 100, 100, b"/b");
        assert_eq!((frames(&tasks, 7, &[150]), frames(&tasks, 8, &[150])), (vec!["/a".into()], vec!["/b".into()]));
        tasks.rename(8, 8, b"child", true);
        assert_eq!((frames(&tasks, 7, &[150]), frames(&tasks, 8, &[150])), (vec!["/a".into()], vec!["-".into()]));
        tasks.exit(7, 7);
        assert_eq!((tasks.comm(7), tasks.total), (comm_of(b"parent"), 0));
    }

    #[test]
    fn frames_of_the_kernel() {
        let mut tasks = Tasks::default();
        tasks.map(u32::MAX, KERNEL | 0x1000, 0x1000, b"[kernel.kallsyms]_text");
        tasks.map(u32::MAX, KERNEL | 0x2000, 0x1000, b"/lib/modules/6/fs/jbd2/jbd2.ko.xz");
        let chain = [u64::MAX - 127, KERNEL | 0x1800, KERNEL | 0x2800, KERNEL | 0x3800, DEFERRED, 77];
        assert_eq!(frames(&tasks, 7, &chain), ["[kernel.kallsyms]", "[jbd2]", "-"]);
        assert_eq!(tasks.comm(0), comm_of(b"swapper"));
    }
}

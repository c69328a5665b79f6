//! Operations on files that have not returned.

use crate::collections::Map;
use crate::event::file_op::FileCall;
use crate::names::NameId;

/// An operation that has begun.
#[derive(Clone, Copy, Debug)]
pub(in crate::pair) struct OpenOp {
    pub(in crate::pair) call: FileCall,
    pub(in crate::pair) start: i64,
    pub(in crate::pair) pid: u32,
    pub(in crate::pair) comm: NameId,
}

#[derive(Debug, Default)]
pub(in crate::pair) struct FileOps {
    /// By thread: a thread is in one call at a time.
    pub(in crate::pair) open: Map<u32, OpenOp>,
    pub(in crate::pair) count: u64,
}

impl FileOps {
    /// Visits the names of all operations that have not returned.
    pub(in crate::pair) fn visit_names(&self, f: &mut dyn FnMut(NameId)) {
        for FileCall { path, to_path, flags, stack, .. } in self.open.values().map(|open| open.call) {
            [path, to_path, flags, stack].into_iter().for_each(&mut *f);
        }
    }
}

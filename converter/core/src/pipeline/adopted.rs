//! Replaces the ids of names in the current batch with those of the whole run.

use crate::names::{NameId, Names};
use crate::source::Batch;

/// The run's ids of the names of the current batch; NONE if one has not been needed yet.
#[derive(Default)]
pub(super) struct Adopted {
    names: Vec<NameId>,
    /// A path may have the same text as another name. It is passing, the other one is kept.
    paths: Vec<NameId>,
    /// Stacks, folded, unless it depends on the process how they are.
    pub(super) stacks: Vec<NameId>,
}

impl Adopted {
    pub(super) fn start_batch(&mut self, batch: &Batch) {
        for ids in [&mut self.names, &mut self.paths, &mut self.stacks] {
            ids.clear();
            ids.resize(batch.names.len(), NameId::NONE);
        }
    }

    #[inline]
    pub(super) fn name(&mut self, id: &mut NameId, batch: &Batch, names: &mut Names) {
        adopt(&mut self.names, id, |id| names.intern(batch.names.get(id)));
    }

    #[inline]
    pub(super) fn path(&mut self, id: &mut NameId, batch: &Batch, names: &mut Names) {
        adopt(&mut self.paths, id, |id| names.intern_passing(batch.names.get(id)));
    }
}

#[inline]
pub(super) fn adopt(known: &mut [NameId], id: &mut NameId, intern: impl FnOnce(NameId) -> NameId) {
    if id.is_some() {
        let known = &mut known[id.0 as usize];
        if !known.is_some() {
            *known = intern(*id);
        }
        *id = *known;
    }
}

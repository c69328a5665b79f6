//! The names that open rows refer to, so that the others can be forgotten.

use super::Pairer;
use crate::names::NameId;
use crate::rows::{Call, Request};

impl Pairer {
    /// Visits every stack and path that an open row, a held event or a known file has. Other names are kept.
    pub fn visit_names(&self, f: &mut dyn FnMut(NameId)) {
        self.held.iter().for_each(|held| held.visit_names(f));
        self.held_exits.iter().for_each(|held| held.event().visit_names(f));
        self.files.visit_names(f);
        self.write_waits.visit_names(f);
        self.file_ops.visit_names(f);
        self.block_requests.visit_names(f);
        self.commits.visit_names(f);
        self.tasks.by_id.values().for_each(|task| task.origins.visit_names(f));
        self.requests.rows().for_each(|row| visit_request(row, f));
        let groups = self.tasks.by_id.values().flat_map(|task| &task.groups);
        groups.filter_map(|group| group.call.as_ref()).for_each(|call| visit_call(call, f));
    }
}

fn visit_request(row: &Request, f: &mut dyn FnMut(NameId)) {
    let stack = row.call.map_or(NameId::NONE, |call| call.stack);
    [row.path, row.container_path, stack].into_iter().for_each(f);
}

fn visit_call(call: &Call, f: &mut dyn FnMut(NameId)) {
    [call.stack, call.path].into_iter().for_each(f);
}

//! Finds the frames of user stacks that the tracer did not resolve, so that their symbols can be looked up before conversion.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::Result;
use crate::event::Kind;
use crate::merge::{Merge, MergeOptions, MergeStep};
use crate::options::Options;
use crate::run::open;
use crate::source::Batch;
use crate::stacks::lines;
use crate::stacks::symbols::unresolved_address;

/// The unresolved frames in the stacks of one thread.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnresolvedFrames {
    pub tid: u32,
    pub comm: String,
    pub addresses: BTreeSet<u64>,
}

/// Unresolved addresses by thread id and comm.
type Found = BTreeMap<(u32, String), BTreeSet<u64>>;

/// Reads logs and returns the unresolved frames in their stacks, by thread.
pub fn find_unresolved_frames(inputs: Vec<String>) -> Result<Vec<UnresolvedFrames>> {
    let options = Options { inputs, workers: 1, ..Options::default() };
    let inputs = open(&options)?;
    let merge_options = MergeOptions {
        window_ns: options.window_ns,
        workers: options.workers,
        source_options: options.source_options,
        hints: options.hints,
        count_other_events: false,
    };
    let mut merge = Merge::new(inputs, merge_options);
    let mut found = Found::new();
    loop {
        match merge.step()? {
            MergeStep::End => break,
            MergeStep::Idle | MergeStep::InputEnded(_) => {}
            MergeStep::MergedBatch(merged) => {
                add_batch(&merged.batch, &mut found);
                merge.recycle(merged);
            }
        }
    }
    Ok(found.into_iter().map(|((tid, comm), addresses)| UnresolvedFrames { tid, comm, addresses }).collect())
}

fn add_batch(batch: &Batch, found: &mut Found) {
    for event in &batch.events {
        let Kind::CallEnter { stack, .. } = event.kind else { continue };
        if !stack.is_some() {
            continue;
        }
        let mut addresses = lines(batch.names.get(stack)).filter_map(unresolved_address).peekable();
        if addresses.peek().is_some() {
            let thread = (event.tid, batch.names.text(event.comm).into_owned());
            found.entry(thread).or_default().extend(addresses);
        }
    }
}

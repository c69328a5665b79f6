//! Holds what comes before the first event of a bio.
//!
//! A recorder need not follow bios. Whether it does shows in the first event of one, which may come after syncs that had nothing to write.
//! From the first event of a sync with an id until then nothing is paired, so that what a row says of its bios is decided by the log and not by where a batch of it ends.

use crate::dedup::Deduplicated;
use crate::error::Result;
use crate::event::{Event, Kind, NO_ID};
use crate::names::NameId;
use crate::pair::{Out, Pairer};

/// How many facts wait at most: about 3 MB. Of a log that has no event of a bio among them, the first syncs have unknown bios.
const MAX_HELD: usize = 16_384;

#[derive(Default)]
pub(super) struct Beginning {
    held: Vec<Deduplicated>,
    is_over: bool,
}

impl Beginning {
    /// Pairs a fact, after those that wait, or lets it wait.
    pub(super) fn pass(&mut self, fact: Deduplicated, pairer: &mut Pairer, out: &mut Out<'_>) -> Result<()> {
        if self.is_over {
            return pair(pairer, &fact, out);
        }
        let is_of_bio = matches!(&fact, Deduplicated::Event(event, _) if event.kind.is_of_bio());
        if is_of_bio {
            pairer.expect_bios();
        } else if self.held.is_empty() && !names_request(&fact) {
            return pair(pairer, &fact, out);
        }
        self.held.push(fact);
        if is_of_bio || self.held.len() == MAX_HELD { self.end(pairer, out) } else { Ok(()) }
    }

    /// Pairs all that waits. Nothing waits any more.
    pub(super) fn end(&mut self, pairer: &mut Pairer, out: &mut Out<'_>) -> Result<()> {
        self.is_over = true;
        std::mem::take(&mut self.held).iter().try_for_each(|fact| pair(pairer, fact, out))
    }

    /// Visits every name of the facts that wait.
    pub(super) fn visit_names(&self, f: &mut dyn FnMut(NameId)) {
        for fact in &self.held {
            match fact {
                Deduplicated::Event(event, _) => event.visit_names(f),
                Deduplicated::CallDetail(detail) => [detail.path, detail.stack].into_iter().for_each(&mut *f),
            }
        }
    }
}

/// Whether an event names a request by its id. Only of such a request, the file system's own events say which bios it has.
fn names_request(fact: &Deduplicated) -> bool {
    let Deduplicated::Event(Event { kind, .. }, _) = fact else { return false };
    matches!(
        *kind,
        Kind::SyncStart { id, .. } | Kind::SyncEnd { id, .. } | Kind::WaitStart { id, .. } | Kind::WaitEnd { id, .. }
            if id != NO_ID
    )
}

fn pair(pairer: &mut Pairer, fact: &Deduplicated, out: &mut Out<'_>) -> Result<()> {
    match fact {
        Deduplicated::Event(event, provenance) => pairer.event(event, provenance, out),
        Deduplicated::CallDetail(detail) => {
            pairer.call_detail(detail);
            Ok(())
        }
    }
}

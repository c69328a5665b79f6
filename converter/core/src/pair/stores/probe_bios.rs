//! The bios that probes report and that are being filled, with their folios.

use super::probe_request::{Folio, Owner};
use crate::collections::Map;
use crate::pair::lingering::LINGER_NS;

/// Bios that are being filled. Those of reads are among them, and their submits may not be recorded.
const MAX_FILLING: usize = 65_536;

/// Folios that were added to them. Without events of submits, nothing else removes them.
const MAX_FOLIOS: usize = 1 << 18;

/// A bio to which folios were added.
#[derive(Debug, Default)]
struct Filling {
    pub(in crate::pair) folios: Vec<Folio>,
    /// The last folio was reported by the function for folios, which may call the one for pages.
    may_repeat: bool,
}

/// The bios that are being filled, by address.
#[derive(Debug, Default)]
pub(in crate::pair) struct FillingBios {
    by_address: Map<u64, Filling>,
    pub(in crate::pair) folios: usize,
}

impl FillingBios {
    pub(in crate::pair) fn add(&mut self, address: u64, folio: Folio, is_page: bool) {
        if self.by_address.len() >= MAX_FILLING || self.folios >= MAX_FOLIOS {
            self.by_address.clear();
            self.folios = 0;
        }
        let filling = self.by_address.entry(address).or_default();
        if is_page
            && std::mem::take(&mut filling.may_repeat)
            && filling.folios.last().is_some_and(|f| f.len == folio.len)
        {
            return;
        }
        filling.may_repeat = !is_page;
        filling.folios.push(folio);
        self.folios += 1;
    }

    pub(in crate::pair) fn take(&mut self, address: u64) -> Vec<Folio> {
        let folios = self.by_address.remove(&address).map(|filling| filling.folios).unwrap_or_default();
        self.folios -= folios.len();
        folios
    }

    /// The folios at an address that the thread of a request has added.
    pub(in crate::pair) fn of(&self, address: u64, owner: Owner) -> impl Iterator<Item = &Folio> {
        let folios = self.by_address.get(&address).map(|filling| &filling.folios);
        folios.into_iter().flatten().filter(move |folio| folio.owner == owner)
    }

    /// Removes and returns them.
    pub(in crate::pair) fn take_of(&mut self, address: u64, owner: Owner) -> Vec<Folio> {
        let Some(filling) = self.by_address.get_mut(&address) else { return Vec::new() };
        let taken: Vec<Folio> = filling.folios.extract_if(.., |folio| folio.owner == owner).collect();
        if filling.folios.is_empty() {
            self.by_address.remove(&address);
        }
        self.folios -= taken.len();
        taken
    }

    pub(in crate::pair) fn contains(&self, address: u64) -> bool {
        self.by_address.contains_key(&address)
    }

    /// Forgets bios that were filled long ago. They were reads, or their submit was lost.
    pub(in crate::pair) fn expire(&mut self, now: i64) {
        let is_recent = |folio: &Folio| now.saturating_sub(folio.ts) <= LINGER_NS;
        self.by_address.retain(|_, filling| filling.folios.last().is_some_and(is_recent));
        self.folios = self.by_address.values().map(|filling| filling.folios.len()).sum();
    }
}

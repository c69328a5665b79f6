//! Interned data of the trace's one packet sequence. A string goes out with the packet that first uses it.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::proto::{interned, nested, uint};
use crate::event::Dev;
use crate::names::{NameId, Names};

/// Iids below are for fixed words.
const DEV_BASE: u64 = 1 << 9;
/// And below for devices; those of a `NameId` begin here.
const NAME_BASE: u64 = 1 << 10;
/// A broken log may have any number of devices: those that are too many have iids behind all names.
const MORE_DEVS_BASE: u64 = NAME_BASE + (1 << 32);

#[derive(Default)]
struct Seen(Vec<bool>);

impl Seen {
    /// True the first time.
    fn first(&mut self, id: NameId) -> bool {
        let at = id.0 as usize;
        if self.0.len() <= at {
            self.0.resize((at + 1).next_power_of_two(), false);
        }
        !std::mem::replace(&mut self.0[at], true)
    }
}

#[derive(Default)]
pub(super) struct Interner {
    /// Entries that the next packet must carry.
    pub(super) pending: Vec<u8>,
    words: Vec<&'static str>,
    devs: HashMap<Dev, u64, FixedState>,
    /// That of the last event, which most have.
    last_dev: Option<(Dev, u64)>,
    event_names: HashMap<String, u64, FixedState>,
    /// Names that are words of this program, found by where they stand.
    word_names: Vec<(&'static str, u64)>,
    annotation_names: u64,
    strings: Seen,
}

fn entry(buffer: &mut Vec<u8>, field: u32, iid: u64, text: &[u8]) {
    nested(buffer, field, |b| {
        uint(b, interned::IID, iid);
        super::proto::bytes(b, interned::NAME, text);
    });
}

impl Interner {
    pub(super) fn category(&mut self, iid: u64, name: &str) {
        entry(&mut self.pending, interned::EVENT_CATEGORIES, iid, name.as_bytes());
    }

    /// Names of annotations get consecutive iids; this is the first of them.
    pub(super) fn annotation_names<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) -> u64 {
        let first = self.annotation_names + 1;
        for name in names {
            self.annotation_names += 1;
            entry(&mut self.pending, interned::DEBUG_ANNOTATION_NAMES, self.annotation_names, name.as_bytes());
        }
        first
    }

    pub(super) fn event_name(&mut self, name: &str) -> u64 {
        if let Some(&iid) = self.event_names.get(name) {
            return iid;
        }
        let iid = self.event_names.len() as u64 + 1;
        self.event_names.insert(name.to_owned(), iid);
        entry(&mut self.pending, interned::EVENT_NAMES, iid, name.as_bytes());
        iid
    }

    /// As `event_name`, for the few words that most slices are called by.
    pub(super) fn word_name(&mut self, word: &'static str) -> u64 {
        if let Some(&(_, iid)) = self.word_names.iter().find(|(w, _)| std::ptr::eq(*w, word)) {
            return iid;
        }
        let iid = self.event_name(word);
        self.word_names.push((word, iid));
        iid
    }

    /// A string value of an annotation.
    pub(super) fn string(&mut self, id: NameId, names: &Names) -> u64 {
        let iid = NAME_BASE + u64::from(id.0);
        if self.strings.first(id) {
            entry(&mut self.pending, interned::DEBUG_ANNOTATION_STRING_VALUES, iid, names.text(id).as_bytes());
        }
        iid
    }

    pub(super) fn word(&mut self, word: &'static str) -> u64 {
        if let Some(at) = self.words.iter().position(|w| std::ptr::eq(*w, word)) {
            return at as u64 + 1;
        }
        self.words.push(word);
        let iid = self.words.len() as u64;
        debug_assert!(iid < DEV_BASE);
        entry(&mut self.pending, interned::DEBUG_ANNOTATION_STRING_VALUES, iid, word.as_bytes());
        iid
    }

    #[inline]
    pub(super) fn dev(&mut self, dev: Dev) -> u64 {
        match self.last_dev {
            Some((last, iid)) if last == dev => iid,
            _ => self.other_dev(dev),
        }
    }

    fn other_dev(&mut self, dev: Dev) -> u64 {
        let next = DEV_BASE + self.devs.len() as u64;
        let next = if next < NAME_BASE { next } else { MORE_DEVS_BASE + u64::from(dev.0) };
        let iid = *self.devs.entry(dev).or_insert_with(|| {
            let text = dev.to_string();
            entry(&mut self.pending, interned::DEBUG_ANNOTATION_STRING_VALUES, next, text.as_bytes());
            next
        });
        self.last_dev = Some((dev, iid));
        iid
    }
}

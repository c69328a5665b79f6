//! Interned data of the packet sequence. The packet that first uses a string carries it.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::proto::{nested, uint};
use crate::event::Dev;
use crate::names::{NameId, Names};
use crate::trace_layout::fields::interned;

// Iids of string values: keywords of this program from 1, devices from `DEV_BASE`, names from `NAME_BASE`. A broken log may have any
// number of devices, so those beyond the range follow all names.
const DEV_BASE: u64 = 1 << 9;
const NAME_BASE: u64 = 1 << 10;
const MORE_DEVS_BASE: u64 = NAME_BASE + (1 << 32);
const MORE_DEV_NAMES_BASE: u64 = MORE_DEVS_BASE + (1 << 32);

/// Memory that an entry needs apart from its text: about that of the maps here.
const ENTRY_BYTES: usize = 64;

#[derive(Default)]
pub(super) struct Interner {
    /// Entries that the next packet must carry.
    pub(super) pending: Vec<u8>,
    /// Memory of the entries, here and in what reads the trace.
    pub(super) bytes: usize,
    keywords: Vec<&'static str>,
    devs: HashMap<Dev, u64, FixedState>,
    /// Number of devices and names of devices.
    dev_strings: u64,
    /// The last event's device, because most events have the same one as the event before.
    last_dev: Option<(Dev, u64)>,
    event_names: HashMap<String, u64, FixedState>,
    /// Event names that are constants of this program, compared by address, each with the iid of its colour, or 0.
    static_event_names: Vec<(&'static str, u64, u64)>,
    colours: u64,
    annotation_names: u64,
    strings: HashMap<NameId, u64, FixedState>,
    /// Number of strings without a `NameId`.
    texts: u64,
}

impl Interner {
    fn entry(&mut self, field: u32, iid: u64, text: &[u8]) {
        self.bytes += text.len() + ENTRY_BYTES;
        nested(&mut self.pending, field, |b| {
            uint(b, interned::IID, iid);
            super::proto::bytes(b, interned::NAME, text);
        });
    }

    pub(super) fn category(&mut self, iid: u64, name: &str) {
        self.entry(interned::EVENT_CATEGORIES, iid, name.as_bytes());
    }

    /// Interns names of annotations with consecutive iids and returns the first iid.
    pub(super) fn annotation_names<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) -> u64 {
        let first = self.annotation_names + 1;
        for name in names {
            self.annotation_names += 1;
            self.entry(interned::DEBUG_ANNOTATION_NAMES, self.annotation_names, name.as_bytes());
        }
        first
    }

    pub(super) fn event_name(&mut self, name: &str) -> u64 {
        if let Some(&iid) = self.event_names.get(name) {
            return iid;
        }
        let iid = self.event_names.len() as u64 + 1;
        self.event_names.insert(name.to_owned(), iid);
        self.entry(interned::EVENT_NAMES, iid, name.as_bytes());
        iid
    }

    /// Does what `event_name` does, faster, for the few constants that are the names of most slices.
    pub(super) fn static_event_name(&mut self, name: &'static str) -> u64 {
        self.coloured_event_name(name, &[]).0
    }

    /// The same for a name that may be among `colours`, pairs of a name and what its colour is made from. Returns the iids of both; 0 without
    /// a colour.
    pub(super) fn coloured_event_name(&mut self, name: &'static str, colours: &[(&str, &str)]) -> (u64, u64) {
        if let Some(&(_, iid, colour)) = self.static_event_names.iter().find(|(n, ..)| std::ptr::eq(*n, name)) {
            return (iid, colour);
        }
        let iid = self.event_name(name);
        let colour = colours.iter().find(|(of, _)| *of == name).map_or(0, |(_, colour)| self.colour(colour));
        self.static_event_names.push((name, iid, colour));
        (iid, colour)
    }

    /// Interns a text that the UI makes a colour of. Call it once for each.
    pub(super) fn colour(&mut self, text: &str) -> u64 {
        self.colours += 1;
        self.entry(interned::CORRELATION_ID_STR, self.colours, text.as_bytes());
        self.colours
    }

    /// Interns a text as a string value, without a `NameId`. The caller keeps the iid.
    pub(super) fn text(&mut self, text: &str) -> u64 {
        let iid = self.next_string();
        self.texts += 1;
        self.entry(interned::DEBUG_ANNOTATION_STRING_VALUES, iid, text.as_bytes());
        iid
    }

    /// Interns a name as a string value of annotations.
    pub(super) fn string(&mut self, id: NameId, names: &Names) -> u64 {
        if let Some(&iid) = self.strings.get(&id) {
            return iid;
        }
        let iid = self.next_string();
        self.strings.insert(id, iid);
        self.entry(interned::DEBUG_ANNOTATION_STRING_VALUES, iid, names.text(id).as_bytes());
        iid
    }

    fn next_string(&self) -> u64 {
        NAME_BASE + self.strings.len() as u64 + self.texts
    }

    /// Interns a constant of this program as a string value.
    pub(super) fn keyword(&mut self, keyword: &'static str) -> u64 {
        if let Some(at) = self.keywords.iter().position(|k| std::ptr::eq(*k, keyword)) {
            return at as u64 + 1;
        }
        self.keywords.push(keyword);
        let iid = self.keywords.len() as u64;
        debug_assert!(iid < DEV_BASE);
        self.entry(interned::DEBUG_ANNOTATION_STRING_VALUES, iid, keyword.as_bytes());
        iid
    }

    /// Interns a device's `major,minor` as a string value.
    #[inline]
    pub(super) fn dev(&mut self, dev: Dev) -> u64 {
        match self.last_dev {
            Some((last, iid)) if last == dev => iid,
            _ => self.find_dev(dev),
        }
    }

    fn find_dev(&mut self, dev: Dev) -> u64 {
        let iid = if let Some(&iid) = self.devs.get(&dev) {
            iid
        } else {
            let iid = self.dev_string(&dev.to_string(), MORE_DEVS_BASE + u64::from(dev.0));
            self.devs.insert(dev, iid);
            iid
        };
        self.last_dev = Some((dev, iid));
        iid
    }

    /// Interns the name of a device as a string value. Call it once per device, and interner.
    pub(super) fn device_name(&mut self, dev: Dev, name: &str) -> u64 {
        self.dev_string(name, MORE_DEV_NAMES_BASE + u64::from(dev.0))
    }

    /// Interns a string in the range of devices, with the iid `overflow` if the range is used up.
    fn dev_string(&mut self, text: &str, overflow: u64) -> u64 {
        let next = DEV_BASE + self.dev_strings;
        let iid = if next < NAME_BASE { next } else { overflow };
        self.dev_strings += 1;
        self.entry(interned::DEBUG_ANNOTATION_STRING_VALUES, iid, text.as_bytes());
        iid
    }
}

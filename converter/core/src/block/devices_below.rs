//! Which devices are below a partition, or below a device of the device mapper or of md.

use std::collections::BTreeMap;

use crate::event::Dev;

/// Pairs of devices. A log with more is not of one machine, and its devices count as unknown.
const MAX_REDIRECTED: usize = 65_536;

/// The devices directly below each device, as far as they are known.
#[derive(Clone, Debug, Default)]
pub struct DevicesBelow {
    /// The devices directly below each one, as the recorder found them.
    recorded: BTreeMap<Dev, Vec<Dev>>,
    /// How many bios were redirected from a device to each other one.
    redirected: BTreeMap<Dev, BTreeMap<Dev, u64>>,
    /// How many pairs `redirected` has had.
    pairs: usize,
}

impl DevicesBelow {
    /// `recorded`: devices with all those below them.
    pub fn new(recorded: impl IntoIterator<Item = (Dev, Vec<Dev>)>) -> Self {
        let mut recorded: BTreeMap<Dev, Vec<Dev>> = recorded.into_iter().collect();
        for below in recorded.values_mut() {
            below.sort_unstable();
        }
        Self { recorded, redirected: BTreeMap::new(), pairs: 0 }
    }

    /// Takes note that a bio was redirected from one device to another.
    pub(crate) fn add(&mut self, from: Dev, to: Dev) {
        if from == to || !from.is_known() || !to.is_known() || self.pairs > MAX_REDIRECTED {
            return;
        }
        let below = self.redirected.entry(from).or_default();
        self.pairs += usize::from(!below.contains_key(&to));
        *below.entry(to).or_default() += 1;
        if self.pairs > MAX_REDIRECTED {
            self.redirected.clear();
        }
    }

    /// Takes back an `add`.
    pub(crate) fn take_back(&mut self, from: Dev, to: Dev) {
        if let Some(count) = self.redirected.get_mut(&from).and_then(|below| below.get_mut(&to)) {
            *count -= 1;
        }
    }

    /// Each device with those below it as a text: their names, as far as they are known, with a blank between them. What the recorder found
    /// is complete, so it counts rather than what bios were redirected.
    pub(crate) fn texts(&self, names: &[(Dev, String)]) -> BTreeMap<Dev, String> {
        let name = |dev: &Dev| {
            let known = names.iter().find(|(of, _)| of == dev);
            known.map_or_else(|| dev.to_string(), |(_, name)| name.clone())
        };
        let text = |below: &mut dyn Iterator<Item = &Dev>| below.map(name).collect::<Vec<_>>().join(" ");
        let mut texts = BTreeMap::new();
        for (&dev, below) in &self.redirected {
            let mut below = below.iter().filter(|&(_, &count)| count > 0).map(|(dev, _)| dev).peekable();
            if below.peek().is_some() {
                texts.insert(dev, text(&mut below));
            }
        }
        texts.extend(self.recorded.iter().map(|(&dev, below)| (dev, text(&mut below.iter()))));
        texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: Dev = Dev(254 << 20 | 0x10);
    const PARTITION: Dev = Dev(254 << 20 | 0x11);
    const VOLUME: Dev = Dev(253 << 20);

    #[test]
    fn what_is_on_nothing_differs_from_what_is_unknown() {
        let mut below = DevicesBelow::new([(PARTITION, vec![DISK]), (DISK, vec![])]);
        below.add(VOLUME, PARTITION);
        below.add(VOLUME, DISK);
        below.add(PARTITION, PARTITION);
        let text = |below: &DevicesBelow, dev: Dev| below.texts(&[(DISK, "vdb".to_owned())]).get(&dev).cloned();
        assert_eq!(text(&below, VOLUME).as_deref(), Some("vdb 254,17"));
        assert_eq!(text(&below, PARTITION).as_deref(), Some("vdb"));
        assert_eq!(text(&below, DISK).as_deref(), Some(""));
        assert_eq!(text(&below, Dev::new(8, 0)), None);
        below.take_back(VOLUME, DISK);
        assert_eq!(text(&below, VOLUME).as_deref(), Some("254,17"));
        below.take_back(VOLUME, PARTITION);
        assert_eq!(text(&below, VOLUME), None);
    }

    #[test]
    fn a_log_with_too_many_devices_says_nothing_of_them() {
        let mut below = DevicesBelow::default();
        for minor in 0..65_537 {
            below.add(VOLUME, Dev::new(1, minor));
        }
        below.add(PARTITION, DISK);
        assert!(below.texts(&[]).is_empty());
    }

    #[test]
    fn what_the_recorder_found_counts_first() {
        let mut below = DevicesBelow::new([(VOLUME, vec![PARTITION, DISK])]);
        below.add(VOLUME, Dev::new(8, 0));
        assert_eq!(below.texts(&[]).into_values().collect::<Vec<_>>(), ["254,16 254,17"]);
    }
}

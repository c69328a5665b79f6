//! A value for each device. A log has a few devices as a rule, but a broken one may have any number.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::event::Dev;

/// Up to this number of devices, comparing all of them is faster than a map.
const MAX_COMPARED: usize = 8;

/// Values by device, in the order of their first use.
#[derive(Clone, Debug)]
pub(crate) struct ByDevice<T> {
    entries: Vec<(Dev, T)>,
    /// Indexes into `entries`.
    places: HashMap<Dev, usize, FixedState>,
}

impl<T> Default for ByDevice<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), places: HashMap::default() }
    }
}

impl<T> ByDevice<T> {
    #[inline]
    pub(crate) fn place_of(&self, dev: Dev) -> Option<usize> {
        if self.entries.len() <= MAX_COMPARED {
            self.entries.iter().position(|(known, _)| *known == dev)
        } else {
            self.places.get(&dev).copied()
        }
    }

    /// Adds a new device. Returns its place.
    pub(crate) fn add(&mut self, dev: Dev, value: T) -> usize {
        let place = self.entries.len();
        self.places.insert(dev, place);
        self.entries.push((dev, value));
        place
    }

    pub(crate) fn get(&self, dev: Dev) -> Option<&T> {
        self.place_of(dev).map(|place| &self.entries[place].1)
    }

    pub(crate) fn get_mut(&mut self, dev: Dev) -> Option<&mut T> {
        self.place_of(dev).map(|place| &mut self.entries[place].1)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the device at a place.
    pub(crate) fn dev(&self, place: usize) -> Dev {
        self.entries[place].0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl<T: Default> ByDevice<T> {
    #[inline]
    pub(crate) fn place_or_default(&mut self, dev: Dev) -> usize {
        self.place_of(dev).unwrap_or_else(|| self.add(dev, T::default()))
    }

    #[inline]
    pub(crate) fn get_or_default(&mut self, dev: Dev) -> &mut T {
        let place = self.place_or_default(dev);
        &mut self.entries[place].1
    }
}

impl<T> std::ops::Index<usize> for ByDevice<T> {
    type Output = T;

    fn index(&self, place: usize) -> &T {
        &self.entries[place].1
    }
}

impl<T> std::ops::IndexMut<usize> for ByDevice<T> {
    fn index_mut(&mut self, place: usize) -> &mut T {
        &mut self.entries[place].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_keep_their_places_beyond_the_few_that_are_compared() {
        let mut devices = ByDevice::default();
        for number in (0..3 * MAX_COMPARED as u32).chain(0..MAX_COMPARED as u32) {
            *devices.get_or_default(Dev(number)) += number;
        }
        assert_eq!(devices.get(Dev(3)), Some(&6));
        assert_eq!(devices.get(Dev(20)), Some(&20));
        assert_eq!(devices.get(Dev(99)), None);
        assert_eq!(devices.place_of(Dev(20)), Some(20));
        assert_eq!(devices.entries.len(), 3 * MAX_COMPARED);
    }
}

//! Devices of which a recorder prints only the name of the disk, such as `vdb`.
//!
//! A device is a number everywhere, so each name gets one of those that no kernel gives: majors end at 511. The number follows from the name,
//! wherever and whenever it is met, and nobody sees it: such a device is printed as its name.

use std::hash::BuildHasher;
use std::sync::{PoisonError, RwLock};

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::Dev;

/// The bit of all numbers that stand for a name.
const NAMED: u32 = 1 << 31;
/// The kernel's names have 31 bytes.
const MAX_BYTES: usize = 31;
/// Names that are kept. A damaged or hostile input may have any number of them.
const MAX_NAMES: usize = 1 << 16;

type Names = HashMap<u32, Box<str>, FixedState>;

/// The names that have been met. They are those of disks of this process's inputs, and forgotten only with it.
static NAMES: RwLock<Names> = none();

const fn none() -> RwLock<Names> {
    RwLock::new(HashMap::with_hasher(FixedState::with_seed(0)))
}

/// The device of this name; `None` for what is no name of a disk, and if there have been too many.
pub(super) fn number(name: &str) -> Option<Dev> {
    number_in(&NAMES, name)
}

fn number_in(table: &RwLock<Names>, name: &str) -> Option<Dev> {
    let is_name = name.len() <= MAX_BYTES
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.!+@#".contains(&byte));
    if !is_name {
        return None;
    }
    let first = FixedState::with_seed(0).hash_one(name.as_bytes()) as u32 & !NAMED;
    let find = |names: &Names| {
        // Two names have one number only by a chance of 1 in 2^31, and then the second takes the next one.
        (0..16).map(|step| first.wrapping_add(step) & !NAMED | NAMED).find_map(|number| match names.get(&number) {
            Some(known) => (**known == *name).then_some((number, true)),
            None => Some((number, false)),
        })
    };
    if let Some((number, true)) = find(&table.read().unwrap_or_else(PoisonError::into_inner)) {
        return Some(Dev(number));
    }
    let mut names = table.write().unwrap_or_else(PoisonError::into_inner);
    let (number, is_known) = find(&names)?;
    if !is_known {
        if names.len() >= MAX_NAMES {
            return None;
        }
        names.insert(number, name.into());
    }
    Some(Dev(number))
}

/// Writes the name of a device; `None` if it has a number of its own.
pub(super) fn fmt(dev: Dev, f: &mut std::fmt::Formatter<'_>) -> Option<std::fmt::Result> {
    if dev.0 & NAMED == 0 {
        return None;
    }
    NAMES.read().unwrap_or_else(PoisonError::into_inner).get(&dev.0).map(|name| f.write_str(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_number_and_is_shown_as_it_is() {
        let names = ["vdb", "sda", "nvme0n1", "nvme0c1n1p2", "dm-0", "cciss!c0d0", "mmcblk0p1"];
        let devices: Vec<Dev> = names.iter().map(|name| Dev::named(name).unwrap()).collect();
        for (dev, name) in devices.iter().zip(names) {
            assert_eq!(Dev::named(name), Some(*dev));
            assert_eq!(dev.to_string(), name);
            assert!(dev.is_known());
            assert!(dev.major() > 511, "no kernel has such a number");
        }
        let mut sorted = devices.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), devices.len());
    }

    #[test]
    fn numbers_do_not_depend_on_the_order_or_on_threads() {
        let names: Vec<String> = (0..200).map(|i| format!("sd{i}")).collect();
        let alone = none();
        let expected: Vec<_> = names.iter().map(|name| number_in(&alone, name).unwrap()).collect();
        let shared = none();
        std::thread::scope(|scope| {
            for first in 0..8 {
                let (names, expected, shared) = (&names, &expected, &shared);
                scope.spawn(move || {
                    for step in 0..names.len() {
                        let at = (first * 25 + step * if first % 2 == 0 { 1 } else { 199 }) % names.len();
                        assert_eq!(number_in(shared, &names[at]), Some(expected[at]));
                    }
                });
            }
        });
        assert_eq!(shared.read().unwrap().len(), names.len());
    }

    #[test]
    fn a_full_table_keeps_its_names_and_takes_no_more() {
        let table = none();
        let mut numbers: Vec<_> = (0..MAX_NAMES).map(|i| number_in(&table, &format!("d{i}")).unwrap()).collect();
        assert_eq!(number_in(&table, "one-more"), None);
        assert_eq!(number_in(&table, "d7"), Some(numbers[7]));
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), MAX_NAMES);
        assert_eq!(table.read().unwrap().len(), MAX_NAMES);
    }

    #[test]
    fn what_is_no_name() {
        for name in ["", "254,16", "254", "?", "<unknown>", "a b", "vdb\n", "\u{e9}", &"v".repeat(32)] {
            assert_eq!(Dev::named(name), None, "{name}");
        }
        assert_eq!(Dev::new(4095, 5).to_string(), "4095,5");
    }
}

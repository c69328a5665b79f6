//! Collections that know nothing of events.

pub(crate) mod by_device;
pub(crate) mod recent;

/// A map whose order of keys is the same in each run.
pub(crate) type Map<K, V> = hashbrown::HashMap<K, V, foldhash::fast::FixedState>;

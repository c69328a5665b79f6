//! The layout of facts in Perfetto's format, which the writer and the reader of Syncline's traces share.

mod address;
mod category;
pub(crate) mod compressed;
pub(crate) mod fields;
mod flow;
pub(crate) mod wire;

pub(crate) use self::address::{short_address, whole_address};
pub(crate) use self::category::{CATEGORIES, Category};
pub(crate) use self::flow::{flow_of_commit, sync_of_flow};

/// One sequence is enough: one thread writes all packets.
pub(crate) const SEQUENCE_ID: u64 = 1;

/// Name of the argument that holds the checksum of a trace.
pub(crate) const CHECKSUM_KEY: &str = "crc32";

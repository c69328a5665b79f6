//! Any bytes as a table of syncsnoop, at once and in pieces.

use crate::checks::{check_source, source_options};
use syncline_core::source::syncsnoop::SyncSnoop;

pub(super) fn run(data: &[u8]) {
    let [text @ .., options, piece] = data else { return };
    check_source(&SyncSnoop, &source_options(*options), text, usize::from(*piece) + 1);
}

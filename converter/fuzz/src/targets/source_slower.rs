//! Any bytes as a table of slow calls, at once and in pieces.

use crate::checks::{check_reader, source_options};
use syncline_core::source::slower::{self, Slower};

pub(super) fn run(data: &[u8]) {
    let [text @ .., options, piece] = data else { return };
    check_reader(&Slower, slower::cut, &source_options(*options), text, usize::from(*piece));
}

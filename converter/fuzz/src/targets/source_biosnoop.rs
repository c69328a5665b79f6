//! Any bytes as a table of biosnoop, at once and in pieces.

use crate::checks::{check_reader, source_options};
use syncline_core::source::biosnoop::{self, Biosnoop};

pub(super) fn run(data: &[u8]) {
    let [text @ .., options, piece] = data else { return };
    check_reader(&Biosnoop, biosnoop::cut, &source_options(*options), text, usize::from(*piece));
}

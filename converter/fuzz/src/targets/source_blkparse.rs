//! Any bytes as the text that blkparse prints, at once and in pieces.

use crate::checks::{check_source, source_options};
use syncline_core::source::blkparse::Blkparse;

pub(super) fn run(data: &[u8]) {
    let [text @ .., options, piece] = data else { return };
    check_source(&Blkparse, &source_options(*options), text, usize::from(*piece) + 1);
}

//! Any bytes as a log of strace.

use crate::checks::{check_reader, source_options};
use syncline_core::source::strace::{self, Strace};

pub(super) fn run(data: &[u8]) {
    let [text @ .., options, piece] = data else { return };
    check_reader(&Strace, strace::cut, &source_options(*options), text, usize::from(*piece));
}

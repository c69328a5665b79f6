//! Any bytes as the text of babeltrace2, at once and in pieces.

use crate::checks::{check_reader, source_options};
use syncline_core::source::babeltrace::{self, Babeltrace};

pub(super) fn run(data: &[u8]) {
    let [text @ .., options, piece] = data else { return };
    check_reader(&Babeltrace, babeltrace::cut, &source_options(*options), text, usize::from(*piece));
}

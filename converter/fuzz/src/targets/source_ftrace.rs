//! Any bytes as the text of the ring buffer.

use crate::checks::{check_source, source_options};
use syncline_core::source::ftrace_text::FtraceText;

pub(super) fn run(data: &[u8]) {
    let [text @ .., options, piece] = data else { return };
    check_source(&FtraceText, &source_options(*options), text, usize::from(*piece));
}

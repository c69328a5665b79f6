//! Any bytes as a log in the thesis's format.

use crate::checks::{check_source, source_options};
use syncline_core::source::bpftrace_text::BpftraceText;

pub(super) fn run(data: &[u8]) {
    let [text @ .., options, piece] = data else { return };
    check_source(&BpftraceText, &source_options(*options), text, usize::from(*piece));
}

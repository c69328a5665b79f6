//! Any bytes as the text of perf trace, at once and in pieces.

use crate::checks::{check_source, source_options};
use syncline_core::source::perf_trace::PerfTrace;

pub(super) fn run(data: &[u8]) {
    let [text @ .., options, piece] = data else { return };
    check_source(&PerfTrace, &source_options(*options), text, usize::from(*piece) + 1);
}

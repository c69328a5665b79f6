//! Any bytes as what `perf script` prints.

use crate::checks::{check_source, source_options};
use syncline_core::source::perf_script::PerfScript;

pub(super) fn run(data: &[u8]) {
    let [text @ .., options, piece] = data else { return };
    check_source(&PerfScript, &source_options(*options), text, usize::from(*piece));
}

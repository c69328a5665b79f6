//! Any bytes as what `perf script` prints.
#![no_main]

use libfuzzer_sys::fuzz_target;
use syncline_core::source::perf_script::PerfScript;
use syncline_fuzz::{check_source, source_options};

fuzz_target!(|data: &[u8]| {
    let [text @ .., options, piece] = data else { return };
    check_source(&PerfScript, &source_options(*options), text, usize::from(*piece));
});

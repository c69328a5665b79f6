//! Any bytes as a log in the thesis's format.
#![no_main]

use libfuzzer_sys::fuzz_target;
use syncline_core::source::bpftrace_text::BpftraceText;
use syncline_fuzz::{check_source, source_options};

fuzz_target!(|data: &[u8]| {
    let [text @ .., options, piece] = data else { return };
    check_source(&BpftraceText, &source_options(*options), text, usize::from(*piece));
});

//! Any bytes as the text of the ring buffer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use syncline_core::source::ftrace_text::FtraceText;
use syncline_fuzz::{check_source, source_options};

fuzz_target!(|data: &[u8]| {
    let [text @ .., options, piece] = data else { return };
    check_source(&FtraceText, &source_options(*options), text, usize::from(*piece));
});

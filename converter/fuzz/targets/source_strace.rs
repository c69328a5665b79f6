//! Any bytes as a log of strace.
#![no_main]

use libfuzzer_sys::fuzz_target;
use syncline_core::source::strace::{self, Strace};
use syncline_fuzz::{check_reader, source_options};

fuzz_target!(|data: &[u8]| {
    let [text @ .., options, piece] = data else { return };
    check_reader(&Strace, strace::cut, &source_options(*options), text, usize::from(*piece));
});

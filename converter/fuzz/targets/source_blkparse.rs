//! Any bytes as the text that blkparse prints, at once and in pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use syncline_core::source::blkparse::Blkparse;
use syncline_fuzz::{check_source, source_options};

fuzz_target!(|data: &[u8]| {
    let [text @ .., options, piece] = data else { return };
    check_source(&Blkparse, &source_options(*options), text, usize::from(*piece) + 1);
});

//! Any bytes as a low-level log.
#![no_main]

use libfuzzer_sys::fuzz_target;
use syncline_core::source::events_jsonl::EventsJsonl;
use syncline_fuzz::{check_source, source_options};

fuzz_target!(|data: &[u8]| {
    let [text @ .., options, piece] = data else { return };
    check_source(&EventsJsonl, &source_options(*options), text, usize::from(*piece));
});

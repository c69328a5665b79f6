//! Any bytes as what `bpftrace -f json` writes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use syncline_core::source::bpftrace_json::{self, BpftraceJson};
use syncline_fuzz::{check_reader, source_options};

fuzz_target!(|data: &[u8]| {
    let [text @ .., options, piece] = data else { return };
    check_reader(&BpftraceJson, bpftrace_json::cut, &source_options(*options), text, usize::from(*piece));
});

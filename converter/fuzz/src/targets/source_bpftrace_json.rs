//! Any bytes as what `bpftrace -f json` writes.

use crate::checks::{check_reader, source_options};
use syncline_core::source::bpftrace_json::{self, BpftraceJson};

pub(super) fn run(data: &[u8]) {
    let [text @ .., options, piece] = data else { return };
    check_reader(&BpftraceJson, bpftrace_json::cut, &source_options(*options), text, usize::from(*piece));
}

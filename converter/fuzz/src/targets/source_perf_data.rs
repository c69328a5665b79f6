//! Any bytes as a perf.data.

use syncline_core::source::perf_data::PerfData;

use crate::checks::{Watermark, check_file, source_options};

pub(super) fn run(data: &[u8]) {
    let [file @ .., options] = data else { return };
    let mut watermark = Watermark::default();
    check_file(&PerfData, &source_options(*options), file, |chunk, _| {
        assert!(watermark.0 != i64::MAX, "a chunk after the end");
        watermark.rise(chunk);
    });
}

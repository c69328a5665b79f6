//! Any bytes as a trace.dat.

use syncline_core::source::trace_dat::TraceDatSource;

use crate::checks::{Watermark, check_file, source_options};

pub(super) fn run(data: &[u8]) {
    let [file @ .., options] = data else { return };
    let mut watermark = Watermark::default();
    check_file(&TraceDatSource, &source_options(*options), file, |chunk, batch| {
        watermark.rise(chunk);
        // A record has four bytes at least, and a page eight.
        let most = chunk.bytes().len() as u64 / 4;
        assert!(batch.events.len() as u64 + batch.dropped_events + batch.notes.len() as u64 <= most);
    });
}

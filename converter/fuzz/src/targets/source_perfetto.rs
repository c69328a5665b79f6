//! Any bytes as a system trace of Perfetto.

use syncline_core::source::perfetto::Perfetto;

use crate::checks::{Watermark, check_file, source_options};

pub(super) fn run(data: &[u8]) {
    let [file @ .., options] = data else { return };
    let mut watermark = Watermark::default();
    check_file(&Perfetto, &source_options(*options), file, |chunk, batch| {
        watermark.rise(chunk);
        // An event that cannot be read has two bytes at least: its tag, and its length.
        let most = chunk.bytes().len() as u64 / 2;
        assert!(batch.events.len() as u64 + batch.dropped_events + batch.notes.len() as u64 <= most);
    });
}

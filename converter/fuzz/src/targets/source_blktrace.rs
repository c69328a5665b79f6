//! Any bytes as one of blktrace's files.

use syncline_core::source::blktrace::Blktrace;

use crate::checks::{check_file, source_options};

pub(super) fn run(data: &[u8]) {
    let [file @ .., options] = data else { return };
    // A byte order mark is skipped.
    let file = file.strip_prefix(&[0xef, 0xbb, 0xbf]).unwrap_or(file);
    let mut records = 0;
    let consumed = check_file(&Blktrace, &source_options(*options), file, |_, batch| {
        records += batch.events.len() as u64 + batch.dropped_events;
    });
    let Some(consumed) = consumed else { return };
    assert_eq!(consumed, file.len() as u64, "not all of it was read");
    assert!(records * 48 <= consumed, "more records than there is room for");
}

//! Any bytes as one of blktrace's files.

use crate::checks::source_options;
use syncline_core::input::{Chunk, Input};
use syncline_core::source::blktrace::Blktrace;
use syncline_core::source::{Batch, NoteKind, Source};

pub(super) fn run(data: &[u8]) {
    let [file @ .., options] = data else { return };
    Blktrace.sniff(file);
    let Ok(input) = Input::from_bytes("fuzz", file.to_vec()) else { return };
    let Ok(mut reader) = Blktrace.open(input, &source_options(*options)) else { return };
    let (mut chunk, mut batch, mut again) = (Chunk::default(), Batch::default(), Batch::default());
    let mut consumed = 0;
    let mut records = 0;
    while let Ok(true) = reader.chunks.next(&mut chunk) {
        let now = reader.chunks.consumed_bytes();
        assert!(now >= consumed && now <= file.len() as u64, "{now} bytes of {} after {consumed}", file.len());
        consumed = now;

        batch.clear();
        reader.parse.parse(chunk.bytes(), &mut batch);
        assert!(batch.events.iter().all(|event| event.ts >= 0), "a time before all times");
        assert!(batch.event_names.is_empty() || batch.event_names.len() == batch.events.len());
        assert!(batch.extras.iter().all(|extra| (extra.event as usize) < batch.events.len()));
        assert!(batch.extras.is_sorted_by_key(|extra| extra.event));
        assert!(batch.notes.iter().all(|note| note.after as usize <= batch.events.len()));
        assert!(!batch.notes.iter().any(|note| note.kind == NoteKind::Lost { count: 0 }));
        records += batch.events.len() as u64 + batch.dropped_events;
        again.clear();
        reader.parse.parse(chunk.bytes(), &mut again);
        assert!(batch.events == again.events && batch.notes == again.notes, "a chunk is parsed in two ways");
    }
    assert_eq!(consumed, file.len() as u64, "not all of it was read");
    assert!(records * 48 <= consumed, "more records than there is room for");
}

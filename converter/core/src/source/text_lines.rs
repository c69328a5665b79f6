//! Formats whose records are lines of text.

use std::sync::Arc;

use super::{Batch, Chunks, Parse, Reader, SourceOptions};
use crate::error::Result;
use crate::input_file::{Chunk, ChunkReader, Input};

/// A format whose records are lines. Implement it and call `Reader::of_lines` in `Source::open`.
pub trait Lines: Sync {
    /// Returns the length of the longest prefix of `bytes` that ends with a record, so that the rest can be parsed on its own.
    /// `None` if it is not certain that a record ends within `bytes`.
    fn cut(&self, bytes: &[u8]) -> Option<usize>;

    /// See `Parse::parse`.
    fn parse_lines(&self, options: &SourceOptions, chunk: &[u8], batch: &mut Batch);
}

/// Returns a line without its line end and the blanks before that, for formats whose lines end in no blanks of their own.
#[inline]
pub(super) fn trim_line(line: &[u8]) -> &[u8] {
    match line.last() {
        Some(b' ' | b'\t' | b'\r') => line.trim_ascii_end(),
        _ => line,
    }
}

/// Returns the lines of a text without their line ends.
pub(super) fn lines(mut text: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (line, rest) = match memchr::memchr(b'\n', text) {
            Some(newline) => (&text[..newline], &text[newline + 1..]),
            None if text.is_empty() => return None,
            None => (text, &text[text.len()..]),
        };
        text = rest;
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    })
}

/// Returns the offset after the last newline at which a record ends. `ends_record(before, after)` decides this from the text before and
/// after the newline.
pub(super) fn last_newline(bytes: &[u8], ends_record: impl Fn(&[u8], &[u8]) -> bool) -> Option<usize> {
    memchr::memrchr_iter(b'\n', bytes)
        .find(|&newline| ends_record(&bytes[..newline], &bytes[newline + 1..]))
        .map(|newline| newline + 1)
}

/// See `Lines::cut`.
type Cut = Box<dyn Fn(&[u8]) -> Option<usize> + Send>;

struct LineChunks {
    cut: Cut,
    reader: ChunkReader,
}

impl Chunks for LineChunks {
    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        self.reader.next(chunk, &self.cut)
    }

    fn consumed_bytes(&self) -> u64 {
        self.reader.input().consumed_bytes()
    }
}

struct LineParser {
    lines: &'static dyn Lines,
    options: SourceOptions,
}

impl Parse for LineParser {
    fn parse(&self, chunk: &[u8], batch: &mut Batch) {
        self.lines.parse_lines(&self.options, chunk, batch);
    }
}

impl Reader {
    pub fn of_lines(lines: &'static dyn Lines, input: Input, options: &SourceOptions) -> Self {
        Self::of_text(|bytes| lines.cut(bytes), Arc::new(LineParser { lines, options: *options }), input)
    }

    /// Reads text whose parser is not a `Lines`. For `cut`, see `Lines::cut`.
    pub(super) fn of_text(
        cut: impl Fn(&[u8]) -> Option<usize> + Send + 'static,
        parse: Arc<dyn Parse>,
        input: Input,
    ) -> Self {
        let chunks = Box::new(LineChunks { cut: Box::new(cut), reader: ChunkReader::new(input) });
        Self {
            chunks,
            parse,
            stateful_pass: None,
            facts: Vec::new(),
            piece_options: None,
            records_requests: false,
            may_have_far_times: true,
        }
    }
}

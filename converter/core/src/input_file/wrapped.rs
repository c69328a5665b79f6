//! Traces inside other files: `atrace -z` compresses what follows its header, and systrace puts traces into a web page together with the
//! program that shows them.

use std::io::{self, Chain, Cursor, Read};

use flate2::read::ZlibDecoder;
use memchr::memmem;

use crate::error::Refused;

/// The header of atrace is among the first bytes of its output.
pub(super) const HEADER_BYTES: usize = 512;
/// A page holds its viewer before the trace: about 5 MB.
const MAX_VIEWER_BYTES: usize = 64 << 20;
/// How much of a file shows that it is a page.
const DOCTYPE_BYTES: usize = 64;

/// Returns where the compressed trace begins, after the header of `atrace -z`.
pub(super) fn compressed_trace(head: &[u8]) -> Option<usize> {
    let header = memmem::find(head, ATRACE)? + ATRACE.len();
    let end = header + memchr::memchr(b'\n', head.get(header..header + 2)?)? + 1;
    let is_line = header == ATRACE.len() || head[header - ATRACE.len() - 1] == b'\n';
    let zlib = head.get(end..end + 2)?;
    // The two bytes are a multiple of 31, and the first one names the method.
    let is_zlib = zlib[0] == 0x78 && (u16::from(zlib[0]) << 8 | u16::from(zlib[1])).is_multiple_of(31);
    (is_line && is_zlib).then_some(end)
}

/// The text of a trace that `atrace -z` has compressed.
pub(super) struct CompressedTrace<R>(ZlibDecoder<R>);

impl<R: Read> CompressedTrace<R> {
    pub(super) fn new(inner: R) -> Self {
        Self(ZlibDecoder::new(inner))
    }
}

impl<R: Read> Read for CompressedTrace<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.0.read(to).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => Refused::error(
                format!("the trace that `atrace -z` has compressed is cut off or damaged: {error}"),
                "copy it again by a way that keeps its bytes, such as `adb exec-out atrace -z ... >FILE`, or trace without -z",
            ),
            _ => error,
        })
    }
}

type Whole = Box<dyn Read + Send>;

/// The text of the traces in a page of systrace.
pub(super) struct Page {
    pub(super) reader: Whole,
    /// Lines of the page before them.
    pub(super) lines_before: u64,
}

/// Finds the traces in a page of systrace. Returns any other input unchanged.
pub(super) fn traces_of_page(mut reader: Whole) -> io::Result<Page> {
    let mut head = Vec::with_capacity(DOCTYPE_BYTES);
    (&mut reader).take(DOCTYPE_BYTES as u64).read_to_end(&mut head)?;
    if is_page(&head) {
        let mut searched = 0;
        while head.len() < MAX_VIEWER_BYTES {
            let before = head.len();
            (&mut reader).take(1 << 20).read_to_end(&mut head)?;
            if let Some(at) = next_trace(&head[searched..]) {
                let begin = searched + at;
                let lines_before = memchr::memchr_iter(b'\n', &head[..begin]).count() as u64;
                head.drain(..begin);
                let inner = Cursor::new(head).chain(reader);
                let traces = Traces { inner, buffer: Vec::new(), at: 0, state: State::Begin, has_ended: false };
                return Ok(Page { reader: Box::new(traces), lines_before });
            }
            if head.len() == before {
                break;
            }
            // A mark may be cut in two.
            searched = head.len().saturating_sub(MAX_MARK_BYTES);
        }
    }
    Ok(Page { reader: Box::new(Cursor::new(head).chain(reader)), lines_before: 0 })
}

fn is_page(head: &[u8]) -> bool {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    let begins = |with: &[u8]| text.get(..with.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(with));
    begins(b"<!DOCTYPE html") || begins(b"<html")
}

const MARK: &[u8] = b"<script class=\"trace-data\"";
/// The header of atrace, where it was not removed.
const ATRACE: &[u8] = b"TRACE:";
const END: &[u8] = b"</script>";
/// A mark with all of its attributes.
const MAX_MARK_BYTES: usize = 256;

/// Returns the offset after the next mark of a trace.
fn next_trace(text: &[u8]) -> Option<usize> {
    let mark = memmem::find(text, MARK)? + MARK.len();
    let len = memchr::memchr(b'>', text.get(mark..text.len().min(mark + MAX_MARK_BYTES))?)?;
    Some(mark + len + 1)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// After a mark: what follows says whether it is a trace of the kernel.
    Begin,
    Trace,
    /// Between traces. Its lines are given without their text, so that the numbers of lines stay.
    Between,
}

struct Traces {
    inner: Chain<Cursor<Vec<u8>>, Whole>,
    /// Bytes that have been read and not given, from `at` on.
    buffer: Vec<u8>,
    at: usize,
    state: State,
    has_ended: bool,
}

impl Traces {
    /// Reads more, unless the input has ended.
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.drain(..self.at);
        self.at = 0;
        let before = self.buffer.len();
        (&mut self.inner).take(1 << 16).read_to_end(&mut self.buffer)?;
        self.has_ended = self.buffer.len() == before;
        Ok(())
    }

    /// Gives bytes unchanged, or their line ends only.
    fn give(&mut self, to: &mut [u8], until: usize, is_trace: bool) -> usize {
        let mut given = 0;
        while self.at < until && given < to.len() {
            let byte = self.buffer[self.at];
            self.at += 1;
            if is_trace || byte == b'\n' {
                to[given] = byte;
                given += 1;
            }
        }
        given
    }
}

impl Read for Traces {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if to.is_empty() {
            return Ok(0);
        }
        loop {
            let rest = &self.buffer[self.at..];
            if rest.is_empty() && self.has_ended {
                return Ok(0);
            }
            let is_trace = self.state == State::Trace;
            let (end, next) = match self.state {
                State::Begin => {
                    let text = rest.trim_ascii_start();
                    if text.len() < ATRACE.len() && !self.has_ended {
                        self.fill()?;
                        continue;
                    }
                    // Others hold the times of other agents, and lists of processes and of control groups.
                    let is_trace = text.starts_with(b"#") || text.starts_with(ATRACE);
                    self.state = if is_trace { State::Trace } else { State::Between };
                    continue;
                }
                State::Trace => (memmem::find(rest, END), State::Between),
                State::Between => (next_trace(rest), State::Begin),
            };
            // What may be the beginning of a mark is given with what follows it.
            let kept = if self.has_ended { 0 } else { MARK.len() + MAX_MARK_BYTES };
            let until = self.at + end.unwrap_or_else(|| rest.len().saturating_sub(kept));
            let given = self.give(to, until, is_trace);
            match end {
                // The mark of a trace is behind what was given.
                Some(_) if self.at == until => self.state = next,
                None if given == 0 && self.has_ended => return Ok(0),
                None if given == 0 => self.fill()?,
                _ => {}
            }
            if given > 0 {
                return Ok(given);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn page(text: &str) -> (String, u64) {
        let page = traces_of_page(Box::new(Cursor::new(text.as_bytes().to_vec()))).unwrap();
        let (mut reader, mut found) = (page.reader, String::new());
        reader.read_to_string(&mut found).unwrap();
        (found, page.lines_before)
    }

    #[test]
    fn a_page_gives_its_traces() {
        let viewer = "x\n".repeat(100_000);
        let text = format!(
            "<!DOCTYPE html>\n<script>\n{viewer}</script>\n<script class=\"trace-data\" type=\"application/text\">\n{{\"a\": 1}}\n</script>\n\
             <script class=\"trace-data\" type=\"application/text\">\n# tracer: nop\n a < b\n</script>\n</html>\n"
        );
        let (found, before) = page(&text);
        let kept: Vec<_> = found.lines().enumerate().filter(|(_, line)| !line.is_empty()).collect();
        let number = |line: &str| text.lines().position(|other| other == line).unwrap() as u64;
        assert_eq!(kept.iter().map(|(_, line)| *line).collect::<Vec<_>>(), ["# tracer: nop", " a < b"]);
        assert_eq!(kept[0].0 as u64 + before, number("# tracer: nop"));
        assert_eq!(kept[1].0 as u64 + before, number(" a < b"));
    }

    #[test]
    fn other_texts_stay_as_they_are() {
        for text in ["", "<", "<!DOCTYPE html>\n<pre>\n1 fsync(3) = 0\n</pre>\n", "# tracer: nop\n"] {
            assert_eq!(page(text), (text.to_owned(), 0));
        }
        // A page that is cut off in its trace.
        assert_eq!(page("<html>\n<script class=\"trace-data\">\n# tracer: nop\nab").0, "\n# tracer: nop\nab");
        assert_eq!(page("<html>\n<script class=\"trace-data\"").0, "<html>\n<script class=\"trace-data\"");
    }

    #[test]
    fn a_compressed_trace_follows_its_header() {
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        zlib.write_all(b"# tracer: nop\n").unwrap();
        let zlib = zlib.finish().unwrap();
        for header in ["TRACE:\n", "capturing trace... done\nTRACE:\n", "TRACE:\r\n"] {
            assert_eq!(compressed_trace(&[header.as_bytes(), &zlib].concat()), Some(header.len()));
        }
        for text in [&b"TRACE:\n# tracer: nop\n"[..], b"TRACE:\n", b"TRACE:", b"xTRACE:\nx\x9c", b"TRACE:\nxx"] {
            assert_eq!(compressed_trace(text), None, "{text:?}");
        }
    }
}

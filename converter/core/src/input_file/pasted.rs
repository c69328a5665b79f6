//! Text that came through a terminal, a mail, a wiki or a Markdown page, which change lines: blanks at their ends, blanks before them, and
//! characters as HTML writes them.
//!
//! Such a text is turned back into what the recorder wrote before any source sees it, line by line, so that the numbers of lines stay. A
//! text that shows none of this is not touched: its blanks and its `&lt;` are its own.

use std::io::{self, Read};

/// A longer line is turned back in pieces. This bounds the memory for a text without line ends.
const MAX_LINE_BYTES: usize = 1 << 20;
const READ_BYTES: usize = 1 << 16;

/// What has happened to the lines of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pasted {
    /// `<`, `>`, `&` and `"` are written as in HTML.
    pub is_escaped: bool,
    /// Lines end in blanks that are not theirs.
    pub is_padded: bool,
    /// Blanks before each line, and the `>` with which a mail quotes it.
    pub indent: usize,
}

impl Pasted {
    /// Finds what the head of a text shows by itself. Only the format of a text says whether blanks before its lines are its own, so `indent`
    /// is 0.
    pub fn of(head: &[u8]) -> Self {
        if head.contains(&0) {
            return Self::default();
        }
        Self { is_escaped: is_escaped(head), is_padded: is_padded(head), indent: 0 }
    }

    /// Returns the text as it was before.
    pub fn undo(self, text: &[u8]) -> Vec<u8> {
        let mut before = Vec::with_capacity(text.len());
        for line in text.split_inclusive(|&b| b == b'\n') {
            self.undo_line(line, &mut before);
        }
        before
    }

    /// Appends a line, with its line end if it has one, as it was before.
    fn undo_line(self, line: &[u8], to: &mut Vec<u8>) {
        let (mut line, end) = line.strip_suffix(b"\n").map_or((line, &b""[..]), |line| (line, b"\n"));
        let indent = line.iter().take(self.indent).take_while(|b| is_indent(**b)).count();
        line = &line[indent..];
        let from = to.len();
        if self.is_escaped {
            unescape(line, to);
        } else {
            to.extend_from_slice(line);
        }
        if self.is_padded {
            let blanks = to[from..].iter().rev().take_while(|b| is_blank(**b) || **b == b'\r').count();
            to.truncate(to.len() - blanks);
        }
        to.extend_from_slice(end);
    }
}

/// What all lines of a head begin with.
pub struct Indent {
    pub len: usize,
    /// They are quoted, as in a mail. No format begins its lines so.
    pub is_quote: bool,
}

/// Returns the blanks, and the marks of a quote, that all lines of a head begin with. Its last line may be cut off.
pub fn common_indent(head: &[u8]) -> Indent {
    let whole = memchr::memrchr(b'\n', head).map_or(head, |end| &head[..end]);
    let is_empty = |line: &[u8]| line.iter().all(|&b| is_indent(b) || b == b'\r');
    let mut lines = whole.split(|&b| b == b'\n').filter(|line| !is_empty(line));
    let Some(first) = lines.next() else { return Indent { len: 0, is_quote: false } };
    let mut common = &first[..first.iter().take_while(|b| is_indent(**b)).count()];
    for line in lines {
        let same = common.iter().zip(line).take_while(|(a, b)| a == b).count();
        common = &common[..same];
    }
    match memchr::memrchr(b'>', common) {
        // Further blanks are those of the lines that are quoted.
        Some(mark) => Indent { len: (mark + 2).min(common.len()), is_quote: true },
        None => Indent { len: common.len(), is_quote: false },
    }
}

fn is_indent(byte: u8) -> bool {
    is_blank(byte) || byte == b'>'
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Whether most lines end in blanks. The kernel itself prints a blank after some events, so a few such lines say nothing.
fn is_padded(head: &[u8]) -> bool {
    let (mut padded, mut others) = (0, 0);
    let whole = memchr::memrchr(b'\n', head).map_or(head, |end| &head[..end]);
    for line in whole.split(|&b| b == b'\n') {
        match line.strip_suffix(b"\r").unwrap_or(line).last() {
            None => {}
            Some(&last) if is_blank(last) => padded += 1,
            Some(_) => others += 1,
        }
    }
    padded > others
}

/// The characters that have a meaning in some format, as a text writes them.
struct Written {
    less: &'static [u8],
    greater: &'static [u8],
    quote: &'static [u8],
}

const PLAIN: Written = Written { less: b"<", greater: b">", quote: b"\"" };
const ESCAPED: Written = Written { less: b"&lt;", greater: b"&gt;", quote: b"&quot;" };

/// Whether the text is evidently escaped: it has `&lt;` and the like where a format has `<`, and nowhere the character itself in such a place.
/// A name or a string may hold either.
fn is_escaped(head: &[u8]) -> bool {
    let has = |token| memchr::memmem::find(head, token).is_some();
    if !(has(ESCAPED.less) || has(ESCAPED.greater) || has(ESCAPED.quote)) {
        return false;
    }
    let any = |written: &Written| head.split(|&b| b == b'\n').any(|line| has_mark(line.trim_ascii(), written));
    any(&ESCAPED) && !any(&PLAIN)
}

/// Whether a line has one of the characters where a format has it. `line` has no blanks around it.
fn has_mark(line: &[u8], Written { less, greater, quote }: &Written) -> bool {
    let finds = |words: &[&[u8]]| memchr::memmem::find(line, &words.concat()).is_some();
    let begins = |words: &[&[u8]]| line.starts_with(&words.concat());
    // The duration of a call, and a call in two parts: strace.
    ends_with_duration(line, less)
        || [b"unfinished ..." as &[u8], b"detached ..."].iter().any(|word| finds(&[b" ", less, word]))
        || finds(&[less, b"... "]) && finds(&[b" resumed"])
        || has_descriptor(line, less)
        // The thread and the stacks of the ring buffer, and switches.
        || begins(&[less, b"idle"])
        || begins(&[less, b"..."])
        || begins(&[b"=", greater, b" "])
        || finds(&[b": ", less, b"stack trace"])
        || finds(&[b" ==", greater, b" "])
        // A remapped bio.
        || finds(&[b" ", less, b"- ("])
        // Strings of strace, and JSON.
        || begins(&[b"{", quote])
        || has_string(line, quote)
}

/// Whether a line ends with `<0.000123>`.
fn ends_with_duration(line: &[u8], less: &[u8]) -> bool {
    let Some(line) = line.strip_suffix(b"&gt;").or_else(|| line.strip_suffix(b">")) else { return false };
    let digits = |text: &[u8]| text.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let fraction = digits(line);
    let Some(line) = line[..line.len() - fraction].strip_suffix(b".") else { return false };
    let seconds = digits(line);
    let before = line[..line.len() - seconds].strip_suffix(less);
    fraction > 0 && seconds > 0 && before.is_some_and(|before| before.is_empty() || before.ends_with(b" "))
}

/// Whether a line has a descriptor with its file: `fsync(3</a>`, `= 3</a>`, `openat(AT_FDCWD</a>`.
fn has_descriptor(line: &[u8], less: &[u8]) -> bool {
    memchr::memmem::find_iter(line, less).any(|at| {
        let before = &line[..at];
        let number = before.iter().rev().take_while(|b| b.is_ascii_digit()).count();
        let before =
            if number > 0 { &before[..at - number] } else { before.strip_suffix(b"AT_FDCWD").unwrap_or_default() };
        let is_file = line[at + less.len()..].first().is_some_and(|b| *b == b'/' || b.is_ascii_alphabetic());
        is_file && (before.ends_with(b"(") || before.ends_with(b" = ")) && begins_with_call(before)
    })
}

/// Whether a line has a call whose first argument after a descriptor is a string: `open("`, `openat(AT_FDCWD, "`, `write(3, "`.
fn has_string(line: &[u8], quote: &[u8]) -> bool {
    let Some(at) = memchr::memmem::find(line, quote) else { return false };
    let before = &line[..at];
    let before = match before.strip_suffix(b", ") {
        None => before,
        Some(before) => {
            let number = before.iter().rev().take_while(|b| b.is_ascii_digit()).count();
            before.strip_suffix(b"AT_FDCWD").unwrap_or(&before[..before.len() - number])
        }
    };
    before.ends_with(b"(") && begins_with_call(before)
}

/// Whether a text that precedes an argument or the result of a call has the name of the call and its parenthesis.
fn begins_with_call(text: &[u8]) -> bool {
    let open = memchr::memchr(b'(', text).map(|open| text[..open].last());
    open.flatten().is_some_and(|last| last.is_ascii_lowercase() || last.is_ascii_digit())
}

/// Appends a line, its HTML characters unescaped or not.
fn unescape(line: &[u8], to: &mut Vec<u8>) {
    let mut rest = line;
    while let Some(at) = memchr::memchr(b'&', rest) {
        to.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        if let Some((byte, len)) = entity(rest) {
            to.push(byte);
            rest = &rest[len..];
        } else {
            to.push(b'&');
            rest = &rest[1..];
        }
    }
    to.extend_from_slice(rest);
}

/// Decodes the character that `text` begins with, `&lt;`, `&#60;` or `&#x3c;`, and returns it with the length of what writes it.
fn entity(text: &[u8]) -> Option<(u8, usize)> {
    const MAX_NAME: usize = 6;
    let end = text.iter().take(MAX_NAME + 2).position(|&b| b == b';')?;
    let name = std::str::from_utf8(&text[1..end]).ok()?;
    let byte = match name {
        "lt" => b'<',
        "gt" => b'>',
        "amp" => b'&',
        "quot" => b'"',
        "apos" => b'\'',
        "nbsp" => b' ',
        _ => {
            let number = name.strip_prefix('#')?;
            let number = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u8::from_str_radix(hex, 16),
                None => number.parse(),
            };
            // The no-break space.
            match number.ok()? {
                160 => b' ',
                other => Some(other).filter(|other| (b' '..=b'~').contains(other))?,
            }
        }
    };
    Some((byte, end + 1))
}

/// Reads a text as it was before.
pub(super) struct Restored<R> {
    inner: R,
    pasted: Pasted,
    /// Bytes of the line that has not been read to its end.
    line: Vec<u8>,
    text: Vec<u8>,
    taken: usize,
    has_ended: bool,
}

impl<R: Read> Restored<R> {
    pub(super) fn new(inner: R, pasted: Pasted) -> Self {
        Self { inner, pasted, line: Vec::new(), text: Vec::new(), taken: 0, has_ended: false }
    }

    /// Restores the lines that come next.
    fn fill(&mut self) -> io::Result<()> {
        self.text.clear();
        self.taken = 0;
        while self.text.is_empty() && !self.has_ended {
            let before = self.line.len();
            self.line.resize(before + READ_BYTES, 0);
            let read = self.inner.read(&mut self.line[before..]);
            self.line.truncate(before + *read.as_ref().unwrap_or(&0));
            self.has_ended = read? == 0;
            let whole = memchr::memrchr(b'\n', &self.line).map_or(0, |end| end + 1);
            let len = if self.has_ended || self.line.len() > MAX_LINE_BYTES { self.line.len() } else { whole };
            self.text = self.pasted.undo(&self.line[..len]);
            self.line.drain(..len);
        }
        Ok(())
    }
}

impl<R: Read> Read for Restored<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.text.len() {
            self.fill()?;
        }
        let rest = &self.text[self.taken..];
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        self.taken += len;
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_escaped_where_a_format_has_them() {
        for line in [
            "7 1.5 fsync(3) = 0 &lt;0.001060&gt;",
            "7 1.5 fsync(3) = 0 &lt;0.001060>",
            "[pid 7] fdatasync(11 &lt;unfinished ...&gt;",
            "7 &lt;... fsync resumed&gt;) = 0",
            "fsync(3&lt;/d/f&gt;) = 0",
            "openat(AT_FDCWD&lt;/&gt;, &quot;/srv/a&quot;, O_RDONLY) = 3",
            "openat(AT_FDCWD, &quot;/srv/a&quot;, O_RDONLY) = 3",
            "          &lt;idle&gt;-0     [000] d.h..    20.534243: x: a=1",
            " =&gt; ext4_sync_file",
            "253,0 1 5 0.000068000 7 A WS 8 + 8 &lt;- (254,16) 1024",
            "{&quot;type&quot;: &quot;printf&quot;}",
        ] {
            assert!(Pasted::of(line.as_bytes()).is_escaped, "{line}");
        }
        for line in [
            "7 1.5 openat(AT_FDCWD, \"/a&lt;b\", O_RDONLY) = 3 <0.000020>",
            "7 1.5 write(1, \"fsync(3&lt;/d/f&gt;)\", 18) = 18",
            "7 1.5 write(1, \"7 &lt;... fsync resumed&gt;\", 18) = 18 <0.000001>",
            "252 53 wl start id 8 start 0 end 9 datasync 1 path /var/a&lt;b&gt;",
            "&lt;p&gt;a page&lt;/p&gt;",
            "fsync(3) = 0 <0.001>",
        ] {
            assert!(!Pasted::of(line.as_bytes()).is_escaped, "{line}");
        }
    }

    #[test]
    fn characters_are_restored_once() {
        let escaped = Pasted { is_escaped: true, ..Pasted::default() };
        let text = b"fsync(3&lt;/a&amp;lt;&#39;&#x3c;&#8364;&quot;&nbsp;&x;&) &gt;\n&lt;";
        assert_eq!(escaped.undo(text), b"fsync(3</a&lt;'<&#8364;\" &x;&) >\n<");
    }

    #[test]
    fn blanks_are_no_part_of_most_lines() {
        assert!(Pasted::of(b"a  \nb\t\r\n\nc\n").is_padded);
        assert!(!Pasted::of(b"ext4_sync_file_enter: datasync 1 \next4_sync_file_exit: ret 0\n").is_padded);
        let padded = Pasted { is_padded: true, indent: 2, ..Pasted::default() };
        assert_eq!(padded.undo(b"  a b  \r\n\n   \tc\t\n d "), b"a b\n\n \tc\nd");
    }

    #[test]
    fn an_indent_is_what_all_lines_share() {
        for (head, want) in
            [("    a\n      b\n\n    c", 4), ("\ta\n\tb\n", 1), ("\ta\n    b\n", 0), ("  a", 2), ("", 0)]
        {
            assert_eq!(common_indent(head.as_bytes()).len, want, "{head}");
        }
    }

    #[test]
    fn a_reader_restores_lines_across_reads() {
        struct Bytes<'a>(&'a [u8]);
        impl Read for Bytes<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let len = self.0.len().min(3);
                buffer[..len].copy_from_slice(&self.0[..len]);
                self.0 = &self.0[len..];
                Ok(len)
            }
        }
        let pasted = Pasted { is_escaped: true, is_padded: true, indent: 4 };
        let mut text = String::new();
        Restored::new(Bytes(b"    a &lt;1&gt;  \n    b &am"), pasted).read_to_string(&mut text).unwrap();
        assert_eq!(text, "a <1>\nb &am");
    }
}

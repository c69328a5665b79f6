//! Text that came through a terminal, a mail, a wiki or a Markdown page, which change lines: blanks at their ends, blanks and other things
//! before them, colours, and characters as HTML or a mail writes them.
//!
//! Such a text is turned back into what the recorder wrote before any source sees it, line by line, so that the numbers of lines stay, except
//! in a mail whose long lines were broken. A text that shows none of this is not touched: its blanks and its `&lt;` are its own.

use std::io::{self, Read};

/// A longer line is turned back in pieces. This bounds the memory for a text without line ends.
const MAX_LINE_BYTES: usize = 1 << 20;
const READ_BYTES: usize = 1 << 16;

/// The changes that other tools have made to the lines of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each of its own meaning")]
pub struct Pasted {
    /// `<`, `>`, `&` and `"` are written as in HTML.
    pub is_escaped: bool,
    /// Lines end in blanks that are not theirs.
    pub is_padded: bool,
    /// Blanks before each line, and the `>` with which a mail quotes it.
    pub indent: usize,
    /// It is in UTF-16, as some shells of Windows write it.
    pub utf16: Option<Utf16>,
    /// `=` and others are written as `=3D`, and long lines are broken after a `=`, as in a mail.
    pub is_quoted_printable: bool,
    /// It has the colours of a terminal.
    pub has_colours: bool,
    /// Blanks are no-break spaces, as on a web page.
    pub has_hard_spaces: bool,
    /// The text that another tool has written before each line.
    pub prefix: Option<Prefix>,
}

impl Pasted {
    /// Finds what the head of a text shows by itself. Only the format of a text says whether blanks before its lines are its own, so `indent`
    /// is 0.
    pub fn of(head: &[u8]) -> Self {
        if head.contains(&0) {
            return Self::default();
        }
        Self { is_escaped: is_escaped(head), is_padded: is_padded(head), ..Self::default() }
    }

    /// Finds the encoding of a text, by its byte order mark.
    pub fn of_encoding(head: &[u8]) -> Self {
        let utf16 = Utf16::of(head).filter(|utf16| !utf16.decode(head).contains(&0));
        Self { utf16, ..Self::default() }
    }

    /// Finds what a mail has done to a text.
    pub fn of_mail(head: &[u8]) -> Self {
        Self { is_quoted_printable: is_quoted_printable(head), ..Self::default() }
    }

    /// Finds what a terminal or a web page has put between the characters of a text. `is_certain`: the text is of no format otherwise.
    pub fn of_characters(head: &[u8], is_certain: impl Fn() -> bool) -> Self {
        let lines = || head.split(|&b| b == b'\n').filter(|line| !line.trim_ascii().is_empty());
        let count = |tokens: &[&[u8]]| {
            let has = |line: &&[u8]| tokens.iter().any(|token| memchr::memmem::find(line, token).is_some());
            lines().filter(has).count()
        };
        // A name may hold one, but not that of each line, and nobody names a file as these programs write.
        let is_in = |token: &[u8], of_programs: &[&[u8]]| {
            // Most texts have none, so they are searched as a whole first.
            memchr::memmem::find(head, token).is_some()
                && (is_certain() || count(&[token]) * 2 >= lines().count() || count(of_programs) > 1)
        };
        Self {
            has_colours: is_in(COLOUR, &[b"m\x1b[K"]),
            has_hard_spaces: is_in(HARD_SPACE, &[b"\xc2\xa0\xc2\xa0", b" \xc2\xa0", b"\xc2\xa0 "]),
            ..Self::default()
        }
    }

    /// Finds what another tool has written before each line of a text.
    pub fn of_prefix(head: &[u8], is_certain: impl Fn() -> bool) -> Self {
        Self { prefix: Prefix::of(head, is_certain), ..Self::default() }
    }

    /// Returns the text as it was before.
    pub fn undo(self, text: &[u8]) -> Vec<u8> {
        if let Some(utf16) = self.utf16 {
            return utf16.decode(text);
        }
        let mut before = Vec::with_capacity(text.len());
        for line in text.split_inclusive(|&b| b == b'\n') {
            self.undo_line(line, &mut before);
        }
        before
    }

    /// Appends a line, with its line end if it has one, as it was before.
    fn undo_line(self, line: &[u8], to: &mut Vec<u8>) {
        let (mut line, end) = line.strip_suffix(b"\n").map_or((line, &b""[..]), |line| (line, b"\n"));
        if self.is_quoted_printable {
            let is_broken = decode_mail(line, to);
            to.extend_from_slice(if is_broken { b"" } else { end });
            return;
        }
        if self.has_colours || self.has_hard_spaces {
            self.undo_characters(line, to);
            to.extend_from_slice(end);
            return;
        }
        line = &line[self.prefix.map_or(0, |prefix| prefix.len(line))..];
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

    /// Appends a line without colours and no-break spaces.
    fn undo_characters(self, mut line: &[u8], to: &mut Vec<u8>) {
        while let Some((&first, rest)) = line.split_first() {
            if self.has_colours && line.starts_with(COLOUR) {
                let parameters = line[COLOUR.len()..].iter().take_while(|b| b.is_ascii_digit() || **b == b';').count();
                line = line.get(COLOUR.len() + parameters + 1..).unwrap_or_default();
            } else if self.has_hard_spaces && line.starts_with(HARD_SPACE) {
                to.push(b' ');
                line = &line[HARD_SPACE.len()..];
            } else {
                to.push(first);
                line = rest;
            }
        }
    }
}

/// A colour, and what clears the rest of a line, begins with it. Digits and a letter follow.
const COLOUR: &[u8] = b"\x1b[";
const HARD_SPACE: &[u8] = b"\xc2\xa0";

/// The order of the bytes of a text in UTF-16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Utf16 {
    Little,
    Big,
}

impl Utf16 {
    fn of(head: &[u8]) -> Option<Self> {
        match head {
            [0xff, 0xfe, ..] => Some(Self::Little),
            [0xfe, 0xff, ..] => Some(Self::Big),
            _ => None,
        }
    }

    /// Decodes a text without its byte order mark. Half a character at its end is left out.
    fn decode(self, text: &[u8]) -> Vec<u8> {
        let (pairs, _) = text.as_chunks::<2>();
        let units = pairs.iter().map(|&pair| match self {
            Self::Little => u16::from_le_bytes(pair),
            Self::Big => u16::from_be_bytes(pair),
        });
        let characters = char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER));
        characters.filter(|&character| character != '\u{feff}').collect::<String>().into_bytes()
    }
}

/// The text that a tool writes before each line of another text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// `     7\t`, `7:`: the number of the line.
    Number,
    /// `7. `, `7: `: the same with a blank after it.
    NumberAndBlank,
    /// `[  512.100000] `: the kernel's log.
    KernelTime,
    /// `Nov 28 09:00:00 host strace[12]: `: a system log.
    SystemLog,
}

impl Prefix {
    /// Lines at the beginning of a text that must have it.
    const LINES: usize = 20;

    fn of(head: &[u8], is_certain: impl Fn() -> bool) -> Option<Self> {
        let whole = memchr::memrchr(b'\n', head).map_or(head, |end| &head[..end]);
        let lines = || {
            let lines = whole.split(|&b| b == b'\n').map(<[u8]>::trim_ascii_end);
            lines.filter(|line| !line.trim_ascii().is_empty()).take(Self::LINES)
        };
        let is_before_all = |prefix: Self| lines().all(|line| prefix.len(line) > 0);
        lines().nth(1)?;
        if let Some(prefix) = [Self::KernelTime, Self::SystemLog].into_iter().find(|&prefix| is_before_all(prefix)) {
            return Some(prefix);
        }
        // A log may begin with numbers of its own, such as small times.
        let has_mark = |line: &[u8]| number(line).is_some_and(|(_, mark)| mark != b' ');
        let numbers: Vec<u64> = lines().map_while(|line| number(line).map(|(number, _)| number)).collect();
        let counts = numbers.len() > 2 && numbers.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]));
        let is_numbered = counts && numbers.len() == lines().count() && (lines().all(has_mark) || is_certain());
        let has_text = |line: &&[u8]| Self::Number.len(line) < line.len();
        let has_blank = || lines().filter(has_text).all(|line| Self::NumberAndBlank.len(line) > Self::Number.len(line));
        is_numbered.then(|| if has_blank() { Self::NumberAndBlank } else { Self::Number })
    }

    /// The length of the prefix of a line; 0 if it has none.
    fn len(self, line: &[u8]) -> usize {
        let blanks = |text: &[u8]| text.iter().take_while(|b| **b == b' ').count();
        match self {
            Self::Number | Self::NumberAndBlank => {
                let Some((_, mark)) = number(line) else { return 0 };
                let at = line.iter().position(|b| !is_blank(*b)).unwrap_or(0);
                let digits = line[at..].iter().take_while(|b| b.is_ascii_digit()).count();
                let end = line.len().min(at + digits + 1);
                let is_list = self == Self::NumberAndBlank && matches!(mark, b':' | b'.' | b')');
                end + usize::from(is_list && line.get(end) == Some(&b' '))
            }
            Self::KernelTime => {
                let Some(time) = line.strip_prefix(b"[") else { return 0 };
                let begin = blanks(time);
                let len = time[begin..].iter().take_while(|b| b.is_ascii_digit() || **b == b'.').count();
                // Blanks at the end of an empty line may have been removed.
                let end = &time[begin + len..];
                let is_time = time[begin..begin + len].contains(&b'.') && (end.starts_with(b"] ") || end == b"]");
                if is_time { line.len().min(1 + begin + len + 2) } else { 0 }
            }
            Self::SystemLog => system_log(line).unwrap_or(0),
        }
    }
}

/// The number that a line begins with, and the character after it: a tab, if nothing follows.
fn number(line: &[u8]) -> Option<(u64, u8)> {
    let text = line.trim_ascii_start();
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let mark = text.get(digits).copied().unwrap_or(b'\t');
    let mark = Some(mark).filter(|b| matches!(b, b' ' | b'\t' | b':' | b'.' | b')'))?;
    Some((std::str::from_utf8(&text[..digits]).ok()?.parse().ok()?, mark))
}

/// The length of what a system log writes before a line: the time, the host, and the program.
fn system_log(line: &[u8]) -> Option<usize> {
    let mut at = 0;
    let mut word = || {
        let begin = at + line[at..].iter().take_while(|b| **b == b' ').count();
        let len = line[begin..].iter().take_while(|b| **b != b' ').count();
        at = begin + len;
        (&line[begin..at], at)
    };
    let is_clock = |text: &[u8]| text.len() >= 8 && text.split(|b| *b == b':').count() == 3 && text[0].is_ascii_digit();
    let (first, _) = word();
    let is_date = first.len() > 18 && first.get(10) == Some(&b'T') && first[..4].iter().all(u8::is_ascii_digit);
    if !is_date {
        let is_month = first.len() == 3 && first.iter().all(u8::is_ascii_alphabetic);
        let (day, _) = word();
        let (clock, _) = word();
        if !is_month || !(1..=2).contains(&day.len()) || !day.iter().all(u8::is_ascii_digit) || !is_clock(clock) {
            return None;
        }
    }
    let (host, _) = word();
    let (program, end) = word();
    let is_program = program.len() > 1 && program.ends_with(b":") && !host.is_empty() && !host.ends_with(b":");
    // One blank is the log's; others are of the line.
    is_program.then(|| (end + 1).min(line.len()))
}

/// Whether a text is evidently written as in a mail: each `=` is a part of such a character or ends a line that was broken.
fn is_quoted_printable(head: &[u8]) -> bool {
    const BROKEN: std::ops::RangeInclusive<usize> = 70..=76;
    let whole = memchr::memrchr(b'\n', head).map_or(head, |end| &head[..end]);
    let (mut equals, mut broken) = (0, 0);
    for line in whole.split(|&b| b == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line)) {
        for at in memchr::memchr_iter(b'=', line) {
            match &line[at + 1..] {
                [] if BROKEN.contains(&line.len()) => broken += 1,
                [b'3', b'D', ..] => equals += 1,
                [high, low, ..] if is_hex(*high) && is_hex(*low) => {}
                _ => return false,
            }
        }
    }
    equals > 0 || broken > 1
}

/// Appends a line of a mail, decoded. Returns whether the line was broken here.
fn decode_mail(line: &[u8], to: &mut Vec<u8>) -> bool {
    let mut rest = line.strip_suffix(b"\r").unwrap_or(line);
    while let Some(at) = memchr::memchr(b'=', rest) {
        to.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        match rest {
            [_] => return true,
            [_, high, low, after @ ..] if is_hex(*high) && is_hex(*low) => {
                let digit = |hex: &u8| char::from(*hex).to_digit(16).unwrap_or(0) as u8;
                to.push(digit(high) << 4 | digit(low));
                rest = after;
            }
            _ => {
                to.push(b'=');
                rest = &rest[1..];
            }
        }
    }
    to.extend_from_slice(rest);
    false
}

fn is_hex(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'A'..=b'F').contains(&byte)
}

/// The blanks, or marks of a quote, with which all lines of a head begin.
pub struct Indent {
    pub len: usize,
    /// They are quoted, as in a mail. No format begins its lines so.
    pub is_quote: bool,
}

/// Returns the blanks, and the marks of a quote, that all lines of a head begin with. Its last line may be cut off.
///
/// Lines of other text around a quote have none of its marks. `is_among_text`: nor have they the blanks of an indented text.
pub fn common_indent(head: &[u8], is_among_text: impl Fn() -> bool) -> Indent {
    let whole = memchr::memrchr(b'\n', head).map_or(head, |end| &head[..end]);
    let is_empty = |line: &[u8]| line.iter().all(|&b| is_indent(b) || b == b'\r');
    let all: Vec<&[u8]> = whole.split(|&b| b == b'\n').filter(|line| !is_empty(line)).collect();
    let are_most = |is_one: fn(u8) -> bool| all.iter().filter(|line| is_one(line[0])).count() * 5 >= all.len() * 3;
    let is_left_out: fn(u8) -> bool = if are_most(|b| b == b'>') {
        |first| first != b'>'
    } else if are_most(is_blank) && is_among_text() {
        |first| !is_blank(first)
    } else {
        |_| false
    };
    let mut lines = all.into_iter().filter(|line| !is_left_out(line[0]));
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

/// Returns the lines that begin with no blank.
pub fn without_indented(head: &[u8]) -> Vec<u8> {
    let lines = head.split_inclusive(|&b| b == b'\n').filter(|line| !is_blank(line[0]));
    lines.collect::<Vec<_>>().concat()
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
        // The threads of function_graph.
        || finds(&[b"   =", greater, b" "])
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

    /// How much of what has been read ends with a line.
    fn whole_lines(&self) -> usize {
        let end_of = |newline: usize| newline + 1;
        match self.pasted.utf16 {
            None => memchr::memrchr(b'\n', &self.line).map_or(0, end_of),
            Some(order) => {
                let newline: [u8; 2] = if order == Utf16::Little { [b'\n', 0] } else { [0, b'\n'] };
                let (pairs, _) = self.line.as_chunks::<2>();
                pairs.iter().rposition(|pair| *pair == newline).map_or(0, |at| 2 * end_of(at))
            }
        }
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
            let len = if self.has_ended || self.line.len() > MAX_LINE_BYTES {
                self.line.len() & !usize::from(self.pasted.utf16.is_some() && !self.has_ended)
            } else {
                self.whole_lines()
            };
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
            assert_eq!(common_indent(head.as_bytes(), || false).len, want, "{head}");
        }
    }

    #[test]
    fn other_lines_around_a_quote_have_no_indent() {
        let Indent { len, is_quote } = common_indent(b"X wrote:\n> a\n> b\n>  c\nbye\n", || false);
        assert_eq!((len, is_quote), (2, true));
        let text = b"my log:\n    a\n      b\n    c\n";
        assert_eq!((common_indent(text, || false).len, common_indent(text, || true).len), (0, 4));
        // A stack of strace is no quote.
        assert!(!common_indent(b"7 fsync(3) = 0\n > /lib/a(f+0x1)\n > /lib/b(g+0x2)\n > c\n", || false).is_quote);
    }

    #[test]
    fn a_prefix_is_before_each_line() {
        let of = |text: &str| Prefix::of(text.as_bytes(), || false);
        let undone = |text: &str| {
            let pasted = Pasted::of_prefix(text.as_bytes(), || true);
            String::from_utf8(pasted.undo(text.as_bytes())).unwrap()
        };
        assert_eq!(of("     1\ta\n     2\tb\n     3\tc\n"), Some(Prefix::Number));
        assert_eq!(undone("     1\ta\n     2\t b\n     3\tc\n"), "a\n b\nc\n");
        assert_eq!(undone("9. a\n10. b\n11. c\n"), "a\nb\nc\n");
        assert_eq!(undone("1:  a\n2:b\n3:c\n"), "  a\nb\nc\n");
        assert_eq!(undone("1:  a\n2: b\n3: c\n"), " a\nb\nc\n");
        // They may be times.
        assert_eq!(of("1 7 wl fsync\n2 7 wl x\n3 7 wl y\n"), None);
        assert_eq!(of("1:a\n3:b\n4:c\n"), None);
        assert_eq!(undone("[  512.100000] a\n[  512.100001]  b\nc\n"), "[  512.100000] a\n[  512.100001]  b\nc\n");
        assert_eq!(undone("[  512.100000] a\n[  512.100001]  b\n"), "a\n b\n");
        assert_eq!(undone("Nov  8 09:00:00 db strace[12]: a\nNov 28 09:00:00 db x:  b\n"), "a\n b\n");
        assert_eq!(undone("2026-11-28T09:00:00.1+0000 db s[1]: a\n2026-11-28T09:00:01+0000 db s[1]:\n"), "a\n\n");
        for other in ["Now 28 is a b\nNow 28 is a b\n", "a\n", "", "[1] a\n[2] b\n", "Nov 28 x\n\u{e9}\n"] {
            assert_eq!(undone(other), other);
        }
    }

    #[test]
    fn characters_of_terminals_pages_and_mails_are_undone() {
        let coloured = b"\x1b[1;32ma\x1b[0m b\x1b[K\n\x1b[\n";
        assert_eq!(Pasted::of_characters(coloured, || false).undo(coloured), b"a b\n\n");
        let spaces = "a\u{a0}\u{a0}b\n".as_bytes();
        assert_eq!(Pasted::of_characters(spaces, || false).undo(spaces), b"a  b\n");
        // One line of many may be of a name.
        assert!(!Pasted::of_characters("a\u{a0}b\nc\nd\n".as_bytes(), || false).has_hard_spaces);
        let mail = b"x: a=3D1 b=3D2=20\r\ny: c=\r\n=3D4\n";
        assert!(!is_quoted_printable(mail));
        let long = [b"x: a=3D1 ", &[b'b'; 66][..], b"=\r\n=3D2\n"].concat();
        assert!(is_quoted_printable(&long));
        let quoted = Pasted { is_quoted_printable: true, ..Pasted::default() };
        assert_eq!(quoted.undo(mail), b"x: a=1 b=2 \ny: c=4\n");
        for clean in ["7 fsync(3) = 0\n", "x path /a=\n", "x a=3D1 b=2\n", "x a=3\n"] {
            assert!(!is_quoted_printable(clean.as_bytes()), "{clean}");
        }
    }

    #[test]
    fn utf16_is_decoded_in_pieces() {
        let text = "\u{feff}fsync \u{e9}\u{1f600}\n".repeat(20_000);
        for order in [Utf16::Little, Utf16::Big] {
            let bytes = |unit: u16| if order == Utf16::Little { unit.to_le_bytes() } else { unit.to_be_bytes() };
            let encoded: Vec<u8> = text.encode_utf16().flat_map(bytes).collect();
            let pasted = Pasted::of_encoding(&encoded);
            assert_eq!(pasted.utf16, Some(order));
            let mut decoded = String::new();
            Restored::new(&encoded[..], pasted).read_to_string(&mut decoded).unwrap();
            assert_eq!(decoded, text.replace('\u{feff}', ""));
            assert_eq!(pasted.undo(&encoded[..3]), b"");
        }
        assert_eq!(Pasted::of_encoding(b"\xff\xfe\x00\x00").utf16, None);
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
        let pasted = Pasted { is_escaped: true, is_padded: true, indent: 4, ..Pasted::default() };
        let mut text = String::new();
        Restored::new(Bytes(b"    a &lt;1&gt;  \n    b &am"), pasted).read_to_string(&mut text).unwrap();
        assert_eq!(text, "a <1>\nb &am");
    }
}

//! Texts that would be logs, had nobody written something into their lines. What they are is only a guess by their first lines.

use super::lines;

/// Lines at the beginning of a text that may show what it is.
const MAX_LINES: usize = 20;

/// What was done to a text.
#[derive(Debug)]
pub(super) struct ChangedText {
    /// What it is, as in "it is WHAT".
    pub(super) what: &'static str,
    /// What to do, in the imperative.
    pub(super) hint: &'static str,
    shows: fn(&[u8]) -> bool,
}

static TEXTS: [ChangedText; 4] = [
    ChangedText {
        what: "text with the colours of a terminal",
        hint: "take them out: `sed 's/\\x1b\\[[0-9;]*m//g' FILE >NEW`",
        shows: |line| memchr::memmem::find(line, b"\x1b[").is_some(),
    },
    ChangedText {
        what: "text with non-breaking spaces, as web pages have them",
        hint: "make them spaces: `sed 's/\\xc2\\xa0/ /g' FILE >NEW`",
        shows: |line| memchr::memmem::find(line, b"\xc2\xa0").is_some(),
    },
    ChangedText {
        what: "text with the times of the kernel's log before its lines",
        hint: "take them out: `sed -E 's/^\\[ *[0-9.]+\\] //' FILE >NEW`",
        shows: is_after_kernel_time,
    },
    ChangedText {
        what: "text with what a system log writes before its lines",
        hint: "take it out: `sed -E 's/^([^:]*:){3} //' FILE >NEW`",
        shows: is_of_system_log,
    },
];

static NUMBERED: ChangedText = ChangedText {
    what: "text with line numbers",
    hint: "take them out: `sed -E 's/^ *[0-9]+[:.)]?[ \\t]?//' FILE >NEW`",
    shows: |_| false,
};

static UTF16: ChangedText =
    ChangedText { what: "text in UTF-16", hint: "convert it: `iconv -f UTF-16 -t UTF-8 FILE >NEW`", shows: |_| false };

/// Says what was done to a text; `None` if it does not look like one of these.
pub(super) fn recognize(head: &[u8]) -> Option<&'static ChangedText> {
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        return Some(&UTF16);
    }
    let first = || lines(head).map(<[u8]>::trim_ascii_start).filter(|line| !line.is_empty()).take(MAX_LINES);
    let text = TEXTS.iter().find(|text| first().any(|line| (text.shows)(line)));
    text.or_else(|| has_line_numbers(first()).then_some(&NUMBERED))
}

/// Whether three lines or more begin with numbers that count them, and more follows on each.
fn has_line_numbers<'a>(lines: impl Iterator<Item = &'a [u8]>) -> bool {
    let number = |line: &[u8]| {
        let len = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let ends = line.get(len).is_some_and(|byte| matches!(byte, b' ' | b'\t' | b':' | b'.' | b')'));
        let number: u64 = std::str::from_utf8(&line[..len]).ok()?.parse().ok()?;
        ends.then_some(number)
    };
    let numbers: Vec<Option<u64>> = lines.map(number).collect();
    numbers.len() >= 3
        && numbers.windows(2).all(|pair| pair[0].is_some() && pair[1] == pair[0].and_then(|n| n.checked_add(1)))
}

/// `[  512.100000] wl-262 [000] ..... 20.500000: sys_fsync(fd: 3)`
fn is_after_kernel_time(line: &[u8]) -> bool {
    let Some(time) = line.strip_prefix(b"[") else { return false };
    let time = time.trim_ascii_start();
    let len = time.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
    time[..len].contains(&b'.') && time[len..].starts_with(b"] ")
}

/// `Nov 28 09:00:00 host strace[12]: 302 fsync(3) = 0`
fn is_of_system_log(line: &[u8]) -> bool {
    let mut words = line.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
    let has_month = words.next().is_some_and(|word| word.len() == 3 && word.iter().all(u8::is_ascii_alphabetic));
    let has_day = words.next().is_some_and(|word| word.iter().all(u8::is_ascii_digit));
    let has_time = words.next().is_some_and(|word| word.len() == 8 && word.split(|&byte| byte == b':').count() == 3);
    has_month && has_day && has_time && words.nth(1).is_some_and(|word| word.ends_with(b":"))
}

#[cfg(test)]
mod tests {
    use super::recognize;

    #[test]
    fn a_log_is_not_changed() {
        for text in [
            "262   1700000000.527631 fsync(3) = 0 <0.001060>\n",
            "254,16   0        1     0.000000000   262  Q  WS 274984 + 8 [wl]\n",
            "              wl-262     [000] .....    20.527240: sys_fsync(fd: 3)\n",
            "100000000000 7 wl fsync\n",
            "1 7 wl fsync\n2 7 wl start id 1\n",
        ] {
            assert!(recognize(text.as_bytes()).is_none(), "{text}");
        }
    }
}

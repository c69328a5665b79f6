//! Texts that would be of a known format, had nobody changed their lines on the way. A change that cannot be undone with certainty is named,
//! with the command that undoes it.

use super::lines;

/// A change that somebody made to a text. `what` follows "it is", and `hint` says in the imperative what to do about it.
pub(super) struct Mend {
    pub(super) what: &'static str,
    pub(super) hint: &'static str,
}

/// Into how many lines a line may have been broken.
const MAX_PARTS: usize = 4;

/// Finds the change without which `is_known` recognizes the text.
pub(super) fn find(head: &[u8], is_known: impl Fn(&[u8]) -> bool) -> Option<Mend> {
    if head.contains(&0) {
        return None;
    }
    if head.contains(&b'\t') && is_known(&with_spaces(head)) {
        let what = "text with tabs where the format has spaces";
        return Some(Mend { what, hint: "make them spaces: `tr '\\t' ' ' <FILE >NEW`" });
    }
    if let Some(mend) = decimal_commas(head, &is_known) {
        return Some(mend);
    }
    let is_wrapped = |between: &[u8]| (2..=MAX_PARTS).any(|parts| is_known(&first_joined(head, parts, between)));
    if is_wrapped(b"") || is_wrapped(b" ") {
        let what = "text whose lines were broken into several";
        let hint = "give the file itself, or paste its lines unbroken";
        return Some(Mend { what, hint });
    }
    None
}

/// Finds whether a text is known with points where its numbers have commas, as tables of other countries write them.
pub(super) fn decimal_commas(text: &[u8], is_known: impl Fn(&[u8]) -> bool) -> Option<Mend> {
    // Other commas between digits are between the two numbers of a device. Times have three digits or more, but for some lengths.
    let hints = [
        (3, "make them points: `sed -E 's/([0-9]),([0-9]{3,9}|[0-9]+ us)/\\1.\\2/g' FILE >NEW`"),
        (2, "make them points: `sed -E 's/([0-9]),([0-9]{2,9})/\\1.\\2/g' FILE >NEW`"),
    ];
    let (_, hint) = hints.into_iter().find(|&(digits, _)| {
        let pointed = with_points(text, digits);
        pointed != text && is_known(&pointed)
    })?;
    Some(Mend { what: "text whose numbers have commas where the format has points", hint })
}

/// The text with a point for each comma that follows a digit and comes before at least `digits` of them.
fn with_points(text: &[u8], digits: usize) -> Vec<u8> {
    let mut pointed = text.to_vec();
    for comma in memchr::memchr_iter(b',', text) {
        let follow = text[comma + 1..].iter().take(digits);
        if comma > 0
            && text[comma - 1].is_ascii_digit()
            && follow.filter(|byte| byte.is_ascii_digit()).count() == digits
        {
            pointed[comma] = b'.';
        }
    }
    pointed
}

fn with_spaces(text: &[u8]) -> Vec<u8> {
    text.iter().map(|&byte| if byte == b'\t' { b' ' } else { byte }).collect()
}

/// `[...]`, as one writes it into an excerpt.
fn is_left_out(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let inside = line.strip_prefix(b"[").or_else(|| line.strip_prefix(b"(")).or_else(|| line.strip_prefix(b"<"));
    let inside = inside.unwrap_or(line);
    let inside = inside.strip_suffix(b"]").or_else(|| inside.strip_suffix(b")")).or_else(|| inside.strip_suffix(b">"));
    matches!(inside.unwrap_or(line), b"..." | b"snip") || inside.unwrap_or(line) == "…".as_bytes()
}

/// Whether lines were left out of a text, and somebody says so.
pub(super) fn has_marks(head: &[u8]) -> bool {
    lines(head).any(is_left_out)
}

pub(super) fn without_marks(text: &[u8]) -> Vec<u8> {
    text.split_inclusive(|&byte| byte == b'\n').filter(|line| !is_left_out(line)).flatten().copied().collect()
}

/// The first lines of a text as one.
fn first_joined(text: &[u8], parts: usize, between: &[u8]) -> Vec<u8> {
    let first: Vec<&[u8]> = lines(text).filter(|line| !line.trim_ascii().is_empty()).take(parts).collect();
    let mut joined = first.join(between);
    joined.push(b'\n');
    joined
}

#[cfg(test)]
mod tests {
    use super::super::{SOURCES, sniff};
    use super::{find, has_marks, without_marks};

    #[test]
    fn what_was_done_to_a_text_is_named() {
        let blkparse = "8,0    0        1     0.000000000   262  Q  WS 1000 + 8 [wl]\n8,0    0        2     0.000009000   262  D  WS 1000 + 8 [wl]\n";
        let strace = "262   1700000000.527631 openat(AT_FDCWD, \"/srv/a\", O_WRONLY) = 3 <0.000100>\n";
        let found = |text: &str| {
            assert!(sniff(SOURCES, text.as_bytes()).is_none(), "{text}");
            find(text.as_bytes(), |text| sniff(SOURCES, text).is_some()).map(|mend| mend.what)
        };
        let tabs = "text with tabs where the format has spaces";
        assert_eq!(found(&blkparse.replace(' ', "\t")), Some(tabs));
        let broken = "text whose lines were broken into several";
        assert_eq!(found(&blkparse.replace("  Q", "\n  Q").replace("  D", "\n  D")), Some(broken));
        assert_eq!(found(&blkparse.replace(" +", "\n+")), Some(broken));
        let commas = "text whose numbers have commas where the format has points";
        assert_eq!(found(&blkparse.replace("0.0", "0,0")), Some(commas));
        assert_eq!(found(&strace.replace(".5", ",5").replace("<0.", "<0,")), Some(commas));
        assert_eq!(found("1,234,567 events and 0,25 s\n"), None);
        assert_eq!(found("some text\n\nand more of it\n...\n"), None);
        assert!(has_marks(format!("[...]\n{strace}").as_bytes()) && !has_marks(strace.as_bytes()));
        assert_eq!(without_marks(format!("[...]\n{strace} ...\n").as_bytes()), strace.as_bytes());
    }
}

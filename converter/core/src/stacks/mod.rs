//! User stacks as tracers print them, folded to `outermost;...;innermost`.

pub mod demangle;
pub mod flamegraph;
pub mod symbols;

use hashbrown::HashMap;

use crate::names::{NameId, Names};

/// Folds a stack once, and again if it occurs after many others.
#[derive(Default)]
pub struct Stacks {
    raw: Names,
    folded: HashMap<NameId, NameId, foldhash::fast::FixedState>,
    raw_bytes: usize,
}

impl Stacks {
    /// Returns the name of the folded stack, a passing one; NONE if `raw`, the lines as printed, innermost first, has no frame.
    pub fn fold(&mut self, raw: &[u8], names: &mut Names) -> NameId {
        let id = self.raw.intern(raw);
        *self.folded.entry(id).or_insert_with(|| {
            self.raw_bytes += raw.len();
            let folded = fold(raw);
            if folded.is_empty() { NameId::NONE } else { names.intern_passing(&folded) }
        })
    }

    /// Number of bytes of the stacks that are known as printed.
    pub fn raw_bytes(&self) -> usize {
        self.raw_bytes
    }

    /// Forgets which stacks were folded.
    pub fn clear(&mut self) {
        self.raw.clear();
        self.folded.clear();
        self.raw_bytes = 0;
    }
}

/// Returns the lines of a printed stack, without indent and empty lines.
pub fn lines(raw: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    raw.split(|&b| b == b'\n').map(<[u8]>::trim_ascii).filter(|l| !l.is_empty())
}

/// Folds a printed stack, whose lines are innermost first.
pub fn fold(raw: &[u8]) -> Vec<u8> {
    let mut folded = Vec::with_capacity(raw.len());
    for line in lines(raw).rev() {
        if !folded.is_empty() {
            folded.push(b';');
        }
        // `;` separates frames in every folded format. inferno replaces it by `:` too.
        folded.extend(frame(line).iter().map(|&b| if b == b';' { b':' } else { b }));
    }
    folded
}

/// Returns the function of a frame, without address, offset and file. If only the file is known, returns `[FILE]`. Frames look like:
///
/// `func+46`, `0x7fff12`, `7f12 func+46 (/lib/x.so)`, `7f12 [unknown] (/lib/x.so)`, `> /lib/x.so(func+0x2e) [0x7f12]`.
fn frame(line: &[u8]) -> Vec<u8> {
    let (function, file) = parse_strace_frame(line).or_else(|| parse_perf_frame(line)).unwrap_or((line, None));
    if function == b"[unknown]"
        && let Some(file) = file.filter(|f| *f != b"[unknown]")
    {
        let base = file.rsplit(|&b| b == b'/').next().unwrap_or(file);
        return [b"[", base, b"]"].concat();
    }
    without_offset(function).to_vec()
}

/// Parses `> FILE(FUNCTION+OFFSET) [ADDRESS]` into function and file.
fn parse_strace_frame(line: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    let line = line.strip_prefix(b"> ")?;
    // With -kk strace prints the source line after the address.
    let Some(end) = memchr::memmem::rfind(line, b" [0x") else { return Some((line, None)) };
    let frame = &line[..end];
    let Some(open) = find_file_parenthesis(frame) else { return Some((frame, None)) };
    let function = &frame[open + 1..frame.len() - 1];
    Some((if function.is_empty() { b"[unknown]" } else { function }, Some(&frame[..open])))
}

/// Parses `ADDRESS FUNCTION+OFFSET (FILE)` into function and file.
fn parse_perf_frame(line: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    let address = line.iter().position(|&b| b == b' ')?;
    if address == 0 || !line[..address].iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let rest = &line[address + 1..];
    let open = find_file_parenthesis(rest)?;
    let function = rest[..open].strip_suffix(b" ")?.trim_ascii();
    if function.is_empty() {
        return None;
    }
    Some((function, Some(&rest[open + 1..rest.len() - 1])))
}

/// Returns the position of the parenthesis that matches the one at the end. The text between may contain more of them: `(/opt/a (deleted))`.
fn find_file_parenthesis(text: &[u8]) -> Option<usize> {
    let mut depth = 0;
    text.strip_suffix(b")")?;
    for (at, byte) in text.iter().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' if depth == 1 => return Some(at),
            b'(' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn without_offset(function: &[u8]) -> &[u8] {
    let Some(plus) = memchr::memrchr(b'+', function) else { return function };
    let offset = &function[plus + 1..];
    let is_number = match offset.strip_prefix(b"0x") {
        Some(hex) => !hex.is_empty() && hex.iter().all(u8::is_ascii_hexdigit),
        None => !offset.is_empty() && offset.iter().all(u8::is_ascii_digit),
    };
    // In `operator+` and similar names no number follows the sign.
    if plus > 0 && is_number { &function[..plus] } else { function }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bpftrace_and_perf_frames_fold_to_the_same_stack() {
        let plain = b"        __GI_fdatasync+60\n        bioProcessBackgroundJobs+545\n        start_thread+952";
        let perf = b"    768c __GI_fdatasync+60 (/usr/lib64/libc.so.6)\n\n    44b1 bioProcessBackgroundJobs+545 (/usr/bin/valkey-server)\n    e168 start_thread+952 (/usr/lib64/libc.so.6)\n";
        assert_eq!(fold(plain), b"start_thread;bioProcessBackgroundJobs;__GI_fdatasync");
        assert_eq!(fold(perf), fold(plain));
    }

    #[test]
    fn functions_of_frames() {
        for (line, want) in [
            ("0x7ffff7e573a7", "0x7ffff7e573a7"),
            ("7f12 [unknown] (/usr/lib/libsqlite3.so.0)", "[libsqlite3.so.0]"),
            ("7f12 0x7f12 ([unknown])", "0x7f12"),
            ("7f12 f(int) (.cold)+3 (/opt/my app (x))", "f(int) (.cold)"),
            (
                "std::vector<int, std::allocator<int> >::push_back(int const&)+12",
                "std::vector<int, std::allocator<int> >::push_back(int const&)",
            ),
            ("operator+", "operator+"),
            ("Lcom/foo;::run+4", "Lcom/foo;::run"),
            (
                "7f12 std::function<void (int)>::operator()(int) const+3 (/opt/x)",
                "std::function<void (int)>::operator()(int) const",
            ),
            ("> /usr/lib/libc.so.6(fsync+0x3a) [0xfec4a]", "fsync"),
            ("> /opt/a (b)/x(std::f(int (*)(char))+0x12) [0x1] x.cpp:7", "std::f(int (*)(char))"),
            ("> /usr/bin/env() [0x24cd]", "[env]"),
            ("> unexpected_backtracing_error [0x7f12]", "unexpected_backtracing_error"),
            // Begins with hex digits as perf's frames do, but has no function before the parenthesis.
            ("add (anonymous namespace)", "add (anonymous namespace)"),
        ] {
            assert_eq!(String::from_utf8(frame(line.as_bytes())).unwrap(), want.replace("[:]", ";"), "{line}");
        }
    }
}

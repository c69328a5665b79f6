//! A line of the tracer function_graph.

use crate::event::UNKNOWN_TASK;
use crate::source::cursor::{Cursor, whole};

/// The largest thread id that is taken for one.
const MAX_TID: u64 = i32::MAX as u64;
/// Characters by which the kernel marks a long duration.
const MARKS: &[u8] = b"+!#*@$";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// ns; `None` without the option funcgraph-abstime.
    pub(super) ts: Option<i64>,
    pub(super) cpu: Option<u32>,
    /// `None` without the option funcgraph-proc.
    pub(super) tid: Option<u32>,
    /// Its first seven bytes, in the kernel's text.
    pub(super) comm: &'a [u8],
    /// How many functions the thread was in.
    pub(super) depth: u32,
    pub(super) shape: Shape<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape<'a> {
    /// `NAME() {`
    Enter(&'a [u8]),
    /// `NAME();`, which is printed when the function has returned. It took so many ns.
    Leaf { name: &'a [u8], dur: i64, ret: Option<i64> },
    /// `}`, with the name of the function if something was printed in between, or with the option funcgraph-tail.
    Leave { name: Option<&'a [u8]>, dur: Option<i64>, ret: Option<i64> },
    /// `/* EVENT: FIELDS */`
    Event(&'a [u8]),
    /// The CPU goes on with another thread.
    Switch { from: Named<'a>, to: Named<'a> },
    /// It is of no function, as where an interrupt begins.
    Aside,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Named<'a> {
    pub(super) comm: &'a [u8],
    pub(super) tid: u32,
}

/// Parses a line as the kernel prints it.
pub(super) fn of_kernel(text: &[u8]) -> Option<Line<'_>> {
    let mut cursor = Cursor::new(text);
    cursor.spaces();
    let (ts, rest) = match time(cursor.rest) {
        Some((ts, rest)) => (Some(ts), rest),
        None => (None, cursor.rest),
    };
    let (cpu, mut rest) = match cpu(rest) {
        Some((cpu, rest)) => (Some(cpu), rest),
        None => (None, rest),
    };
    if ts.is_none() && cpu.is_none() {
        return None;
    }
    let mut line = Line { ts, cpu, tid: None, comm: b"", depth: 0, shape: Shape::Aside };
    if let Some(arrow) = memchr::memmem::find(rest, b" => ") {
        let (from, to) = (task(rest[..arrow].trim_ascii()), task(rest[arrow + 4..].trim_ascii()));
        if let (Some(from), Some(to)) = (from, to) {
            return Some(Line { shape: Shape::Switch { from, to }, ..line });
        }
    }
    // Columns that options add: the thread, and flags of the context.
    loop {
        let bar = memchr::memchr(b'|', rest)?;
        let column = rest[..bar].trim_ascii();
        rest = &rest[bar + 1..];
        if column.starts_with(b"===") || column.ends_with(b"===") {
            return Some(line);
        }
        if column.is_empty() || column.ends_with(b"us") {
            return of_function(column, rest, line);
        }
        if line.tid.is_none()
            && let Some(Named { comm, tid }) = task(column)
        {
            (line.tid, line.comm) = (Some(tid), comm);
        } else if column.len() > 8 || column.contains(&b' ') {
            return None;
        }
    }
}

/// Parses the event of a line that trace-cmd prints.
pub(super) fn of_trace_cmd(event: &[u8]) -> Option<Line<'_>> {
    let rest = event.strip_prefix(b"funcgraph_entry:").or_else(|| event.strip_prefix(b"funcgraph_exit:"))?;
    let bar = memchr::memchr(b'|', rest)?;
    let line = Line { ts: None, cpu: None, tid: None, comm: b"", depth: 0, shape: Shape::Aside };
    of_function(rest[..bar].trim_ascii(), &rest[bar + 1..], line)
}

/// Parses what the kernel prints of a function, after the column of its duration.
fn of_function<'a>(duration: &[u8], text: &'a [u8], line: Line<'a>) -> Option<Line<'a>> {
    let body = text.trim_ascii();
    let indent = text.iter().take_while(|&&byte| byte == b' ').count();
    let depth = (indent / 2).saturating_sub(1) as u32;
    let duration = if duration.is_empty() { None } else { Some(ns(duration)?) };
    let (code, comment) = match body.strip_suffix(b"*/").and_then(|body| split_at_last(body, b"/*")) {
        Some((code, comment)) => (code.trim_ascii(), comment.trim_ascii()),
        None => (body, &b""[..]),
    };
    let shape = if code.is_empty() && !comment.is_empty() {
        Shape::Event(comment)
    } else if code == b"}" {
        Shape::Leave { name: named(comment), dur: duration, ret: returned(comment) }
    } else {
        let open = memchr::memchr(b'(', code)?;
        let name = symbol(&code[..open])?;
        match code.last()? {
            b'{' => Shape::Enter(name),
            b';' => Shape::Leaf { name, dur: duration?, ret: returned(comment) },
            _ => return None,
        }
    };
    Some(Line { depth, shape, ..line })
}

/// The name of a function, without the module that follows it: `ext4_sync_file [ext4]`.
fn symbol(text: &[u8]) -> Option<&[u8]> {
    let name = text.split(|&byte| byte == b' ').next()?;
    let is_name =
        !name.is_empty() && name.iter().all(|&byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$'));
    is_name.then_some(name)
}

/// The function that a comment after `}` names: `do_writepages`, `ext4_sync_file [ext4] ret=0x0`, `ext4_sync_file = 0x0`.
fn named(comment: &[u8]) -> Option<&[u8]> {
    symbol(comment).filter(|name| !name.starts_with(b"ret"))
}

/// What a function returned, as the option funcgraph-retval prints it.
fn returned(comment: &[u8]) -> Option<i64> {
    let at = memchr::memmem::find(comment, b"ret=").map(|at| at + 4);
    let at = at.or_else(|| memchr::memmem::find(comment, b" = ").map(|at| at + 3))?;
    let text = comment[at..].split(|&byte| byte == b' ').next()?;
    let Some(hex) = text.strip_prefix(b"0x") else { return whole(text, Cursor::signed) };
    let bits = whole(hex, Cursor::hex_digits)?;
    // An int is printed without the bits above it.
    Some(if hex.len() <= 8 { i64::from(bits as u32 as i32) } else { bits as i64 })
}

/// `13.912734 |`, and what follows it.
fn time(text: &[u8]) -> Option<(i64, &[u8])> {
    let mut cursor = Cursor::new(text);
    let seconds = i64::try_from(cursor.decimal()?).ok()?;
    cursor.literal(b".")?;
    let micros = cursor.rest.get(..6)?;
    let micros = whole(micros, Cursor::decimal)?;
    cursor.rest = &cursor.rest[6..];
    cursor.spaces();
    cursor.literal(b"|")?;
    let ns = seconds.checked_mul(1_000_000)?.checked_add(micros as i64)?.checked_mul(1_000)?;
    Some((ns, cursor.rest))
}

/// `  1)`, and what follows it.
fn cpu(text: &[u8]) -> Option<(u32, &[u8])> {
    let mut cursor = Cursor::new(text);
    cursor.spaces();
    let cpu = u32::try_from(cursor.decimal()?).ok()?;
    cursor.literal(b")")?;
    Some((cpu, cursor.rest))
}

/// `python3-213`. A name may hold dashes.
fn task(text: &[u8]) -> Option<Named<'_>> {
    let dash = memchr::memrchr(b'-', text)?;
    let tid = whole(&text[dash + 1..], Cursor::decimal).filter(|&tid| tid <= MAX_TID)? as u32;
    (tid != UNKNOWN_TASK).then_some(Named { comm: &text[..dash], tid })
}

/// ns of `# 7404.829 us`, in whole microseconds: the times beside it have no more.
fn ns(column: &[u8]) -> Option<i64> {
    let number = column.strip_suffix(b"us")?.trim_ascii();
    let number = match number.split_first() {
        Some((mark, rest)) if MARKS.contains(mark) => rest.trim_ascii(),
        _ => number,
    };
    // From 10^6 us on, the kernel prints no fraction.
    let (number, fraction) = match memchr::memchr(b'.', number) {
        Some(point) => (&number[..point], &number[point + 1..]),
        None => (number, &b"0"[..]),
    };
    let is_fraction = !fraction.is_empty() && fraction.iter().all(u8::is_ascii_digit);
    let micros = whole(number, Cursor::decimal).filter(|_| is_fraction)?;
    i64::try_from(micros).ok()?.checked_mul(1_000)
}

fn split_at_last<'a>(text: &'a [u8], needle: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = memchr::memmem::rfind(text, needle)?;
    Some((&text[..at], &text[at + needle.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(ts: Option<i64>, tid: Option<u32>, depth: u32, shape: Shape<'static>) -> Line<'static> {
        let comm: &[u8] = if tid.is_some() { b"python3" } else { b"" };
        Line { ts, cpu: Some(1), tid, comm, depth, shape }
    }

    #[test]
    fn the_columns_depend_on_the_options() {
        let enter = Shape::Enter(b"ext4_sync_file");
        let at = Some(13_912_734_000);
        for (text, want) in [
            (
                "   13.912734 |   1)  python3-213   |               |  ext4_sync_file [ext4]() {",
                line(at, Some(213), 0, enter),
            ),
            (
                "   13.912734 |   1)  python3-213   |  d..1. |               |  ext4_sync_file() {",
                line(at, Some(213), 0, enter),
            ),
            ("   13.912734 |   1)               |    ext4_sync_file [ext4]() {", line(at, None, 1, enter)),
            (
                " 1)               |  ext4_sync_file(file=0x1, start=0) { /* <-vfs_fsync_range */",
                line(None, None, 0, enter),
            ),
        ] {
            assert_eq!(of_kernel(text.as_bytes()), Some(want), "{text}");
        }
        assert_eq!(
            of_trace_cmd(b"funcgraph_entry:                   |  ext4_sync_file() {"),
            Some(Line { ts: None, cpu: None, tid: None, comm: b"", depth: 0, shape: enter })
        );
    }

    #[test]
    fn functions_end_in_three_ways() {
        let shape = |text: &'static str| of_kernel(text.as_bytes()).map(|line| line.shape);
        let leave = |name, dur, ret| Some(Shape::Leave { name, dur: Some(dur), ret });
        assert_eq!(shape("1.000001 |   1)  a-2   | # 7404.829 us |      }"), leave(None, 7_404_000, None));
        assert_eq!(
            shape("1.000001 |   1)  a-2   | * 12530.53 us |   } /* do_writepages */"),
            leave(Some(b"do_writepages"), 12_530_000, None)
        );
        assert_eq!(shape(" 1) + 13.2 us   |  } /* f [ext4] ret=-5 */"), leave(Some(b"f"), 13_000, Some(-5)));
        assert_eq!(shape(" 1) + 13.2 us   |  } /* f = 0xfffffffb */"), leave(Some(b"f"), 13_000, Some(-5)));
        assert_eq!(
            shape(" 1)   1.234 us    |  f(); /* ret=0x0 */"),
            Some(Shape::Leaf { name: b"f", dur: 1_000, ret: Some(0) })
        );
        assert_eq!(shape(" 1)               |  f();"), None);
        assert_eq!(shape(" 1) $ 1200000 us |  }"), leave(None, 1_200_000_000, None));
        assert_eq!(shape(" 1) + 13. us   |  }"), None);
        assert_eq!(shape(" 1)               |  f() "), None);
    }

    #[test]
    fn lines_between_the_functions() {
        let shape = |text: &'static str| of_kernel(text.as_bytes()).map(|line| line.shape);
        let named = |comm, tid| Named { comm, tid };
        let switch = Shape::Switch { from: named(b"a-b", 1), to: named(b"<idle>", 0) };
        assert_eq!(shape(" 1)  a-b-1   =>    <idle>-0   "), Some(switch));
        assert_eq!(shape(" 0)   ==========> |"), Some(Shape::Aside));
        let event = Shape::Event(b"block_rq_issue: 8,0 WS 4096 () 8 + 8 [a]");
        assert_eq!(shape("1.000001 | 1) a-2 |   |    /* block_rq_issue: 8,0 WS 4096 () 8 + 8 [a] */"), Some(event));
        assert_eq!(shape("hello | world"), None);
    }
}

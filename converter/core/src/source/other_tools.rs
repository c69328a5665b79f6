//! Texts of other tools that people give to Syncline although it does not read them. Whoever has one needs to know what it is, and what to
//! record instead.

use super::lines;

/// Lines at the beginning of a text that may show what it is.
const MAX_LINES: usize = 20;

const RECORD: &str =
    "record the single events instead: `syncline record -o DIR`, or `strace -f -ttt -T -yy -o FILE COMMAND`";

/// Output of a tool that is no log.
#[derive(Debug)]
pub struct OtherTool {
    /// What it is, as in "it is WHAT".
    pub what: &'static str,
    /// What to do, in the imperative.
    pub hint: &'static str,
    shows: fn(&[u8]) -> bool,
}

static TOOLS: [OtherTool; 11] = [
    OtherTool {
        what: "the output of the tracer function_graph",
        hint: "record events instead of functions: `echo nop >/sys/kernel/tracing/current_tracer`, and enable `ext4_sync_file_enter`, \
               `ext4_sync_file_exit` and `events/block`",
        shows: |line| line.starts_with(b"# tracer: function_graph"),
    },
    OtherTool {
        what: "the output of perf trace",
        hint: "let perf record the calls (`perf record -e 'syscalls:sys_*sync'`) and give its perf.data, or the text of `perf script`",
        shows: is_of_perf_trace,
    },
    OtherTool {
        what: "the summary of strace -c, which adds the calls up",
        hint: RECORD,
        shows: |line| line.starts_with(b"% time ") && line.trim_ascii_end().ends_with(b" syscall"),
    },
    OtherTool { what: "the output of sysdig", hint: RECORD, shows: is_of_sysdig },
    OtherTool {
        what: "a table of a tool that traces latencies, such as fsyncsnoop or ext4slower",
        hint: RECORD,
        shows: is_header_of_latencies,
    },
    OtherTool {
        what: "the kernel's log, which says that a task is blocked and not since when its sync runs",
        hint: RECORD,
        shows: is_of_kernel_log,
    },
    OtherTool {
        what: "a map that bpftrace prints, which holds counts and no event",
        hint: RECORD,
        shows: |line| line.starts_with(b"@") && line.trim_ascii_end().ends_with(b":"),
    },
    OtherTool {
        what: "text with the colours of a terminal",
        hint: "take them out: `sed 's/\\x1b\\[[0-9;]*m//g' FILE >NEW`",
        shows: |line| memchr::memmem::find(line, b"\x1b[").is_some(),
    },
    OtherTool {
        what: "text with non-breaking spaces, as web pages have them",
        hint: "make them spaces: `sed 's/\\xc2\\xa0/ /g' FILE >NEW`",
        shows: |line| memchr::memmem::find(line, b"\xc2\xa0").is_some(),
    },
    OtherTool {
        what: "text with the times of the kernel's log before its lines",
        hint: "take them out: `sed -E 's/^\\[ *[0-9.]+\\] //' FILE >NEW`",
        shows: is_after_kernel_time,
    },
    OtherTool {
        what: "text with what a system log writes before its lines",
        hint: "take it out: `sed -E 's/^([^:]*:){3} //' FILE >NEW`",
        shows: is_of_system_log,
    },
];

static NUMBERED: OtherTool = OtherTool {
    what: "text with line numbers",
    hint: "take them out: `sed -E 's/^ *[0-9]+[:.)]?[ \\t]?//' FILE >NEW`",
    shows: |_| false,
};

static UTF16: OtherTool =
    OtherTool { what: "text in UTF-16", hint: "convert it: `iconv -f UTF-16 -t UTF-8 FILE >NEW`", shows: |_| false };

/// Says which tool has written a text that holds no event; `None` if it does not look like one of these.
pub fn recognize(head: &[u8]) -> Option<&'static OtherTool> {
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        return Some(&UTF16);
    }
    let first = || lines(head).map(<[u8]>::trim_ascii_start).filter(|line| !line.is_empty()).take(MAX_LINES);
    let tool = TOOLS.iter().find(|tool| first().any(|line| (tool.shows)(line)));
    tool.or_else(|| has_line_numbers(first()).then_some(&NUMBERED))
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

/// `20.113 ( 9.001 ms): postgres/1234 fdatasync(fd: 5) = 0`
fn is_of_perf_trace(line: &[u8]) -> bool {
    let Some(at) = memchr::memmem::find(line, b" ms): ") else { return false };
    let is_time = |&byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b' ' | b'(');
    line[..at].contains(&b'(') && line[..at].iter().all(is_time)
}

/// `1201 10:12:33.100000001 2 etcd (2211) > fdatasync fd=7`
fn is_of_sysdig(line: &[u8]) -> bool {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let is_number = |word: Option<&[u8]>| word.is_some_and(|word| word.iter().all(u8::is_ascii_digit));
    let is_time = |word: Option<&[u8]>| word.is_some_and(|word| word.split(|&byte| byte == b':').count() == 3);
    is_number(words.next())
        && is_time(words.next())
        && is_number(words.next())
        && words.any(|word| matches!(word, b">" | b"<"))
}

/// `COMM             PID     LATms   FD RVAL FILE`
fn is_header_of_latencies(line: &[u8]) -> bool {
    let has = |name: &[u8]| line.split(u8::is_ascii_whitespace).any(|word| word == name);
    has(b"COMM") && has(b"PID") && line.split(u8::is_ascii_whitespace).any(|word| word.starts_with(b"LAT"))
}

/// `[ 1234.567890] INFO: task postgres:2211 blocked for more than 120 seconds.`
fn is_of_kernel_log(line: &[u8]) -> bool {
    line.starts_with(b"[") && memchr::memmem::find(line, b"] INFO: task ").is_some()
}

#[cfg(test)]
mod tests {
    use super::recognize;

    #[test]
    fn a_log_is_of_no_other_tool() {
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

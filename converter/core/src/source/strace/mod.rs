//! The text of strace: system calls only, and nothing that the file system does in them.
//!
//! Reads the output of `-f`, `-ff` or a single thread, with times by `-t`, `-tt`, `-ttt` or `-r`, and optionally `-T`, `-y`, `-yy`, `-Y`,
//! `-k`, `-X` and `-C`. Without times, the order of the lines and the durations give a timeline.
//!
//! ```text
//! 2694  1795196964.488395 openat(AT_FDCWD, "/run/mnt/a", O_WRONLY|O_CREAT, 0644) = 3 <0.000707>
//! 2694  1795196964.493858 fsync(3 <unfinished ...>
//! 2695  1795196964.502176 write(4, "b"..., 200) = 200 <0.001046>
//! 2694  1795196964.503123 <... fsync resumed>) = 0 <0.003689>
//! 2694  1795196964.504110 +++ exited with 0 +++
//! ```
//!
//! Lines are parsed independently and in parallel. But the meaning of a line may depend on lines far before it: the start of a call,
//! the file of a descriptor, midnight. So `settle` makes the events afterwards, in the order of the lines.

mod args;
mod fast_path;
mod file_call;
mod head;
mod line;
mod other_lines;
mod parser;
mod state;
mod syscall;

use std::sync::Arc;

use memchr::memmem;

use self::head::{
    begins_with_exec, clock_of, counts_from_others, first_task, has_aligned_times, is_of_truss, prefixes,
    resolution_of, whole_lines,
};
use self::line::{Call, Clock, Phase, Prefix, Text};
use self::other_lines::{is_message, is_stack};
use self::parser::Records;
use self::state::{COARSE_NS, StraceState};
use self::syscall::Known;
use super::{Explanation, InputTraits, Problem, Reader, Source, SourceOptions, TIME_RESOLUTION, last_newline};
use crate::error::{Error, Refused, Result};
use crate::input_file::Input;

pub const NAME: &str = "strace";
/// Number of lines that format detection reads.
const SNIFFED_LINES: usize = 200;
/// Common system calls. Any strace log contains some of them. They distinguish it from ltrace, whose lines look the same.
const COMMON: &str = "access arch_prctl bind brk chdir clock_nanosleep connect epoll_wait exit_group faccessat faccessat2 fallocate \
    fchmod fchown fstat ftruncate futex getcwd getdents64 getpid getrandom gettid getuid io_getevents io_submit \
    ioctl kill link linkat lseek lstat madvise mkdir mkdirat mmap mprotect munmap nanosleep newfstatat openat2 pause \
    poll ppoll pread64 preadv preadv2 prlimit64 read readlink readlinkat readv recvfrom recvmsg restart_syscall rseq \
    rt_sigaction rt_sigprocmask rt_sigreturn rt_sigtimedwait select sendmsg sendto set_robust_list set_tid_address \
    stat statfs statx symlink symlinkat tgkill umask uname unlink unlinkat wait4 waitid";

pub struct Strace;

impl Source for Strace {
    fn name(&self) -> &'static str {
        NAME
    }

    fn hidden_losses(&self) -> &'static str {
        "strace stops each call, so it loses none while it is attached. It does not see calls before it \
         attached, syncs by io_uring, or anything below the call: pages, bios, journal. A line that was \
         deleted leaves no gap."
    }

    fn sniff(&self, head: &[u8]) -> bool {
        let (mut ours, mut others) = (0, 0);
        for line in whole_lines(head).filter(|line| !is_stack(line) && !is_message(line)).take(SNIFFED_LINES) {
            if is_of_truss(line) {
                others += 1;
                continue;
            }
            let prefix = Prefix::take(line);
            let has_time = prefix.as_ref().is_some_and(|prefix| prefix.time.is_some());
            match prefix.and_then(|prefix| Text::of(prefix.rest)) {
                Some(Text::Call { phase, name, rest }) => {
                    let known = is_io_uring(name, rest)
                        || COMMON.split(' ').any(|common| common.as_bytes() == name)
                        || Known::of(name).is_some();
                    if known && (phase != Phase::Whole || Call::of(rest, phase).is_ok()) {
                        ours += 1;
                    } else {
                        // An unknown name may be a new system call, and a line may be torn. Other text is no call: `fsync(2) writes`.
                        others += usize::from(!(known && has_time) && Call::of(rest, phase).is_err());
                    }
                }
                Some(Text::Signal(text)) if text.starts_with(b"SIG") || text.starts_with(b"stopped by ") => ours += 1,
                Some(Text::Ended(text)) if text.starts_with(b"exited with ") || text.starts_with(b"killed by ") => {
                    ours += 1;
                }
                _ => others += 1,
            }
        }
        ours > others
    }

    fn has_indent(&self, head: &[u8]) -> bool {
        has_aligned_times(head)
    }

    fn begin(&self, head: &[u8]) -> Option<i64> {
        prefixes(head).find_map(|prefix| prefix.time.filter(|time| time.clock == Clock::Unix)).map(|time| time.ns)
    }

    fn is_rest_of_stack(&self, head: &[u8]) -> bool {
        let mut lines = whole_lines(head).peekable();
        lines.peek().is_some() && lines.all(is_stack)
    }

    fn describe(&self, input: &Input) -> InputTraits {
        let is_single_thread = is_single_thread(input.head());
        InputTraits {
            is_standalone: is_single_thread,
            starts_log: is_single_thread,
            is_part_of_recording: true,
            ids_are_processes: Some(false),
            is_single_thread,
            // With -ff, a thread that makes no sync call has a file all the same.
            may_be_without_events: true,
            ..InputTraits::default()
        }
    }

    fn open(&'static self, input: Input, options: &SourceOptions) -> Result<Reader> {
        let path = input.path.clone();
        let clock = clock_of(input.head()).unwrap_or(Clock::LineOrder);
        if clock == Clock::Relative && is_single_thread(input.head()) && counts_from_others(input.head()) {
            return Err(Error::Read {
                path,
                source: Refused::error(
                    "a line of it comes before the call in the line before it has returned: with -ff, -r counts from the lines of other files, too",
                    "record with absolute times: strace -ff -ttt -T -yy -o FILE COMMAND",
                ),
            });
        }
        let name = match clock {
            Clock::Unix => "realtime",
            Clock::Day => "time_of_day",
            Clock::Relative => "relative",
            Clock::LineOrder => "line_order",
        };
        let parse = Arc::new(Records::new(clock, options, input.head()));
        let first = first_task(&path, input.head());
        let threads = StraceState::new(clock, first, begins_with_exec(input.head()), options);
        let mut facts = vec![("recorder", NAME.to_owned())];
        if !self.is_rest_of_stack(input.head()) {
            facts.push(("clock", name.to_owned()));
        }
        if let Some(resolution) = resolution_of(input.head()).filter(|unit| *unit >= COARSE_NS) {
            facts.push((TIME_RESOLUTION, resolution.to_string()));
        }
        Ok(Reader { stateful_pass: Some(Box::new(threads)), facts, ..Reader::of_text(cut, parse, input) })
    }

    fn explain(&self, problem: Problem) -> Option<Explanation> {
        Some(match problem {
            Problem::NoEvents { lines, io_uring } => {
                let mut message = format!("none of its {lines} lines is a sync call");
                if io_uring > 0 {
                    let uses = format!("; it uses io_uring or Linux AIO, whose syncs strace does not see ({io_uring} times)");
                    message.push_str(&uses);
                }
                Explanation {
                    message: Some(message),
                    hint: "the program synced nothing, or the log lacks its calls (record with strace -f, without an -e that excludes them); \
                           `syncline record` has routes that see more"
                        .into(),
                }
            }
            Problem::NoThreadIds => Explanation {
                message: None,
                hint: "give it the name that strace -ff gives (NAME.PID), or record with -f, which writes the thread of each line".into(),
            },
        })
    }
}

/// Whether no line has a PID: the log of one thread, as `-ff` writes it for each thread.
fn is_single_thread(head: &[u8]) -> bool {
    !Strace.is_rest_of_stack(head) && whole_lines(head).filter_map(Prefix::take).all(|prefix| prefix.tid.is_none())
}

/// Returns whether a call passes work to io_uring, which strace cannot see, or a sync to Linux AIO, whose end strace does not see.
pub(super) fn is_io_uring(name: &[u8], args: &[u8]) -> bool {
    match name {
        b"io_uring_setup" | b"io_uring_enter" => true,
        b"io_submit" => memmem::find(args, b"SYNC").is_some(),
        _ => false,
    }
}

/// By this many bytes of its line a message is recognized.
const MIN_MESSAGE_BYTES: usize = 20;

/// Stack lines belong to the call before them, also after a message. Text after a message belongs to the line that the message interrupts.
pub fn cut(bytes: &[u8]) -> Option<usize> {
    last_newline(bytes, |before, after| {
        let may_continue = before.ends_with(b"tached") || before.ends_with(b"tached\r");
        let next = after.split(|&b| b == b'\n').next().unwrap_or_default();
        // Fewer bytes could be the start of a stack line or of a message.
        let is_known = next.len() < after.len() || after.len() >= MIN_MESSAGE_BYTES;
        is_known && !is_stack(next) && !is_message(next) && !may_continue
    })
}

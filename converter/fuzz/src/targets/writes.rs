//! Any sequence of events of writes, or any bytes through all stages to the table of writes. Each event is in a row, or is a part of a
//! synchronized write; calls of a thread on one device do not overlap; and each name of a row is still known.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

use syncline_core::error::{Error, Result};
use syncline_core::event::probe::Probe;
use syncline_core::event::write::{CallEnd, CallKind, CallStart, FileId, IocbFlags, WriteEvent};
use syncline_core::event::{Dev, Event, Kind, UNKNOWN_TASK};
use syncline_core::input::open::OpenInput;
use syncline_core::input_file::Input;
use syncline_core::losses::Reason;
use syncline_core::names::{NameId, Names};
use syncline_core::options::Options;
use syncline_core::pair::writes::WritePairer;
use syncline_core::rows::write::{Unused, WriteRow};
use syncline_core::rows::{Row, Value};
use syncline_core::run;
use syncline_core::sink::WriteSink;

pub(super) fn run(data: &[u8]) {
    match data {
        // Bytes of the options follow the text.
        [text @ .., how, 0x80] => bytes(text, *how),
        _ => events(data),
    }
}

/// What the rows say, and the rules that hold for each.
#[derive(Default)]
struct Checker {
    numbers: BTreeSet<u64>,
    /// Starts and returns in rows, by the kind of their call.
    starts: [u64; CallKind::COUNT],
    ends: [u64; CallKind::COUNT],
    late: u64,
    limits: u64,
    /// By thread and device: the end of its last call.
    last_end: HashMap<(u32, Dev), i64>,
    rows: Vec<String>,
}

impl WriteSink for Checker {
    fn row(&mut self, row: &WriteRow, names: &Names) -> Result<()> {
        match *row {
            WriteRow::Call { number, at, start, end, unused } => {
                assert!(self.numbers.insert(number), "call {number} is there twice");
                let _ = (names.get(start.path), names.get(at.comm));
                self.starts[start.kind as usize] += 1;
                let has_end = matches!(unused, None | Some(Unused::Doubtful));
                assert_eq!(end.is_some(), has_end, "{row:?}");
                assert_ne!(unused, Some(Unused::NoStart));
                self.late += u64::from(unused == Some(Unused::Late));
                let Some((ts, end)) = end else {
                    self.keep(row, names);
                    return Ok(());
                };
                self.ends[end.kind as usize] += 1;
                assert_eq!(end.kind, start.kind);
                assert!(ts >= at.ts, "{row:?}");
                if unused.is_none() {
                    let last = self.last_end.insert((at.tid, start.file.dev), ts);
                    assert!(last.is_none_or(|last| last <= at.ts), "{row:?} begins before {last:?}");
                }
            }
            WriteRow::Return { end, unused, .. } => {
                assert!(matches!(unused, Unused::NoStart | Unused::Late));
                self.late += u64::from(unused == Unused::Late);
                self.ends[end.kind as usize] += 1;
            }
            WriteRow::Limits { .. } => self.limits += 1,
        }
        self.keep(row, names);
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Checker {
    fn keep(&mut self, row: &WriteRow, names: &Names) {
        let mut text = String::new();
        row.visit(&mut |column, value| {
            let _ = match value {
                Value::Name(name) => write!(text, "{column}={:?} ", names.text(name)),
                value => write!(text, "{column}={value:?} "),
            };
        });
        self.rows.push(text);
    }
}

fn events(data: &[u8]) {
    const STEPS: [i64; 4] = [0, 0, 1, 1000];
    let mut names = Names::default();
    let comms = ["a", "b"].map(|name| names.intern(name.as_bytes()));
    let (mut pairer, mut checker) = (WritePairer::default(), Checker::default());
    let (mut starts, mut ends) = ([0; CallKind::COUNT], [0; CallKind::COUNT]);
    let (mut limits, mut late, mut now) = (0, 0, 1_000_000_000);
    for bytes in data.chunks_exact(3) {
        let [a, b, c] = [bytes[0], bytes[1], bytes[2]];
        now += STEPS[usize::from(a >> 6)];
        let kind = match b & 7 {
            0..=3 => CallKind::Write,
            4..=6 => CallKind::Fsync,
            _ => CallKind::SyncInodes,
        };
        // Few devices and files, so that they match.
        let file =
            FileId { dev: Dev(u32::from(b >> 3 & 3)), ino: u64::from(b >> 5 & 1), generation: u32::from(b >> 6) };
        let event = match a & 15 {
            0..=6 => {
                starts[kind as usize] += 1;
                let path = names.intern_passing(format!("/{c}").as_bytes());
                let flags = IocbFlags(u32::from(c & 2) | u32::from(c & 0x10) | u32::from(c & 0x20) << 12);
                WriteEvent::Start(CallStart { flags, offset: i64::from(c), ..CallStart::of_sync(kind, file, path) })
            }
            7..=13 => {
                ends[kind as usize] += 1;
                WriteEvent::End(CallEnd { kind, ret: i64::from(c) - 100, dirty_pages: (c & 1 != 0).then_some(5) })
            }
            14 => {
                limits += 1;
                WriteEvent::Limits { background_pages: 1, hard_pages: 2 }
            }
            _ => WriteEvent::Lost,
        };
        // Mostly the name that the thread has.
        let (tid, comm) = (u32::from(a >> 4 & 3), comms[usize::from(c & 0xc0 == 0xc0)]);
        let kind = Kind::Probe(Probe::Write(event));
        let e = Event { ts: now, tid, pid: UNKNOWN_TASK, comm, line: 1, kind };
        let mut out = |row: &WriteRow| checker.row(row, &names);
        if c & 0x3f == 0x3f {
            late += u64::from(matches!(event, WriteEvent::Start(_) | WriteEvent::End(_)));
            pairer.late(&Event { ts: now - 1_000_000, ..e }, event, &mut out).expect("nothing is written");
        } else {
            pairer.event(&e, event, &mut out).expect("nothing is written");
        }
        // A row that is still to come needs its names.
        names.forget(|in_use| pairer.visit_names(in_use));
    }
    pairer.finish(&mut |row| checker.row(row, &names)).expect("nothing is written");
    let mut left = 0;
    pairer.visit_names(&mut |_: NameId| left += 1);
    assert_eq!(left, 0, "calls stay open");
    assert_eq!((checker.limits, checker.late), (limits, late));
    for kind in [CallKind::Write, CallKind::SyncInodes] {
        let at = kind as usize;
        assert_eq!((checker.starts[at], checker.ends[at]), (starts[at], ends[at]), "{kind:?}");
    }
    // Some of them may be parts of writes.
    let at = CallKind::Fsync as usize;
    assert!(checker.starts[at] <= starts[at] && checker.ends[at] <= ends[at]);
}

/// The table of any bytes does not depend on how many names are kept in reserve.
fn bytes(text: &[u8], how: u8) {
    let options = |max_idle_name_bytes| Options {
        workers: 1,
        window_ns: if how & 0x40 == 0 { 5_000_000_000 } else { 100 },
        max_idle_name_bytes,
        ..Options::default()
    };
    let Some(rows) = table(&options(4 << 20), text) else { return };
    assert_eq!(Some(rows), table(&options(0), text), "the rows depend on the names that are kept");
}

/// `None` if the bytes cannot be converted.
fn table(options: &Options, text: &[u8]) -> Option<Vec<String>> {
    let input = Input::from_bytes("fuzz", text.to_vec()).ok()?;
    let input = OpenInput::with_format(input, &options.sources, None).ok()?;
    let mut checker = Checker::default();
    match run::convert_into_writes(options, vec![input], &mut checker, &mut |_| true) {
        Ok(summary) => {
            let late = summary.losses.iter().find(|(reason, _)| *reason == Reason::LateEvent);
            assert!(late.map_or(0, |(_, loss)| loss.count) >= checker.late);
            Some(checker.rows)
        }
        Err(Error::NoEvents { .. } | Error::Read { .. }) => None,
        Err(other) => panic!("{other}"),
    }
}

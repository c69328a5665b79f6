//! Stacks and paths are forgotten when nothing refers to them. The rows must not depend on when that happens.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use syncline_core::error::Result;
use syncline_core::event::Dev;
use syncline_core::input_file::Input;
use syncline_core::losses::Losses;
use syncline_core::names::Names;
use syncline_core::options::Options;
use syncline_core::own_trace;
use syncline_core::rows::{Bio, Commit, Row, Value};
use syncline_core::run;
use syncline_core::sink::perfetto::PerfettoTrace;
use syncline_core::sink::threaded::Threaded;
use syncline_core::sink::{Group, RunFacts, Sink};

/// Recordings of several formats; those of one line are of one run.
const RUNS: &[&[&str]] = &[
    &["thesis/small4.log"],
    &["thesis/parallel4.log"],
    &["thesis/small4-torn.log"],
    &["thesis/sqlite_wal_full.log"],
    &["strace/small4.log"],
    &["strace/odd-stacks.log"],
    &["ftrace/small4.trace.txt.gz"],
    &["bpf/patched.log.gz"],
    &["dynamic-events/ext4.txt.gz"],
    &["perf/stacks.txt.gz"],
    &["several-recorders/strace.log", "several-recorders/ring.dat", "several-recorders/perf.txt.gz"],
    &["several-recorders/strace.log", "several-recorders/perf.txt.gz"],
];

/// The rows as text, and the most bytes that stacks and paths had.
#[derive(Clone, Default)]
struct Collected(Arc<Mutex<(Vec<String>, usize)>>);

impl Collected {
    fn add(&self, row: &impl Row, names: &Names) {
        let mut text = String::new();
        row.visit(&mut |column, value| {
            let _ = match value {
                Value::Name(name) => write!(text, "{column}={:?} ", names.text(name)),
                value => write!(text, "{column}={value:?} "),
            };
        });
        let mut collected = self.0.lock().unwrap();
        collected.1 = collected.1.max(names.passing_bytes());
        collected.0.push(text);
    }

    fn take(&self) -> (Vec<String>, usize) {
        let (mut rows, bytes) = std::mem::take(&mut *self.0.lock().unwrap());
        rows.sort_unstable();
        (rows, bytes)
    }
}

impl Sink for Collected {
    fn bio(&mut self, bio: &Bio, names: &Names) -> Result<()> {
        self.add(bio, names);
        Ok(())
    }

    fn group(&mut self, group: &Group<'_>, names: &Names) -> Result<()> {
        if let Some(call) = group.call {
            self.add(call, names);
        }
        for one in group.requests {
            self.add(one.request, names);
        }
        Ok(())
    }

    fn commit(&mut self, commit: &Commit, names: &Names) -> Result<()> {
        self.add(commit, names);
        Ok(())
    }

    fn finish(&mut self, _: &RunFacts, _: &Losses, _: &Names) -> Result<()> {
        Ok(())
    }
}

/// Forgets names whenever there are twice as many as were in use.
fn forgetful(run: &[&str]) -> Options {
    Options { max_idle_name_bytes: 0, ..options(run) }
}

fn options(run: &[&str]) -> Options {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data");
    let path = |name: &&str| data.join(name).to_str().expect("a plain path").to_owned();
    // With a short window, few events wait. Some are late then, the same ones in each conversion.
    Options { inputs: run.iter().map(path).collect(), workers: 1, window_ns: 1_000_000, ..Options::default() }
}

fn convert(options: &Options, sink: impl Sink + Send + 'static) {
    let mut inputs = run::open(options).unwrap();
    for open in &mut inputs {
        open.input.chunk_bytes = 200;
    }
    let mut sink = Threaded::new(Box::new(sink)).unwrap();
    run::convert_into(options, inputs, &mut sink, &mut |_| true).unwrap();
}

fn rows(options: &Options) -> (Vec<String>, usize) {
    let rows = Collected::default();
    convert(options, rows.clone());
    rows.take()
}

/// Returns the rows of a trace, and how often it begins its interned strings.
fn rows_of_trace(options: &Options, folder: &Path) -> (Vec<String>, usize) {
    let path: PathBuf = folder.join("x.pftrace");
    let devices = [(Dev::new(8, 0), "sda".to_owned()), (Dev::new(254, 0), "vda".to_owned())];
    convert(options, PerfettoTrace::create(&path, false, &devices, options.max_idle_name_bytes).unwrap());
    let rows = Collected::default();
    let mut sink = Threaded::new(Box::new(rows.clone())).unwrap();
    let mut names = Names::default();
    let input = Input::open(path.to_str().unwrap()).unwrap();
    let read = own_trace::read(input, &mut sink, &mut names, &mut |_| true).expect("the trace can be read back");
    sink.finish(&read.facts, &read.losses, &names).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let begins = bytes.windows(13).filter(|bytes| bytes == b"syncline.call").count();
    (rows.take().0, begins)
}

#[test]
fn rows_do_not_depend_on_when_names_are_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let (mut forgot, mut began) = (0, 0);
    for run in RUNS {
        let (want, most) = rows(&options(run));
        let (have, few) = rows(&forgetful(run));
        assert!(!want.is_empty(), "{run:?}");
        assert!(have == want, "{run:?}: the rows differ");
        forgot += usize::from(few < most);
        let (of_trace, once) = rows_of_trace(&options(run), folder.path());
        let (of_cleared, begins) = rows_of_trace(&forgetful(run), folder.path());
        assert!(of_cleared == of_trace, "{run:?}: the rows of the trace differ");
        assert_eq!(once, 1, "{run:?}");
        began = began.max(begins);
    }
    // Without names that are forgotten more than once, nothing was tested.
    assert!(forgot > 4 && began > 2, "{forgot} runs forgot names; a trace began its strings {began} times");
}

#[test]
fn the_path_of_a_file_that_was_synced_is_kept_for_its_later_bios() {
    const FILES: u64 = 300;
    let mut log = String::new();
    let mut event = |ms: u64, text: &str| {
        let _ = writeln!(log, "  wl-7 [000] ..... {}.{:03}000: {text}", 10 + ms / 1000, ms % 1000);
    };
    for ino in 1..=FILES {
        let names = format!("fs=\"ext4\" n0=\"file-{ino}\" n1=\"a-long-folder-{ino}\"");
        event(10 * ino, &format!("fsync_enter: (ext4_sync_file+0x4/0x17f) dev=1 ino={} gen=5 {names}", 10 + ino));
        event(10 * ino + 1, "fsync_exit: (vfs_fsync_range+0x7c/0x82 <- ext4_sync_file) ret=0");
    }
    let end = 10 * FILES + 100;
    event(end, "bio_add_folio: (f+0x4/0x3b) bio=0x10 ino=11 index=0 len=4096 off=0 dev=1");
    event(end + 1, "bio: (submit_bio+0x4/0xa6) bio=0x10 dev=1 sector=8 bytes=4096 opf=1 end_io=ext4_end_bio+0x0/0x131");
    event(end + 2, "bio_end: (bio_endio+0x4/0x103) bio=0x10 status=0");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.txt");
    std::fs::write(&path, log).unwrap();
    let run = [path.to_str().unwrap()];
    let (want, most) = rows(&options(&run));
    let (have, few) = rows(&forgetful(&run));
    assert!(have == want && few <= most);
    let bio = have.iter().find(|row| row.starts_with("bio_id")).unwrap();
    assert!(bio.contains("path=\".../a-long-folder-1/file-1\""), "{bio}");
}

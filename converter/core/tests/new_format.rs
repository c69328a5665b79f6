//! A format that Syncline does not know is added with one file, which implements `Source`, and one entry in the list of sources.
//!
//! The toy format has one event a line: `@TIME TID EVENT [ID]`, such as `@120 7 start 1`. Lines that begin with `;` are comments.

use std::fs;

use syncline_core::error::Error;
use syncline_core::event::{Dev, Event, Kind, Op, UNKNOWN_TASK};
use syncline_core::input_file::Input;
use syncline_core::losses::Reason;
use syncline_core::names::NameId;
use syncline_core::options::Options;
use syncline_core::run::convert;
use syncline_core::source::{Batch, Explanation, InputTraits, Lines, Problem, Reader, SOURCES, Source, SourceOptions};
use syncline_core::summary::Summary;

struct Toy;

static TOY: Toy = Toy;

impl Source for Toy {
    fn name(&self) -> &'static str {
        "toy"
    }

    fn hidden_losses(&self) -> &'static str {
        "It shows none."
    }

    fn sniff(&self, head: &[u8]) -> bool {
        head.starts_with(b"@") || head.starts_with(b"; toy")
    }

    fn describe(&self, input: &Input) -> InputTraits {
        let is_standalone = input.head().starts_with(b"; toy");
        InputTraits {
            is_standalone,
            starts_log: is_standalone,
            default_clock: Some("boottime"),
            ..InputTraits::default()
        }
    }

    fn open(&'static self, input: Input, options: &SourceOptions) -> syncline_core::error::Result<Reader> {
        Ok(Reader::of_lines(self, input, options))
    }

    fn explain(&self, problem: Problem) -> Option<Explanation> {
        matches!(problem, Problem::NoEvents { .. })
            .then(|| Explanation { message: None, hint: "play with it first".into() })
    }
}

impl Lines for Toy {
    fn cut(&self, bytes: &[u8]) -> Option<usize> {
        bytes.iter().rposition(|&byte| byte == b'\n').map(|newline| newline + 1)
    }

    fn parse_lines(&self, _options: &SourceOptions, chunk: &[u8], batch: &mut Batch) {
        for line in chunk.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::trim_ascii) {
            batch.lines += 1;
            if line.is_empty() || line.starts_with(b";") {
                continue;
            }
            match parse(line) {
                Some((ts, tid, kind)) => {
                    let line = batch.lines as u32;
                    batch.events.push(Event { ts, tid, pid: UNKNOWN_TASK, comm: NameId::NONE, line, kind });
                }
                None => batch.unparsed(line, "it is not a line of toys"),
            }
        }
    }
}

fn parse(line: &[u8]) -> Option<(i64, u32, Kind)> {
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.strip_prefix('@')?.split(' ');
    let (ts, tid, event) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?, words.next()?);
    let mut id = || words.next()?.parse().ok();
    let kind = match event {
        "fsync" => Kind::enter(Op::Fsync),
        "returned" => Kind::exit(Op::Fsync, Some(0)),
        "start" => Kind::SyncStart {
            id: id()?,
            start: 0,
            end: u64::MAX,
            path: NameId::NONE,
            fs: NameId::NONE,
            ino: 12,
            dev: Dev::UNKNOWN,
            datasync: false,
            by_thread: false,
        },
        "end" => Kind::end(id()?, 0),
        _ => return None,
    };
    Some((ts, tid, kind))
}

fn convert_text(text: &str, source: Option<&str>) -> (Result<Summary, Error>, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("in.toy"), text).unwrap();
    let mut sources = SOURCES.to_vec();
    sources.push(&TOY);
    let options =
        Options { inputs: vec![path("in.toy")], sources, source: source.map(str::to_owned), ..Options::default() };
    let result = convert(&options, &path("out.jsonl"), None, &mut |_| true);
    (result, fs::read_to_string(path("out.jsonl")).unwrap_or_default())
}

const LOG: &str = "; toy 1\n@100 7 fsync\n@120 7 start 1\nbroken\n@480 7 end 1\n@500 7 returned\n";

#[test]
fn a_new_format_is_detected_and_converted() {
    for source in [None, Some("toy")] {
        let (summary, rows) = convert_text(LOG, source);
        let summary = summary.unwrap();
        assert_eq!((summary.source, summary.lines, summary.requests), ("toy", 6, Some(1)));
        assert_eq!(summary.inputs[0].clock.name.as_deref(), Some("boottime"));
        assert!(summary.inputs[0].is_standalone);
        assert_eq!(summary.losses.get(Reason::UnparsedLine).count, 1);
        assert!(summary.unparsed[0].ends_with("in.toy:4: broken (it is not a line of toys)"), "{:?}", summary.unparsed);
        let rows: Vec<_> = rows.lines().collect();
        assert_eq!(rows.len(), 1);
        assert!(rows[0].contains("\"op\":\"fsync\"") && rows[0].contains("\"syscall_ns\":400"), "{}", rows[0]);
    }
}

#[test]
fn a_new_format_explains_its_problems() {
    let (error, _) = convert_text("; toy 1\n", None);
    let error = error.unwrap_err();
    assert!(error.to_string().ends_with("in.toy: no event in 1 lines"), "{error}");
    assert_eq!(error.hint().as_deref(), Some("play with it first"));
    let (error, _) = convert_text("no such format\n", None);
    assert!(error.unwrap_err().hint().is_some_and(|hint| hint.contains("bpftrace, toy")));
}

//! Any bytes as two logs of one run that report different threads. Their order must not matter: the rows are the same whichever log is
//! named first.

use std::collections::HashSet;

use syncline_core::error::{Error, Result};
use syncline_core::event::{Event, Kind, UNKNOWN_TASK};
use syncline_core::input::open::OpenInput;
use syncline_core::input_file::Chunk;
use syncline_core::losses::Losses;
use syncline_core::names::{NameId, Names};
use syncline_core::options::Options;
use syncline_core::rows::{Bio, Call, Request};
use syncline_core::run;
use syncline_core::sink::{Group, RunFacts, Sink};
use syncline_core::source::{Batch, TornTimes};

use crate::checks::{Checker, TwoLogs};

pub(super) fn run(data: &[u8]) {
    let Some(logs) = TwoLogs::of(data) else { return };
    let (options, open) = (&logs.options, |number| logs.open(number));
    let convert = |order: [usize; 2]| {
        let mut rows = Rows::default();
        let mut checker = Checker::new(&mut rows, false);
        match run::convert_into(options, order.map(open).into_iter().flatten().collect(), &mut checker, &mut |_| true) {
            Ok(_) => Some(rows.sorted()),
            Err(Error::NoEvents { .. } | Error::Read { .. } | Error::BeforeZero { .. }) => None,
            Err(other) => panic!("{other}"),
        }
    };
    let (Some(first), Some(second)) = (open(0), open(1)) else { return };
    // Two files of one format may be pieces of one log, whose order is that in which they are named.
    let are_pieces = first.source.name() == second.source.name();
    let subjects = [first, second].map(|log| Subjects::of(log, options));
    let Some(rows) = convert([0, 1]) else { return };
    if let [Some(a), Some(b)] = &subjects
        && !are_pieces
        && a.are_distinct_from(b)
    {
        assert_eq!(Some(rows), convert([1, 0]), "the order of the logs matters");
    }
}

/// What a log reports on.
struct Subjects {
    threads: HashSet<u32>,
    reports_bios: bool,
}

impl Subjects {
    /// `None` if the log cannot be read.
    fn of(log: OpenInput, options: &Options) -> Option<Self> {
        let mut reader = log.source.open(log.input, &options.source_options).ok()?;
        let (mut chunk, mut batch) = (Chunk::default(), Batch::default());
        let mut torn_times = TornTimes::default();
        let mut subjects = Self { threads: HashSet::new(), reports_bios: false };
        while reader.chunks.next(&mut chunk).ok()? {
            batch.clear();
            reader.parse.parse(chunk.bytes(), &mut batch);
            if let Some(pass) = &mut reader.stateful_pass {
                pass.apply(&mut batch);
            }
            torn_times.place(&mut batch);
            batch.events.iter().for_each(|event| subjects.add(event));
        }
        Some(subjects)
    }

    fn add(&mut self, event: &Event) {
        match event.kind {
            Kind::CallEnter { .. } | Kind::CallExit { .. } | Kind::SyncStart { .. } | Kind::SyncEnd { .. } => {
                self.threads.insert(event.tid);
            }
            Kind::Other => {}
            // Ids and addresses of bios are those of the whole machine.
            _ => self.reports_bios = true,
        }
    }

    fn are_distinct_from(&self, other: &Self) -> bool {
        !self.reports_bios
            && !other.reports_bios
            && self.threads.is_disjoint(&other.threads)
            && !self.threads.contains(&UNKNOWN_TASK)
            && !other.threads.contains(&UNKNOWN_TASK)
    }
}

/// The rows as text, without their numbers and without the counts of what is in flight, which depend on the order of events of one time.
#[derive(Default)]
struct Rows(Vec<String>);

impl Rows {
    fn sorted(mut self) -> Vec<String> {
        self.0.sort();
        self.0
    }
}

impl Sink for Rows {
    fn bio(&mut self, bio: &Bio, names: &Names) -> Result<()> {
        let bio = Bio { bio_id: 0, sync_id: bio.sync_id.map(|_| 0), in_flight_at_submit: (0, 0), ..bio.clone() };
        let comm = names.text(bio.comm).into_owned();
        let no_file = (NameId::NONE, 0);
        let bio = Bio { in_flight_at_complete: (0, 0), request_file: no_file, ..bio };
        let bio = Bio { comm: NameId::NONE, writers: NameId::NONE, ..bio };
        self.0.push(format!("{comm} {bio:?}"));
        Ok(())
    }

    fn group(&mut self, group: &Group<'_>, names: &Names) -> Result<()> {
        if let Some(Call { op, tid, comm, path, enter, exit, ret, call_only, .. }) = group.call {
            let (comm, path) = (names.text(*comm), names.text(*path));
            self.0.push(format!("call {op:?} {tid} {comm} {path} {enter} {exit:?} {ret:?} {call_only}"));
        }
        for Request {
            tid, comm, path, fs, ino, start, end, ret, first_event, call, extent, waits, confidence, ..
        } in group.requests.iter().map(|of| of.request)
        {
            let (comm, path, fs) = (names.text(*comm), names.text(*path), names.text(*fs));
            let call = call.map(|call| (call.op, call.enter, call.exit));
            self.0.push(format!(
                "request {tid} {comm} {path} {fs} {ino} {start:?} {end:?} {ret:?} {first_event} {call:?} {extent:?} {} {confidence:?}",
                waits.len()
            ));
        }
        Ok(())
    }

    fn finish(&mut self, _: &RunFacts, _: &Losses, _: &Names) -> Result<()> {
        Ok(())
    }
}

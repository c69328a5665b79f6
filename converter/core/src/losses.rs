//! What was not used, and why. Nothing is dropped without a count here.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Something is missing from the statistics.
    Loss,
    /// Counted for completeness.
    Info,
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::Info => "info",
        }
    }
}

macro_rules! reasons {
    ($($variant:ident $name:literal $severity:ident $meaning:literal)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Reason { $($variant),* }

        impl Reason {
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            pub fn severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity),* }
            }

            /// What it means, and what to do.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning),* }
            }
        }
    };
}

reasons! {
    LostByTracer "lost_by_tracer" Loss
        "the tracer says that it lost these events; record again with larger buffers (bpftrace: BPFTRACE_PERF_RB_PAGES)"
    UnparsedLine "unparsed_line" Loss
        "lines that are not of the format; torn by the recorder, or of another tool"
    MissingEvent "missing_event" Loss
        "events that the recorder counted and the log lacks: lost or torn on their way out of the kernel"
    Truncated "cut_off" Loss
        "logs without the recorder's last line: it was killed, or the file was not copied whole"
    IoUring "io_uring" Loss
        "uses of io_uring, in which strace sees neither writes nor syncs, and syncs by Linux AIO (io_submit), of which it does not see the end; record with another route: ring-buffer or bpftrace"
    DurationMissing "duration_missing" Loss
        "calls of which the log does not say how long they took; record with strace -T"
    LateEvent "late_event" Loss
        "events that came later than the reorder window allows, used out of order; convert again with a larger --window"
    UnmatchedComplete "unmatched_complete" Loss
        "completions for a bio that is not in flight: its submit was lost, or the line is there twice"
    NeverCompleted "never_completed" Loss
        "submitted bios whose completion is not in the log: it came after the log's end, or the tracer lost it, as bpftrace's tracepoint probes do without a word"
    NeverSubmitted "never_submitted" Loss
        "folios were added to a bio whose submit is not in the log"
    StartMissing "start_missing" Loss
        "requests whose start is not in the log: it begins in the middle of them, or the event was lost"
    EndMissing "end_missing" Loss
        "requests whose end is not in the log: it ends in the middle of them, or the event was lost"
    DuplicateStart "duplicate_start" Loss
        "a second start of a request that is open; the line is there twice"
    DuplicateEnd "duplicate_end" Loss
        "a second end of a request that has just ended; the line is there twice"
    UnmatchedWait "unmatched_wait" Loss
        "waits for a commit or a flush of which the log has one end, or that lie outside of their request; journal_ns or flush_ns of their request is null"
    UnmatchedExit "unmatched_exit" Loss
        "exits of a sync syscall whose entry is not in the log, or cannot be told from another's"
    UnmatchedCall "unmatched_call" Info
        "sync calls with no request: of a kind or a file system that the recorder does not follow, or with no inode to sync"
    CallOnly "call_only" Info
        "syncs of which only the call is known: what was written back for them (bytes, bios, writeback latency) is null; the routes ring-buffer and bpftrace record it"
    Duplicate "duplicate" Info
        "what two inputs or two tracepoints tell of one call, request or bio, and that was joined"
    SupersededBio "superseded_bio" Info
        "bios that one input tells of and that are not used: another input tells of their device's bios, and not of these, or not where its bios go"
    Remapped "remapped" Info
        "bios that a device mapper or a partition passes on, which are told at the device that they were meant for"
    FilteredOut "filtered_out" Info
        "requests and lone calls that the filter leaves out"
    FilterUnknown "filter_unknown" Info
        "requests and lone calls left out since the log does not tell what the filter asks: process, path, device or length"
    CompletedAfterEnd "completed_after_end" Info
        "bios that completed after their request had ended: it did not wait for them"
}

#[derive(Clone, Debug, Default)]
pub struct LossCount {
    pub count: u64,
    pub first_ts: Option<i64>,
    pub last_ts: Option<i64>,
    /// `file:line: text` of the first.
    pub example: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Losses {
    tallies: Vec<LossCount>,
}

impl Default for Losses {
    fn default() -> Self {
        Self { tallies: vec![LossCount::default(); Reason::ALL.len()] }
    }
}

impl Losses {
    pub fn add(&mut self, reason: Reason, count: u64, ts: Option<i64>) -> &mut LossCount {
        let tally = &mut self.tallies[reason as usize];
        // What a column can hold: a tracer may say any number.
        tally.count = tally.count.saturating_add(count).min(i64::MAX as u64);
        if let Some(ts) = ts {
            tally.first_ts = Some(tally.first_ts.map_or(ts, |first| first.min(ts)));
            tally.last_ts = Some(tally.last_ts.map_or(ts, |last| last.max(ts)));
        }
        tally
    }

    pub fn get(&self, reason: Reason) -> &LossCount {
        &self.tallies[reason as usize]
    }

    /// Reasons that occurred, in the order of `Reason::ALL`.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, &LossCount)> {
        Reason::ALL.iter().map(|&r| (r, self.get(r))).filter(|(_, t)| t.count > 0)
    }

    /// All that is missing from the statistics.
    pub fn total(&self) -> u64 {
        self.iter().filter(|(r, _)| r.severity() == Severity::Loss).fold(0, |sum, (_, t)| sum.saturating_add(t.count))
    }
}

//! Losses: events that are missing or that were not used, by reason. Nothing is dropped without a count here.

pub mod max_loss;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Something is missing from the statistics.
    Loss,
    /// Counted for completeness. The statistics lack nothing.
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

            /// What happened, and what the user can do about it.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning),* }
            }
        }
    };
}

reasons! {
    LostByTracer "lost_by_tracer" Loss
        "events that the tracer reported as lost; record again with larger buffers (syncline record: --buffer; trace-cmd and blktrace: -b; tracefs: buffer_size_kb; perf: -m; bpftrace: BPFTRACE_PERF_RB_PAGES)"
    MissedByProbe "missed_by_probe" Loss
        "events that no probe reported: they came in an interrupt while another kprobe ran, or the probe had no effect, as on a file system without a sync function such as tmpfs, where nothing is lost; larger buffers do not help: newer kernels have fprobes, which do not miss these"
    UnparsedLine "unparsed_line" Loss
        "lines that are not in the format of their log: torn by the recorder, or written by another tool"
    MissingEvent "missing_event" Loss
        "events that the recorder counted and that are not in its log: lost or torn on their way out of the kernel"
    Truncated "cut_off" Loss
        "logs without the recorder's last line: the recorder was killed, or the file was not copied whole"
    RecorderEnded "recorder_ended" Loss
        "recorders that ended before the recording did, so nothing is known from first_ts_ns on: they were killed, ran out of memory, or their disk was full; record again"
    IoUring "io_uring" Loss
        "uses of io_uring, whose writes and syncs strace does not see, and syncs by Linux AIO (io_submit), whose end it does not see; record with the route ring-buffer, dynamic-events or bpftrace"
    DurationMissing "duration_missing" Loss
        "calls whose duration is not in the log; record with strace -T"
    LateEvent "late_event" Loss
        "events that arrived after the reorder window, used out of order, and perhaps twice if the log holds a part of itself again; convert again with a larger --window"
    UnmatchedComplete "unmatched_complete" Loss
        "completions of a bio that is not in flight: its submit was lost, or the line is in the log twice"
    NeverCompleted "never_completed" Loss
        "submitted bios whose completion is not in the log: it came after the end of the log, or the tracer lost it"
    NeverSubmitted "never_submitted" Loss
        "bios to which folios were added and whose submit is not in the log"
    FoliosMissing "folios_missing" Loss
        "bios whose folios are not in the log or do not add up to their size; their bytes are their size, or null if that is not recorded either"
    StartMissing "start_missing" Loss
        "requests whose start is not in the log: the log begins during the request, or the event was lost"
    CallMissing "call_missing" Loss
        "requests that may have been made in a call whose entry is not in the log: the log begins during the call, or the event was lost; how long they took is not known"
    EndMissing "end_missing" Loss
        "requests whose end is not in the log: the log ends during the request, or the event was lost"
    EndsNotRecorded "ends_not_recorded" Loss
        "requests without an end in a log that records no end of such a sync; record ext4_sync_file_exit or f2fs_sync_file_exit too, or, as xfs and btrfs have no such event, the returns of the calls: sys_exit_fsync, sys_exit_fdatasync"
    DuplicateStart "duplicate_start" Loss
        "second starts of an open request: the line is in the log twice"
    DuplicateEnd "duplicate_end" Loss
        "second ends of a request that has just ended: the line is in the log twice"
    UnmatchedWait "unmatched_wait" Loss
        "waits for a commit or a flush with one end only, or outside of their request; journal_ns or flush_ns of the request is null"
    DamagedId "damaged_id" Loss
        "events with an id that cannot be that of their request, which their thread shows: the id is damaged; they are used for that request, which is then inferred"
    UnmatchedExit "unmatched_exit" Loss
        "exits of a sync call whose entry is not in the log, or that fit more than one open call"
    ExitMissing "exit_missing" Loss
        "sync calls whose exit is not known although the log records exits of such calls: the log ends within the call, the event was lost, or it is one of several exits (unmatched_exit); their duration and syscall_ns are null"
    SupersededEvent "superseded_event" Loss
        "events of calls and requests that are not used: another input is authoritative for their thread, and does not hold them"
    UnmatchedCall "unmatched_call" Info
        "sync calls without a request: the recorder does not follow this kind of call or file system, or there was no inode to sync"
    CallOnly "call_only" Info
        "requests whose sync call is all that was recorded; bytes, bios and writeback latency are null; the routes dynamic-events, ring-buffer and bpftrace record them"
    Duplicate "duplicate" Info
        "records of a call, request or bio that another input, another tracepoint or another part of the log holds too; each fact is used once"
    SupersededBio "superseded_bio" Info
        "bios that are not used: another input is authoritative for the bios of their device, and does not hold them or does not say where its bios go"
    SubmitsMissing "submits_missing" Info
        "requests of the block layer in a log that records no bios of their device: each is a row, from its first event on; how many bios it holds, and how long these waited before, is not known; record the submits too (blktrace: without -a, or with -a queue; perf and trace-cmd: -e block:block_bio_queue)"
    OnlyCpu "only_cpu" Info
        "recordings of blktrace with the file of CPU 0 only; if the machine has more CPUs, copy their files too (NAME.blktrace.1 and so on)"
    UnmatchedMark "unmatched_mark" Info
        "begins or ends of a mark without the other one; a mark without its end lasts until the end of the log"
    UnusedMark "unused_mark" Info
        "marks of the log after the first 100,000; give those that matter with --marks"
    Remapped "remapped" Info
        "bios that a device mapper or a partition redirects, and parts and mirrors of other bios; they are counted as the bio that was first submitted, on its device"
    OtherCompletion "other_completion" Info
        "completions of parts and mirrors of other bios, of bios whose submits the recorder leaves out, such as reads and flushes, and of what was in flight when the log began"
    EndedByRequest "ended_by_request" Info
        "bios whose own completion is not in the log; they end with their request in the block layer, which is complete some microseconds before them"
    FlushEndUnknown "flush_end_unknown" Info
        "flushes of several queues of a device at once whose ends cannot be distinguished: which is whose is not recorded"
    FilteredOut "filtered_out" Info
        "requests and unmatched calls that the filter excludes"
    FilterUnknown "filter_unknown" Info
        "requests and unmatched calls that the filter excludes because the log lacks what it asks for: process, path, device or duration"
    CompletedAfterEnd "completed_after_end" Info
        "bios that completed after the end of their request, which did not wait for them"
}

#[derive(Clone, Debug, Default)]
pub struct LossCount {
    pub count: u64,
    pub first_ts: Option<i64>,
    pub last_ts: Option<i64>,
    /// The earliest one: `file:line: text`.
    pub example: Option<String>,
    example_ts: Option<i64>,
}

impl LossCount {
    pub fn add(&mut self, count: u64, ts: Option<i64>) {
        // A tracer may report any number; a column holds 63 bits.
        self.count = self.count.saturating_add(count).min(i64::MAX as u64);
        if let Some(ts) = ts {
            self.first_ts = Some(self.first_ts.map_or(ts, |first| first.min(ts)));
            self.last_ts = Some(self.last_ts.map_or(ts, |last| last.max(ts)));
        }
    }

    /// Offers an occurrence as the example. The earliest one is kept, so that the line is the one at `first_ts`: pairing notices some
    /// losses long after they occurred.
    pub fn show(&mut self, ts: Option<i64>, example: impl FnOnce() -> String) {
        let is_earlier = ts.is_some_and(|ts| self.example_ts.is_none_or(|shown| ts < shown));
        if self.example.is_none() || is_earlier {
            self.example = Some(example());
            self.example_ts = ts;
        }
    }
}

#[derive(Clone, Debug)]
pub struct Losses {
    counts: Vec<LossCount>,
}

impl Default for Losses {
    fn default() -> Self {
        Self { counts: vec![LossCount::default(); Reason::ALL.len()] }
    }
}

impl Losses {
    pub fn add(&mut self, reason: Reason, count: u64, ts: Option<i64>) -> &mut LossCount {
        let loss = &mut self.counts[reason as usize];
        loss.add(count, ts);
        loss
    }

    /// Adds the losses of another stage.
    pub fn merge(&mut self, others: &Self) {
        for (reason, from) in others.iter() {
            self.merge_one(reason, from);
        }
    }

    /// Adds what was counted for one reason elsewhere.
    pub fn merge_one(&mut self, reason: Reason, from: &LossCount) {
        let loss = self.add(reason, from.count, from.first_ts);
        loss.last_ts = loss.last_ts.max(from.last_ts);
        if let Some(example) = &from.example {
            loss.show(from.example_ts, || example.clone());
        }
    }

    /// Counts a part of what one reason has counted for another one instead: a caller may know more of the reason than the input says.
    pub fn recount(&mut self, from: Reason, to: Reason, count: u64) {
        let before = &mut self.counts[from as usize];
        let count = count.min(before.count);
        if count > 0 {
            before.count -= count;
            let part = LossCount { count, ..before.clone() };
            self.merge_one(to, &part);
        }
    }

    pub fn get(&self, reason: Reason) -> &LossCount {
        &self.counts[reason as usize]
    }

    /// Reasons that occurred, in the order of `Reason::ALL`.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, &LossCount)> {
        Reason::ALL.iter().map(|&r| (r, self.get(r))).filter(|(_, t)| t.count > 0)
    }

    /// The number of losses of severity `Loss`.
    pub fn total(&self) -> u64 {
        self.iter().filter(|(r, _)| r.severity() == Severity::Loss).fold(0, |sum, (_, t)| sum.saturating_add(t.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_reason_is_counted_for_another_one() {
        let mut losses = Losses::default();
        losses.add(Reason::LostByTracer, 5, Some(10)).show(Some(10), || "Lost 5 events".to_owned());
        losses.recount(Reason::LostByTracer, Reason::MissedByProbe, 3);
        let count = |losses: &Losses, reason| losses.get(reason).count;
        assert_eq!((count(&losses, Reason::LostByTracer), count(&losses, Reason::MissedByProbe)), (2, 3));
        // No more than were lost, and all of them leave nothing.
        losses.recount(Reason::LostByTracer, Reason::MissedByProbe, 9);
        assert_eq!(losses.iter().map(|(reason, _)| reason).collect::<Vec<_>>(), [Reason::MissedByProbe]);
        assert_eq!((count(&losses, Reason::MissedByProbe), losses.total()), (5, 5));
        assert_eq!(losses.get(Reason::MissedByProbe).example.as_deref(), Some("Lost 5 events"));
    }

    #[test]
    fn the_example_is_the_earliest_one() {
        let mut losses = Losses::default();
        // Pairing notices at the end that the first request has no end.
        for (ts, text) in [(Some(30), "third"), (Some(10), "first"), (Some(20), "second"), (None, "never")] {
            losses.add(Reason::EndMissing, 1, ts).show(ts, || text.to_owned());
        }
        let loss = losses.get(Reason::EndMissing);
        assert_eq!((loss.first_ts, loss.example.as_deref()), (Some(10), Some("first")));

        let mut others = Losses::default();
        others.add(Reason::EndMissing, 1, Some(5)).show(Some(5), || "earlier".to_owned());
        losses.merge(&others);
        let loss = losses.get(Reason::EndMissing);
        assert_eq!((loss.first_ts, loss.example.as_deref()), (Some(5), Some("earlier")));
    }
}

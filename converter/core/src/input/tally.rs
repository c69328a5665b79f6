//! An input as far as it has been read: what it told, and at its end what it lacks of what it says itself.

use std::collections::BTreeMap;

use crate::error::{Error, Refused, Result};
use crate::event::{Kind, UNKNOWN_TASK};
use crate::location::tell;
use crate::losses::{Losses, Reason};
use crate::merge::OpenInput;
use crate::names::text_of;
use crate::run::Summary;
use crate::sink::Sink;
use crate::source::{self, Batch, NoteKind};

/// Unparsed lines that are shown whole.
const SHOWN_LINES: usize = 5;

/// An input as far as it has been read.
pub(crate) struct InputTally {
    /// The log that it is a piece of.
    pub(crate) log: usize,
    pub(crate) path: String,
    pub(crate) source: &'static str,
    pub(crate) lines: u64,
    pub(crate) events: u64,
    pub(crate) read_bytes: u64,
    last_event: Option<i64>,
    /// Its oldest and its newest event.
    span: Option<(i64, i64)>,
    /// Its first line that is no event, and how many there are.
    unparsed: Option<String>,
    unparsed_lines: u64,
    io_uring: u64,
    kinds: [u64; Kind::COUNT],
    /// What the recorder counted, of the kinds that it did.
    counted: [Option<u64>; Kind::COUNT],
    ended: bool,
    says_its_end: bool,
    pub(crate) is_standalone: bool,
}

impl InputTally {
    pub(crate) fn of((input, source): &OpenInput, log: usize) -> Self {
        Self {
            log,
            path: input.path.clone(),
            source: source.name(),
            lines: 0,
            events: 0,
            read_bytes: 0,
            last_event: None,
            span: None,
            unparsed: None,
            unparsed_lines: 0,
            io_uring: 0,
            kinds: [0; Kind::COUNT],
            counted: [None; Kind::COUNT],
            ended: false,
            says_its_end: source.says_its_end(input.head()),
            is_standalone: source.is_standalone(input.head()),
        }
    }

    /// At its end: whether it told of anything. OtherEvents may be `beside` it.
    pub(crate) fn check(&self, beside: bool) -> Result<()> {
        // A recorder that says its end has seen nothing, and so has strace of a thread of `-ff` that makes no sync call; the
        // inputs beside it may have.
        let of_a_thread = beside && self.source == source::strace::NAME && self.unparsed_lines == 0;
        if self.events > 0 || self.ended || of_a_thread { Ok(()) } else { Err(self.no_events()) }
    }

    /// At the end of a log, of which these are the pieces: what it lacks of what it says itself.
    pub(crate) fn lacks(pieces: &[&Self], losses: &mut Losses) -> Vec<NoteKind> {
        let mut lacks = Vec::new();
        let Some(last) = pieces.last() else { return lacks };
        let (says_its_end, ended) = (pieces.iter().any(|p| p.says_its_end), pieces.iter().any(|p| p.ended));
        if !says_its_end && !ended {
            // Counts of a map that has the name of ours are not those of our recorder.
            return lacks;
        }
        let of_kind = |kind: usize| {
            let have: u64 = pieces.iter().map(|p| p.kinds[kind]).sum();
            pieces.iter().fold(0u64, |sum, p| sum.saturating_add(p.counted[kind].unwrap_or(0))).saturating_sub(have)
        };
        let missing = (0..Kind::COUNT).fold(0u64, |sum, kind| sum.saturating_add(of_kind(kind)));
        // Each line that was torn is counted as such.
        let missing = missing.saturating_sub(pieces.iter().map(|p| p.unparsed_lines).sum());
        if missing > 0 {
            last.missing(missing, losses);
            lacks.push(NoteKind::Missing { count: missing });
        }
        if says_its_end && !ended {
            last.cut_off(losses);
            lacks.push(NoteKind::Truncated);
        }
        lacks
    }

    fn missing(&self, count: u64, losses: &mut Losses) {
        let tally = losses.add(Reason::MissingEvent, count, self.last_event);
        tally.example.get_or_insert_with(|| tell(&self.path, 0, "its recorder counted more than it holds"));
    }

    fn cut_off(&self, losses: &mut Losses) {
        let tally = losses.add(Reason::Truncated, 1, self.last_event);
        tally.example.get_or_insert_with(|| tell(&self.path, self.lines, "its last line is not the recorder's"));
    }

    pub(crate) fn no_events(&self) -> Error {
        let detail = self.unparsed.as_ref().map_or(String::new(), |line| format!("; the first that is none: {line}"));
        let (path, lines) = (self.path.clone(), self.lines);
        if self.source == source::strace::NAME {
            let seen =
                format!("; it uses io_uring or Linux AIO, whose syncs strace does not see ({} times)", self.io_uring);
            let detail = if self.io_uring > 0 { seen + &detail } else { detail };
            Error::NoCalls { path, lines, detail }
        } else {
            let of_blocks = matches!(self.source, "blktrace" | "blkparse");
            Error::NoEvents { path, lines, detail, of_blocks }
        }
    }

    /// Counts the events of a batch, up to the end of which so many bytes have been read.
    pub(crate) fn take_events(&mut self, batch: &Batch, read_bytes: u64) {
        self.read_bytes = read_bytes;
        self.lines += batch.lines;
        self.events += batch.events.len() as u64;
        self.last_event = batch.events.last().map(|e| e.ts).or(self.last_event);
        for event in &batch.events {
            self.kinds[event.kind.index()] += 1;
            self.span = Some(self.span.map_or((event.ts, event.ts), |(a, b)| (a.min(event.ts), b.max(event.ts))));
        }
    }

    /// InputHints other logs each call must say its thread.
    pub(crate) fn check_threads(&self, batch: &Batch, lines_before: u64) -> Result<()> {
        let needs = |kind: &Kind| {
            matches!(
                kind,
                Kind::CallEnter { .. } | Kind::CallExit { .. } | Kind::SyncStart { .. } | Kind::SyncEnd { .. }
            )
        };
        let Some(event) = batch.events.iter().find(|event| event.tid == UNKNOWN_TASK && needs(&event.kind)) else {
            return Ok(());
        };
        let line = lines_before + u64::from(event.line);
        let message = format!(
            "the call in line {line} does not say which thread makes it, and so it is not told from those of the other inputs"
        );
        let hint = if self.source == source::strace::NAME {
            "convert it on its own, give it the name that strace -ff gives (NAME.PID), or record with -f, which tells the thread of each line"
        } else {
            "convert it on its own, or record it with thread ids: `tid` in bpftrace's tuples"
        };
        Err(Error::Read { path: self.path.clone(), source: Refused::error(message, hint) })
    }

    /// Counts what in a batch is no event.
    pub(crate) fn take_notes(
        &mut self,
        batch: &Batch,
        lines_before: u64,
        mut sink: Option<&mut dyn Sink>,
        summary: &mut Summary,
    ) -> Result<()> {
        let path = &self.path;
        for note in &batch.notes {
            // A low-level log tells the line of the log that it was made from.
            let told =
                matches!(note.kind, NoteKind::Unparsed { why, .. } if why == source::events_jsonl::UNPARSED_BEFORE);
            let line = if told || note.line == 0 { note.line } else { lines_before + note.line };
            match &note.kind {
                NoteKind::Lost { .. } | NoteKind::LostUncounted => {
                    // It has no time of its own: that of the event before it.
                    let before = (note.after as usize).checked_sub(1).and_then(|i| batch.events.get(i));
                    let ts = before.map(|e| e.ts).or(self.last_event);
                    let (count, what) = match note.kind {
                        NoteKind::Lost { count } => (count, format!("Lost {count} events")),
                        _ => (1, "Lost events, it is not told how many".to_owned()),
                    };
                    let tally = summary.losses.add(Reason::LostByTracer, count, ts);
                    let text = tell(path, line, &what);
                    if let (Some(sink), Some(ts)) = (&mut sink, ts) {
                        sink.loss(Reason::LostByTracer, ts, &text)?;
                    }
                    tally.example.get_or_insert(text);
                }
                NoteKind::Counted { kind, count } => {
                    let counted = self.counted[*kind].get_or_insert(0);
                    *counted = counted.saturating_add(*count);
                }
                NoteKind::End => self.ended = true,
                NoteKind::Missing { count } => self.missing(*count, &mut summary.losses),
                NoteKind::Truncated => self.cut_off(&mut summary.losses),
                NoteKind::IoUring => {
                    self.io_uring += 1;
                    let tally = summary.losses.add(Reason::IoUring, 1, None);
                    tally.example.get_or_insert_with(|| tell(path, line, "io_uring"));
                }
                NoteKind::Unparsed { text, why } => {
                    self.unparsed_lines += 1;
                    let tally = summary.losses.add(Reason::UnparsedLine, 1, None);
                    let wanted =
                        summary.unparsed.len() < SHOWN_LINES || tally.example.is_none() || self.unparsed.is_none();
                    if wanted {
                        let shown = shorten(&text_of(text));
                        let example = tell(path, line, &shown);
                        if summary.unparsed.len() < SHOWN_LINES {
                            summary.unparsed.push(format!("{example} ({why})"));
                        }
                        self.unparsed.get_or_insert_with(|| format!("{example} ({why})"));
                        tally.example.get_or_insert(example);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Recordings that have no time in common, each with the one before it.
pub(crate) fn apart(files: &[InputTally], recordings: &[usize]) -> Vec<(String, String, i64)> {
    let mut spans: BTreeMap<usize, (i64, i64, &str)> = BTreeMap::new();
    for (file, recording) in files.iter().zip(recordings) {
        if let Some((from, to)) = file.span {
            let span = spans.entry(*recording).or_insert((from, to, &file.path));
            *span = (span.0.min(from), span.1.max(to), span.2);
        }
    }
    let mut spans: Vec<_> = spans.into_values().collect();
    spans.sort_unstable();
    let mut found = Vec::new();
    let mut before: Option<(i64, &str)> = None;
    for (from, to, path) in spans {
        if let Some((end, first)) = before
            && end < from
        {
            found.push((first.to_owned(), path.to_owned(), from - end));
        }
        before = before.filter(|(end, _)| *end > to).or(Some((to, path)));
    }
    found
}

/// A line as it can stand in a message.
fn shorten(text: &str) -> String {
    const SHOWN: usize = 160;
    let mut shown: String = text.chars().take(SHOWN).map(|c| if c.is_control() { '\u{b7}' } else { c }).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push_str("...");
    }
    shown
}

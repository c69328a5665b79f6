//! The tally of each input: counts and time span of the part that has been read, and at its end the events that it lacks.

use std::collections::BTreeMap;

use crate::error::{Error, Refused, Result, UnreadHead};
use crate::event::{Kind, UNKNOWN_TASK};
use crate::input::open::{OpenInput, thread_ids_hint};
use crate::location::at_line;
use crate::losses::{Losses, Reason};
use crate::names::text_of;
use crate::source::{Batch, Explanation, InputTraits, NoteKind, OtherEvents, Problem, Source, decimal_commas_hint};

/// Number of unparsed lines that are reported with their text.
const SHOWN_LINES: usize = 5;
/// Bytes of unparsed lines that are kept, and of each of them. They may be the output of another tool. There may be thousands of inputs.
const MAX_OTHER_TEXT: usize = 8192;
const MAX_OTHER_LINE: usize = 512;

/// Losses that the inputs report or that are found while they are read.
#[derive(Default)]
pub(crate) struct InputLosses {
    pub(crate) losses: Losses,
    /// The first unparsed lines: `file:line: text (why)`.
    pub(crate) unparsed: Vec<String>,
}

/// One input, as far as it has been read.
pub(crate) struct InputTally {
    /// The log that it is a piece of.
    pub(crate) log: usize,
    pub(crate) path: String,
    pub(crate) source: &'static dyn Source,
    pub(crate) traits: InputTraits,
    pub(crate) lines: u64,
    pub(crate) read_bytes: u64,
    /// Events in its batches, by kind.
    pub(crate) kinds: [u64; Kind::COUNT],
    /// Events that the source counted but did not keep.
    pub(crate) dropped_events: u64,
    pub(crate) other_events: Option<OtherEvents>,
    /// Times of its oldest and its newest event.
    pub(crate) span: Option<(i64, i64)>,
    last_event: Option<i64>,
    first_unparsed: Option<String>,
    unparsed_lines: u64,
    /// The first unparsed lines.
    pub(crate) other_text: Vec<u8>,
    io_uring: u64,
    /// Lines of other calls stand between the two lines of a call, so the log is in the order of the calls: one in a single line had returned
    /// when the next one of any thread began. Not so in files of `strace -ff` that were merged, whose calls have one line each.
    pub(crate) has_interrupted_calls: bool,
    /// The beginning of a text, until the first event is found.
    head: Box<[u8]>,
    /// Number of events by kind that the recorder counted, for the kinds that it counts.
    recorder_counts: [Option<u64>; Kind::COUNT],
    /// The recorder has reported its end.
    has_ended: bool,
    /// Its recorder ended before the recording did.
    pub(crate) has_ended_early: bool,
}

impl InputTally {
    pub(crate) fn new(open: &OpenInput, log: usize) -> Self {
        Self {
            log,
            path: open.input.path.clone(),
            source: open.source,
            traits: open.traits.clone(),
            lines: 0,
            read_bytes: 0,
            kinds: [0; Kind::COUNT],
            dropped_events: 0,
            other_events: None,
            span: None,
            last_event: None,
            first_unparsed: None,
            unparsed_lines: 0,
            other_text: Vec::new(),
            io_uring: 0,
            has_interrupted_calls: false,
            head: head_of_text(open.input.head()),
            recorder_counts: [None; Kind::COUNT],
            has_ended: false,
            has_ended_early: false,
        }
    }

    /// Number of events in its batches.
    pub(crate) fn events(&self) -> u64 {
        self.kinds.iter().sum()
    }

    /// Counts the events of a batch. `read_bytes` have been read of the input up to the end of the batch.
    pub(crate) fn add_events(&mut self, batch: &Batch, read_bytes: u64) {
        self.read_bytes = read_bytes;
        self.lines += batch.lines;
        self.has_interrupted_calls |= batch.has_interrupted_calls;
        self.dropped_events += batch.dropped_events;
        if let Some(counts) = &batch.other_events {
            self.other_events.get_or_insert_default().join(counts);
        }
        // A torn line is no event, although it says something about others.
        let mut events = batch.events.iter().filter(|event| !matches!(event.kind, Kind::Torn { .. })).peekable();
        let Some(first) = events.peek().map(|event| event.since()) else { return };
        self.head = Box::default();
        let (mut oldest, mut newest) = self.span.unwrap_or((first, first));
        for event in events {
            self.last_event = Some(event.ts);
            self.kinds[event.kind.index()] += 1;
            oldest = oldest.min(event.since());
            newest = newest.max(event.ts);
        }
        self.span = Some((oldest, newest));
    }

    /// Counts the notes of a batch, before `add_events`. `on_lost_events` gets the time and the text of each report of lost events.
    pub(crate) fn add_notes(
        &mut self,
        batch: &Batch,
        lines_before: u64,
        found: &mut InputLosses,
        mut on_lost_events: impl FnMut(i64, &str) -> Result<()>,
    ) -> Result<()> {
        let mut events = batch.events.iter().enumerate().peekable();
        let mut ts = self.last_event;
        for note in &batch.notes {
            let line = note.line_in_file(lines_before);
            match &note.kind {
                NoteKind::Lost { .. } | NoteKind::LostUncounted => {
                    // The report has no time. It gets the time of the event before it. A torn line does not count.
                    while let Some((_, event)) = events.next_if(|&(index, _)| index < note.after as usize) {
                        if !matches!(event.kind, Kind::Torn { .. }) {
                            ts = Some(event.ts);
                        }
                    }
                    let (count, text) = match note.kind {
                        NoteKind::Lost { count } => (count, format!("Lost {count} events")),
                        _ => (1, "Lost an unknown number of events".to_owned()),
                    };
                    let text = at_line(&self.path, line, &text);
                    if let Some(ts) = ts {
                        on_lost_events(ts, &text)?;
                    }
                    found.losses.add(Reason::LostByTracer, count, ts).show(ts, || text);
                }
                NoteKind::Counted { kind, count } => {
                    let total = self.recorder_counts[*kind].get_or_insert(0);
                    *total = total.saturating_add(*count);
                }
                NoteKind::End => self.has_ended = true,
                NoteKind::Missing { count } => self.add_missing(*count, &mut found.losses),
                NoteKind::Truncated => self.add_truncated(&mut found.losses),
                NoteKind::IoUring => {
                    self.io_uring += 1;
                    let loss = found.losses.add(Reason::IoUring, 1, None);
                    loss.show(None, || at_line(&self.path, line, "io_uring"));
                }
                NoteKind::OnlyCpu => {
                    let loss = found.losses.add(Reason::OnlyCpu, 1, None);
                    loss.show(None, || at_line(&self.path, 0, "the only file of its recording"));
                }
                NoteKind::Unparsed { text, why } => self.add_unparsed(line, text, why, found),
            }
        }
        Ok(())
    }

    fn add_unparsed(&mut self, line: u64, text: &[u8], why: &str, found: &mut InputLosses) {
        self.unparsed_lines += 1;
        if self.other_text.len() < MAX_OTHER_TEXT {
            self.other_text.extend_from_slice(&text[..text.len().min(MAX_OTHER_LINE)]);
            self.other_text.push(b'\n');
        }
        let loss = found.losses.add(Reason::UnparsedLine, 1, None);
        let is_shown = found.unparsed.len() < SHOWN_LINES;
        if !is_shown && loss.example.is_some() && self.first_unparsed.is_some() {
            return;
        }
        let example = at_line(&self.path, line, &printable(&text_of(text)));
        let with_reason = format!("{example} ({why})");
        loss.show(None, || example);
        if is_shown {
            found.unparsed.push(with_reason.clone());
        }
        self.first_unparsed.get_or_insert(with_reason);
    }

    fn add_missing(&self, count: u64, losses: &mut Losses) {
        let loss = losses.add(Reason::MissingEvent, count, self.last_event);
        loss.show(self.last_event, || at_line(&self.path, 0, "its recorder counted more events than it holds"));
    }

    /// The recorder of this input ended early: the input says nothing from `ts` on.
    pub(crate) fn add_ended_early(&mut self, ts: i64, losses: &mut Losses) {
        (self.has_ended, self.has_ended_early) = (true, true);
        let loss = losses.add(Reason::RecorderEnded, 1, Some(ts));
        loss.show(Some(ts), || at_line(&self.path, self.lines, "its recorder ended before the recording did"));
    }

    fn add_truncated(&self, losses: &mut Losses) {
        let loss = losses.add(Reason::Truncated, 1, self.last_event);
        loss.show(self.last_event, || at_line(&self.path, self.lines, "its last line is not the recorder's"));
    }

    /// Refuses an input that has been read to its end and had no event. `has_others`: it is converted together with other inputs.
    pub(crate) fn check_has_events(&self, has_others: bool) -> Result<()> {
        // A log with the recorder's last line is complete: nothing happened while it recorded.
        let is_acceptable =
            self.has_ended || has_others && self.traits.may_be_without_events && self.unparsed_lines == 0;
        if self.events() > 0 || is_acceptable { Ok(()) } else { Err(self.no_events()) }
    }

    pub(crate) fn no_events(&self) -> Error {
        let problem = Problem::NoEvents { lines: self.lines, io_uring: self.io_uring };
        let has_events = self.events() + self.dropped_events > 0;
        let commas = decimal_commas_hint(self.source, &self.other_text).filter(|_| !has_events);
        let explanation = match commas {
            // The format's own words are about rows that are missing, and these are there.
            Some(hint) => Some(Explanation {
                message: Some("its numbers have commas where the format has points".to_owned()),
                hint: hint.to_owned(),
            }),
            None => self.source.explain(problem),
        };
        let (message, hint) =
            explanation.map_or((None, None), |explanation| (explanation.message, Some(explanation.hint)));
        let default_message = || match (self.events() + self.dropped_events, self.lines) {
            (0, 0) => "no event that has to do with a sync".to_owned(),
            (0, lines) => format!("no event in {lines} lines"),
            (1, _) => "its only event has nothing to do with a sync".to_owned(),
            (events, _) => format!("none of its {events} events has to do with a sync"),
        };
        let unread = UnreadHead {
            message: format!("{}: no event in {} lines", self.path, self.lines),
            head: if has_events { Box::default() } else { self.head.clone() },
            is_detected: true,
            other_text: self.other_text.clone().into(),
        };
        let detail = match (self.unparsed_lines, &self.first_unparsed) {
            (0, _) | (_, None) => String::new(),
            // As root, a file may be one that the reader of the message could not read.
            (lines, _) if rustix::process::geteuid().is_root() => {
                format!("; lines that are not of its format: {lines}")
            }
            (lines, Some(line)) => format!("; lines that are not of its format: {lines}, the first one {line}"),
        };
        Error::NoEvents {
            path: self.path.clone(),
            message: message.unwrap_or_else(default_message),
            detail,
            hint: if self.has_ended_early {
                "its recorder ended before the recording did, so it is not known if there were syncs; record again"
                    .into()
            } else {
                hint.unwrap_or_else(|| "record events of syncs: `sudo syncline record --for 30s --and-report`; docs/reference/formats.md shows what an event looks like".into())
            },
            unread: Some(Box::new(unread)),
        }
    }

    /// Refuses calls without a thread id. Calls of other logs cannot be distinguished from them.
    pub(crate) fn check_thread_ids(&self, batch: &Batch, lines_before: u64) -> Result<()> {
        let needs_thread = |kind: &Kind| {
            matches!(
                kind,
                Kind::CallEnter { .. } | Kind::CallExit { .. } | Kind::SyncStart { .. } | Kind::SyncEnd { .. }
            )
        };
        let Some(event) = batch.events.iter().find(|event| event.tid == UNKNOWN_TASK && needs_thread(&event.kind))
        else {
            return Ok(());
        };
        let line = lines_before + u64::from(event.line);
        let message = format!(
            "the call in line {line} does not say which thread makes it, so it cannot be distinguished from calls of the other inputs"
        );
        let hint = thread_ids_hint(self.source, "it");
        Err(Error::Read { path: self.path.clone(), source: Refused::error(message, hint) })
    }
}

/// Compares a log with what its recorder reported: its end, and its counts of events. `pieces` are all inputs of the log, read to their end.
///
/// Adds the losses, and returns them as notes for the low-level log.
pub(crate) fn find_missing_events(pieces: &[&InputTally], losses: &mut Losses) -> Vec<NoteKind> {
    let mut notes = Vec::new();
    let Some(last) = pieces.last() else { return notes };
    let records_its_end = pieces.iter().any(|piece| piece.traits.records_its_end);
    let has_ended = pieces.iter().any(|piece| piece.has_ended);
    if !records_its_end && !has_ended {
        // Another program's map may have the name of the recorder's map of counts.
        return notes;
    }
    let missing_of_kind = |kind: usize| {
        let recorded: u64 = pieces.iter().map(|piece| piece.kinds[kind]).sum();
        let counted =
            pieces.iter().fold(0u64, |sum, piece| sum.saturating_add(piece.recorder_counts[kind].unwrap_or(0)));
        counted.saturating_sub(recorded)
    };
    let missing = (0..Kind::COUNT).fold(0u64, |sum, kind| sum.saturating_add(missing_of_kind(kind)));
    // An event on a torn line is already counted as an unparsed line.
    let missing = missing.saturating_sub(pieces.iter().map(|piece| piece.unparsed_lines).sum());
    if missing > 0 {
        last.add_missing(missing, losses);
        notes.push(NoteKind::Missing { count: missing });
    }
    if records_its_end && !has_ended {
        last.add_truncated(losses);
        notes.push(NoteKind::Truncated);
    }
    notes
}

/// Returns pairs of recordings that have no time in common, by the path of their first input: the first one, the next one that begins after
/// its end, and the gap between them in ns.
pub(crate) fn find_disjoint(tallies: &[InputTally], recordings: &[usize]) -> Vec<(String, String, i64)> {
    let mut span_of: BTreeMap<usize, (i64, i64, &str)> = BTreeMap::new();
    for (tally, recording) in tallies.iter().zip(recordings) {
        if let Some((from, to)) = tally.span {
            let span = span_of.entry(*recording).or_insert((from, to, &tally.path));
            *span = (span.0.min(from), span.1.max(to), span.2);
        }
    }
    let mut spans: Vec<_> = span_of.into_values().collect();
    spans.sort_unstable();
    let mut disjoint = Vec::new();
    // The recording that ends last of those before.
    let mut before: Option<(i64, &str)> = None;
    for (from, to, path) in spans {
        if let Some((end, first)) = before
            && end < from
        {
            disjoint.push((first.to_owned(), path.to_owned(), from - end));
        }
        before = before.filter(|(end, _)| *end > to).or(Some((to, path)));
    }
    disjoint
}

/// As much of the head of a text as may show what it is. There may be thousands of inputs.
fn head_of_text(head: &[u8]) -> Box<[u8]> {
    const MAX_BYTES: usize = 4096;
    if head.contains(&0) { Box::default() } else { head[..head.len().min(MAX_BYTES)].into() }
}

/// Shortens a line and replaces its control characters, for a message.
fn printable(text: &str) -> String {
    const MAX_CHARS: usize = 160;
    let mut shown: String = text.chars().take(MAX_CHARS).map(|c| if c.is_control() { '\u{b7}' } else { c }).collect();
    if text.chars().nth(MAX_CHARS).is_some() {
        shown.push_str("...");
    }
    shown
}

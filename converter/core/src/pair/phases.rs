//! Phases of a request: what each instant between its start and its end went to. docs/reference/phases.md states the rules.
//!
//! An instant belongs to the first that applies: the thread waits for a CPU, for a lock, for a flush, for a commit or a log; a bio of the
//! critical path is in flight; the thread submits, is about to be woken, or waits for writeback of others; nothing has begun yet, or all
//! is done. The rest is the residue.

use crate::event::WaitKind;
use crate::rows::{PhaseKind, PhaseSpan, WaitInterval};

/// A bio of the request. `issue` is `None` if it is not recorded.
#[derive(Clone, Copy, Debug)]
pub(super) struct BioTimes {
    pub(super) submit: i64,
    pub(super) issue: Option<i64>,
    pub(super) complete: i64,
}

/// Time in which the thread could not run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocked {
    pub(super) from: i64,
    /// When it was woken, or ran.
    pub(super) to: i64,
    pub(super) is_woken: bool,
    /// The last completion of a bio of its file meanwhile, if it was not for the request.
    pub(super) other_complete: Option<i64>,
}

/// A wait for the writeback of folios.
#[derive(Clone, Copy, Debug)]
pub(super) struct FolioWait {
    pub(super) from: i64,
    pub(super) to: i64,
    /// As of `Blocked`.
    pub(super) other_complete: Option<i64>,
}

/// The known facts of a request, in the order of time unless events were late.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    pub(super) bios: Vec<BioTimes>,
    /// When it was ready, in pieces by who had the CPU.
    pub(super) runnable: Vec<PhaseSpan>,
    pub(super) blocked: Vec<Blocked>,
    /// When the thread that woke it waited for a CPU itself, in pieces by who had that.
    pub(super) behind: Vec<PhaseSpan>,
    pub(super) lock_waits: Vec<(i64, i64)>,
    pub(super) folio_waits: Vec<FolioWait>,
    /// When it was in a function that writes page cache back and waits for that, if its functions were traced.
    pub(super) data_waits: Vec<(i64, i64)>,
    /// Its cache flushes in flight. The thread waits for each.
    pub(super) flushes: Vec<(i64, i64)>,
    /// Parts of its waits for commits.
    pub(super) commit_parts: Vec<PhaseSpan>,
    /// Waits for commits that had not ended, as far as was recorded, when the waits did.
    pub(super) open_commits: Vec<WaitInterval>,
    /// When the state of its thread is not known, because an event of the scheduler was lost.
    pub(super) unseen: Vec<(i64, i64)>,
    /// When it may have been in a wait whose start or end is not recorded.
    pub(super) torn: Vec<(i64, i64)>,
}

impl Evidence {
    pub(super) fn clear(&mut self) {
        let Self {
            bios,
            runnable,
            blocked,
            behind,
            lock_waits,
            folio_waits,
            data_waits,
            flushes,
            commit_parts,
            open_commits,
            unseen,
            torn,
        } = self;
        bios.clear();
        runnable.clear();
        blocked.clear();
        behind.clear();
        lock_waits.clear();
        folio_waits.clear();
        data_waits.clear();
        flushes.clear();
        commit_parts.clear();
        open_commits.clear();
        unseen.clear();
        torn.clear();
    }

    fn has_only_bios(&self) -> bool {
        self.runnable.is_empty()
            && self.blocked.is_empty()
            && self.lock_waits.is_empty()
            && self.data_waits.is_empty()
            && self.folio_waits.is_empty()
            && self.flushes.is_empty()
            && self.commit_parts.is_empty()
            && self.unseen.is_empty()
            && self.torn.is_empty()
    }
}

/// The frame of the phases of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) start: i64,
    pub(super) end: i64,
    /// The first submit, or the first wait without a bio; `None` if it is not known.
    pub(super) begun: Option<i64>,
    /// The last completion or the end of the last wait; `None` if it is not known.
    pub(super) done: Option<i64>,
    /// The states of its thread are recorded.
    pub(super) knows_state: bool,
    /// All of its bios are known.
    pub(super) knows_bios: bool,
}

/// Appends a span, or extends the last one.
fn push(spans: &mut Vec<PhaseSpan>, phase: PhaseKind, start: i64, end: i64) {
    push_span(spans, PhaseSpan::new(phase, start, end));
}

fn push_span(spans: &mut Vec<PhaseSpan>, span: PhaseSpan) {
    if span.start >= span.end {
        return;
    }
    match spans.last_mut() {
        Some(last) if (last.phase, last.end, last.cpu) == (span.phase, span.start, span.cpu) => last.end = span.end,
        _ => spans.push(span),
    }
}

/// Writes the phases of a request to `phases`, in the order of time. The rest of its time is the residue.
pub(super) fn find(evidence: &mut Evidence, waits: &[WaitInterval], frame: Frame, phases: &mut Vec<PhaseSpan>) {
    let Frame { start, end, mut begun, mut done, .. } = frame;
    phases.clear();
    for &(from, to) in &evidence.torn {
        // A wait that was lost is one all the same.
        begun = begun.map(|begun| begun.min(from));
        done = done.map(|done| done.max(to));
    }
    let edges = [
        (PhaseKind::BeforeSubmit, start, begun.unwrap_or(start).min(end)),
        (PhaseKind::AfterCompletion, done.unwrap_or(end).max(start).max(begun.unwrap_or(start)), end),
    ];
    if waits.is_empty() && !frame.knows_state && evidence.has_only_bios() {
        let [(before, from, to), (after, done, end)] = edges;
        push(phases, before, from, to);
        critical_path(evidence, frame, phases);
        push(phases, after, done, end);
        return;
    }
    let mut data = Vec::new();
    let gaps = critical_path(evidence, frame, &mut data);
    // Bios say more, if they are known.
    let data_waits = if frame.knows_bios { Vec::new() } else { disjoint(&evidence.data_waits) };
    for (from, to) in data_waits {
        push(&mut data, PhaseKind::Writeback, from, to);
    }
    let mut ends = Vec::new();
    for (phase, from, to) in edges {
        push(&mut ends, phase, from, to);
    }
    let idle =
        if frame.knows_state { idle_of_known(evidence, &gaps, frame.knows_bios) } else { idle_of_unknown(evidence) };
    let of =
        |spans: &[(i64, i64)], phase| spans.iter().map(|&(start, end)| PhaseSpan::new(phase, start, end)).collect();
    let first = [
        std::mem::take(&mut evidence.runnable),
        of(&evidence.lock_waits, PhaseKind::LockWait),
        of(&evidence.flushes, PhaseKind::Wait(WaitKind::Flush)),
    ];
    let mut first = first.map(|spans| Layer::new(spans, frame));
    let mut parts = Layer::new(std::mem::take(&mut evidence.commit_parts), frame);
    let mut last = [data, idle, ends].map(|spans| Layer::new(spans, frame));
    let unknown = [&evidence.unseen, &evidence.torn].map(|spans| of(spans, PhaseKind::Residue));
    let [mut unseen, mut torn] = unknown.map(|spans| Layer::new(spans, frame));
    let mut behind =
        Layer::new(if frame.knows_state { std::mem::take(&mut evidence.behind) } else { Vec::new() }, frame);
    let mut waits = ActiveWaits::new(waits);
    for (from, to) in pieces(first.iter().chain([&parts, &unseen, &torn, &behind]).chain(&last), &waits, frame) {
        let part = parts.at(from).map(|span| span.phase);
        let (is_unseen, is_torn) = (unseen.at(from).is_some(), torn.at(from).is_some());
        let wait = waits.at(from);
        let is_commit_over = part == Some(PhaseKind::Residue) && wait == Some(WaitKind::CommitWait);
        let of_wait = wait.map(|wait| match part {
            Some(part) if wait == WaitKind::CommitWait && !is_unseen && !is_commit_over => part,
            _ => PhaseKind::Wait(wait),
        });
        // An unknown state explains nothing, so its time stays in the residue, or in the wait as a whole.
        let of_state = if is_unseen { None } else { first.iter_mut().find_map(|layer| layer.at(from)) };
        // Where it may have been in another wait, only what would come before that is known.
        let of_wait = of_wait.filter(|&phase| !is_torn || phase == PhaseKind::Wait(WaitKind::Flush));
        let of_data = || if is_unseen || is_torn { None } else { last.iter_mut().find_map(|layer| layer.at(from)) };
        if is_commit_over && !frame.knows_state && of_state.is_none() {
            continue;
        }
        let of_wait = of_wait.map(|phase| PhaseSpan::new(phase, from, to));
        let Some(found) = of_state.or(of_wait).or_else(of_data) else { continue };
        let its = behind.at(from).filter(|_| !is_unseen && found.phase.needs_other_thread());
        let cpu = its.map_or(found.cpu, |span| span.cpu);
        let span = PhaseSpan { start: from, end: to, cpu, ..found };
        // A trace draws a phase inside of a wait, so it must not cross the border of one.
        if waits.borders.binary_search(&from).is_ok() {
            phases.push(span);
        } else {
            push_span(phases, span);
        }
    }
}

/// The pieces of a request in which nothing changes.
fn pieces<'a>(layers: impl Iterator<Item = &'a Layer>, waits: &ActiveWaits<'_>, frame: Frame) -> Vec<(i64, i64)> {
    let mut borders = vec![frame.start, frame.end];
    layers.for_each(|layer| borders.extend(layer.spans.iter().flat_map(|span| [span.start, span.end])));
    borders.extend(waits.borders.iter().filter(|border| (frame.start..frame.end).contains(border)));
    borders.sort_unstable();
    borders.dedup();
    borders.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

/// Spans that are apart from one another, and are asked for in the order of time.
struct Layer {
    spans: Vec<PhaseSpan>,
    next: usize,
}

impl Layer {
    fn new(mut spans: Vec<PhaseSpan>, frame: Frame) -> Self {
        spans.sort_by_key(|span| (span.start, span.end));
        let mut reached = frame.start;
        spans.retain_mut(|span| {
            span.start = span.start.max(reached);
            span.end = span.end.min(frame.end);
            reached = reached.max(span.end);
            span.start < span.end
        });
        Self { spans, next: 0 }
    }

    /// The span at a time that is not before those that were asked for.
    fn at(&mut self, ts: i64) -> Option<PhaseSpan> {
        while self.spans.get(self.next)?.end <= ts {
            self.next += 1;
        }
        self.spans.get(self.next).copied().filter(|span| span.start <= ts)
    }
}

/// The waits of a request, asked for in the order of time.
struct ActiveWaits<'a> {
    /// Those that have not begun, in the order of their starts.
    later: &'a [WaitInterval],
    /// Those that have begun, the last one innermost. Inner ones may have ended.
    begun: Vec<(i64, WaitKind)>,
    /// When the last flush ends that has begun.
    flush_end: i64,
    /// Their starts and ends, sorted.
    borders: Vec<i64>,
}

impl<'a> ActiveWaits<'a> {
    fn new(waits: &'a [WaitInterval]) -> Self {
        let mut borders: Vec<i64> = waits.iter().flat_map(|wait| [wait.start, wait.end]).collect();
        borders.sort_unstable();
        Self { later: waits, begun: Vec::new(), flush_end: i64::MIN, borders }
    }

    /// The wait at a time: a flush, else the innermost one.
    fn at(&mut self, ts: i64) -> Option<WaitKind> {
        while let Some((wait, later)) = self.later.split_first().filter(|(wait, _)| wait.start <= ts) {
            self.later = later;
            if wait.wait == WaitKind::Flush {
                self.flush_end = self.flush_end.max(wait.end);
            } else {
                self.begun.push((wait.end, wait.wait));
            }
        }
        if ts < self.flush_end {
            return Some(WaitKind::Flush);
        }
        while self.begun.pop_if(|(end, _)| *end <= ts).is_some() {}
        self.begun.last().map(|&(_, wait)| wait)
    }
}

/// Appends what was in flight for the request, along the path that ended last, and the time in which it submitted meanwhile. Returns the
/// gaps in which nothing was in flight between two submits.
fn critical_path(evidence: &mut Evidence, frame: Frame, path: &mut Vec<PhaseSpan>) -> Vec<(i64, i64)> {
    let mut gaps = Vec::new();
    let Evidence { bios, blocked, .. } = evidence;
    for bio in bios.iter_mut() {
        bio.complete = bio.complete.min(frame.end);
    }
    bios.retain(|bio| frame.start <= bio.submit && bio.submit < bio.complete);
    if bios.len() > 1 {
        bios.sort_unstable_by_key(|bio| (bio.submit, bio.complete));
    }
    let mut rest = &bios[..];
    let mut walk = Walk { last: Vec::new(), spans: Vec::new() };
    while let Some(first) = rest.first() {
        let (mut count, mut reached) = (1, first.complete);
        while let Some(next) = rest.get(count).filter(|next| next.submit <= reached) {
            reached = reached.max(next.complete);
            count += 1;
        }
        let (together, later) = rest.split_at(count);
        walk.back(together, reached, frame.knows_state.then_some(blocked));
        walk.spans.drain(..).rev().for_each(|span| push(path, span.phase, span.start, span.end));
        gaps.extend(later.first().map(|next| (reached, next.submit)));
        rest = later;
    }
    gaps
}

/// A walk back in time along the bios of a request that are in flight together.
struct Walk {
    /// Index of the bio that completes last among those up to each one, in the order of their submits.
    last: Vec<usize>,
    /// The spans that were found, the latest first.
    spans: Vec<PhaseSpan>,
}

impl Walk {
    /// Begins at the last completion, with the bio that completed last. Before its submit the thread ran, and filled further bios, or it was
    /// blocked. Without `blocked` it is not known which.
    fn back(&mut self, bios: &[BioTimes], end: i64, blocked: Option<&Vec<Blocked>>) {
        if let [only] = bios {
            self.in_flight(only, only.submit, end);
            return;
        }
        self.last.clear();
        for (index, bio) in bios.iter().enumerate() {
            let before = self.last.last().copied().filter(|&before: &usize| bios[before].complete > bio.complete);
            self.last.push(before.unwrap_or(index));
        }
        let Some(critical) = self.last.last().map(|&index| &bios[index]) else { return };
        self.in_flight(critical, critical.submit, end);
        let (from, until) = (bios[0].submit, critical.submit);
        let Some(blocked) = blocked else { return self.along_bios(bios, from, until) };
        let mut reached = until;
        let first = blocked.partition_point(|blocked| blocked.to <= from);
        let end = blocked.partition_point(|blocked| blocked.from < until);
        for blocked in blocked.get(first..end).unwrap_or_default().iter().rev() {
            let (start, end) = (blocked.from.max(from), blocked.to.min(reached));
            self.add(PhaseKind::Submit, end, reached);
            self.along_bios(bios, start, end);
            reached = start.min(reached);
        }
        self.add(PhaseKind::Submit, from, reached);
    }

    /// The time from `from` to `until`, in which the thread did not submit: at its end, the bio in flight that completed last, and before its
    /// submit the same again.
    fn along_bios(&mut self, bios: &[BioTimes], from: i64, until: i64) {
        let mut until = until;
        while from < until {
            let submitted = bios.partition_point(|bio| bio.submit < until);
            let Some(bio) = submitted.checked_sub(1).map(|at| &bios[self.last[at]]) else { return };
            self.in_flight(bio, bio.submit.max(from), until.min(bio.complete));
            until = bio.submit;
        }
    }

    /// What a bio did in a time in which it was in flight.
    fn in_flight(&mut self, bio: &BioTimes, from: i64, to: i64) {
        let Some(issue) = bio.issue else { return self.add(PhaseKind::Writeback, from, to) };
        self.add(PhaseKind::Device, issue.clamp(from, to.max(from)), to);
        self.add(PhaseKind::Queue, from, issue.min(to));
    }

    fn add(&mut self, phase: PhaseKind, start: i64, end: i64) {
        if start < end {
            self.spans.push(PhaseSpan::new(phase, start, end));
        }
    }
}

/// What the thread did while no bio of its own was in flight.
fn idle_of_known(evidence: &Evidence, gaps: &[(i64, i64)], knows_bios: bool) -> Vec<PhaseSpan> {
    let mut idle = Vec::new();
    let mut completions: Vec<i64> = evidence.bios.iter().map(|bio| bio.complete).collect();
    completions.sort_unstable();
    let folio_waits: Vec<(i64, i64)> = evidence.folio_waits.iter().map(|wait| (wait.from, wait.to)).collect();
    let folio_waits = disjoint(&folio_waits);
    for blocked in &evidence.blocked {
        let own =
            completions.partition_point(|&complete| complete <= blocked.to).checked_sub(1).map(|at| completions[at]);
        let last = own.max(blocked.other_complete);
        if last.is_none() && !knows_bios {
            // It may have waited for a bio of its own.
            continue;
        }
        let until = last.map_or(blocked.to, |last| last.max(blocked.from));
        for (from, to) in inside(&folio_waits, blocked.from, until) {
            push(&mut idle, PhaseKind::EarlierWriteback, from, to);
        }
        if last > Some(blocked.from) {
            push(&mut idle, PhaseKind::Completion, until, blocked.to);
            continue;
        }
        // The bios were complete before. ext4 ends the writeback of their folios in a worker, for example.
        for (from, to) in inside(&folio_waits, until, blocked.to) {
            push(&mut idle, PhaseKind::Completion, from, to);
        }
    }
    let blocked: Vec<(i64, i64)> = evidence.blocked.iter().map(|blocked| (blocked.from, blocked.to)).collect();
    for &(from, to) in gaps {
        let mut reached = from;
        for (start, end) in inside(&blocked, from, to) {
            push(&mut idle, PhaseKind::Submit, reached, start);
            reached = end;
        }
        push(&mut idle, PhaseKind::Submit, reached, to);
    }
    idle
}

/// Without the states of the thread, a wait for folios has a reason only until a bio of somebody else completes in it. After that, and where
/// none completes, the thread may be ready, and wait for a CPU.
fn idle_of_unknown(evidence: &Evidence) -> Vec<PhaseSpan> {
    let mut idle = Vec::new();
    let of_others = |wait: &FolioWait| Some((wait.from, wait.other_complete?.min(wait.to)));
    let of_others: Vec<(i64, i64)> = evidence.folio_waits.iter().filter_map(of_others).collect();
    for (from, to) in disjoint(&of_others) {
        push(&mut idle, PhaseKind::EarlierWriteback, from, to);
    }
    idle
}

/// The union of spans, in the order of time.
fn disjoint(spans: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let mut sorted = spans.to_vec();
    sorted.sort_unstable();
    sorted.dedup_by(|next, kept| {
        let joins = next.0 <= kept.1;
        if joins {
            kept.1 = kept.1.max(next.1);
        }
        joins
    });
    sorted
}

/// The parts of spans, which are apart from one another and in the order of time, between two times.
fn inside(spans: &[(i64, i64)], from: i64, to: i64) -> impl Iterator<Item = (i64, i64)> {
    let first = spans.partition_point(|&(_, end)| end <= from);
    let parts = spans[first..].iter().take_while(move |&&(start, _)| start < to);
    parts.map(move |&(start, end)| (start.max(from), end.min(to)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::CommitStep;
    use crate::rows::Confidence;

    fn bio(submit: i64, issue: i64, complete: i64) -> BioTimes {
        BioTimes { submit, issue: Some(issue), complete }
    }

    fn wait(wait: WaitKind, start: i64, end: i64) -> WaitInterval {
        WaitInterval {
            sync_id: 1,
            number: 0,
            wait,
            start,
            end,
            transaction: 0,
            commit_id: None,
            confidence: Confidence::Exact,
        }
    }

    fn ready<const N: usize>(spans: [(i64, i64); N]) -> Vec<PhaseSpan> {
        spans.map(|(start, end)| PhaseSpan::new(PhaseKind::CpuWait, start, end)).to_vec()
    }

    fn blocked(from: i64, to: i64) -> Blocked {
        Blocked { from, to, is_woken: true, other_complete: None }
    }

    /// The phases of a request from 0 to 1000, as (name, start, end). Its state is known if it was ever blocked or runnable.
    fn phases(mut evidence: Evidence, waits: &[WaitInterval]) -> Vec<(&'static str, i64, i64)> {
        let begun = evidence.bios.iter().map(|bio| bio.submit).min().or(waits.first().map(|wait| wait.start));
        let ends = evidence.bios.iter().map(|bio| bio.complete).chain(waits.iter().map(|wait| wait.end));
        let knows_state = !evidence.blocked.is_empty() || !evidence.runnable.is_empty();
        let frame = Frame { start: 0, end: 1000, begun, done: ends.max(), knows_state, knows_bios: true };
        let mut found = Vec::new();
        find(&mut evidence, waits, frame, &mut found);
        found.into_iter().map(|span| (span.phase.name(), span.start, span.end)).collect()
    }

    #[test]
    fn of_bios_in_parallel_the_one_that_ended_last_counts() {
        let bios = vec![bio(100, 120, 500), bio(130, 200, 400), bio(150, 160, 600)];
        let expected = [
            ("before submit", 0, 100),
            ("queue", 100, 120),
            ("device", 120, 150),
            ("queue", 150, 160),
            ("device", 160, 600),
            ("after completion", 600, 1000),
        ];
        assert_eq!(phases(Evidence { bios: bios.clone(), ..Evidence::default() }, &[]), expected);
        // The thread ran until it was blocked at 155, so it was filling the third bio.
        let evidence =
            Evidence { bios, blocked: vec![blocked(155, 610)], runnable: ready([(610, 640)]), ..Evidence::default() };
        let expected = [
            ("before submit", 0, 100),
            ("submit", 100, 150),
            ("queue", 150, 160),
            ("device", 160, 600),
            ("completion", 600, 610),
            ("cpu wait", 610, 640),
            ("after completion", 640, 1000),
        ];
        assert_eq!(phases(evidence, &[]), expected);
    }

    #[test]
    fn a_thread_that_was_blocked_between_two_submits_waited_for_the_earlier_bio() {
        let evidence = Evidence {
            bios: vec![bio(100, 110, 300), bio(350, 350, 800), bio(330, 340, 700)],
            blocked: vec![blocked(120, 310), blocked(360, 800)],
            ..Evidence::default()
        };
        let expected = [
            ("before submit", 0, 100),
            ("queue", 100, 110),
            ("device", 110, 300),
            ("completion", 300, 310),
            ("submit", 310, 350),
            ("device", 350, 800),
            ("after completion", 800, 1000),
        ];
        assert_eq!(phases(evidence, &[]), expected);
    }

    #[test]
    fn a_wait_is_split_at_the_steps_of_its_commit_and_ends_where_the_thread_could_run() {
        let part = |phase, start, end| PhaseSpan::new(phase, start, end);
        let evidence = Evidence {
            bios: vec![bio(50, 60, 200)],
            runnable: ready([(200, 220), (800, 850)]),
            commit_parts: vec![
                part(PhaseKind::EarlierCommit, 300, 400),
                part(PhaseKind::CommitStart, 400, 410),
                part(PhaseKind::CommitStep(CommitStep::Logging), 410, 790),
            ],
            ..Evidence::default()
        };
        let waits = [
            wait(WaitKind::FastCommit, 250, 870),
            wait(WaitKind::CommitWait, 300, 860),
            wait(WaitKind::Flush, 865, 900),
        ];
        let expected = [
            ("before submit", 0, 50),
            ("queue", 50, 60),
            ("device", 60, 200),
            ("cpu wait", 200, 220),
            ("fast commit", 250, 300),
            ("earlier commit", 300, 400),
            ("commit start", 400, 410),
            ("commit logging", 410, 790),
            ("commit wait", 790, 800),
            ("cpu wait", 800, 850),
            ("commit wait", 850, 860),
            ("fast commit", 860, 865),
            ("flush", 865, 870),
            ("flush", 870, 900),
            ("after completion", 900, 1000),
        ];
        assert_eq!(phases(evidence, &waits), expected);
    }

    #[test]
    fn writeback_of_others_counts_until_the_last_of_it_is_complete() {
        let evidence = Evidence {
            bios: vec![bio(100, 100, 200)],
            lock_waits: vec![(20, 40)],
            folio_waits: vec![FolioWait { from: 150, to: 700, other_complete: Some(400) }],
            blocked: vec![
                Blocked { from: 160, to: 420, is_woken: true, other_complete: Some(400) },
                // Its folio is written, and a worker has yet to say so.
                blocked(500, 650),
                // Nothing says what for.
                blocked(750, 800),
            ],
            ..Evidence::default()
        };
        let expected = [
            ("before submit", 0, 20),
            ("lock wait", 20, 40),
            ("before submit", 40, 100),
            ("device", 100, 200),
            ("earlier writeback", 200, 400),
            ("completion", 400, 420),
            ("after completion", 420, 500),
            ("completion", 500, 650),
            ("after completion", 650, 1000),
        ];
        assert_eq!(phases(evidence, &[]), expected);
    }

    #[test]
    fn a_wait_for_folios_may_be_for_a_bio_that_is_not_known() {
        let wait_of = |other_complete| Evidence {
            folio_waits: vec![FolioWait { from: 150, to: 700, other_complete }],
            blocked: vec![Blocked { from: 160, to: 420, is_woken: true, other_complete }],
            ..Evidence::default()
        };
        let frame = Frame { start: 0, end: 1000, begun: None, done: None, knows_state: true, knows_bios: false };
        let of = |mut evidence: Evidence| {
            let mut found = Vec::new();
            find(&mut evidence, &[], frame, &mut found);
            found.into_iter().map(|span| (span.phase.name(), span.start, span.end)).collect::<Vec<_>>()
        };
        assert_eq!(of(wait_of(None)), []);
        // A bio for somebody else has completed in it.
        assert_eq!(of(wait_of(Some(400))), [("earlier writeback", 160, 400), ("completion", 400, 420)]);
    }

    #[test]
    fn a_thread_of_unknown_state_may_be_ready_as_soon_as_what_it_waits_for_is_there() {
        let commit_parts = [
            (PhaseKind::CommitStep(CommitStep::Logging), 400, 600),
            // The commit is over, and the thread is still in the wait for it.
            (PhaseKind::Residue, 600, 900),
        ];
        let evidence = Evidence {
            folio_waits: vec![
                FolioWait { from: 0, to: 200, other_complete: Some(150) },
                FolioWait { from: 250, to: 400, other_complete: None },
            ],
            commit_parts: commit_parts.map(|(phase, start, end)| PhaseSpan::new(phase, start, end)).to_vec(),
            ..Evidence::default()
        };
        let waits = [wait(WaitKind::CommitWait, 400, 900)];
        let mut frame =
            Frame { start: 0, end: 1000, begun: None, done: Some(900), knows_state: false, knows_bios: true };
        let of = |mut evidence: Evidence, frame: Frame| {
            let mut found = Vec::new();
            find(&mut evidence, &waits, frame, &mut found);
            found.into_iter().map(|span| (span.phase.name(), span.start, span.end)).collect::<Vec<_>>()
        };
        let unknown = [("earlier writeback", 0, 150), ("commit logging", 400, 600), ("after completion", 900, 1000)];
        assert_eq!(of(evidence, frame), unknown);
        // A thread that is not ready, although the commit is over, has yet to be woken.
        frame.knows_state = true;
        let parts = commit_parts.map(|(phase, start, end)| PhaseSpan::new(phase, start, end)).to_vec();
        let known = [("commit logging", 400, 600), ("commit wait", 600, 900), ("after completion", 900, 1000)];
        assert_eq!(of(Evidence { commit_parts: parts, ..Evidence::default() }, frame), known);
    }

    #[test]
    fn a_bio_that_completes_after_the_end_counts_until_the_end_and_one_from_before_not_at_all() {
        let bios = vec![bio(-10, 0, 500), BioTimes { submit: 300, issue: None, complete: 1200 }];
        let mut evidence = Evidence { bios, ..Evidence::default() };
        let frame = Frame { start: 0, end: 1000, begun: None, done: None, knows_state: false, knows_bios: true };
        let mut found = Vec::new();
        find(&mut evidence, &[], frame, &mut found);
        assert_eq!(found, [PhaseSpan::new(PhaseKind::Writeback, 300, 1000)]);
    }
}

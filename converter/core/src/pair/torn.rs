//! Torn lines: what they would have said is not known, so nothing that may depend on it is exact.
//!
//! A line whose thread can be read concerns that thread, and the request and the bio that it names. A line whose thread cannot be read may be
//! of any: it counts for each thread at the next event of that thread, so that its cost does not grow with the number of threads.

use super::Pairer;
use super::parts::MAX_WITHOUT_CALL;
use super::stores::slots::{BioSlot, RequestSlot};
use super::stores::torn::TornTask;
use crate::event::{Event, Kind, NO_ID, TornFact, UNKNOWN_TASK};

impl Pairer {
    /// Takes a torn line. Its id, the address of its bio and its thread say what it was about, as far as they are known.
    pub(super) fn torn(&mut self, e: &Event, id: u64, bio: u64, fact: TornFact) {
        self.torn_lines.have_been = true;
        let task = self.tasks.id_of(e);
        let has_task = e.tid != UNKNOWN_TASK || e.pid != UNKNOWN_TASK;
        let has_id = id != NO_ID && id != 0;
        if has_task {
            self.tear_task(task, fact, e.ts);
        } else if !has_id && bio == 0 {
            self.torn_lines.of_unknown += 1;
            return;
        }
        if has_id && let Some(slot) = self.find_request(task, id) {
            self.tear_request(slot, fact);
        }
        if matches!(fact, TornFact::Pages | TornFact::Any) {
            self.tear_pages(id, bio, has_task);
        }
    }

    /// Before the first event of a task after a torn line that did not name its task.
    pub(super) fn catch_up(&mut self, e: &Event) {
        let is_of_thread = !matches!(
            e.kind,
            Kind::Torn { .. }
                | Kind::BioComplete { .. }
                | Kind::BlockComplete { .. }
                | Kind::BlockIssue { .. }
                | Kind::BlockDone { .. }
                | Kind::Other
        );
        if is_of_thread && self.torn_lines.of_unknown > 0 {
            self.catch_up_task(self.tasks.id_of(e), e.ts);
        }
    }

    /// At the end of the inputs.
    pub(super) fn catch_up_all(&mut self) {
        if self.torn_lines.of_unknown > 0 {
            self.tasks.in_order().into_iter().for_each(|task| self.catch_up_task(task, i64::MAX));
        }
    }

    fn catch_up_task(&mut self, task: u32, ts: i64) {
        let count = self.torn_lines.of_unknown;
        if self.torn_lines.seen.insert(task, count) != Some(count) {
            self.tear_task(task, TornFact::Any, ts);
        }
    }

    fn tear_task(&mut self, task_id: u32, fact: TornFact, ts: i64) {
        let may_overlap = self.tasks.may_overlap(task_id);
        let next_bio = self.bios.next_bio_id();
        let task = self.tasks.by_id.entry(task_id).or_default();
        if fact != TornFact::Pages {
            // The line may have been the end of a sync whose start is not in the log.
            task.origins.forget_before(next_bio);
        }
        task.torn.call |= matches!(fact, TornFact::Call | TornFact::Any);
        task.torn.request |= matches!(fact, TornFact::Request | TornFact::Any);
        if matches!(fact, TornFact::Pages | TornFact::Any) {
            (task.torn.pages, task.torn.pages_until) = (true, Some(ts));
        }
        let torn = task.torn;
        let open_request = task.open_request;
        // Calls of a thread do not overlap: the line may have been the return of the last one, or of one whose entry is not in the log.
        let mut of_call = Vec::new();
        let mut without_call = Vec::new();
        if torn.call && may_overlap {
            task.guesses.guess();
        } else if torn.call {
            let last = task.groups.back().filter(|group| group.call_open);
            let requests = last.into_iter().flat_map(|group| group.requests.iter().rev());
            // Those before one that an earlier torn line has marked are marked too, so many torn lines in a call cost no more than one.
            of_call.extend(requests.take_while(|&&slot| !self.requests[slot].may_have_returned));
            let without = task.groups.iter().rev().take(MAX_WITHOUT_CALL as usize);
            without_call.extend(without.filter(|group| group.awaits_exit).flat_map(|group| &group.requests));
        }
        for &slot in &of_call {
            self.requests[slot].may_have_returned = true;
        }
        of_call.iter().chain(&without_call).for_each(|&slot| self.requests[slot].infer());
        for slot in without_call {
            self.lose_call(slot, None);
        }
        if let Some(slot) = open_request {
            self.tear_request(slot, fact);
        }
    }

    /// A torn line was a folio or the submit of a bio: of one that is being filled, or of the next one.
    fn tear_pages(&mut self, id: u64, address: u64, has_task: bool) {
        if address == 0 {
            // Its thread says which bio it was.
            if !has_task {
                self.torn_lines.keep_id(id);
            }
            return;
        }
        if let Some(slot) = self.bios.filling_at(address) {
            self.tear_bio(slot);
        }
        // If the line was its submit, another recorder may report that.
        self.torn_lines.keep_address(address);
    }

    fn tear_bio(&mut self, slot: BioSlot) {
        self.bios[slot].lacks_folios = true;
        self.bios[slot].tear();
        let request = self.bios[slot].request;
        if request.is_some() {
            self.tear_request(request, TornFact::Pages);
        }
    }

    fn tear_request(&mut self, slot: RequestSlot, fact: TornFact) {
        self.requests[slot].infer();
        if matches!(fact, TornFact::Pages | TornFact::Any) {
            let extent = &mut self.requests[slot].row.extent;
            (extent.of_bios, extent.offsets_unknown) = (true, true);
        }
    }

    /// A bio is opened. Torn lines may have been of it.
    pub(super) fn tear_new_bio(&mut self, task_id: u32, id: u64, address: u64, slot: BioSlot) {
        let mut is_torn = self.torn_lines.take(id, address);
        let mut has_torn_request = false;
        if let Some(task) = self.tasks.get_mut(task_id) {
            is_torn |= std::mem::take(&mut task.torn.pages);
            has_torn_request = task.torn.request;
        }
        // A bio that only the block layer reports is a line of its own.
        if is_torn && id != NO_ID {
            self.tear_bio(slot);
        } else if is_torn || has_torn_request {
            self.bios[slot].tear();
        }
    }

    /// A task adds a folio to a bio, or submits it. A torn line of the task may have been of it: the thread may fill several at a time.
    pub(super) fn tear_next_bio(&mut self, task_id: u32, slot: BioSlot) {
        let first_event = self.bios[slot].row.first_event;
        let Some(task) = self.tasks.get_mut(task_id) else { return };
        let is_older = task.torn.pages_until.is_some_and(|until| first_event <= until);
        if std::mem::take(&mut task.torn.pages) || is_older {
            self.tear_bio(slot);
        }
    }

    /// A request takes its call. If the entry of a call of its thread may be torn, it is not known when it began.
    pub(super) fn tear_call_of(&mut self, task_id: u32, slot: RequestSlot) {
        let may_overlap = self.tasks.may_overlap(task_id);
        let Some(task) = self.tasks.get_mut(task_id) else { return };
        // The start of this request is not torn, so the next bio is its own.
        task.torn = TornTask { call: task.torn.call, ..TornTask::default() };
        if !task.torn.call {
            return;
        }
        self.requests[slot].infer();
        if self.seen.calls && !may_overlap {
            self.lose_call(slot, None);
        }
    }
}

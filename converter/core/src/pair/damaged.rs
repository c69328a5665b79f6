//! Events with an id that is not that of the request that their thread is in.
//!
//! A thread is in one sync function at a time. So either the end of its request was lost, and the event is of its next request, or the id is
//! damaged. For folios and submits, what the thread does next decides: the event is held back until then. For starts and ends, the ids
//! themselves decide: the kernel numbers requests in the order of their starts, so an id may be one that the request cannot have.

use super::stores::damaged::HeldEvent;
use super::stores::slots::{BioSlot, RequestSlot};
use super::{Out, Pairer};
use crate::error::Result;
use crate::event::place::Place;
use crate::event::{Event, Kind, NO_ID};
use crate::losses::Reason;
use crate::rows::Confidence;

/// Events that are held back at the same time. The next event of its thread decides about each, so there are few, unless a log is damaged
/// throughout. Each event of the log looks at all of them.
const MAX_HELD: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Unknown,
    /// It is of the request that its thread is in.
    Damaged,
    /// Its id is right.
    Real,
}

impl Pairer {
    /// Holds back a folio or a submit of a thread that is in a request with another id. Returns whether it does.
    pub(super) fn hold_back(&mut self, event: &Event, id: u64, bio: u64) -> bool {
        let task = self.tasks.id_of(event);
        if !self.has_foreign_id(task, id) {
            return false;
        }
        let Some(request) = self.tasks.open_request(task) else { return false };
        let sync_id = self.requests[request].row.sync_id;
        let (from, provenance) = (event.ts, self.provenance);
        self.held.push(HeldEvent { event: *event, from, provenance, task, id, bio, request, sync_id });
        true
    }

    fn has_foreign_id(&self, task: u32, id: u64) -> bool {
        if id == 0 || id == NO_ID || self.replayed.is_some() || self.is_background(id) {
            return false;
        }
        self.tasks.open_request(task).is_some_and(|slot| {
            let row = &self.requests[slot].row;
            row.start.is_some() && row.id != NO_ID && row.id != id
        })
    }

    /// Whether a submit to a device and sector is held back.
    pub(super) fn holds_submit_to(&self, target: Place) -> bool {
        let place = |event: &Event| match event.kind {
            Kind::BioSubmit { dev, sector, .. } => Some(Place { dev, sector }),
            _ => None,
        };
        self.held.iter().any(|held| place(&held.event) == Some(target))
    }

    /// Uses the held events that `next` or the state of their threads decides. `next` has not been used yet.
    pub(super) fn resolve_held(&mut self, next: &Event, out: &mut Out<'_>) -> Result<()> {
        let mut at = 0;
        while at < self.held.len() {
            let is_oldest_of_too_many = at == 0 && self.held.len() > MAX_HELD;
            let verdict = if is_oldest_of_too_many { Verdict::Real } else { self.verdict(&self.held[at], next) };
            if verdict == Verdict::Unknown {
                at += 1;
                continue;
            }
            let mut held = self.held.remove(at);
            if verdict == Verdict::Real {
                self.leave_request_of(&mut held);
            }
            if let Kind::BioSubmit { id, background: true, .. } = next.kind
                && id == held.id
            {
                self.remember_background(id);
            }
            self.replay(&held, verdict, out)?;
        }
        Ok(())
    }

    /// The held event is of the next request of its thread. Requests of a thread do not overlap, but meanwhile events of other threads
    /// may have extended the request before it, or ended it. So the next request begins when that was over. The event keeps its time.
    fn leave_request_of(&mut self, held: &mut HeldEvent) {
        if self.has_left(held) {
            held.from = held.from.max(self.now_before);
            return;
        }
        let row = &mut self.requests[held.request].row;
        if row.end.is_none() {
            row.last_event = row.last_event.min(held.event.ts);
        }
    }

    /// Whether the thread of a held event is no longer in the request in which the event was held.
    fn has_left(&self, held: &HeldEvent) -> bool {
        self.tasks.open_request(held.task) != Some(held.request)
            || self.requests[held.request].row.sync_id != held.sync_id
    }

    /// Uses all held events, at the end of the inputs.
    pub(super) fn release_held(&mut self, out: &mut Out<'_>) -> Result<()> {
        self.now_before = self.now;
        for mut held in std::mem::take(&mut self.held) {
            self.leave_request_of(&mut held);
            self.replay(&held, Verdict::Real, out)?;
        }
        Ok(())
    }

    fn verdict(&self, held: &HeldEvent, next: &Event) -> Verdict {
        if self.has_left(held) {
            return Verdict::Real;
        }
        let is_filler = matches!(next.kind, Kind::BioAddFolio { .. } | Kind::BioSubmit { .. });
        let (id, bio) = match next.kind {
            Kind::BioAddFolio { id, bio, .. } | Kind::BioSubmit { id, bio, .. } => (Some(id), bio),
            Kind::BioComplete { bio, .. } => (None, bio),
            Kind::WaitStart { id, .. } | Kind::WaitEnd { id, .. } | Kind::SyncEnd { id, .. } => (Some(id), 0),
            _ => (None, 0),
        };
        if self.tasks.id_of(next) == held.task && !matches!(next.kind, Kind::BioComplete { .. }) {
            match next.kind {
                Kind::CallEnter { .. } | Kind::CallExit { .. } | Kind::SyncStart { .. } => return Verdict::Real,
                _ if id == Some(self.requests[held.request].row.id) => return Verdict::Damaged,
                _ if id == Some(held.id) => return Verdict::Real,
                Kind::SyncEnd { .. } => return Verdict::Real,
                _ if is_filler && id.is_some_and(|id| self.has_foreign_id(held.task, id)) => return Verdict::Damaged,
                _ => {}
            }
        }
        if bio == 0 || bio != held.bio {
            return Verdict::Unknown;
        }
        // The address must be used now. A submit of the bio that the request fills there is of the request.
        let is_submit = matches!(held.event.kind, Kind::BioSubmit { .. });
        let is_of_request = self.bios.filling_at(bio).is_some_and(|slot| self.bios[slot].request == held.request);
        if is_submit && is_of_request { Verdict::Damaged } else { Verdict::Real }
    }

    fn replay(&mut self, held: &HeldEvent, verdict: Verdict, out: &mut Out<'_>) -> Result<()> {
        let current = std::mem::replace(&mut self.provenance, held.provenance);
        self.replayed = Some(held.from);
        let result = self.use_held(held, verdict, out);
        self.replayed = None;
        self.provenance = current;
        result
    }

    fn use_held(&mut self, held: &HeldEvent, verdict: Verdict, out: &mut Out<'_>) -> Result<()> {
        let mut id = held.id;
        if verdict == Verdict::Damaged {
            id = self.requests[held.request].row.id;
            let (ts, damaged, name) = (held.event.ts, held.id, Kind::NAMES[held.event.kind.index()]);
            self.lose(Reason::DamagedId, ts, out, || format!("{name} id {damaged} within request id {id}"))?;
        }
        match held.event.kind {
            Kind::BioAddFolio { bio, offset, len, dev, ino, .. } => {
                self.add_folio(&held.event, id, bio, (offset, len), (dev, ino), out)?;
            }
            Kind::BioSubmit { bio, sector, dev, bytes, flags, .. } => {
                self.submit(&held.event, id, bio, Place { dev, sector }, (bytes, flags), out)?;
            }
            _ => {}
        }
        if verdict == Verdict::Damaged {
            let bio = self.bios.last_at(held.bio).filter(|&slot| self.bios[slot].request == held.request);
            self.infer_damaged(held.request, bio);
        }
        Ok(())
    }

    /// Returns the open request of a thread, if it has a start only and the id of that start is damaged. The kernel numbers requests in the
    /// order of their starts, so the right id is above those that had ended by then, and below `id`, that of the thread's next event.
    pub(super) fn request_with_damaged_start(&self, task: u32, id: u64) -> Option<RequestSlot> {
        let slot = self.tasks.open_request(task)?;
        let open = &self.requests[slot];
        let row = &open.row;
        let has_start_only = row.start.is_some() && open.bio_ids.is_empty() && row.waits.is_empty();
        let before = open.highest_before;
        // Without a request that has ended, nothing says which of the two ids is wrong.
        let is_next = before != 0 && id > before && id != NO_ID;
        let is_possible = before < row.id && row.id < id;
        (has_start_only && is_next && !is_possible && row.id != NO_ID && !open.by_thread).then_some(slot)
    }

    /// Gives a request whose start has a damaged id the id of its other events.
    pub(super) fn repair_start(&mut self, slot: RequestSlot, id: u64, out: &mut Out<'_>) -> Result<()> {
        let Some(start) = self.requests[slot].row.start else { return Ok(()) };
        let (damaged, location) = (self.requests[slot].row.id, self.requests[slot].location);
        self.lose_at(Reason::DamagedId, start, location, out, || {
            format!("start id {damaged}, and the next event of its thread is of id {id}")
        })?;
        self.requests.unlink(slot);
        self.requests.set_id(slot, id);
        self.infer_damaged(slot, None);
        Ok(())
    }

    /// Returns the open request of a thread whose end has another id, if that id is damaged: the next request of the thread cannot have it.
    pub(super) fn request_with_damaged_end(&self, task: u32, id: u64, ts: i64) -> Option<RequestSlot> {
        let slot = self.tasks.open_request(task)?;
        let open = &self.requests[slot];
        let own = open.row.id;
        if open.row.start.is_none_or(|start| start > ts) || own == NO_ID || id == NO_ID || own == id || open.by_thread {
            return None;
        }
        if self.request_with_damaged_start(task, id).is_some() {
            return None;
        }
        let has_other_events = self.held.iter().any(|held| held.task == task && held.id == id);
        if has_other_events || self.requests.was_left(task, id) {
            return None;
        }
        // The log cannot have lost three quarters of all requests at once.
        let is_too_high = id >= 100 && id / 4 > own.max(self.requests.highest_ended());
        (id < own || is_too_high || self.requests.has_id(id)).then_some(slot)
    }

    /// Counts the damaged id of an end.
    pub(super) fn repair_end(&mut self, slot: RequestSlot, damaged: u64, ts: i64, out: &mut Out<'_>) -> Result<()> {
        let id = self.requests[slot].row.id;
        self.lose(Reason::DamagedId, ts, out, || format!("exit id {damaged} within request id {id}"))?;
        self.infer_damaged(slot, None);
        Ok(())
    }

    /// Notes that an event of a request had a damaged id. `bio`: the bio that the event is of.
    fn infer_damaged(&mut self, request: RequestSlot, bio: Option<BioSlot>) {
        self.requests[request].has_damaged_id = true;
        self.infer(request, bio);
    }

    /// Notes that only the thread says that a bio is of a request.
    pub(super) fn infer(&mut self, request: RequestSlot, bio: Option<BioSlot>) {
        let confidence = &mut self.requests[request].row.confidence;
        *confidence = (*confidence).max(Confidence::Inferred);
        if let Some(bio) = bio {
            self.bios[bio].row.confidence = Confidence::Inferred;
        }
    }

    /// The request that the thread of an event is in, for a folio or a submit with id 0: its file system does not pass the id on.
    pub(super) fn request_of_thread(&self, event: &Event) -> RequestSlot {
        let open = self.tasks.open_request(self.tasks.id_of(event));
        let has_id = |&slot: &RequestSlot| {
            let row = &self.requests[slot].row;
            row.start.is_some() && row.id != NO_ID
        };
        open.filter(has_id).unwrap_or(RequestSlot::NONE)
    }
}

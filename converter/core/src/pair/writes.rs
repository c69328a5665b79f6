//! Pairs the calls that write or sync with their returns, for the table of writes.
//!
//! The rules are few, because a duration must be right: a call is paired only if no other call can have its return. Else it is counted, with
//! the reason.
//!
//! - A thread has a stack of calls: a write to a loop device may write to the file below it.
//! - A file system does not call itself. So a call on a device that the stack has already follows a call whose return is missing, and all of
//!   the stack is dropped. Its own return may be that of the earlier call, too.
//! - A synchronized write calls the sync function of its file. That is a part of the write, and no call of its own.
//! - A return ends the last call of its kind. The calls in that one have no return.
//! - If the name of the thread has changed since the start, another process got the thread id.
//! - A loss may have taken a return and the start of the next call, so it ends all calls.

use crate::collections::Map;
use crate::error::Result;
use crate::event::write::{CallEnd, CallKind, CallStart, WriteEvent};
use crate::event::{Dev, Event};
use crate::names::NameId;
use crate::rows::write::{At, Unused, WriteRow};

/// A call without its return so far.
#[derive(Debug)]
struct OpenCall {
    number: u64,
    at: At,
    start: CallStart,
    /// It belongs to the synchronized write that calls it.
    is_part: bool,
    is_doubtful: bool,
}

impl OpenCall {
    fn row(&self, end: Option<(i64, CallEnd)>, unused: Option<Unused>) -> WriteRow {
        WriteRow::Call { number: self.number, at: self.at, start: self.start, end, unused }
    }
}

/// The open calls of a thread, the outermost first.
#[derive(Debug, Default)]
struct Stack {
    calls: Vec<OpenCall>,
    /// How many there are of each kind, so that a return without a call searches for none.
    kinds: [u32; CallKind::COUNT],
}

#[derive(Debug, Default)]
pub struct WritePairer {
    /// By thread. A thread without an open call has no entry.
    open: Map<u32, Stack>,
    /// How many calls a thread has open on a device.
    on_device: Map<(u32, Dev), u32>,
    /// Number of calls that have begun.
    started: u64,
}

/// Where the rows go.
type Out<'a> = &'a mut dyn FnMut(&WriteRow) -> Result<()>;

impl WritePairer {
    /// Visits every path of an open call.
    pub fn visit_names(&self, f: &mut dyn FnMut(NameId)) {
        self.open.values().flat_map(|stack| &stack.calls).for_each(|call| f(call.start.path));
    }

    /// Takes the next event in the order of time.
    pub fn event(&mut self, e: &Event, event: WriteEvent, out: Out<'_>) -> Result<()> {
        match event {
            WriteEvent::Start(start) => self.start(e, start, out),
            WriteEvent::End(end) => self.end(e, end, out),
            WriteEvent::Limits { background_pages, hard_pages } => {
                out(&WriteRow::Limits { at: at(e), background_pages, hard_pages })
            }
            WriteEvent::Lost => self.drop_all(Unused::Loss, out),
        }
    }

    /// Takes an event that is older than one that it has already had. The open calls of that time are no longer known.
    pub fn late(&mut self, e: &Event, event: WriteEvent, out: Out<'_>) -> Result<()> {
        let unused = Unused::Late;
        match event {
            WriteEvent::Limits { .. } => return self.event(e, event, out),
            WriteEvent::Lost => {}
            WriteEvent::Start(start) => {
                self.started += 1;
                out(&WriteRow::Call { number: self.started, at: at(e), start, end: None, unused: Some(unused) })?;
            }
            WriteEvent::End(end) => out(&WriteRow::Return { at: at(e), end, unused })?,
        }
        self.drop_all(Unused::Loss, out)
    }

    /// Drops what is open at the end of the inputs.
    pub fn finish(&mut self, out: Out<'_>) -> Result<()> {
        self.drop_all(Unused::NoReturn, out)
    }

    fn start(&mut self, e: &Event, start: CallStart, out: Out<'_>) -> Result<()> {
        self.started += 1;
        let outer = self.open.get(&e.tid).and_then(|stack| stack.calls.last());
        let is_part = outer.is_some_and(|outer| is_part(&start, &outer.start));
        let is_doubtful = !is_part && self.on_device.contains_key(&(e.tid, start.file.dev));
        if is_doubtful {
            self.drop_above(e.tid, 0, out)?;
        }
        *self.on_device.entry((e.tid, start.file.dev)).or_default() += 1;
        let stack = self.open.entry(e.tid).or_default();
        stack.kinds[start.kind as usize] += 1;
        stack.calls.push(OpenCall { number: self.started, at: at(e), start, is_part, is_doubtful });
        Ok(())
    }

    fn end(&mut self, e: &Event, end: CallEnd, out: Out<'_>) -> Result<()> {
        let without_start = WriteRow::Return { at: at(e), end, unused: Unused::NoStart };
        let stack = self.open.get(&e.tid).filter(|stack| stack.kinds[end.kind as usize] > 0);
        let Some(place) = stack.and_then(|stack| stack.calls.iter().rposition(|call| call.start.kind == end.kind))
        else {
            return out(&without_start);
        };
        self.drop_above(e.tid, place + 1, out)?;
        let Some(call) = self.pop(e.tid) else { return Ok(()) };
        if call.is_part {
            return Ok(());
        }
        let comms = [call.at.comm, e.comm];
        if !call.is_doubtful && comms.iter().all(|comm| comm.is_some()) && comms[0] != comms[1] {
            out(&call.row(None, Some(Unused::NoReturn)))?;
            return out(&without_start);
        }
        out(&call.row(Some((e.ts, end)), call.is_doubtful.then_some(Unused::Doubtful)))
    }

    /// Removes the innermost call of a thread.
    fn pop(&mut self, tid: u32) -> Option<OpenCall> {
        let stack = self.open.get_mut(&tid)?;
        let call = stack.calls.pop()?;
        stack.kinds[call.start.kind as usize] -= 1;
        if stack.calls.is_empty() {
            self.open.remove(&tid);
        }
        let device = (tid, call.start.file.dev);
        match self.on_device.get_mut(&device) {
            Some(count) if *count > 1 => *count -= 1,
            _ => _ = self.on_device.remove(&device),
        }
        Some(call)
    }

    /// Drops the calls of a thread but for the outermost `kept`: their returns are missing.
    fn drop_above(&mut self, tid: u32, kept: usize, out: Out<'_>) -> Result<()> {
        while self.open.get(&tid).is_some_and(|stack| stack.calls.len() > kept) {
            let Some(call) = self.pop(tid) else { break };
            drop_call(&call, Unused::NoReturn, out)?;
        }
        Ok(())
    }

    fn drop_all(&mut self, why: Unused, out: Out<'_>) -> Result<()> {
        // New maps: to clear one takes time for the most that it has held.
        self.on_device = Map::default();
        let mut stacks: Vec<_> = std::mem::take(&mut self.open).into_iter().collect();
        stacks.sort_unstable_by_key(|&(tid, _)| tid);
        stacks.iter().flat_map(|(_, stack)| &stack.calls).try_for_each(|call| drop_call(call, why, out))
    }
}

fn drop_call(call: &OpenCall, why: Unused, out: Out<'_>) -> Result<()> {
    if call.is_part { Ok(()) } else { out(&call.row(None, Some(why))) }
}

fn at(e: &Event) -> At {
    At { ts: e.ts, tid: e.tid, comm: e.comm }
}

/// Whether a call that begins in another one is a part of that.
fn is_part(start: &CallStart, outer: &CallStart) -> bool {
    let is_of_durable_write = outer.kind == CallKind::Write && outer.flags.is_durable();
    start.kind == CallKind::Fsync && is_of_durable_write && start.file == outer.file
}

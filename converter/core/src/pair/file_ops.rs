//! Operations on files: a call and its return become one row. They are not paired with requests.

use super::stores::file_ops::OpenOp;
use super::{Out, Pairer};
use crate::error::Result;
use crate::event::Event;
use crate::event::file_op::{
    Creates, FileCall, FileOpKind, FileReturn, NO_FD, NO_NUMBER, Naming, ProbedCall, ProbedReturn,
};
use crate::names::NameId;
use crate::rows::file_op::FileOp;
use crate::rows::{Confidence, Missing};

impl Pairer {
    pub(super) fn file_call(&mut self, e: &Event, call: FileCall, out: &mut Out<'_>) -> Result<()> {
        let open = OpenOp { call, start: e.ts, pid: e.pid, comm: e.comm };
        if call.op == FileOpKind::Exit {
            self.give_up_file_op(e.tid, out)?;
            return self.emit_file_op(e.tid, &open, None, None, out);
        }
        match self.file_ops.open.insert(e.tid, open).filter(|before| !was_dropped(before)) {
            Some(before) => self.emit_file_op(e.tid, &before, None, Some(Missing::End), out),
            None => Ok(()),
        }
    }

    pub(super) fn file_return(&mut self, e: &Event, returned: FileReturn, out: &mut Out<'_>) -> Result<()> {
        let FileReturn { op, entry_lost, lasted, .. } = returned;
        if !entry_lost && let Some(open) = self.file_ops.open.remove(&e.tid) {
            let missing = returned.ret.is_none().then_some(Missing::End);
            return self.emit_file_op(e.tid, &open, Some((e.ts, returned)), missing, out);
        }
        self.give_up_file_op(e.tid, out)?;
        let none = NameId::NONE;
        let call = FileCall {
            op,
            creates: Creates::NotAsked,
            naming: Naming::Unknown,
            fd: NO_FD,
            path: none,
            to_path: none,
            flags: none,
            stack: none,
            offset: NO_NUMBER,
            len: NO_NUMBER,
        };
        let start = if lasted == NO_NUMBER { e.ts } else { e.ts.saturating_sub(lasted) };
        let open = OpenOp { call, start, pid: e.pid, comm: e.comm };
        self.emit_file_op(e.tid, &open, Some((e.ts, returned)), Some(Missing::Start), out)
    }

    pub(super) fn probed_call(&mut self, e: &Event, call: &ProbedCall, out: &mut Out<'_>) -> Result<()> {
        let ProbedCall { op, path, to_path, flags, offset, len, .. } = *call;
        let (known, to_known) = (whole(path, out), whole(to_path, out));
        let naming = if (known, to_known) == (path, to_path) { Naming::Shown } else { Naming::Unknown };
        let (path, to_path) = (known, to_known);
        let (creates, fd, stack) = (Creates::NotAsked, NO_FD, NameId::NONE);
        let call = FileCall { op, creates, naming, fd, path, to_path, flags, stack, offset, len };
        if op == FileOpKind::Close {
            // The last descriptor is gone, after the call that closed it has returned.
            let close = OpenOp { call, start: e.ts, pid: e.pid, comm: e.comm };
            return self.emit_file_op(e.tid, &close, None, None, out);
        }
        self.file_call(e, call, out)
    }

    pub(super) fn probed_return(&mut self, e: &Event, returned: &ProbedReturn, out: &mut Out<'_>) -> Result<()> {
        let ProbedReturn { op, path, ret, created, .. } = *returned;
        if self.file_ops.open.get(&e.tid).is_none_or(|open| open.call.op != op) {
            return Ok(());
        }
        let Some(open) = self.file_ops.open.remove(&e.tid) else { return Ok(()) };
        let path = whole(path, out);
        let (untimed, entry_lost, stack, lasted) = (false, false, NameId::NONE, NO_NUMBER);
        let returned = FileReturn { op, untimed, entry_lost, path, stack, ret, lasted, created };
        self.emit_file_op(e.tid, &open, Some((e.ts, returned)), None, out)
    }

    /// Writes the operations that never returned.
    pub(super) fn finish_file_ops(&mut self, out: &mut Out<'_>) -> Result<()> {
        let mut open: Vec<_> = self.file_ops.open.iter().map(|(&tid, open)| (open.start, tid)).collect();
        open.sort_unstable();
        open.into_iter().try_for_each(|(_, tid)| self.give_up_file_op(tid, out))
    }

    fn give_up_file_op(&mut self, tid: u32, out: &mut Out<'_>) -> Result<()> {
        match self.file_ops.open.remove(&tid).filter(|open| !was_dropped(open)) {
            Some(open) => self.emit_file_op(tid, &open, None, Some(Missing::End), out),
            None => Ok(()),
        }
    }

    fn emit_file_op(
        &mut self,
        tid: u32,
        open: &OpenOp,
        returned: Option<(i64, FileReturn)>,
        missing: Option<Missing>,
        out: &mut Out<'_>,
    ) -> Result<()> {
        let OpenOp { call, start, pid, comm } = *open;
        let FileCall { op, .. } = call;
        let either = |first: NameId, second: Option<NameId>| {
            let second = second.filter(|name| name.is_some());
            if first.is_some() { first } else { second.unwrap_or(NameId::NONE) }
        };
        let shown = returned.map(|(_, returned)| returned.path).filter(|path| path.is_some());
        let ret = returned.and_then(|(_, returned)| returned.ret);
        let success = ret.filter(|ret| *ret >= 0);
        let dur = returned
            .filter(|(_, returned)| !returned.untimed && (returned.ret.is_some() || missing.is_none()))
            .and_then(|(end, returned)| {
                if returned.entry_lost { FileOp::number(returned.lasted) } else { Some(end.saturating_sub(start)) }
            });
        self.file_ops.count += 1;
        let row = FileOp {
            op_id: self.file_ops.count,
            op,
            tid,
            pid,
            comm,
            fd: match op {
                FileOpKind::Open => success.and_then(|fd| i32::try_from(fd).ok()).unwrap_or(NO_FD),
                _ => call.fd,
            },
            path: shown.unwrap_or(call.path),
            to_path: call.to_path,
            flags: call.flags,
            stack: either(call.stack, returned.map(|(_, returned)| returned.stack)),
            created: returned
                .and_then(|(_, returned)| returned.created)
                .or_else(|| FileOp::creation(call.creates, ret)),
            offset: FileOp::number(call.offset),
            bytes: match op {
                FileOpKind::Write | FileOpKind::Send => success,
                FileOpKind::Allocate | FileOpKind::Map => success.and_then(|_| FileOp::number(call.len)),
                _ => None,
            },
            ret,
            start,
            dur,
            confidence: if shown.is_some() { Confidence::Exact } else { FileOp::confidence(call.naming) },
            missing,
        };
        out.sink.file_op(&row, out.names)
    }
}

/// A path, if it is known from its root: the last parts may be those of several files.
fn whole(path: NameId, out: &Out<'_>) -> NameId {
    if path.is_some() && out.names.get(path).starts_with(b"/") { path } else { NameId::NONE }
}

/// Whether a probe reports the begin of an open only: the kernel drops the end where the file is on none of the file systems that are recorded.
fn was_dropped(open: &OpenOp) -> bool {
    let FileCall { op, path, naming, .. } = open.call;
    op == FileOpKind::Open && !path.is_some() && naming == Naming::Shown
}

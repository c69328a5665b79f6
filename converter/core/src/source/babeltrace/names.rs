//! The names of events: those of LTTng and of perf, and the kernel's.

use std::borrow::Cow;

use memchr::memchr;

use crate::source::tracepoints::Tracepoint;

/// The name of an event, and what it means.
pub(super) struct Name<'a> {
    /// The name of the kernel's tracepoint, if it is one.
    pub(super) kernels: Cow<'a, [u8]>,
    pub(super) tracepoint: Option<Tracepoint>,
    /// The event is LTTng's, whose fields have other names than the kernel's.
    pub(super) is_lttngs: bool,
}

impl<'a> Name<'a> {
    pub(super) fn of(printed: &'a [u8]) -> Self {
        // perf prints the group before the name, as LTTng does for events of programs.
        if let Some(colon) = memchr(b':', printed) {
            let (group, name) = (&printed[..colon], &printed[colon + 1..]);
            let tracepoint = Tracepoint::from_name(name).filter(|found| found.system(name).as_bytes() == group);
            let kernels = if tracepoint.is_some() { name } else { printed };
            return Self { kernels: kernels.into(), tracepoint, is_lttngs: false };
        }
        let call = printed.strip_prefix(b"compat_").unwrap_or(printed);
        let kernels: Cow<'_, [u8]> = if let Some(name) = call.strip_prefix(b"syscall_entry_") {
            [b"sys_enter_", name].concat().into()
        } else if let Some(name) = call.strip_prefix(b"syscall_exit_") {
            [b"sys_exit_", name].concat().into()
        } else if printed == b"writeback_balance_dirty_pages" {
            b"balance_dirty_pages".as_slice().into()
        } else {
            printed.into()
        };
        let tracepoint = Tracepoint::from_name(&kernels).filter(|found| !found.is_raw());
        Self { kernels, tracepoint, is_lttngs: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_events() {
        let of = |name: &str| {
            let name = Name::of(name.as_bytes());
            (String::from_utf8_lossy(&name.kernels).into_owned(), name.tracepoint.is_some())
        };
        assert_eq!(of("syscall_entry_fsync"), ("sys_enter_fsync".into(), true));
        assert_eq!(of("compat_syscall_exit_fsync"), ("sys_exit_fsync".into(), true));
        assert_eq!(of("block:block_bio_queue"), ("block_bio_queue".into(), true));
        // A tracepoint of a program.
        assert_eq!(of("my_app:block_bio_queue"), ("my_app:block_bio_queue".into(), false));
        assert_eq!(of("writeback_balance_dirty_pages"), ("balance_dirty_pages".into(), true));
        assert_eq!(of("fsync"), ("fsync".into(), false));
    }
}

//! The kinds of facts that the inputs report, as far as their events have shown so far.

#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is another kind of event")]
pub(in crate::pair) struct Seen {
    /// The file system's own events report bios.
    pub(in crate::pair) bios: bool,
    /// The block layer reports the submits of writes.
    pub(in crate::pair) block_submits: bool,
    /// Entries of calls.
    pub(in crate::pair) calls: bool,
    pub(in crate::pair) waits: bool,
    /// Two events report the start of a sync, one with an id and one without.
    pub(in crate::pair) nested_starts: bool,
}

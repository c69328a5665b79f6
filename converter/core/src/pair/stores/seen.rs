//! The kinds of facts that the inputs report, as far as their events have shown so far.

#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is another kind of event")]
pub(in crate::pair) struct Seen {
    /// The file system's own events report bios.
    pub(in crate::pair) bios: bool,
    /// Some event of a bio has been read, perhaps later than those that are paired now. Without any, nothing says that the recorder
    /// follows bios, so a sync without one need not be empty.
    pub(in crate::pair) any_of_bio: bool,
    /// The block layer reports the submits of writes.
    pub(in crate::pair) block_submits: bool,
    /// Entries of calls.
    pub(in crate::pair) calls: bool,
    pub(in crate::pair) waits: bool,
    /// Two events report the start of a sync, one with an id and one without.
    pub(in crate::pair) nested_starts: bool,
}

//! Decides what a call without a request is.

/// The meaning of a call that no request takes, in inputs that report requests of some file systems or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::pair) enum LoneCalls {
    /// The number of calls that wait.
    Undecided(usize),
    /// A request that is known by its call only.
    Requests,
    /// A call that belongs to no request.
    Unmatched,
}

impl LoneCalls {
    pub(in crate::pair) fn are_undecided(self) -> bool {
        matches!(self, Self::Undecided(_))
    }
}

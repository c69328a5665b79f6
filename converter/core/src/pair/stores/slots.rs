//! Where open rows are kept: a slot is an index into one store, and of no use for another.

/// Defines the slots of a store. Like the id of a name, a slot may be `NONE`; no store has anything there.
macro_rules! slots {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(in crate::pair) struct $name(u32);

        impl $name {
            pub(in crate::pair) const NONE: Self = Self(u32::MAX);

            /// The slot at this index of its store.
            pub(in crate::pair) fn at(index: usize) -> Self {
                Self(index as u32)
            }

            /// Its index in its store, which must have it.
            pub(in crate::pair) fn index(self) -> usize {
                self.0 as usize
            }

            pub(in crate::pair) fn is_some(self) -> bool {
                self != Self::NONE
            }

            pub(in crate::pair) fn is_none(self) -> bool {
                self == Self::NONE
            }
        }
    };
}

slots! {
    /// A request in `Requests`. A later request uses it again, so a slot that is kept goes with the `sync_id` of its request.
    RequestSlot
}
slots! {
    /// A bio in `Bios`. A later bio uses it again, so a slot that is kept goes with the `bio_id` of its bio.
    BioSlot
}

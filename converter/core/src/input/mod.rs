//! Inputs, in two layers.
//!
//! `file` reads bytes and is below `source`. `open`, `open_input`, `head`, `order`, `grouping` and `tally` are above it: they open the inputs of a
//! command, decide in which order they are used and which belong together, and count what each has held until now.

mod file;
pub mod grouping;
mod head;
pub mod open;
mod open_input;
pub mod order;
pub(crate) mod tally;

pub use self::file::{Chunk, ChunkReader, Input, Store, canonical_path};

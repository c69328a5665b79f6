//! Inputs, in two layers.
//!
//! `file` reads bytes and is below `source`. `open`, `open_input`, `grouping` and `tally` are above it: they open the inputs of a command, decide which
//! belong together, and count what each has held until now.

mod file;
pub mod grouping;
pub mod open;
mod open_input;
pub(crate) mod tally;

pub use self::file::{Chunk, ChunkReader, Input, Store, canonical_path};

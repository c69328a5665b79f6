//! Inputs: how a file is opened and read, what it may be read together with, and what it has held so far.

mod file;
pub mod open;
pub(crate) mod tally;

pub use self::file::{Chunk, ChunkReader, Input, Store, file_of};

//! The inputs of a command: which files they are, in which order they are used, which belong together, and what each has held until now.
//!
//! `input_file` reads one of them. It is below `source`, and this module is above it.

pub mod grouping;
mod head;
pub mod open;
mod open_input;
pub mod order;
pub(crate) mod tally;

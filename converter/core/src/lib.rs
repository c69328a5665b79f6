//! Syncline's core: turns raw kernel events about fsync-driven writeback into requests, and requests into traces, tables and logs.
//! It knows no Python and no SQL.
//!
//! ```text
//! source -> event -> merge -> dedup -> pair -> rows -> sink
//! ```
//!
//! `run` converts inputs to an output. `options` are what it is asked for, `summary` is what it returns.

pub mod block;
mod collections;
pub mod dedup;
pub mod error;
pub mod event;
pub mod input;
pub mod input_file;
pub mod location;
pub mod losses;
pub mod merge;
pub mod names;
pub mod options;
pub mod output;
pub mod own_trace;
pub mod pair;
pub(crate) mod pipeline;
pub mod recorder_tables;
pub mod rows;
pub mod run;
pub mod sink;
pub mod source;
pub mod stacks;
pub mod summary;
pub(crate) mod trace_layout;

/// Version of the tables in docs/reference/tables.md and of the trace layout.
pub const SCHEMA_VERSION: u32 = 6;

//! Syncline's core: turns raw kernel events about fsync-driven writeback into requests, and requests into traces, tables and logs.
//! It knows no Python and no SQL.
//!
//! ```text
//! source -> event -> merge -> dedup -> pair -> rows -> sink
//! ```
//!
//! `run` converts inputs to an output. `options` are what it is asked for, `summary` is what it returns.

pub(crate) mod background_ids;
pub(crate) mod block_queue;
mod by_device;
pub mod dedup;
pub mod devices_below;
pub mod errno;
pub mod error;
pub mod event;
pub mod file_table;
pub mod input;
pub mod input_file;
pub mod json_table;
pub mod location;
pub mod losses;
mod low_level_log;
pub mod max_loss;
pub mod merge;
pub mod names;
pub mod options;
pub mod output;
pub mod output_path;
pub mod own_trace;
pub mod pair;
pub mod part;
pub(crate) mod pipeline;
pub(crate) mod recent;
pub mod rows;
pub mod run;
pub mod sink;
pub mod source;
pub mod stacks;
pub mod summary;
pub mod terminal;
pub mod thread_table;
pub(crate) mod trace_layout;
pub mod unresolved_frames;
pub mod writer_table;

/// Version of the tables in docs/reference/tables.md and of the trace layout.
pub const SCHEMA_VERSION: u32 = 3;

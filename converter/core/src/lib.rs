//! Syncline's core: raw kernel events about fsync-driven writeback become requests, and requests become traces, columns and
//! logs. It knows no Python and no SQL.
//!
//! ```text
//! source -> event -> merge -> dedup -> pair -> rows -> sink
//! ```

pub mod dedup;
pub mod error;
pub mod event;
pub mod input;
pub mod location;
pub mod losses;
pub mod merge;
pub mod names;
pub mod output;
pub mod pair;
pub mod rows;
pub mod run;
pub mod sink;
pub mod source;
pub mod stacks;
pub mod thread_table;

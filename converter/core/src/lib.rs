//! Syncline's core: raw kernel events about fsync-driven writeback become requests, and requests become traces, columns and
//! logs. It knows no Python and no SQL.
//!
//! ```text
//! source -> event -> order -> assemble -> request -> sink
//! ```

pub mod assemble;
pub mod blocks;
pub mod demangle;
pub mod error;
pub mod event;
pub mod flamegraph;
pub mod input;
pub mod inputs;
pub mod losses;
pub mod merge;
pub mod names;
pub mod order;
pub mod output;
pub mod place;
pub mod request;
pub mod run;
pub mod sink;
mod so_far;
pub mod source;
pub mod stack;
pub mod stream;
pub mod symbols;
pub mod tasks;
pub mod tellers;

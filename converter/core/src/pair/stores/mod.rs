//! The stores: what pairing keeps, and what each can do on its own. None of them knows the `Pairer`, which owns them.

pub(super) mod behind;
pub(super) mod bios;
pub(super) mod block_layer;
pub(super) mod block_requests;
pub(super) mod commits;
pub(super) mod damaged;
pub(super) mod ends;
pub(super) mod files;
pub(super) mod flushes;
pub(super) mod journals;
pub(super) mod lone_calls;
pub(super) mod lost_bios;
pub(super) mod marks;
pub(super) mod origins;
pub(super) mod probe_bios;
pub(super) mod probe_request;
pub(super) mod probes;
pub(super) mod queues;
pub(super) mod requests;
pub(super) mod seen;
pub(super) mod slots;
pub(super) mod tasks;
pub(super) mod threads;
pub(super) mod torn;
pub(super) mod waits;
pub(super) mod write_waits;

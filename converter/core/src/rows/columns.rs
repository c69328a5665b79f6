//! The columns of the tables, in their order. Generated from sql/columns.toml by `python -m tests.columns`.

use super::Type;

pub const SYNC: &[(&str, Type)] = &[
    ("ts_ns", Type::Int),
    ("dur_ns", Type::Int),
    ("tid", Type::Int),
    ("pid", Type::Int),
    ("comm", Type::Text),
    ("process", Type::Text),
    ("cgroup", Type::Text),
    ("op", Type::Text),
    ("datasync", Type::Bool),
    ("path", Type::Text),
    ("container_path", Type::Text),
    ("dev", Type::Text),
    ("ino", Type::Int),
    ("fs", Type::Text),
    ("id", Type::UInt),
    ("ret", Type::Int),
    ("syscall_ns", Type::Int),
    ("writeback_ns", Type::Int),
    ("before_submit_ns", Type::Int),
    ("after_complete_ns", Type::Int),
    ("journal_ns", Type::Int),
    ("flush_ns", Type::Int),
    ("residue_ns", Type::Int),
    ("bytes", Type::Int),
    ("folios", Type::Int),
    ("bios", Type::Int),
    ("ranges", Type::Int),
    ("first_offset", Type::Int),
    ("last_offset", Type::Int),
    ("stack", Type::Text),
    ("confidence", Type::Text),
    ("incomplete", Type::Text),
    ("sync_id", Type::Int),
    ("start_ns", Type::Int),
];

pub const BIO: &[(&str, Type)] = &[
    ("bio_id", Type::Int),
    ("sync_id", Type::Int),
    ("commit_id", Type::Int),
    ("id", Type::UInt),
    ("ts_ns", Type::Int),
    ("dur_ns", Type::Int),
    ("queue_ns", Type::Int),
    ("device_ns", Type::Int),
    ("requeues", Type::Int),
    ("requeue_ns", Type::Int),
    ("parts", Type::Int),
    ("error", Type::Int),
    ("bio", Type::Text),
    ("dev", Type::Text),
    ("below", Type::Text),
    ("sector", Type::Int),
    ("bytes", Type::Int),
    ("folios", Type::Int),
    ("ranges", Type::Int),
    ("first_offset", Type::Int),
    ("last_offset", Type::Int),
    ("rwbs", Type::Text),
    ("ino", Type::Int),
    ("path", Type::Text),
    ("tid", Type::Int),
    ("pid", Type::Int),
    ("comm", Type::Text),
    ("process", Type::Text),
    ("cgroup", Type::Text),
    ("writers", Type::Text),
    ("writers_cgroup", Type::Text),
    ("origin", Type::Text),
    ("confidence", Type::Text),
    ("incomplete", Type::Text),
];

pub const CALL: &[(&str, Type)] = &[
    ("call_id", Type::Int),
    ("ts_ns", Type::Int),
    ("dur_ns", Type::Int),
    ("tid", Type::Int),
    ("pid", Type::Int),
    ("comm", Type::Text),
    ("op", Type::Text),
    ("ret", Type::Int),
    ("stack", Type::Text),
    ("sync_id", Type::Int),
    ("unmatched", Type::Bool),
];

pub const WAIT: &[(&str, Type)] = &[
    ("sync_id", Type::Int),
    ("number", Type::Int),
    ("wait", Type::Text),
    ("ts_ns", Type::Int),
    ("dur_ns", Type::Int),
    ("transaction_id", Type::Int),
    ("commit_id", Type::Int),
];

pub const PHASE: &[(&str, Type)] = &[
    ("sync_id", Type::Int),
    ("number", Type::Int),
    ("phase", Type::Text),
    ("ts_ns", Type::Int),
    ("dur_ns", Type::Int),
];

pub const JOURNAL: &[(&str, Type)] = &[
    ("commit_id", Type::Int),
    ("kind", Type::Text),
    ("ts_ns", Type::Int),
    ("dur_ns", Type::Int),
    ("tid", Type::Int),
    ("pid", Type::Int),
    ("comm", Type::Text),
    ("dev", Type::Text),
    ("transaction_id", Type::Int),
    ("started_by", Type::Text),
    ("sync_id", Type::Int),
    ("syncs", Type::Int),
    ("status", Type::Text),
    ("reason", Type::Text),
    ("locking_ns", Type::Int),
    ("flushing_ns", Type::Int),
    ("logging_ns", Type::Int),
    ("incomplete", Type::Text),
];

pub const WRITE_WAIT: &[(&str, Type)] = &[
    ("wait_id", Type::Int),
    ("ts_ns", Type::Int),
    ("dur_ns", Type::Int),
    ("tid", Type::Int),
    ("pid", Type::Int),
    ("comm", Type::Text),
    ("wait", Type::Text),
    ("dev", Type::Text),
    ("ino", Type::Int),
    ("path", Type::Text),
    ("bytes", Type::Int),
    ("transaction_id", Type::Int),
    ("holder_tid", Type::Int),
    ("holder_comm", Type::Text),
    ("confidence", Type::Text),
];

pub const LOSS: &[(&str, Type)] = &[
    ("reason", Type::Text),
    ("severity", Type::Text),
    ("count", Type::Int),
    ("first_ts_ns", Type::Int),
    ("last_ts_ns", Type::Int),
    ("example", Type::Text),
    ("meaning", Type::Text),
];

pub const MARK: &[(&str, Type)] =
    &[("mark_id", Type::Int), ("ts_ns", Type::Int), ("dur_ns", Type::Int), ("name", Type::Text)];

pub const META: &[(&str, Type)] = &[("key", Type::Text), ("value", Type::Text)];

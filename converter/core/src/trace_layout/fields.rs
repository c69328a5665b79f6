//! The numbers of fields and enums in Perfetto's `protos/perfetto/trace/`, by message.

pub(crate) mod trace {
    pub(crate) const PACKET: u32 = 1;
}

pub(crate) mod packet {
    pub(crate) const FTRACE_EVENTS: u32 = 1;
    pub(crate) const PROCESS_TREE: u32 = 2;
    pub(crate) const CLOCK_SNAPSHOT: u32 = 6;
    pub(crate) const TIMESTAMP: u32 = 8;
    pub(crate) const TRUSTED_PACKET_SEQUENCE_ID: u32 = 10;
    pub(crate) const TRACK_EVENT: u32 = 11;
    pub(crate) const INTERNED_DATA: u32 = 12;
    pub(crate) const SEQUENCE_FLAGS: u32 = 13;
    pub(crate) const FTRACE_STATS: u32 = 34;
    pub(crate) const TRACE_STATS: u32 = 35;
    pub(crate) const PREVIOUS_PACKET_DROPPED: u32 = 42;
    pub(crate) const SYSTEM_INFO: u32 = 45;
    pub(crate) const COMPRESSED_PACKETS: u32 = 50;
    pub(crate) const TRACE_PACKET_DEFAULTS: u32 = 59;
    pub(crate) const TRACK_DESCRIPTOR: u32 = 60;
    pub(crate) const MACHINE_ID: u32 = 98;
    pub(crate) const ZSTD_COMPRESSED_PACKETS: u32 = 133;
    pub(crate) const SEQ_INCREMENTAL_STATE_CLEARED: u64 = 1;
    pub(crate) const SEQ_NEEDS_INCREMENTAL_STATE: u64 = 2;
}

pub(crate) mod clock {
    pub(crate) const CLOCKS: u32 = 1;
    pub(crate) const PRIMARY_TRACE_CLOCK: u32 = 2;
    pub(crate) const CLOCK_ID: u32 = 1;
    pub(crate) const TIMESTAMP: u32 = 2;
    pub(crate) const REALTIME: u64 = 1;
    pub(crate) const MONOTONIC_RAW: u64 = 5;
    pub(crate) const BOOTTIME: u64 = 6;
}

pub(crate) mod descriptor {
    pub(crate) const UUID: u32 = 1;
    pub(crate) const NAME: u32 = 2;
    pub(crate) const PROCESS: u32 = 3;
    pub(crate) const THREAD: u32 = 4;
    pub(crate) const PARENT_UUID: u32 = 5;
    pub(crate) const COUNTER: u32 = 8;
    pub(crate) const CHILD_ORDERING: u32 = 11;
    pub(crate) const CHILD_ORDERING_EXPLICIT: u64 = 3;
    pub(crate) const SIBLING_ORDER_RANK: u32 = 12;
    pub(crate) const DESCRIPTION: u32 = 14;
    pub(crate) const SIBLING_MERGE_BEHAVIOR: u32 = 15;
    pub(crate) const BY_SIBLING_MERGE_KEY: u64 = 3;
    pub(crate) const SIBLING_MERGE_KEY: u32 = 16;
    pub(crate) const PROCESS_PID: u32 = 1;
    pub(crate) const PROCESS_NAME: u32 = 6;
    pub(crate) const THREAD_PID: u32 = 1;
    pub(crate) const THREAD_TID: u32 = 2;
    pub(crate) const THREAD_NAME: u32 = 5;
    pub(crate) const COUNTER_TYPE: u32 = 1;
    pub(crate) const COUNTER_THREAD_TIME_NS: u64 = 1;
    pub(crate) const COUNTER_UNIT_NAME: u32 = 6;
}

pub(crate) mod event {
    pub(crate) const CATEGORY_IIDS: u32 = 3;
    pub(crate) const DEBUG_ANNOTATIONS: u32 = 4;
    pub(crate) const TYPE: u32 = 9;
    pub(crate) const NAME_IID: u32 = 10;
    pub(crate) const TRACK_UUID: u32 = 11;
    pub(crate) const EXTRA_COUNTER_VALUES: u32 = 12;
    pub(crate) const EXTRA_COUNTER_TRACK_UUIDS: u32 = 31;
    pub(crate) const COUNTER_VALUE: u32 = 30;
    pub(crate) const FLOW_IDS: u32 = 47;
    pub(crate) const TERMINATING_FLOW_IDS: u32 = 48;
    /// In traces that hold all values of all rows.
    pub(crate) const CORRELATION_ID: u32 = 52;
    pub(crate) const CORRELATION_ID_STR: u32 = 53;
    pub(crate) const CORRELATION_ID_STR_IID: u32 = 54;
    pub(crate) const SLICE_BEGIN: u64 = 1;
    pub(crate) const SLICE_END: u64 = 2;
    pub(crate) const INSTANT: u64 = 3;
    pub(crate) const COUNTER: u64 = 4;
}

pub(crate) mod defaults {
    pub(crate) const TRACK_EVENT: u32 = 11;
    pub(crate) const EXTRA_COUNTER_TRACK_UUIDS: u32 = 31;
}

pub(crate) mod annotation {
    pub(crate) const NAME_IID: u32 = 1;
    pub(crate) const BOOL_VALUE: u32 = 2;
    pub(crate) const UINT_VALUE: u32 = 3;
    pub(crate) const INT_VALUE: u32 = 4;
    pub(crate) const STRING_VALUE: u32 = 6;
    pub(crate) const POINTER_VALUE: u32 = 7;
    pub(crate) const NAME: u32 = 10;
    pub(crate) const STRING_VALUE_IID: u32 = 17;
}

pub(crate) mod interned {
    pub(crate) const EVENT_CATEGORIES: u32 = 1;
    pub(crate) const EVENT_NAMES: u32 = 2;
    pub(crate) const DEBUG_ANNOTATION_NAMES: u32 = 3;
    pub(crate) const DEBUG_ANNOTATION_STRING_VALUES: u32 = 29;
    pub(crate) const CORRELATION_ID_STR: u32 = 43;
    pub(crate) const IID: u32 = 1;
    pub(crate) const NAME: u32 = 2;
}

//! The few protobuf wire forms that a trace needs, written straight into a buffer.
//!
//! Field numbers are those of Perfetto's `protos/perfetto/trace/`; the tests decode every packet with the official classes.

/// Wire types.
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const BYTES: u32 = 2;

#[inline]
pub(super) fn varint(buffer: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        buffer.push(value as u8 | 0x80);
        value >>= 7;
    }
    buffer.push(value as u8);
}

#[inline]
pub(super) fn uint(buffer: &mut Vec<u8>, field: u32, value: u64) {
    varint(buffer, u64::from(field << 3 | VARINT));
    varint(buffer, value);
}

/// int64 and int32: negative numbers take ten bytes.
#[inline]
pub(super) fn int(buffer: &mut Vec<u8>, field: u32, value: i64) {
    uint(buffer, field, value as u64);
}

#[inline]
pub(super) fn fixed64(buffer: &mut Vec<u8>, field: u32, value: u64) {
    varint(buffer, u64::from(field << 3 | FIXED64));
    buffer.extend_from_slice(&value.to_le_bytes());
}

#[inline]
pub(super) fn bytes(buffer: &mut Vec<u8>, field: u32, value: &[u8]) {
    varint(buffer, u64::from(field << 3 | BYTES));
    varint(buffer, value.len() as u64);
    buffer.extend_from_slice(value);
}

/// A nested message that is seldom longer than 127 bytes.
#[inline]
pub(super) fn nested(buffer: &mut Vec<u8>, field: u32, write: impl FnOnce(&mut Vec<u8>)) {
    varint(buffer, u64::from(field << 3 | BYTES));
    let at = buffer.len();
    buffer.push(0);
    write(buffer);
    let len = buffer.len() - at - 1;
    if len < 0x80 { buffer[at] = len as u8 } else { make_room(buffer, at, 1, len) }
}

/// A nested message that often is. Its length takes two bytes, padded if need be, which every decoder reads.
#[inline]
pub(super) fn nested_long(buffer: &mut Vec<u8>, field: u32, write: impl FnOnce(&mut Vec<u8>)) {
    varint(buffer, u64::from(field << 3 | BYTES));
    let at = buffer.len();
    buffer.extend_from_slice(&[0, 0]);
    write(buffer);
    let len = buffer.len() - at - 2;
    if len < 0x4000 {
        buffer[at] = len as u8 | 0x80;
        buffer[at + 1] = (len >> 7) as u8;
    } else {
        make_room(buffer, at, 2, len);
    }
}

#[cold]
fn make_room(buffer: &mut Vec<u8>, at: usize, kept: usize, len: usize) {
    let mut prefix = Vec::with_capacity(10);
    varint(&mut prefix, len as u64);
    buffer.splice(at..at + kept, prefix);
}

/// A message of one-byte field `outer` with two varint fields, the first with a one-byte value; `tag` is that of the second, in
/// its wire form. What most of a trace consists of, so it is put together in registers and copied at once.
#[inline]
pub(super) fn small_pair(buffer: &mut Vec<u8>, outer: u8, first: [u8; 2], tag: &[u8], value: u64) {
    let mut bytes = [0u8; 16];
    bytes[0] = outer;
    bytes[2..4].copy_from_slice(&first);
    let mut at = 4 + tag.len();
    bytes[4..at].copy_from_slice(tag);
    let mut value = value;
    while value >= 0x80 {
        bytes[at] = value as u8 | 0x80;
        value >>= 7;
        at += 1;
    }
    bytes[at] = value as u8;
    bytes[1] = (at - 1) as u8;
    let end = buffer.len() + at + 1;
    buffer.extend_from_slice(&bytes);
    buffer.truncate(end);
}

pub(super) mod trace {
    pub(in super::super) const PACKET: u32 = 1;
}

pub(super) mod packet {
    pub(in super::super) const CLOCK_SNAPSHOT: u32 = 6;
    pub(in super::super) const TIMESTAMP: u32 = 8;
    pub(in super::super) const TRUSTED_PACKET_SEQUENCE_ID: u32 = 10;
    pub(in super::super) const TRACK_EVENT: u32 = 11;
    pub(in super::super) const INTERNED_DATA: u32 = 12;
    pub(in super::super) const SEQUENCE_FLAGS: u32 = 13;
    pub(in super::super) const TRACK_DESCRIPTOR: u32 = 60;
    pub(in super::super) const SEQ_INCREMENTAL_STATE_CLEARED: u64 = 1;
    pub(in super::super) const SEQ_NEEDS_INCREMENTAL_STATE: u64 = 2;
}

pub(super) mod clock {
    pub(in super::super) const CLOCKS: u32 = 1;
    pub(in super::super) const PRIMARY_TRACE_CLOCK: u32 = 2;
    pub(in super::super) const CLOCK_ID: u32 = 1;
    pub(in super::super) const TIMESTAMP: u32 = 2;
    pub(in super::super) const BOOTTIME: u64 = 6;
}

pub(super) mod descriptor {
    pub(in super::super) const UUID: u32 = 1;
    pub(in super::super) const NAME: u32 = 2;
    pub(in super::super) const PROCESS: u32 = 3;
    pub(in super::super) const THREAD: u32 = 4;
    pub(in super::super) const PARENT_UUID: u32 = 5;
    pub(in super::super) const COUNTER: u32 = 8;
    pub(in super::super) const CHILD_ORDERING: u32 = 11;
    pub(in super::super) const CHILD_ORDERING_EXPLICIT: u64 = 3;
    pub(in super::super) const SIBLING_ORDER_RANK: u32 = 12;
    pub(in super::super) const DESCRIPTION: u32 = 14;
    pub(in super::super) const SIBLING_MERGE_BEHAVIOR: u32 = 15;
    pub(in super::super) const BY_SIBLING_MERGE_KEY: u64 = 3;
    pub(in super::super) const SIBLING_MERGE_KEY: u32 = 16;
    pub(in super::super) const PROCESS_PID: u32 = 1;
    pub(in super::super) const PROCESS_NAME: u32 = 6;
    pub(in super::super) const THREAD_PID: u32 = 1;
    pub(in super::super) const THREAD_TID: u32 = 2;
    pub(in super::super) const THREAD_NAME: u32 = 5;
    pub(in super::super) const COUNTER_UNIT_NAME: u32 = 6;
}

pub(super) mod event {
    pub(in super::super) const CATEGORY_IIDS: u32 = 3;
    pub(in super::super) const DEBUG_ANNOTATIONS: u32 = 4;
    pub(in super::super) const TYPE: u32 = 9;
    pub(in super::super) const NAME_IID: u32 = 10;
    pub(in super::super) const TRACK_UUID: u32 = 11;
    pub(in super::super) const EXTRA_COUNTER_VALUES: u32 = 12;
    pub(in super::super) const EXTRA_COUNTER_TRACK_UUIDS: u32 = 31;
    pub(in super::super) const FLOW_IDS: u32 = 47;
    pub(in super::super) const TERMINATING_FLOW_IDS: u32 = 48;
    pub(in super::super) const CORRELATION_ID: u32 = 52;
    pub(in super::super) const CALLSTACK_IID: u32 = 56;
    pub(in super::super) const SLICE_BEGIN: u64 = 1;
    pub(in super::super) const SLICE_END: u64 = 2;
    pub(in super::super) const INSTANT: u64 = 3;
}

pub(super) mod annotation {
    pub(in super::super) const NAME_IID: u32 = 1;
    pub(in super::super) const BOOL_VALUE: u32 = 2;
    pub(in super::super) const UINT_VALUE: u32 = 3;
    pub(in super::super) const INT_VALUE: u32 = 4;
    pub(in super::super) const STRING_VALUE: u32 = 6;
    pub(in super::super) const POINTER_VALUE: u32 = 7;
    pub(in super::super) const NAME: u32 = 10;
    pub(in super::super) const STRING_VALUE_IID: u32 = 17;
}

pub(super) mod interned {
    pub(in super::super) const EVENT_CATEGORIES: u32 = 1;
    pub(in super::super) const EVENT_NAMES: u32 = 2;
    pub(in super::super) const DEBUG_ANNOTATION_NAMES: u32 = 3;
    pub(in super::super) const FUNCTION_NAMES: u32 = 5;
    pub(in super::super) const FRAMES: u32 = 6;
    pub(in super::super) const CALLSTACKS: u32 = 7;
    pub(in super::super) const DEBUG_ANNOTATION_STRING_VALUES: u32 = 29;
    pub(in super::super) const IID: u32 = 1;
    pub(in super::super) const NAME: u32 = 2;
    pub(in super::super) const FRAME_FUNCTION_NAME_ID: u32 = 2;
    pub(in super::super) const CALLSTACK_FRAME_IDS: u32 = 2;
}

//! The types of fields in the low-level log: how a value is written and read, and what stands for one that is not known.

use serde_json::Value;

use super::object::{LogObject, text_of, unhex};
use crate::event::bio_flags::{BioFlags, Direction};
use crate::event::{Asked, Dev, NO_ID, NO_SECTOR, Op, TornFact};
use crate::names::{NameId, Names};
use crate::source::block_event::SECTOR_BYTES;
use crate::source::cursor::{Cursor, whole};
use crate::source::event_names::{bio_flags, bio_size, errno, errno_of_status, file_system, is_background};
use crate::source::values::device;

/// Where the fields of an event are written.
pub(crate) trait LogWriter {
    fn unsigned(&mut self, key: &'static str, value: u64);
    fn signed(&mut self, key: &'static str, value: i64);
    /// Writes a text that needs no escapes.
    fn word(&mut self, key: &'static str, value: &str);
    /// Writes `true`.
    fn flag(&mut self, key: &'static str);
    fn address(&mut self, key: &'static str, value: u64);
    fn device(&mut self, key: &'static str, value: Dev);
    fn name(&mut self, key: &'static str, value: NameId);
    fn stack(&mut self, key: &'static str, value: NameId);
}

/// Why an object gives no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::source) enum Unread {
    /// A field is missing or out of range.
    Bad,
    /// It is an event that was not used, so its fields are as the tracer has them.
    Unused,
}

pub(in crate::source) const BAD_FIELD: &str = "a field of the event is missing or out of range";

/// The type of a field of the log.
pub(in crate::source) trait Codec: Copy {
    type Value: Copy;

    fn write(self, key: &'static str, value: Self::Value, log: &mut impl LogWriter);
    fn read(self, key: &str, object: &LogObject<'_>, names: &mut Names) -> Result<Self::Value, Unread>;

    /// Whether `write` may have written this, where a tracer has fields of the same name.
    fn is_own(self, _: &Value) -> bool {
        true
    }

    /// A value that is known, and those that stand for one that is not.
    #[cfg(test)]
    fn samples(self, names: &mut Names) -> Vec<Self::Value>;
}

/// The type of a field that the log has as the tracer printed it.
pub(super) trait TracerCodec: Copy {
    type Value: Copy;

    fn read(self, key: &str, object: &LogObject<'_>, names: &mut Names) -> Result<Self::Value, Unread>;

    /// Values with the JSON that they are read from, first a known one.
    #[cfg(test)]
    fn samples(self, names: &mut Names) -> Vec<(Self::Value, Option<&'static str>)>;
}

/// A number. `or` stands for one that the log lacks, and `absent` is not written.
#[derive(Clone, Copy)]
pub(super) struct Unsigned {
    or: Option<u64>,
    absent: Option<u64>,
}

impl Unsigned {
    pub(super) const REQUIRED: Self = Self { or: None, absent: None };
    /// 0 where it is not known.
    pub(super) const NON_ZERO: Self = Self { or: Some(0), absent: Some(0) };
    /// As `NON_ZERO`, but a 0 is written.
    pub(super) const OR_ZERO: Self = Self { or: Some(0), absent: None };
    /// The id of a request, if it is known.
    pub(super) const ANY_ID: Self = Self { or: Some(NO_ID), absent: Some(NO_ID) };
}

impl Codec for Unsigned {
    type Value = u64;

    fn write(self, key: &'static str, value: u64, log: &mut impl LogWriter) {
        if self.absent != Some(value) {
            log.unsigned(key, value);
        }
    }

    fn read(self, key: &str, object: &LogObject<'_>, _: &mut Names) -> Result<u64, Unread> {
        object.unsigned(key).or(self.or).ok_or(Unread::Bad)
    }

    #[cfg(test)]
    fn samples(self, _: &mut Names) -> Vec<u64> {
        [7].into_iter().chain(self.or).collect()
    }
}

/// A number; `None` where it is not known.
#[derive(Clone, Copy)]
pub(super) struct MaybeUnsigned;

impl Codec for MaybeUnsigned {
    type Value = Option<u64>;

    fn write(self, key: &'static str, value: Option<u64>, log: &mut impl LogWriter) {
        if let Some(value) = value {
            log.unsigned(key, value);
        }
    }

    fn read(self, key: &str, object: &LogObject<'_>, _: &mut Names) -> Result<Option<u64>, Unread> {
        match object.get(key) {
            None => Ok(None),
            Some(_) => object.unsigned(key).map(Some).ok_or(Unread::Bad),
        }
    }

    #[cfg(test)]
    fn samples(self, _: &mut Names) -> Vec<Option<u64>> {
        vec![Some(7), Some(0), None]
    }
}

/// The id of a request.
#[derive(Clone, Copy)]
pub(super) struct Id;

impl Codec for Id {
    type Value = u64;

    fn write(self, key: &'static str, value: u64, log: &mut impl LogWriter) {
        log.unsigned(key, value);
    }

    fn read(self, key: &str, object: &LogObject<'_>, _: &mut Names) -> Result<u64, Unread> {
        object.unsigned(key).filter(|&id| id != NO_ID).ok_or(Unread::Bad)
    }

    #[cfg(test)]
    fn samples(self, _: &mut Names) -> Vec<u64> {
        vec![420]
    }
}

/// A number that the log holds for its readers, although the event always has the same one.
#[derive(Clone, Copy)]
pub(super) struct Always<T>(pub(super) T);

impl Codec for Always<u64> {
    type Value = u64;

    fn write(self, key: &'static str, value: u64, log: &mut impl LogWriter) {
        log.unsigned(key, value);
    }

    fn read(self, _: &str, _: &LogObject<'_>, _: &mut Names) -> Result<u64, Unread> {
        Ok(self.0)
    }

    #[cfg(test)]
    fn samples(self, _: &mut Names) -> Vec<u64> {
        vec![self.0]
    }
}

impl Codec for Always<bool> {
    type Value = bool;

    fn write(self, key: &'static str, value: bool, log: &mut impl LogWriter) {
        log.unsigned(key, value.into());
    }

    fn read(self, _: &str, _: &LogObject<'_>, _: &mut Names) -> Result<bool, Unread> {
        Ok(self.0)
    }

    #[cfg(test)]
    fn samples(self, _: &mut Names) -> Vec<bool> {
        vec![self.0]
    }
}

/// The result of a call.
#[derive(Clone, Copy)]
pub(super) struct Ret;

impl Codec for Ret {
    type Value = i64;

    fn write(self, key: &'static str, value: i64, log: &mut impl LogWriter) {
        log.signed(key, value);
    }

    fn read(self, key: &str, object: &LogObject<'_>, _: &mut Names) -> Result<i64, Unread> {
        object.signed(key).ok_or(Unread::Bad)
    }

    #[cfg(test)]
    fn samples(self, _: &mut Names) -> Vec<i64> {
        vec![-5, 0]
    }
}

/// As `Ret`; `None` where it is not known.
#[derive(Clone, Copy)]
pub(super) struct AnyRet;

impl Codec for AnyRet {
    type Value = Option<i64>;

    fn write(self, key: &'static str, value: Option<i64>, log: &mut impl LogWriter) {
        if let Some(value) = value {
            log.signed(key, value);
        }
    }

    fn read(self, key: &str, object: &LogObject<'_>, _: &mut Names) -> Result<Option<i64>, Unread> {
        Ok(object.signed(key))
    }

    #[cfg(test)]
    fn samples(self, _: &mut Names) -> Vec<Option<i64>> {
        vec![Some(-5), None]
    }
}

/// 0 or 1. `or` stands for one that the log lacks.
#[derive(Clone, Copy)]
pub(super) struct Bit {
    or: Option<bool>,
}

impl Bit {
    pub(super) const REQUIRED: Self = Self { or: None };
    pub(super) const OR_UNSET: Self = Self { or: Some(false) };
}

impl Codec for Bit {
    type Value = bool;

    fn write(self, key: &'static str, value: bool, log: &mut impl LogWriter) {
        log.unsigned(key, value.into());
    }

    fn read(self, key: &str, object: &LogObject<'_>, _: &mut Names) -> Result<bool, Unread> {
        object.unsigned(key).map(|bit| bit == 1).or(self.or).ok_or(Unread::Bad)
    }

    #[cfg(test)]
    fn samples(self, _: &mut Names) -> Vec<bool> {
        vec![true, false]
    }
}

/// As `Bit`; `None` where it is not known.
#[derive(Clone, Copy)]
pub(super) struct AnyBit;

impl Codec for AnyBit {
    type Value = Option<bool>;

    fn write(self, key: &'static str, value: Option<bool>, log: &mut impl LogWriter) {
        if let Some(value) = value {
            log.unsigned(key, value.into());
        }
    }

    fn read(self, key: &str, object: &LogObject<'_>, _: &mut Names) -> Result<Option<bool>, Unread> {
        Ok(object.unsigned(key).map(|bit| bit == 1))
    }

    #[cfg(test)]
    fn samples(self, _: &mut Names) -> Vec<Option<bool>> {
        vec![Some(true), Some(false), None]
    }
}

/// `true`, or absent.
#[derive(Clone, Copy)]
pub(super) struct Flag;

impl Codec for Flag {
    type Value = bool;

    fn write(self, key: &'static str, value: bool, log: &mut impl LogWriter) {
        if value {
            log.flag(key);
        }
    }

    fn read(self, key: &str, object: &LogObject<'_>, _: &mut Names) -> Result<bool, Unread> {
        Ok(object.is_true(key))
    }

    fn is_own(self, value: &Value) -> bool {
        value.is_boolean()
    }

    #[cfg(test)]
    fn samples(self, _: &mut Names) -> Vec<bool> {
        vec![true, false]
    }
}

/// The op of a call. The name of the event implies all but `write`, which is a sync only by its flags or those of its file.
#[derive(Clone, Copy)]
pub(super) struct CallOp(pub(super) Op);

impl Codec for CallOp {
    type Value = Op;

    fn write(self, key: &'static str, value: Op, log: &mut impl LogWriter) {
        if value == Op::Write {
            log.word(key, value.name());
        }
    }

    fn read(self, _: &str, _: &LogObject<'_>, _: &mut Names) -> Result<Op, Unread> {
        Ok(self.0)
    }

    fn is_own(self, _: &Value) -> bool {
        self.0 == Op::Write
    }

    #[cfg(test)]
    fn samples(self, _: &mut Names) -> Vec<Op> {
        vec![self.0]
    }
}

/// Whether an id is of a thread, for kernels without request ids.
#[derive(Clone, Copy)]
pub(super) struct OfThread;

impl Codec for OfThread {
    type Value = bool;

    fn write(self, key: &'static str, value: bool, log: &mut impl LogWriter) {
        if value {
            log.word(key, "thread");
        }
    }

    fn read(self, key: &str, object: &LogObject<'_>, _: &mut Names) -> Result<bool, Unread> {
        Ok(object.word(key) == Some("thread"))
    }

    #[cfg(test)]
    fn samples(self, _: &mut Names) -> Vec<bool> {
        vec![true, false]
    }
}

/// The size of a bio. The log has it as the tracer's `bytes`, and says here whether that is the size; 0 where it is not known.
#[derive(Clone, Copy)]
pub(super) struct BioSize;

impl Codec for BioSize {
    type Value = u64;

    fn write(self, key: &'static str, value: u64, log: &mut impl LogWriter) {
        if value != 0 {
            log.word(key, "bio");
        }
    }

    fn read(self, key: &str, object: &LogObject<'_>, _: &mut Names) -> Result<u64, Unread> {
        let size = object.get("bytes").filter(|_| object.word(key) == Some("bio")).map(text_of);
        Ok(bio_size(size.unwrap_or_default().as_bytes()))
    }

    #[cfg(test)]
    fn samples(self, _: &mut Names) -> Vec<u64> {
        vec![4096, 0]
    }
}

/// The address of a bio.
#[derive(Clone, Copy)]
pub(super) struct Address {
    or: Option<u64>,
}

impl Address {
    pub(super) const REQUIRED: Self = Self { or: None };
    /// 0 where it is not known.
    pub(super) const ANY: Self = Self { or: Some(0) };
}

impl Codec for Address {
    type Value = u64;

    fn write(self, key: &'static str, value: u64, log: &mut impl LogWriter) {
        if self.or != Some(value) {
            log.address(key, value);
        }
    }

    fn read(self, key: &str, object: &LogObject<'_>, _: &mut Names) -> Result<u64, Unread> {
        let address = match object.get(key) {
            Some(value) => value.as_str().and_then(|text| whole(text.as_bytes(), Cursor::hex)),
            None => self.or,
        };
        address.ok_or(Unread::Bad)
    }

    #[cfg(test)]
    fn samples(self, _: &mut Names) -> Vec<u64> {
        [0xff11_0001_0000_0000].into_iter().chain(self.or).collect()
    }
}

/// A device, unknown where the log has none. The variants differ in what a number is.
#[derive(Clone, Copy)]
pub(super) enum Device {
    Text,
    /// The kernel's number. An end had no field for it before, and kept the tracer's.
    OrNumber,
    /// The device of an event that was not used.
    OfBlockEvent,
}

impl Codec for Device {
    type Value = Dev;

    fn write(self, key: &'static str, value: Dev, log: &mut impl LogWriter) {
        if value.is_known() {
            log.device(key, value);
        }
    }

    fn read(self, key: &str, object: &LogObject<'_>, _: &mut Names) -> Result<Dev, Unread> {
        let dev = match (self, object.get(key)) {
            (_, None) => Some(Dev::UNKNOWN),
            (_, Some(Value::String(text))) => device(text.as_bytes()),
            (Self::OrNumber, Some(value)) => value.as_u64().and_then(|dev| u32::try_from(dev).ok()).map(Dev),
            (Self::OfBlockEvent, Some(_)) => return Err(Unread::Unused),
            (Self::Text, Some(_)) => None,
        };
        dev.ok_or(Unread::Bad)
    }

    #[cfg(test)]
    fn samples(self, _: &mut Names) -> Vec<Dev> {
        vec![Dev::new(254, 16), Dev::UNKNOWN]
    }
}

/// A device by its number, or by the name of the disk if its recorder prints only that.
#[derive(Clone, Copy)]
pub(super) struct AnyDevice;

impl Codec for AnyDevice {
    type Value = Dev;

    fn write(self, key: &'static str, value: Dev, log: &mut impl LogWriter) {
        Device::Text.write(key, value, log);
    }

    fn read(self, key: &str, object: &LogObject<'_>, names: &mut Names) -> Result<Dev, Unread> {
        let named = object.word(key).and_then(Dev::named);
        named.map_or_else(|| Device::Text.read(key, object, names), Ok)
    }

    #[cfg(test)]
    fn samples(self, names: &mut Names) -> Vec<Dev> {
        Dev::named("vdb").into_iter().chain(Device::Text.samples(names)).collect()
    }
}

/// What a request asks of the device: its flags, or the word for its direction.
#[derive(Clone, Copy)]
pub(super) struct AskedWord;

impl Codec for AskedWord {
    type Value = Asked;

    fn write(self, key: &'static str, value: Asked, log: &mut impl LogWriter) {
        match value {
            Asked::Flags(flags) => log.word(key, flags.rwbs()),
            Asked::Way(way) => log.word(key, way.name()),
        }
    }

    fn read(self, key: &str, object: &LogObject<'_>, _: &mut Names) -> Result<Asked, Unread> {
        let word = object.word(key).ok_or(Unread::Bad)?;
        let way = Direction::ALL.into_iter().find(|way| way.name() == word).map(Asked::Way);
        way.or_else(|| BioFlags::of_word(word).map(Asked::Flags)).ok_or(Unread::Bad)
    }

    #[cfg(test)]
    fn samples(self, _: &mut Names) -> Vec<Asked> {
        BioFlags::of_word("FWS").map(Asked::Flags).into_iter().chain([Asked::Way(Direction::Unknown)]).collect()
    }
}

/// A sector.
#[derive(Clone, Copy)]
pub(super) enum Sector {
    OfBio,
    /// It is never negative. One that needs all 64 bits is a text in the log, as the tracer has it.
    OfBlockEvent,
}

impl Codec for Sector {
    type Value = i64;

    fn write(self, key: &'static str, value: i64, log: &mut impl LogWriter) {
        if value != NO_SECTOR {
            log.signed(key, value);
        }
    }

    fn read(self, key: &str, object: &LogObject<'_>, _: &mut Names) -> Result<i64, Unread> {
        let sector = object.signed(key).filter(|&sector| matches!(self, Self::OfBio) || sector >= 0);
        Ok(sector.unwrap_or(NO_SECTOR))
    }

    #[cfg(test)]
    fn samples(self, _: &mut Names) -> Vec<i64> {
        vec![1_234_568, NO_SECTOR]
    }
}

/// The sector from which a bio is redirected.
#[derive(Clone, Copy)]
pub(super) struct FromSector;

impl Codec for FromSector {
    type Value = i64;

    fn write(self, key: &'static str, value: i64, log: &mut impl LogWriter) {
        log.signed(key, value);
    }

    fn read(self, key: &str, object: &LogObject<'_>, _: &mut Names) -> Result<i64, Unread> {
        object.signed(key).ok_or(Unread::Unused)
    }

    #[cfg(test)]
    fn samples(self, _: &mut Names) -> Vec<i64> {
        vec![2048]
    }
}

/// The length of an event of the block layer. The kernel's own `bytes` are those of a command that is no read and no write.
#[derive(Clone, Copy)]
pub(super) struct BlockBytes;

impl Codec for BlockBytes {
    type Value = u64;

    fn write(self, key: &'static str, value: u64, log: &mut impl LogWriter) {
        log.unsigned(key, value);
    }

    fn read(self, key: &str, object: &LogObject<'_>, _: &mut Names) -> Result<u64, Unread> {
        let by_sectors = object.unsigned("nr_sector").and_then(|sectors| sectors.checked_mul(SECTOR_BYTES));
        by_sectors.or(object.unsigned(key)).ok_or(Unread::Unused)
    }

    #[cfg(test)]
    fn samples(self, _: &mut Names) -> Vec<u64> {
        vec![4096, 0]
    }
}

/// A name or a path, NONE where it is not known.
#[derive(Clone, Copy)]
pub(in crate::source) struct Text;

impl Codec for Text {
    type Value = NameId;

    fn write(self, key: &'static str, value: NameId, log: &mut impl LogWriter) {
        if value.is_some() {
            log.name(key, value);
        }
    }

    fn read(self, key: &str, object: &LogObject<'_>, names: &mut Names) -> Result<NameId, Unread> {
        Ok(object.bytes(key).map_or(NameId::NONE, |bytes| names.intern(&bytes)))
    }

    fn is_own(self, value: &Value) -> bool {
        value.is_string()
    }

    #[cfg(test)]
    fn samples(self, names: &mut Names) -> Vec<NameId> {
        vec![names.intern(b"a\xff\"b"), names.intern(b"ext4"), NameId::NONE]
    }
}

/// The frames of a stack, one a line, NONE where it is not known.
#[derive(Clone, Copy)]
pub(super) struct Stack;

impl Codec for Stack {
    type Value = NameId;

    fn write(self, key: &'static str, value: NameId, log: &mut impl LogWriter) {
        if value.is_some() {
            log.stack(key, value);
        }
    }

    fn read(self, key: &str, object: &LogObject<'_>, names: &mut Names) -> Result<NameId, Unread> {
        if let Some(raw) = object.word(&format!("{key}_hex")).and_then(unhex) {
            return Ok(names.intern(&raw));
        }
        let Some(lines) = object.get(key).and_then(Value::as_array) else { return Ok(NameId::NONE) };
        let lines: Vec<&str> = lines.iter().filter_map(Value::as_str).collect();
        Ok(names.intern(lines.join("\n").as_bytes()))
    }

    fn is_own(self, value: &Value) -> bool {
        value.is_array()
    }

    #[cfg(test)]
    fn samples(self, names: &mut Names) -> Vec<NameId> {
        vec![names.intern(b"fsync+0x1\nmain+0x2"), names.intern(b"a\xff+0x1"), NameId::NONE]
    }
}

/// The fact that a torn line would have stated.
#[derive(Clone, Copy)]
pub(super) struct Fact;

impl Codec for Fact {
    type Value = TornFact;

    fn write(self, key: &'static str, value: TornFact, log: &mut impl LogWriter) {
        log.word(key, value.name());
    }

    fn read(self, key: &str, object: &LogObject<'_>, _: &mut Names) -> Result<TornFact, Unread> {
        let fact = object.word(key);
        TornFact::ALL.into_iter().find(|known| Some(known.name()) == fact).ok_or(Unread::Bad)
    }

    #[cfg(test)]
    fn samples(self, _: &mut Names) -> Vec<TornFact> {
        TornFact::ALL.to_vec()
    }
}

/// Whether a bio belongs to no sync.
#[derive(Clone, Copy)]
pub(super) struct Background;

impl TracerCodec for Background {
    type Value = bool;

    fn read(self, key: &str, object: &LogObject<'_>, _: &mut Names) -> Result<bool, Unread> {
        Ok(object.word(key).is_some_and(is_background))
    }

    #[cfg(test)]
    fn samples(self, _: &mut Names) -> Vec<(bool, Option<&'static str>)> {
        vec![(true, Some("\"periodic\"")), (false, Some("\"sync\"")), (false, None)]
    }
}

/// The flags of a bio.
#[derive(Clone, Copy)]
pub(super) struct Opf;

impl TracerCodec for Opf {
    type Value = Option<BioFlags>;

    fn read(self, key: &str, object: &LogObject<'_>, _: &mut Names) -> Result<Option<BioFlags>, Unread> {
        Ok(object.get(key).and_then(|opf| bio_flags(text_of(opf).as_bytes())))
    }

    #[cfg(test)]
    fn samples(self, _: &mut Names) -> Vec<(Option<BioFlags>, Option<&'static str>)> {
        vec![(BioFlags::of_rwbs(b"WS"), Some("2049")), (BioFlags::of_rwbs(b"W"), Some("\"0x1\"")), (None, None)]
    }
}

/// The error of a bio: a negative errno, or the kernel's status.
#[derive(Clone, Copy)]
pub(super) struct Status;

impl TracerCodec for Status {
    type Value = Option<i32>;

    fn read(self, key: &str, object: &LogObject<'_>, _: &mut Names) -> Result<Option<i32>, Unread> {
        Ok(object.signed(key).and_then(errno_of_status))
    }

    #[cfg(test)]
    fn samples(self, _: &mut Names) -> Vec<(Option<i32>, Option<&'static str>)> {
        vec![(Some(-28), Some("3")), (Some(-5), Some("-5")), (Some(0), Some("0")), (None, None)]
    }
}

/// The error of a request.
#[derive(Clone, Copy)]
pub(super) struct Errno;

impl TracerCodec for Errno {
    type Value = Option<i32>;

    fn read(self, key: &str, object: &LogObject<'_>, _: &mut Names) -> Result<Option<i32>, Unread> {
        Ok(object.signed(key).and_then(errno))
    }

    #[cfg(test)]
    fn samples(self, _: &mut Names) -> Vec<(Option<i32>, Option<&'static str>)> {
        vec![(Some(-5), Some("-5")), (Some(0), Some("0")), (None, None)]
    }
}

/// The flags of an event of the block layer, without which it is not used.
#[derive(Clone, Copy)]
pub(super) struct Rwbs;

impl TracerCodec for Rwbs {
    type Value = BioFlags;

    fn read(self, key: &str, object: &LogObject<'_>, _: &mut Names) -> Result<BioFlags, Unread> {
        BioFlags::of_rwbs(object.word(key).unwrap_or_default().as_bytes()).ok_or(Unread::Unused)
    }

    #[cfg(test)]
    fn samples(self, _: &mut Names) -> Vec<(BioFlags, Option<&'static str>)> {
        ["\"FWS\"", "\"FF\""].into_iter().filter_map(|json| Some((flags_of(json)?, Some(json)))).collect()
    }
}

#[cfg(test)]
fn flags_of(json: &str) -> Option<BioFlags> {
    BioFlags::of_rwbs(json.trim_matches('"').as_bytes())
}

/// The file system whose name the name of the event begins with.
#[derive(Clone, Copy)]
pub(super) struct FileSystem;

impl TracerCodec for FileSystem {
    type Value = NameId;

    fn read(self, key: &str, object: &LogObject<'_>, names: &mut Names) -> Result<NameId, Unread> {
        Ok(names.intern(file_system(object.word(key).unwrap_or_default().as_bytes())))
    }

    #[cfg(test)]
    fn samples(self, names: &mut Names) -> Vec<(NameId, Option<&'static str>)> {
        vec![(names.intern(b"ext4"), None)]
    }
}

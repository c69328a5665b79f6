//! The content of a chunk: samples in the order of time, and what is counted between them. Numbers are little endian.

use super::tasks::{Comm, FileId};

const SAMPLE: u8 = 0;
const OTHERS: u8 = 1;
const LOST: u8 = 2;
const LOST_UNCOUNTED: u8 = 3;
const BAD: u8 = 4;
const CUT_OFF: u8 = 5;

/// Size of a frame: its address and its file.
const FRAME_BYTES: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item<'a> {
    Sample(SampleItem<'a>),
    /// Samples of an event that are only counted.
    Others {
        event: u32,
        count: u64,
    },
    Lost(u64),
    LostUncounted,
    /// A sample that cannot be read, of the event with this index.
    Bad {
        event: u32,
        problem: Problem,
    },
    /// The file ends within a record.
    CutOff,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SampleItem<'a> {
    /// Index of its event.
    pub(super) event: u32,
    pub(super) time: i64,
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) comm: Comm,
    pub(super) raw: &'a [u8],
    /// Frames of twelve bytes, innermost first; see `frames`.
    pub(super) frames: &'a [u8],
}

/// Why a sample cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    TooShort,
    NoEvent,
}

impl Problem {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::TooShort => "it is shorter than the file says",
            Self::NoEvent => "the file has no event with its id",
        }
    }
}

impl Item<'_> {
    pub(super) fn write(self, to: &mut Vec<u8>) {
        match self {
            Self::Sample(sample) => {
                to.push(SAMPLE);
                for number in
                    [sample.event, sample.pid, sample.tid, sample.raw.len() as u32, sample.frames.len() as u32]
                {
                    to.extend_from_slice(&number.to_le_bytes());
                }
                to.extend_from_slice(&sample.time.to_le_bytes());
                to.extend_from_slice(&sample.comm);
                to.extend_from_slice(sample.raw);
                to.extend_from_slice(sample.frames);
            }
            Self::Others { event, count } => {
                to.push(OTHERS);
                to.extend_from_slice(&event.to_le_bytes());
                to.extend_from_slice(&count.to_le_bytes());
            }
            Self::Lost(count) => {
                to.push(LOST);
                to.extend_from_slice(&count.to_le_bytes());
            }
            Self::LostUncounted => to.push(LOST_UNCOUNTED),
            Self::Bad { event, problem } => {
                to.push(BAD);
                to.extend_from_slice(&event.to_le_bytes());
                to.push(u8::from(problem == Problem::NoEvent));
            }
            Self::CutOff => to.push(CUT_OFF),
        }
    }
}

pub(super) fn write_frame(address: u64, file: FileId, to: &mut Vec<u8>) {
    to.extend_from_slice(&address.to_le_bytes());
    to.extend_from_slice(&file.to_le_bytes());
}

/// Returns address and file of each frame.
pub(super) fn frames(bytes: &[u8]) -> impl Iterator<Item = (u64, FileId)> {
    bytes.chunks_exact(FRAME_BYTES).filter_map(|frame| {
        let (address, file) = frame.split_first_chunk()?;
        Some((u64::from_le_bytes(*address), FileId::from_le_bytes(file.try_into().ok()?)))
    })
}

/// Takes the items of a chunk.
pub(super) struct Items<'a>(pub(super) &'a [u8]);

impl<'a> Items<'a> {
    fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Item<'a>;

    #[inline]
    fn next(&mut self) -> Option<Item<'a>> {
        let [tag] = self.array()?;
        Some(match tag {
            SAMPLE => {
                let (event, pid, tid) = (self.u32()?, self.u32()?, self.u32()?);
                let (raw, frames) = (self.u32()? as usize, self.u32()? as usize);
                let time = self.u64()? as i64;
                let comm = self.array()?;
                let (raw, frames) = (self.bytes(raw)?, self.bytes(frames)?);
                Item::Sample(SampleItem { event, time, pid, tid, comm, raw, frames })
            }
            OTHERS => Item::Others { event: self.u32()?, count: self.u64()? },
            LOST => Item::Lost(self.u64()?),
            LOST_UNCOUNTED => Item::LostUncounted,
            BAD => {
                let event = self.u32()?;
                let [code] = self.array()?;
                Item::Bad { event, problem: if code == 0 { Problem::TooShort } else { Problem::NoEvent } }
            }
            _ => Item::CutOff,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_read_as_they_were_written() {
        let mut frames_of = Vec::new();
        write_frame(0x7f12, 3, &mut frames_of);
        write_frame(1 << 63, FileId::MAX, &mut frames_of);
        let comm = *b"a name with 15c\0";
        let sample = SampleItem { event: 1, time: -5, pid: 6, tid: u32::MAX, comm, raw: b"raw", frames: &frames_of };
        let items = [
            Item::Others { event: 9, count: 1 << 40 },
            Item::Sample(sample),
            Item::Lost(7),
            Item::LostUncounted,
            Item::Bad { event: 4, problem: Problem::NoEvent },
            Item::Bad { event: 4, problem: Problem::TooShort },
            Item::CutOff,
        ];
        let mut bytes = Vec::new();
        for item in &items {
            item.write(&mut bytes);
        }
        assert!(Items(&bytes).eq(items));
        assert!(frames(&frames_of).eq([(0x7f12, 3), (1 << 63, FileId::MAX)]));
    }
}

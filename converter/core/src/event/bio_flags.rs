//! What a bio or a request asks of the device, and its flags. The kernel prints both as the letters of `rwbs`, and keeps them in the bits
//! of `bi_opf`.

/// Number of flags whose letters are printed around that of the operation.
const COUNT: usize = 5;
/// The flags in the order in which the kernel prints them: their letter, and their bit in `bi_opf`. The letters of the operation follow the
/// first one. The bits are the same in all kernels from 4.10 on.
const FLAGS: [(u8, u32); COUNT] = [(b'F', 18), (b'F', 17), (b'A', 19), (b'S', 11), (b'M', 12)];
/// How many bits `BioFlags` uses: one for each flag, and three for the number of the operation.
const BITS: usize = COUNT + 3;
/// Letters that `rwbs` has at most.
const LETTERS: usize = COUNT + 2;

/// The operation that the device is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Operation {
    Write,
    Read,
    /// The request that the block layer issues for a flush.
    Flush,
    Discard,
    SecureErase,
    Zeroes,
    /// A write to a zone, whose place the device chooses.
    ZoneAppend,
    /// One that the kernel does not name.
    Other,
}

/// All operations, by their numbers: the letters that the kernel prints, and the value in the lowest byte of `bi_opf` (`REQ_OP_*`), where
/// that is the same in all kernels. An operation of a bio that is not in the list counts as a write.
const OPERATIONS: [(Operation, &[u8], Option<u32>); 8] = [
    (Operation::Write, b"W", Some(1)),
    (Operation::Read, b"R", Some(0)),
    (Operation::Flush, b"F", Some(2)),
    (Operation::Discard, b"D", Some(3)),
    (Operation::SecureErase, b"DE", Some(5)),
    (Operation::Zeroes, b"WZ", Some(9)),
    (Operation::ZoneAppend, b"ZA", None),
    (Operation::Other, b"N", None),
];
const OP_MASK: u32 = 0xff;

/// Which way data go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    Write,
    Read,
    /// None: the device only empties its cache.
    Flush,
    /// None: the device forgets the sectors.
    Discard,
    /// None: the device fills the sectors with zeroes by itself.
    Zeroes,
    /// The kernel does not name the operation, or the recorder does not print it, so data may be written.
    Unknown,
}

impl Direction {
    pub const ALL: [Self; 6] = [Self::Write, Self::Read, Self::Flush, Self::Discard, Self::Zeroes, Self::Unknown];

    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Read => "read",
            Self::Flush => "flush",
            Self::Discard => "discard",
            Self::Zeroes => "zeroes",
            Self::Unknown => "unknown",
        }
    }

    /// Whether the bytes of a bio are data that go to the device or come from it. Those of other operations are the size of its range.
    pub fn has_data(self) -> bool {
        matches!(self, Self::Write | Self::Read)
    }

    /// Whether a bio is of a request of a file system, or of background writeback: it writes, or makes durable what was written.
    pub fn is_writeback(self) -> bool {
        matches!(self, Self::Write | Self::Flush)
    }
}

/// Which of a device's queues holds a bio or a request in flight. The bios of writes may be known from file systems and probes as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Traffic {
    Writes,
    Reads,
    /// Discards, zeroes, and what the kernel does not name.
    Others,
}

/// The operation of a bio or a request, and its flags: one bit for each flag, then the number of the operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BioFlags(u8);

impl BioFlags {
    /// A cache flush before the write.
    pub const PREFLUSH: Self = Self(1);
    /// The write is durable when it completes.
    pub const FUA: Self = Self(1 << 1);
    pub const AHEAD: Self = Self(1 << 2);
    /// Somebody waits for it.
    pub const SYNC: Self = Self(1 << 3);
    pub const META: Self = Self(1 << 4);
    pub const READ: Self = Self((Operation::Read as u8) << COUNT);

    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    #[must_use]
    pub fn with(self, other: Self, is_set: bool) -> Self {
        if is_set { Self(self.0 | other.0) } else { self }
    }

    fn operation(self) -> Operation {
        OPERATIONS[usize::from(self.0 >> COUNT)].0
    }

    fn of(operation: Operation) -> Self {
        Self((operation as u8) << COUNT)
    }

    pub fn is_read(self) -> bool {
        self.traffic() == Traffic::Reads
    }

    pub fn is_write(self) -> bool {
        self.traffic() == Traffic::Writes
    }

    /// Whether it is the request that the block layer issues for a flush.
    pub fn is_flush_request(self) -> bool {
        self.operation() == Operation::Flush
    }

    /// Whether the device chooses the place: the completion names another sector than the submit.
    pub fn is_zone_append(self) -> bool {
        self.operation() == Operation::ZoneAppend
    }

    pub fn traffic(self) -> Traffic {
        match self.operation() {
            Operation::Write | Operation::Flush | Operation::ZoneAppend => Traffic::Writes,
            Operation::Read => Traffic::Reads,
            Operation::Discard | Operation::SecureErase | Operation::Zeroes | Operation::Other => Traffic::Others,
        }
    }

    /// Which way the data of a bio of `bytes` bytes go. A write without data is the bio that asks for a flush.
    pub fn direction(self, bytes: u64) -> Direction {
        match self.operation() {
            Operation::Write | Operation::ZoneAppend if bytes == 0 && self.contains(Self::PREFLUSH) => Direction::Flush,
            Operation::Write | Operation::ZoneAppend => Direction::Write,
            Operation::Read => Direction::Read,
            Operation::Flush => Direction::Flush,
            Operation::Discard | Operation::SecureErase => Direction::Discard,
            Operation::Zeroes => Direction::Zeroes,
            Operation::Other => Direction::Unknown,
        }
    }

    /// Reads the letters that the kernel and blkparse print, such as `FWFSM`, `RA` and `FF`. An `F` before the operation is a flush, one
    /// after it FUA. Letters of other flags are left out. A flush without an operation is a request for that alone, `FN` in blkparse.
    /// `None` for what manages zones.
    pub fn of_rwbs(rwbs: &[u8]) -> Option<Self> {
        let after_flush = rwbs.strip_prefix(b"F");
        let rest = after_flush.unwrap_or(rwbs);
        let is_it = |&&(_, letters, _): &&(Operation, &[u8], Option<u32>)| rest.starts_with(letters);
        let found = OPERATIONS.iter().filter(is_it).max_by_key(|(_, letters, _)| letters.len());
        let (operation, letters) = match found {
            Some(&(Operation::Other, letters, _)) if after_flush.is_some() => (Operation::Flush, letters),
            Some(&(operation, letters, _)) => (operation, letters),
            None if after_flush.is_some() => (Operation::Flush, &b""[..]),
            None => return None,
        };
        let mut flags = Self::of(operation).with(Self::PREFLUSH, after_flush.is_some());
        for letter in &rest[letters.len()..] {
            match letter {
                b'F' => flags = flags.with(Self::FUA, true),
                b'A' => flags = flags.with(Self::AHEAD, true),
                b'S' => flags = flags.with(Self::SYNC, true),
                b'M' => flags = flags.with(Self::META, true),
                _ => {}
            }
        }
        Some(flags)
    }

    /// Reads the flags of `bi_opf`, which has 32 bits in the kernel; `None` for a larger number, which no kernel wrote.
    pub fn of_opf(opf: u64) -> Option<Self> {
        let opf = u32::try_from(opf).ok()?;
        let bits = FLAGS.iter().enumerate().map(|(i, &(_, bit))| ((opf >> bit & 1) as u8) << i);
        let known = OPERATIONS.iter().find(|(_, _, number)| *number == Some(opf & OP_MASK));
        Some(Self(bits.sum::<u8>() | Self::of(known.map_or(Operation::Write, |known| known.0)).0))
    }

    /// The letters, as the kernel prints them.
    pub fn rwbs(self) -> &'static str {
        let (letters, len) = &RWBS[usize::from(self.0) % RWBS.len()];
        std::str::from_utf8(&letters[..*len]).unwrap_or_default()
    }

    /// Returns the flags that have exactly these letters.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::of_rwbs(word.as_bytes()).filter(|flags| flags.rwbs() == word)
    }
}

/// The letters of each combination of flags, and their number.
const RWBS: [([u8; LETTERS], usize); 1 << BITS] = {
    let mut all = [([0; LETTERS], 0); 1 << BITS];
    let mut bits = 0;
    while bits < all.len() {
        let (letters, len) = &mut all[bits];
        let mut flag = 0;
        while flag < COUNT {
            if bits >> flag & 1 == 1 {
                letters[*len] = FLAGS[flag].0;
                *len += 1;
            }
            if flag == 0 {
                let operation = OPERATIONS[bits >> COUNT].1;
                let mut at = 0;
                while at < operation.len() {
                    letters[*len] = operation[at];
                    *len += 1;
                    at += 1;
                }
            }
            flag += 1;
        }
        bits += 1;
    }
    all
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_bits_say_the_same() {
        // From a recording: `bi_opf` of bios, and the letters with which the kernel printed them.
        for (opf, rwbs) in [(1, "W"), (2049, "WS"), (38913, "WSM"), (432_129, "FWFSM"), (0, "R"), (0x8_0000, "RA")] {
            let flags = BioFlags::of_opf(opf).unwrap();
            assert_eq!(flags.rwbs(), rwbs);
            assert_eq!(BioFlags::of_rwbs(rwbs.as_bytes()), Some(flags));
        }
        assert!(BioFlags::of_opf(1 << 17 | 1).unwrap().contains(BioFlags::FUA));
        assert_eq!(BioFlags::of_opf(1 << 32 | 1), None);
        let of = |rwbs| BioFlags::of_rwbs(rwbs).unwrap();
        assert!(of(b"FWS").contains(BioFlags::PREFLUSH));
        assert!(!of(b"FWS").contains(BioFlags::FUA));
        assert_eq!(of(b"WFAU").rwbs(), "WFA");
        // A discard, a secure erase and zeroes. Other numbers differ between kernels, and what a file system submits with them writes.
        for (opf, rwbs) in [(3, "D"), (2048 | 5, "DES"), (9, "WZ"), (7, "W"), (13, "W")] {
            assert_eq!(BioFlags::of_opf(opf).unwrap().rwbs(), rwbs);
        }
    }

    #[test]
    fn the_operation_says_which_way_data_go() {
        let direction = |rwbs: &str, bytes| BioFlags::of_rwbs(rwbs.as_bytes()).map(|flags| flags.direction(bytes));
        for rwbs in ["W", "WSM", "FWFS", "ZA", "ZAS", "FZAFS"] {
            assert_eq!(direction(rwbs, 4096), Some(Direction::Write), "{rwbs}");
        }
        for rwbs in ["R", "RA", "RSM"] {
            assert_eq!(direction(rwbs, 4096), Some(Direction::Read));
        }
        for rwbs in ["FF", "FN", "FWS", "FFS"] {
            assert_eq!(direction(rwbs, 0), Some(Direction::Flush));
        }
        for (rwbs, expected) in [
            ("D", Direction::Discard),
            ("DS", Direction::Discard),
            ("DES", Direction::Discard),
            ("WZS", Direction::Zeroes),
            ("NS", Direction::Unknown),
        ] {
            assert_eq!(direction(rwbs, 4096), Some(expected));
        }
        for rwbs in ["ZR", "ZRA", "ZO", "", "S"] {
            assert_eq!(direction(rwbs, 4096), None, "{rwbs}");
        }
    }

    #[test]
    fn each_combination_has_its_own_letters() {
        for bits in 0..1 << COUNT {
            for operation in (0..OPERATIONS.len() as u8).filter(|&op| op != Operation::Flush as u8) {
                // `FN` is a flush request, so an operation without a name has no letters for a flush before it.
                let flags = BioFlags(bits | operation << COUNT);
                if operation != Operation::Other as u8 || !flags.contains(BioFlags::PREFLUSH) {
                    assert_eq!(BioFlags::of_word(flags.rwbs()), Some(flags));
                }
            }
        }
        let flush = BioFlags::PREFLUSH.with(BioFlags::of(Operation::Flush), true);
        assert_eq!((BioFlags::of_word("FF"), BioFlags::of_rwbs(b"FN")), (Some(flush), Some(flush)));
        for word in ["", "F", "SR", "SW", "WU", "ZR", "fsync"] {
            assert_eq!(BioFlags::of_word(word), None, "{word}");
        }
    }
}

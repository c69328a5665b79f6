//! What a bio or a request asks of the device, and its flags. The kernel prints both as the letters of `rwbs`, and keeps them in the bits of
//! `bi_opf`.

/// Number of flags whose letters are printed around that of the operation.
const COUNT: usize = 5;
/// The flags in the order in which the kernel prints them: their letter, and their bit in `bi_opf`. The operation follows the first one. The
/// bits are the same in all kernels from 4.10 on.
const FLAGS: [(u8, u32); COUNT] = [(b'F', 18), (b'F', 17), (b'A', 19), (b'S', 11), (b'M', 12)];
/// All bits: the flags, and the operation where it is no write.
const BITS: usize = COUNT + 2;
/// Values of the operation in the lowest byte of `bi_opf`.
const OP_MASK: u32 = 0xff;
const OP_READ: u32 = 0;
const OP_FLUSH: u32 = 2;

/// Which way data go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    Write,
    Read,
    /// None: the device only empties its cache.
    Flush,
}

impl Direction {
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Read => "read",
            Self::Flush => "flush",
        }
    }
}

/// The operation of a bio or a request, and its flags, one bit each. Without a bit for the operation it is a write.
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
    pub const READ: Self = Self(1 << 5);
    /// The request that the block layer issues for a flush.
    pub const FLUSH: Self = Self(1 << 6);

    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    #[must_use]
    pub fn with(self, other: Self, is_set: bool) -> Self {
        if is_set { Self(self.0 | other.0) } else { self }
    }

    /// Which way the data of a bio of `bytes` bytes go. A write without data is the bio that asks for a flush.
    pub fn direction(self, bytes: u64) -> Direction {
        if self.contains(Self::READ) {
            Direction::Read
        } else if self.contains(Self::FLUSH) || bytes == 0 && self.contains(Self::PREFLUSH) {
            Direction::Flush
        } else {
            Direction::Write
        }
    }

    /// Reads the letters of a write, a read or a flush; `None` for all other operations: discards, zeroes, those of zones and of drivers.
    pub fn of_operation(rwbs: &[u8]) -> Option<Self> {
        let has = |letter| rwbs.contains(&letter);
        if has(b'Z') || has(b'D') {
            return None;
        }
        (has(b'W') || has(b'R') || has(b'F')).then(|| Self::of_rwbs(rwbs))
    }

    /// Reads the letters that the kernel and blkparse print, such as `FWFSM`, `RA` and `FF`. An `F` before the operation is a flush, one after
    /// it FUA. Letters of other flags are left out. Without `W` and `R` it is a flush of its own, which blkparse prints as `FN`.
    pub fn of_rwbs(rwbs: &[u8]) -> Self {
        let mut flags = Self::default();
        let mut is_after = false;
        if !rwbs.iter().any(|letter| matches!(letter, b'W' | b'R')) {
            let rest = rwbs.iter().copied().filter(|letter| matches!(letter, b'A' | b'S' | b'M'));
            let flags = rest.fold(Self::PREFLUSH.with(Self::FLUSH, true), |flags, letter| match letter {
                b'A' => flags.with(Self::AHEAD, true),
                b'S' => flags.with(Self::SYNC, true),
                _ => flags.with(Self::META, true),
            });
            return flags;
        }
        for letter in rwbs {
            match letter {
                b'W' => is_after = true,
                b'R' => {
                    is_after = true;
                    flags = flags.with(Self::READ, true);
                }
                b'F' => flags = flags.with(if is_after { Self::FUA } else { Self::PREFLUSH }, true),
                b'A' => flags = flags.with(Self::AHEAD, true),
                b'S' => flags = flags.with(Self::SYNC, true),
                b'M' => flags = flags.with(Self::META, true),
                _ => {}
            }
        }
        flags
    }

    /// Reads the flags of `bi_opf`, which has 32 bits in the kernel; `None` for a larger number, which no kernel wrote.
    pub fn of_opf(opf: u64) -> Option<Self> {
        let opf = u32::try_from(opf).ok()?;
        let bits = FLAGS.iter().enumerate().map(|(i, &(_, bit))| ((opf >> bit & 1) as u8) << i);
        let operation = opf & OP_MASK;
        Some(Self(bits.sum()).with(Self::READ, operation == OP_READ).with(Self::FLUSH, operation == OP_FLUSH))
    }

    /// The letters, as the kernel prints them.
    pub fn rwbs(self) -> &'static str {
        let (letters, len) = &RWBS[usize::from(self.0) % RWBS.len()];
        std::str::from_utf8(&letters[..*len]).unwrap_or_default()
    }

    /// Returns the flags that have exactly these letters.
    pub fn of_word(word: &str) -> Option<Self> {
        Some(Self::of_rwbs(word.as_bytes())).filter(|flags| flags.rwbs() == word)
    }
}

/// The letters of each combination of flags, and their number.
const RWBS: [([u8; COUNT + 1], usize); 1 << BITS] = {
    let mut all = [([0; COUNT + 1], 0); 1 << BITS];
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
                letters[*len] = if bits >> COUNT & 1 == 1 {
                    b'R'
                } else if bits >> (COUNT + 1) & 1 == 1 {
                    b'F'
                } else {
                    b'W'
                };
                *len += 1;
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
            assert_eq!(BioFlags::of_rwbs(rwbs.as_bytes()), flags);
        }
        assert!(BioFlags::of_opf(1 << 17 | 1).unwrap().contains(BioFlags::FUA));
        assert_eq!(BioFlags::of_opf(1 << 32 | 1), None);
        assert!(BioFlags::of_rwbs(b"FWS").contains(BioFlags::PREFLUSH));
        assert!(!BioFlags::of_rwbs(b"FWS").contains(BioFlags::FUA));
        assert_eq!(BioFlags::of_rwbs(b"WFAU").rwbs(), "WFA");
    }

    #[test]
    fn the_operation_says_which_way_data_go() {
        let direction = |rwbs: &str, bytes| BioFlags::of_operation(rwbs.as_bytes()).map(|flags| flags.direction(bytes));
        for rwbs in ["W", "WSM", "FWFS"] {
            assert_eq!(direction(rwbs, 4096), Some(Direction::Write));
        }
        for rwbs in ["R", "RA", "RSM"] {
            assert_eq!(direction(rwbs, 4096), Some(Direction::Read));
        }
        for rwbs in ["FF", "FN", "FWS", "FFS"] {
            assert_eq!(direction(rwbs, 0), Some(Direction::Flush));
        }
        for rwbs in ["D", "DE", "WZ", "ZR", "N", "", "DS"] {
            assert_eq!(direction(rwbs, 4096), None, "{rwbs}");
        }
    }

    #[test]
    fn each_combination_has_its_own_letters() {
        for bits in 0..1 << COUNT {
            for flags in [BioFlags(bits), BioFlags(bits).with(BioFlags::READ, true)] {
                assert_eq!(BioFlags::of_word(flags.rwbs()), Some(flags));
            }
        }
        let flush = BioFlags::PREFLUSH.with(BioFlags::FLUSH, true);
        assert_eq!((BioFlags::of_word("FF"), BioFlags::of_rwbs(b"FN")), (Some(flush), flush));
        for word in ["", "F", "SR", "SW", "WU", "fsync"] {
            assert_eq!(BioFlags::of_word(word), None, "{word}");
        }
    }
}

//! The flags of a bio that writes. The kernel prints them as the letters of `rwbs`, and keeps them in the bits of `bi_opf`.

/// Number of letters of `RWBS` around the `W`.
const COUNT: usize = 5;
/// The flags in the order in which the kernel prints them: their letter, and their bit in `bi_opf`. The `W` follows the first one. The bits are
/// the same in all kernels from 4.10 on.
const FLAGS: [(u8, u32); COUNT] = [(b'F', 18), (b'F', 17), (b'A', 19), (b'S', 11), (b'M', 12)];

/// Flags of a write, one bit each.
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

    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    #[must_use]
    pub fn with(self, other: Self, is_set: bool) -> Self {
        if is_set { Self(self.0 | other.0) } else { self }
    }

    /// Reads the letters that the kernel and blkparse print, such as `FWFSM`. An `F` before the `W` is a flush, one after it FUA. Letters of
    /// other flags are left out.
    pub fn of_rwbs(rwbs: &[u8]) -> Self {
        let mut flags = Self::default();
        let mut is_after = false;
        for letter in rwbs {
            match letter {
                b'W' => is_after = true,
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
        Some(Self(bits.sum()))
    }

    /// The letters, as the kernel prints them for a write.
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
const RWBS: [([u8; COUNT + 1], usize); 1 << COUNT] = {
    let mut all = [([0; COUNT + 1], 0); 1 << COUNT];
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
                letters[*len] = b'W';
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
        for (opf, rwbs) in [(1, "W"), (2049, "WS"), (38913, "WSM"), (432_129, "FWFSM")] {
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
    fn each_combination_has_its_own_letters() {
        for bits in 0..1 << COUNT {
            let flags = BioFlags(bits);
            assert_eq!(BioFlags::of_word(flags.rwbs()), Some(flags));
        }
        for word in ["", "F", "R", "SW", "WU", "fsync"] {
            assert_eq!(BioFlags::of_word(word), None, "{word}");
        }
    }
}

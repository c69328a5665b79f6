//! Mutants of inputs: changed bytes, numbers and lines, and parts of other inputs.

/// A generator of pseudo-random numbers (xorshift64*), so that a seed gives the same mutants on each run.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() >> 11) as usize % end.max(1)
    }

    fn byte(&mut self) -> u8 {
        (self.next() >> 32) as u8
    }

    /// Returns a range of up to `longest` bytes within a text.
    fn range(&mut self, len: usize, longest: usize) -> std::ops::Range<usize> {
        let start = self.below(len);
        start..len.min(start + 1 + self.below(longest))
    }
}

const NUMBERS: &[&[u8]] = &[
    b"0",
    b"1",
    b"7",
    b"-1",
    b"255",
    b"4096",
    b"65536",
    b"2147483648",
    b"4294967295",
    b"4294967296",
    b"9223372036854775807",
    b"9223372036854775808",
    b"18446744073709551615",
    b"18446744073709551616",
    b"0x0",
    b"0xff",
];
/// Binary formats store numbers of 1, 2, 4 or 8 bytes.
const WIDTHS: &[usize] = &[1, 2, 4, 8];

/// Writes a mutant of one of the inputs, of at most `longest` bytes, to `mutant`.
pub fn mutate(inputs: &[Vec<u8>], longest: usize, random: &mut Random, mutant: &mut Vec<u8>) {
    let input = &inputs[random.below(inputs.len())];
    mutant.clear();
    if input.len() <= longest {
        mutant.extend_from_slice(input);
    } else {
        // The options of a target are at the end, those of `pair` and the format of a file at the beginning.
        let cut = random.below(longest);
        mutant.extend_from_slice(&input[..cut]);
        mutant.extend_from_slice(&input[input.len() - (longest - cut)..]);
    }
    for _ in 0..=random.below(4) {
        change(inputs, random, mutant);
    }
    mutant.truncate(longest);
}

fn change(inputs: &[Vec<u8>], random: &mut Random, mutant: &mut Vec<u8>) {
    let len = mutant.len();
    if len == 0 {
        return mutant.push(random.byte());
    }
    match random.below(12) {
        0 => mutant[random.below(len)] ^= 1 << random.below(8),
        1 => mutant[random.below(len)] = random.byte(),
        2 => {
            let at = random.below(len);
            mutant.insert(at, random.byte());
        }
        3 => drop(mutant.drain(random.range(len, 16))),
        4 => repeat(mutant, random.range(len, 64), random),
        5 => repeat(mutant, line(mutant, random.below(len)), random),
        6 => drop(mutant.drain(line(mutant, random.below(len)))),
        7 | 8 => {
            let at = random.below(len);
            let number = number(mutant, at);
            if number.is_empty() {
                let width = WIDTHS[random.below(WIDTHS.len())].min(len - at);
                let value = [0, 1, 0x7f, 0x80, 0xff][random.below(5)];
                mutant[at..at + width].fill(value);
            } else {
                mutant.splice(number, NUMBERS[random.below(NUMBERS.len())].iter().copied());
            }
        }
        9 => {
            // A line of another place is moved here.
            let from = line(mutant, random.below(len));
            let moved: Vec<u8> = mutant.drain(from).collect();
            let to = line(mutant, random.below(mutant.len())).start;
            mutant.splice(to..to, moved);
        }
        10 => {
            let other = &inputs[random.below(inputs.len())];
            let taken = line(other, random.below(other.len()));
            let to = line(mutant, random.below(len)).start;
            mutant.splice(to..to, other[taken].iter().copied());
        }
        _ => {
            let other = &inputs[random.below(inputs.len())];
            mutant.truncate(random.below(len));
            mutant.extend_from_slice(&other[random.below(other.len()).min(other.len())..]);
        }
    }
}

/// Inserts a range of a text once more, somewhere.
fn repeat(text: &mut Vec<u8>, range: std::ops::Range<usize>, random: &mut Random) {
    let part = text[range].to_vec();
    let to = line(text, random.below(text.len())).start;
    text.splice(to..to, part);
}

/// The line around a byte, with its end.
fn line(text: &[u8], at: usize) -> std::ops::Range<usize> {
    let start = text[..at].iter().rposition(|&b| b == b'\n').map_or(0, |before| before + 1);
    start..text[at..].iter().position(|&b| b == b'\n').map_or(text.len(), |end| at + end + 1)
}

/// The digits around a byte; nothing if it is no digit.
fn number(text: &[u8], at: usize) -> std::ops::Range<usize> {
    let digits = |bytes: &mut dyn Iterator<Item = &u8>| bytes.take_while(|b| b.is_ascii_digit()).count();
    let after = digits(&mut text[at..].iter());
    if after == 0 { at..at } else { at - digits(&mut text[..at].iter().rev())..at + after }
}

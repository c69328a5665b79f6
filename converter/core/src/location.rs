//! Locations in the inputs, for messages.

/// A line of one of the inputs. Locations sort by input, then by line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location(u64);

const LINE_BITS: u32 = 44;

impl Location {
    pub const MAX: Self = Self(u64::MAX);

    /// `file` is the index of the input, `line` the number of the line from 1; 0 in a format without lines.
    pub fn new(file: usize, line: u64) -> Self {
        Self((file as u64) << LINE_BITS | (line & ((1 << LINE_BITS) - 1)))
    }

    pub fn file(self) -> usize {
        (self.0 >> LINE_BITS) as usize
    }

    pub fn line(self) -> u64 {
        self.0 & ((1 << LINE_BITS) - 1)
    }
}

/// The inputs that locations refer to. Both lists are indexed by input.
#[derive(Clone, Debug, Default)]
pub struct Locations {
    pub files: Vec<String>,
    /// The recording that each input is a part of.
    pub logs: Vec<usize>,
}

impl Locations {
    /// Returns the recording that a location is in.
    pub fn log_of(&self, location: Location) -> usize {
        self.logs.get(location.file()).copied().unwrap_or_default()
    }

    /// Returns `file:line`, without the line if it is 0.
    pub fn name(&self, location: Location) -> String {
        let file = self.files.get(location.file()).map_or("", String::as_str);
        if location.line() == 0 { file.to_owned() } else { format!("{file}:{}", location.line()) }
    }

    /// Returns `file:line: text`; only the text if the input is unknown.
    pub fn describe(&self, location: Location, text: &str) -> String {
        self.files.get(location.file()).map_or_else(|| text.to_owned(), |file| at_line(file, location.line(), text))
    }
}

/// Returns `file:line: text`, without the line if it is 0.
pub fn at_line(file: &str, line: u64, text: &str) -> String {
    if line == 0 { format!("{file}: {text}") } else { format!("{file}:{line}: {text}") }
}

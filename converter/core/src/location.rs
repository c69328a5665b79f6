//! Where in the inputs something stood, to be told in messages.

/// A line of one of the inputs; in the order of the inputs and their lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location(u64);

const LINE_BITS: u32 = 44;

impl Location {
    pub const MAX: Self = Self(u64::MAX);

    /// `file` counts the inputs from 0, `line` its lines from 1; 0 is none.
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

/// The names of the inputs.
#[derive(Clone, Debug, Default)]
pub struct Locations {
    pub files: Vec<String>,
    /// The log that each is a piece of; one whose parts lie side by side is one here.
    pub logs: Vec<usize>,
}

impl Locations {
    pub fn log_of(&self, place: Location) -> usize {
        self.logs.get(place.file()).copied().unwrap_or_default()
    }

    /// `file:line: what`; just `what` where there are no files.
    pub fn describe(&self, location: Location, what: &str) -> String {
        self.files.get(location.file()).map_or_else(|| what.to_owned(), |file| tell(file, location.line(), what))
    }
}

/// `file:line: what`, without the line where it is 0.
pub fn tell(file: &str, line: u64, what: &str) -> String {
    if line == 0 { format!("{file}: {what}") } else { format!("{file}:{line}: {what}") }
}

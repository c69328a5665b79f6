//! Times of day that tools print for each row, without a date.

use super::cursor::{Cursor, whole};

pub(super) const DAY_NS: i64 = 86_400_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;
/// By how much a clock may have been set back. A time that is earlier by more is of the next day.
const MAX_BACKWARD_NS: i64 = DAY_NS / 24;

/// Takes `HH:MM:SS ` from the beginning of a line, in ns since midnight.
pub(super) fn take(text: &[u8]) -> Option<(u64, &[u8])> {
    let (ns, rest) = take_clock(text)?;
    Some((ns, rest.strip_prefix(b" ")?))
}

/// As `take`, for `HH:MM:SS.mmm `.
pub(super) fn take_with_ms(text: &[u8]) -> Option<(u64, &[u8])> {
    let (time, rest) = take_clock(text)?;
    let (ms, rest) = rest.strip_prefix(b".")?.split_at_checked(3)?;
    let ms = whole(ms, Cursor::decimal)?;
    Some((time + ms * (SECOND_NS / 1000), rest.strip_prefix(b" ")?))
}

/// Takes `HH:MM:SS` from the beginning of a text, in ns since midnight.
pub(super) fn take_clock(text: &[u8]) -> Option<(u64, &[u8])> {
    let (time, rest) = text.split_at_checked(8)?;
    let part = |at: usize, below: u64| whole(&time[at..at + 2], Cursor::decimal).filter(|part| *part < below);
    let is_time = time[2] == b':' && time[5] == b':';
    // A leap second is printed as 60.
    let (hours, minutes, seconds) = (part(0, 24)?, part(3, 60)?, part(6, 61)?);
    is_time.then_some(((hours * 3600 + minutes * 60 + seconds) * SECOND_NS, rest))
}

/// Converts a time of day to a time that continues over midnight. `last` is the previous time.
pub(super) fn continue_over_midnight(last: i64, time_of_day: i64) -> i64 {
    // Choose the first one that is not much earlier: a clock may be set back a little, also over midnight.
    let least = last.saturating_sub(MAX_BACKWARD_NS);
    least.saturating_add(time_of_day.saturating_sub(least).rem_euclid(DAY_NS))
}

/// Makes times of them that go on after midnight, in the order of the rows.
pub(super) struct Days {
    last: Option<i64>,
    midnight: i64,
}

impl Days {
    /// `midnight`: the time of the midnight before the first row.
    pub(super) fn new(midnight: i64) -> Self {
        Self { last: None, midnight }
    }

    pub(super) fn time(&mut self, of_day: i64) -> i64 {
        let first = self.midnight.saturating_add(of_day);
        *self.last.insert(self.last.map_or(first, |last| continue_over_midnight(last, of_day)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_go_on_after_midnight() {
        let hour = 3_600_000_000_000;
        let mut days = Days::new(0);
        assert_eq!(days.time(23 * hour), 23 * hour);
        assert_eq!(days.time(hour), 25 * hour);
        // A clock that was set back a little is no new day, unlike ten hours without a row.
        assert_eq!(days.time(hour - 1), 25 * hour - 1);
        assert_eq!(days.time(15 * hour), 39 * hour);
        assert_eq!(days.time(5 * hour), 53 * hour);
        assert_eq!(take(b"23:59:60 x"), Some(((24 * 3600) * SECOND_NS, &b"x"[..])));
        assert_eq!(take(b"24:00:00 x"), None);
        assert_eq!(take(b"2a:00:00 x"), None);
        assert_eq!(take(b"23:59:5"), None);
    }
}

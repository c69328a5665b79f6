//! Moves the times of a ring buffer to CLOCK_BOOTTIME, by moments that the trace has on both clocks.

/// The moments of one clock: its time, and CLOCK_BOOTTIME, in the order of its time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Clock {
    moments: Vec<(u64, u64)>,
}

impl Clock {
    pub(super) fn is_related(&self) -> bool {
        !self.moments.is_empty()
    }

    /// Adds a moment. The first one of equal times counts.
    pub(super) fn add(&mut self, moment: (u64, u64)) {
        let at = self.moments.partition_point(|known| known.0 < moment.0);
        if self.moments.get(at).is_none_or(|known| known.0 != moment.0) {
            self.moments.insert(at, moment);
        }
    }

    /// Returns CLOCK_BOOTTIME, by the last moment that is not later, as Perfetto does it. Without moments, the time is not moved. A time that
    /// damage moves out of range is the first or the last one.
    pub(super) fn boot(&self, ts: u64) -> i64 {
        let after = self.moments.partition_point(|moment| moment.0 <= ts);
        let moved = match self.moments.get(after.saturating_sub(1)) {
            Some(&(own, boot)) => i128::from(boot) + i128::from(ts) - i128::from(own),
            None => i128::from(ts),
        };
        moved.clamp(0, i128::from(i64::MAX)) as i64
    }

    /// Returns the earliest time on CLOCK_BOOTTIME from `first` to `last`. Where the moments disagree, a later time may become an earlier one.
    pub(super) fn earliest(&self, first: u64, last: u64) -> i64 {
        let from = self.moments.partition_point(|moment| moment.0 <= first);
        let to = self.moments.partition_point(|moment| moment.0 <= last).max(from);
        let moments = self.moments[from..to].iter().map(|moment| i64::try_from(moment.1).unwrap_or(i64::MAX));
        moments.fold(self.boot(first), i64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_moved_by_the_last_moment_before_it() {
        let mut clock = Clock::default();
        assert_eq!((clock.is_related(), clock.boot(7)), (false, 7));
        clock.add((200, 1190));
        clock.add((100, 1100));
        clock.add((100, 5));
        let moved: Vec<_> = [50, 100, 199, 200, 300].map(|ts| clock.boot(ts)).to_vec();
        assert_eq!(moved, [1050, 1100, 1199, 1190, 1290]);
        clock.add((400, 10));
        assert_eq!([400, u64::MAX].map(|ts| clock.boot(ts)), [10, i64::MAX]);
        clock = Clock::default();
        clock.add((100, 10));
        assert_eq!(clock.boot(20), 0);
        clock = Clock { moments: vec![(100, 1100), (200, 1190)] };
        // 199 becomes later than 200.
        assert_eq!((clock.earliest(150, 199), clock.earliest(195, 250)), (1150, 1190));
    }
}

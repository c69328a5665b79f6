//! The clocks of the inputs: which are the same, which can be converted into each other, and which cannot be combined.

use std::collections::{BTreeMap, HashMap};

use crate::error::{Error, Result};
use crate::source::{Batch, ENTRY_TIME, Reader};

const REALTIME: &str = "realtime";
const BOOTTIME: &str = "boottime";
/// Clocks that start from a different zero in each log.
const CLOCKS_OF_ONE_LOG: [&str; 3] = ["time_of_day", "relative", "line_order"];
/// The time of day may be set while a machine runs, by less than this. Another boot differs by more.
const MAX_TIME_OF_DAY_SKEW_NS: u64 = 1_000_000_000;

/// Keys of the facts in which an input describes its clock.
const CLOCK: &str = "clock";
const REALTIME_OFFSET: &str = "realtime_offset_ns";
const BOOT_ID: &str = "boot_id";

/// The times of two clocks at two moments: (CLOCK_REALTIME, CLOCK_BOOTTIME), in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockPair {
    pub first: (i64, i64),
    pub last: (i64, i64),
}

impl ClockPair {
    /// Converts CLOCK_REALTIME to CLOCK_BOOTTIME. The skew grows evenly between the two moments, and is constant before and after them.
    fn to_boottime(self, realtime: i64) -> i64 {
        let (since, span) = (realtime - self.first.0, self.last.0 - self.first.0);
        let drift = (self.last.1 - self.first.1) - span;
        let within = i128::from(since.clamp(0, span.max(0)));
        let correction = if span > 0 { (i128::from(drift) * within / i128::from(span)) as i64 } else { 0 };
        self.first.1.saturating_add(since).saturating_add(correction).max(0)
    }
}

/// Facts about an input that the caller knows and the input does not state.
#[derive(Clone, Debug, Default)]
pub struct InputHints {
    /// Convert times of CLOCK_REALTIME to CLOCK_BOOTTIME.
    pub boot: Option<ClockPair>,
    pub boot_id: Option<String>,
    /// By the name of a clock, the offset from its times to ns since 1970.
    pub to_realtime: BTreeMap<String, i64>,
    /// Offset to add to the input's times to get times on the clock of the other inputs. With it, nothing else is asked about its clock.
    pub offset_ns: Option<i64>,
    /// The time of CLOCK_BOOTTIME from which all that was recorded is there. Before it, the ring buffer has overwritten the events of some CPUs.
    pub known_from: Option<i64>,
    /// The time of CLOCK_BOOTTIME from which the input says nothing because its recorder ended early.
    pub known_until: Option<i64>,
    /// How many of the events that the input reports as lost were missed by probes, which no room in a buffer would have saved.
    pub missed_by_probes: u64,
}

/// The conversion of an input's times to the clock of the other inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClockShift {
    Offset(i64),
    ToBoottime(ClockPair),
}

impl ClockShift {
    pub(super) fn shifted(self, ts: i64) -> i64 {
        match self {
            Self::Offset(offset) => ts.saturating_add(offset),
            Self::ToBoottime(clocks) => clocks.to_boottime(ts),
        }
    }

    pub(super) fn apply(self, batch: &mut Batch) {
        batch.events.iter_mut().for_each(|event| event.ts = self.shifted(event.ts));
        let entry = batch.names.find(ENTRY_TIME);
        for extra in batch.extras.iter_mut().filter(|extra| entry.is_some() && extra.key == entry) {
            if let Some(ts) = std::str::from_utf8(batch.names.get(extra.value)).ok().and_then(|text| text.parse().ok())
            {
                extra.value = batch.names.intern(self.shifted(ts).to_string().as_bytes());
            }
        }
        // `i64::MAX` says that nothing more comes.
        batch.watermark = batch.watermark.map(|ts| if ts == i64::MAX { ts } else { self.shifted(ts) });
    }
}

/// The clock of an input, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    pub name: Option<String>,
    /// The input names its clock; otherwise `name` is the default of its format.
    pub is_recorded: bool,
    pub boot_id: Option<String>,
    /// By the name of a clock, this one or another one of the machine, the offset from its times to ns since 1970.
    pub to_realtime: BTreeMap<String, i64>,
}

impl Clock {
    fn from_facts(facts: &[(&'static str, String)], default: Option<&str>) -> Self {
        let fact = |wanted| facts.iter().find(|(key, _)| *key == wanted).map(|(_, value)| value.clone());
        let name = fact(CLOCK);
        let offset = fact(REALTIME_OFFSET).and_then(|offset| offset.parse().ok());
        Self {
            is_recorded: name.as_ref().is_some_and(|name| !name.starts_with("unknown")),
            to_realtime: name.clone().zip(offset).into_iter().collect(),
            name: name.or_else(|| default.map(str::to_owned)),
            boot_id: fact(BOOT_ID),
        }
    }
}

/// Finds the clock of an opened input and applies the caller's hints. Updates the facts of the reader to the clock that its times will be on.
///
/// `default` is the clock of an input that does not name one. Also returns the shift that the hints ask for.
pub(super) fn resolve_clock(
    reader: &mut Reader,
    default: Option<&str>,
    hints: InputHints,
) -> (Clock, Option<ClockShift>) {
    let mut shift = None;
    let is_realtime = reader.facts.iter().any(|(key, value)| *key == CLOCK && value == REALTIME);
    if let Some(clocks) = hints.boot
        && is_realtime
    {
        remove_clock_facts(reader);
        reader.facts.push((CLOCK, BOOTTIME.to_owned()));
        shift = Some(ClockShift::ToBoottime(clocks));
    }
    let mut clock = Clock::from_facts(&reader.facts, default);
    if let Some(offset) = clock.name.as_ref().and_then(|name| hints.to_realtime.get(name))
        && !reader.facts.iter().any(|(key, _)| *key == REALTIME_OFFSET)
    {
        reader.facts.push((REALTIME_OFFSET, offset.to_string()));
    }
    for (name, offset) in hints.to_realtime {
        clock.to_realtime.entry(name).or_insert(offset);
    }
    clock.boot_id = clock.boot_id.or(hints.boot_id);
    if let Some(offset) = hints.offset_ns {
        remove_clock_facts(reader);
        (clock, shift) = (Clock::default(), Some(ClockShift::Offset(offset)));
    }
    (clock, shift)
}

/// Removes what an input says about its clock: its times are moved to another one.
pub(super) fn remove_clock_facts(reader: &mut Reader) {
    reader.facts.retain(|(key, _)| ![CLOCK, REALTIME_OFFSET].contains(key));
}

/// The clocks of the inputs until now.
///
/// The first input with a known clock sets the clock of the result. Others are on the same clock, or are shifted to it by the time of day,
/// or are refused.
#[derive(Default)]
pub struct Clocks {
    /// Path and clock of the first input whose clock is known.
    clock: Option<(String, String)>,
    /// Path and boot id of the first input whose boot is known.
    boot: Option<(String, String)>,
    /// By the name of a clock, the first input that records its time of day, and the offset from its times to ns since 1970.
    to_realtime: HashMap<String, (String, i64)>,
}

impl Clocks {
    /// Sorts inputs for `record_time_of_day`: an input with several clocks has read them at the same time, so its offsets between them are
    /// the best ones.
    pub fn most_clocks_first<T>(inputs: &[T], clock: impl Fn(&T) -> &Clock) -> Vec<&T> {
        let mut inputs: Vec<_> = inputs.iter().collect();
        inputs.sort_by_key(|input| std::cmp::Reverse(clock(input).to_realtime.len()));
        inputs
    }

    /// Records what an input says about the time of day of clocks. It then holds for all inputs that are on these clocks.
    ///
    /// # Errors
    /// `Error::TimeOfDay` if it contradicts another input.
    pub fn record_time_of_day(&mut self, path: &str, clock: &Clock) -> Result<()> {
        for (name, offset) in &clock.to_realtime {
            if CLOCKS_OF_ONE_LOG.contains(&name.as_str()) {
                continue;
            }
            let (first, first_offset) =
                self.to_realtime.entry(name.clone()).or_insert_with(|| (path.to_owned(), *offset));
            let apart_ns = first_offset.abs_diff(*offset);
            if apart_ns > MAX_TIME_OF_DAY_SKEW_NS {
                let (first, second) = (first.clone(), path.to_owned());
                return Err(Error::TimeOfDay { first, second, clock: name.clone(), apart_ns });
            }
        }
        Ok(())
    }

    fn to_realtime(&self, clock: &str) -> Option<i64> {
        if clock == REALTIME { Some(0) } else { self.to_realtime.get(clock).map(|(_, offset)| *offset) }
    }

    /// Returns the offset from an input's times to the clock of the inputs before it.
    ///
    /// # Errors
    /// `Error::Clocks` and `Error::Boots` if there is no such offset.
    pub fn offset_of(&mut self, path: &str, clock: &Clock) -> Result<i64> {
        let Some(name) = &clock.name else { return Ok(0) };
        if let Some((first, first_clock)) = &self.clock {
            if first_clock != name || CLOCKS_OF_ONE_LOG.contains(&name.as_str()) {
                return match (self.to_realtime(name), self.to_realtime(first_clock)) {
                    (Some(offset), Some(first_offset)) => Ok(offset.saturating_sub(first_offset)),
                    _ => Err(Error::Clocks {
                        first: first.clone(),
                        first_clock: first_clock.clone(),
                        second: path.to_owned(),
                        second_clock: name.clone(),
                    }),
                };
            }
        } else {
            self.clock = Some((path.to_owned(), name.clone()));
        }
        // Every clock but the time of day restarts with each boot.
        let Some(boot) = clock.boot_id.as_ref().filter(|_| name != REALTIME) else { return Ok(0) };
        let (first, first_boot) = self.boot.get_or_insert_with(|| (path.to_owned(), boot.clone()));
        if first_boot == boot {
            return Ok(0);
        }
        Err(Error::Boots {
            first: first.clone(),
            first_boot: first_boot.clone(),
            second: path.to_owned(),
            second_boot: boot.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_drift_are_converted_by_both_moments() {
        let clocks = ClockPair { first: (1_000_000, 500), last: (2_000_000, 1_000_600) };
        assert_eq!([1_000_000, 1_500_000, 2_000_000].map(|t| clocks.to_boottime(t)), [500, 500_550, 1_000_600]);
        // Times outside of the two moments have the skew of the nearer one.
        assert_eq!([999_900, 2_000_100].map(|t| clocks.to_boottime(t)), [400, 1_000_700]);
        let one = ClockPair { first: (1_000_000, 500), last: (1_000_000, 500) };
        assert_eq!(one.to_boottime(1_000_007), 507);
    }

    fn clock(facts: &[(&'static str, &str)]) -> Clock {
        clock_or(None, facts)
    }

    fn clock_or(default: Option<&str>, facts: &[(&'static str, &str)]) -> Clock {
        let facts: Vec<_> = facts.iter().map(|&(key, value)| (key, value.to_owned())).collect();
        Clock::from_facts(&facts, default)
    }

    #[test]
    fn inputs_on_different_clocks_are_refused() {
        let mut seen = Clocks::default();
        seen.offset_of("a", &clock(&[("clock", "realtime")])).unwrap();
        seen.offset_of("b", &clock(&[("clock", "realtime")])).unwrap();
        seen.offset_of("c", &clock(&[])).unwrap();
        let error = seen.offset_of("d", &clock_or(Some(BOOTTIME), &[])).unwrap_err();
        assert_eq!(error.to_string(), "a and d are not on one clock: a has realtime, d has boottime");
        let mut seen = Clocks::default();
        seen.offset_of("a", &clock(&[("clock", "relative")])).unwrap();
        let error = seen.offset_of("b", &clock(&[("clock", "relative")])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a and b are not on one clock: relative starts from a different zero in each log"
        );
    }

    #[test]
    fn clocks_with_a_time_of_day_are_converted_by_it() {
        let with_offset = |name, offset: &str| clock(&[("clock", name), ("realtime_offset_ns", offset)]);
        let mut seen = Clocks::default();
        // The offset of the first one is known from another input on its clock.
        let inputs = [
            clock(&[("clock", "monotonic")]),
            with_offset("monotonic", "1000"),
            with_offset("boottime", "400"),
            clock(&[("clock", "realtime")]),
        ];
        for input in &inputs {
            seen.record_time_of_day("a", input).unwrap();
        }
        let offsets = inputs.iter().map(|input| seen.offset_of("a", input).unwrap()).collect::<Vec<_>>();
        // At time of day 1400, `monotonic` is 400 and `boottime` is 1000.
        assert_eq!(offsets, [0, 0, -600, -1000]);
        seen.offset_of("b", &clock(&[("clock", "relative")])).unwrap_err();
        seen.offset_of("b", &clock(&[("clock", "local")])).unwrap_err();
        // The offsets of an input with both clocks are the best ones, whichever input comes first.
        let both =
            Clock { to_realtime: [("boottime".into(), 400), ("monotonic".into(), 700)].into(), ..inputs[2].clone() };
        let known = [inputs[1].clone(), both];
        let mut better = Clocks::default();
        for input in Clocks::most_clocks_first(&known, |input| input) {
            better.record_time_of_day("a", input).unwrap();
        }
        assert_eq!(known.each_ref().map(|input| better.offset_of("a", input).unwrap()), [0, -300]);
        // Two readings of a clock in one boot do not differ by seconds.
        seen.record_time_of_day("c", &with_offset("boottime", "999999999")).unwrap();
        let error = seen.record_time_of_day("d", &with_offset("boottime", "-5000000000")).unwrap_err();
        assert_eq!(error.to_string(), "a and d disagree by 5.0 s on the time of day at which the clock boottime was 0");
    }

    #[test]
    fn inputs_of_different_boots_are_refused() {
        let boot = |name, id| clock(&[("clock", name), ("boot_id", id)]);
        let mut seen = Clocks::default();
        // The boot of the first one is unknown.
        seen.offset_of("a", &clock_or(Some(BOOTTIME), &[])).unwrap();
        seen.offset_of("b", &boot("boottime", "1f")).unwrap();
        seen.offset_of("c", &boot("boottime", "1f")).unwrap();
        let error = seen.offset_of("d", &boot("boottime", "2f")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "b and d were recorded in different boots, 1f and 2f; the clock restarts with each boot"
        );
        // The time of day does not restart.
        let mut seen = Clocks::default();
        seen.offset_of("a", &boot("realtime", "1f")).unwrap();
        seen.offset_of("b", &boot("realtime", "2f")).unwrap();
    }

    #[test]
    fn a_clock_is_recorded_or_the_default() {
        assert!(clock_or(Some(BOOTTIME), &[("clock", "monotonic")]).is_recorded);
        let default = clock_or(Some(BOOTTIME), &[]);
        assert_eq!((default.name.as_deref(), default.is_recorded), (Some(BOOTTIME), false));
        assert!(!clock(&[("clock", "unknown; its times are taken for ns")]).is_recorded);
        assert_eq!(clock(&[]), Clock::default());
    }
}

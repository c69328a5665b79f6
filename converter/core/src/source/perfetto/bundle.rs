//! Reads an `FtraceEventBundle`: events of one CPU, which its recorder read together.

use crate::trace_layout::wire::{Damaged, Fields, Varints, Wire};

/// Messages of `FtraceEvent` that are read by the number of their field.
pub(super) const PRINT: u32 = 3;
pub(super) const SCHED_SWITCH: u32 = 4;
pub(super) const SCHED_WAKING: u32 = 20;

/// An event, before its message is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item<'a> {
    /// On the clock of the ring buffer.
    pub(super) ts: u64,
    /// The thread that ran; unknown for an event of compact sched.
    pub(super) tid: Option<u32>,
    pub(super) payload: Payload<'a>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Payload<'a> {
    /// A message of `FtraceEvent`, by the number of its field.
    Message { number: u32, bytes: &'a [u8] },
    /// `sched_switch` of compact sched, which does not say which thread leaves the CPU.
    Switch { to: u32, state: i64, prio: i32, comm: &'a [u8] },
    /// `sched_waking` of compact sched.
    Waking { tid: u32, cpu: i32, prio: i32, comm: &'a [u8] },
}

/// `FtraceEventBundle.FtraceClock`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum FtraceClock {
    #[default]
    Boot,
    Unknown,
    Global,
    Local,
    MonotonicRaw,
}

/// The parts of a bundle, besides its events.
#[derive(Debug, Default)]
pub(super) struct Bundle<'a> {
    pub(super) cpu: Option<u32>,
    /// The kernel overwrote events before the first one of the bundle.
    pub(super) lost_events: bool,
    pub(super) clock: FtraceClock,
    /// The same moment on the clock of the ring buffer, and on CLOCK_BOOTTIME.
    pub(super) moment: (Option<u64>, Option<u64>),
    /// Its CPU may have had events until this time that the trace does not hold. 0: none.
    pub(super) incomplete_until: u64,
    /// Number of parts of the ring buffer that its recorder could not read.
    pub(super) unreadable: u32,
    pub(super) descriptors: Vec<&'a [u8]>,
    /// Why an event could not be read, for each.
    pub(super) damaged: Vec<&'static str>,
    /// In the order of time.
    pub(super) items: Vec<Item<'a>>,
}

mod field {
    pub(super) const CPU: u32 = 1;
    pub(super) const EVENT: u32 = 2;
    pub(super) const LOST_EVENTS: u32 = 3;
    pub(super) const COMPACT_SCHED: u32 = 4;
    pub(super) const FTRACE_CLOCK: u32 = 5;
    pub(super) const FTRACE_TIMESTAMP: u32 = 6;
    pub(super) const BOOT_TIMESTAMP: u32 = 7;
    pub(super) const ERROR: u32 = 8;
    pub(super) const LAST_READ_EVENT_TIMESTAMP: u32 = 9;
    pub(super) const PREVIOUS_BUNDLE_END_TIMESTAMP: u32 = 10;
    pub(super) const GENERIC_EVENT_DESCRIPTORS: u32 = 11;
}

impl<'a> Bundle<'a> {
    /// Reads as much of a bundle as is readable.
    pub(super) fn read(bytes: &'a [u8]) -> Self {
        let mut bundle = Self::default();
        if bundle.fields(bytes).is_err() {
            bundle.damaged.push("a bundle of events is damaged");
        }
        bundle.items.sort_by_key(|item| item.ts);
        bundle
    }

    fn fields(&mut self, bytes: &'a [u8]) -> Result<(), Damaged> {
        for part in Fields(bytes) {
            match part? {
                (field::CPU, cpu) => self.cpu = u32::try_from(cpu.int()?).ok(),
                (field::EVENT, event) => match item(event.bytes()?) {
                    Ok(item) => self.items.push(item),
                    Err(why) => self.damaged.push(why),
                },
                (field::LOST_EVENTS, lost) => self.lost_events = lost.int()? != 0,
                (field::COMPACT_SCHED, sched) => {
                    let before = self.items.len();
                    if self.compact_sched(sched.bytes()?).is_err() {
                        self.items.truncate(before);
                        self.damaged.push("its compact sched is damaged");
                    }
                }
                (field::FTRACE_CLOCK, clock) => {
                    self.clock = match clock.int()? {
                        0 => FtraceClock::Boot,
                        2 => FtraceClock::Global,
                        3 => FtraceClock::Local,
                        4 => FtraceClock::MonotonicRaw,
                        _ => FtraceClock::Unknown,
                    }
                }
                (field::FTRACE_TIMESTAMP, ts) => self.moment.0 = Some(ts.int()?),
                (field::BOOT_TIMESTAMP, ts) => self.moment.1 = Some(ts.int()?),
                (field::ERROR, _) => self.unreadable += 1,
                (field::LAST_READ_EVENT_TIMESTAMP | field::PREVIOUS_BUNDLE_END_TIMESTAMP, ts) => {
                    self.incomplete_until = ts.int()?;
                }
                (field::GENERIC_EVENT_DESCRIPTORS, descriptor) => self.descriptors.push(descriptor.bytes()?),
                _ => {}
            }
        }
        Ok(())
    }

    fn compact_sched(&mut self, bytes: &'a [u8]) -> Result<(), Damaged> {
        const SWITCHES: [u32; 5] = [1, 2, 3, 4, 6];
        const WAKINGS: [u32; 5] = [7, 8, 9, 10, 11];
        const INTERN_TABLE: u32 = 5;
        let mut names: Vec<&'a [u8]> = Vec::new();
        let mut columns: [Vec<u64>; 12] = Default::default();
        for part in Fields(bytes) {
            match part? {
                (INTERN_TABLE, name) => names.push(name.bytes()?),
                (number, Wire::Bytes(packed)) => {
                    let Some(column) = columns.get_mut(number as usize) else { continue };
                    for value in Varints(packed) {
                        column.push(value?);
                    }
                }
                (number, Wire::Int(value)) => {
                    if let Some(column) = columns.get_mut(number as usize) {
                        column.push(value);
                    }
                }
            }
        }
        let name = |index: u64| names.get(usize::try_from(index).ok()?).copied().ok_or(Damaged).ok();
        let mut rows = |numbers: [u32; 5], payload: &dyn Fn([u64; 4]) -> Option<Payload<'a>>| {
            let of = |column: usize| &columns[numbers[column] as usize];
            if (1..5).any(|column| of(column).len() != of(0).len()) {
                return Err(Damaged);
            }
            let mut ts = 0_u64;
            for row in 0..of(0).len() {
                ts = ts.wrapping_add(of(0)[row]);
                let payload = payload([of(1)[row], of(2)[row], of(3)[row], of(4)[row]]).ok_or(Damaged)?;
                self.items.push(Item { ts, tid: None, payload });
            }
            Ok(())
        };
        let tid = |tid: u64| u32::try_from(tid as i32).ok();
        rows(SWITCHES, &|[state, to, prio, comm]| {
            Some(Payload::Switch { to: tid(to)?, state: state as i64, prio: prio as i32, comm: name(comm)? })
        })?;
        rows(WAKINGS, &|[woken, cpu, prio, comm]| {
            Some(Payload::Waking { tid: tid(woken)?, cpu: cpu as i32, prio: prio as i32, comm: name(comm)? })
        })
    }

    /// Goes through the events with the thread that runs at each, and returns the one that runs after the last. `running` ran before.
    pub(super) fn each(&self, mut running: Option<u32>, mut take: impl FnMut(&Item<'a>, Option<u32>)) -> Option<u32> {
        if self.lost_events {
            running = None;
        }
        for item in &self.items {
            running = item.tid.or(running);
            take(item, running);
            match item.payload {
                Payload::Switch { to, .. } => running = Some(to),
                Payload::Message { number: SCHED_SWITCH, bytes } => running = next_pid(bytes),
                Payload::Message { .. } | Payload::Waking { .. } => {}
            }
        }
        running
    }
}

/// The thread that gets the CPU, from a `SchedSwitchFtraceEvent`.
fn next_pid(bytes: &[u8]) -> Option<u32> {
    const NEXT_PID: u32 = 6;
    let field = Fields(bytes).map_while(Result::ok).find(|(number, _)| *number == NEXT_PID);
    u32::try_from(field?.1.int().ok()? as i32).ok()
}

/// Reads an `FtraceEvent`.
fn item(bytes: &[u8]) -> Result<Item<'_>, &'static str> {
    const TIMESTAMP: u32 = 1;
    const PID: u32 = 2;
    let (mut ts, mut tid, mut payload) = (None, None, None);
    for part in Fields(bytes) {
        match part.map_err(|Damaged| "an event is damaged")? {
            (TIMESTAMP, Wire::Int(value)) => ts = Some(value),
            (PID, Wire::Int(value)) => tid = u32::try_from(value as i32).ok(),
            (number, Wire::Bytes(bytes)) => payload = Some(Payload::Message { number, bytes }),
            _ => {}
        }
    }
    let ts = ts.filter(|&ts| i64::try_from(ts).is_ok()).ok_or("an event has no time")?;
    Ok(Item { ts, tid, payload: payload.ok_or("an event has no content")? })
}

//! Which inputs belong together: lanes, logs and recordings.
//!
//! - A *lane* is a sequence of inputs that are read one after the other. Lanes are read in parallel.
//! - A *log* is an input with the pieces that continue it. A lane may hold several logs, one after the other.
//! - A *recording* is what one recorder wrote. It may consist of several logs that cover the same time: one for each CPU or each thread.
//!
//! Each function returns a group number for each input, in the order of the inputs.

use std::collections::HashMap;

use crate::input::open_input::OpenInput;

/// Inputs of one format are pieces of one log and share a lane. A standalone input has a lane of its own, which later pieces may join.
/// Lanes are numbered from 0.
pub fn assign_lanes(inputs: &[OpenInput]) -> Vec<usize> {
    assign_lanes_by_format(inputs.iter().map(|open| (open.source.name(), open.traits.is_standalone)))
}

/// As `assign_lanes`, from the name of each input's format and from whether the input is standalone.
pub fn assign_lanes_by_format<'a>(inputs: impl Iterator<Item = (&'a str, bool)>) -> Vec<usize> {
    let mut lanes = 0;
    let mut last_of_format: HashMap<&str, usize> = HashMap::new();
    inputs
        .map(|(format, is_standalone)| match last_of_format.get(format) {
            Some(&lane) if !is_standalone => lane,
            _ => {
                last_of_format.insert(format, lanes);
                lanes += 1;
                lanes - 1
            }
        })
        .collect()
}

/// Logs are numbered by their first input.
pub fn assign_logs(inputs: &[OpenInput]) -> Vec<usize> {
    let mut current_log: HashMap<usize, usize> = HashMap::new();
    let lanes = assign_lanes(inputs).into_iter().zip(inputs).enumerate();
    lanes
        .map(|(index, (lane, open))| {
            let log = current_log.entry(lane).or_insert(index);
            if open.traits.starts_log {
                *log = index;
            }
            *log
        })
        .collect()
}

/// Recordings are numbered from 0. Not all lanes are recordings of their own: files that hold different CPUs or different threads
/// are parts of one recording.
pub fn assign_recordings(inputs: &[OpenInput]) -> Vec<usize> {
    let lanes = assign_lanes(inputs);
    let mut recordings: Vec<usize> = Vec::new();
    for (index, open) in inputs.iter().enumerate() {
        let may_be_part = open.traits.is_part_of_recording || open.traits.cpus.is_some();
        let is_whole = |recording: usize| {
            let mut members = inputs.iter().zip(&recordings).filter(|(_, of)| **of == recording);
            members.all(|(other, _)| other.source.name() == open.source.name() && are_parts(other, open))
        };
        // A piece belongs to the recording of its lane.
        let of_lane = lanes[..index].iter().position(|lane| *lane == lanes[index]).map(|first| recordings[first]);
        let of_part = || recordings.iter().copied().find(|&recording| may_be_part && is_whole(recording));
        let recording = of_lane.or_else(of_part);
        recordings.push(recording.unwrap_or_else(|| recordings.iter().max().map_or(0, |last| last + 1)));
    }
    recordings
}

/// Whether two inputs can be parts of one recording: they hold no common CPU, no common kind of event of a common thread, or no common time.
fn are_parts(a: &OpenInput, b: &OpenInput) -> bool {
    let have_different_cpus = match (&a.traits.cpus, &b.traits.cpus) {
        (Some(cpus), Some(others)) => !cpus.iter().any(|cpu| others.contains(cpu)),
        _ => false,
    };
    let may_be_by_thread = a.traits.is_part_of_recording && b.traits.is_part_of_recording;
    let (head, other) = (&a.head_events, &b.head_events);
    have_different_cpus
        || may_be_by_thread && (head.kinds.is_disjoint(&other.kinds) || head.are_consecutive(other) == Some(true))
}

/// Returns whether the inputs form more than one group.
pub fn are_several(groups: &[usize]) -> bool {
    groups.iter().any(|group| Some(group) != groups.first())
}

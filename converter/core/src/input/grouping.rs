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
    let mut format_of_lane: Vec<&str> = Vec::new();
    inputs
        .map(|(format, is_standalone)| {
            let last_of_format = format_of_lane.iter().rposition(|of| !is_standalone && *of == format);
            last_of_format.unwrap_or_else(|| {
                format_of_lane.push(format);
                format_of_lane.len() - 1
            })
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

/// Recordings have the numbers of lanes, but not all lanes are recordings of their own.
pub fn assign_recordings(inputs: &[OpenInput]) -> Vec<usize> {
    let is_own_recording = |open: &OpenInput| open.traits.is_standalone && !open.traits.is_part_of_recording;
    let mut recordings = assign_lanes_by_format(inputs.iter().map(|open| (open.source.name(), is_own_recording(open))));
    // Files with the records of different CPUs are of one recording.
    let mut by_cpus: Vec<(&str, usize, Vec<u32>)> = Vec::new();
    for (index, open) in inputs.iter().enumerate() {
        let Some(cpus) = &open.traits.cpus else { continue };
        let format = open.source.name();
        let fits = |(of, _, others): &&mut (&str, usize, Vec<u32>)| {
            *of == format && !others.iter().any(|other| cpus.contains(other))
        };
        match by_cpus.iter_mut().find(fits) {
            Some((_, recording, others)) => {
                recordings[index] = *recording;
                others.extend(cpus);
            }
            None => by_cpus.push((format, recordings[index], cpus.clone())),
        }
    }
    recordings
}

/// Returns whether the inputs form more than one group.
pub fn are_several(groups: &[usize]) -> bool {
    groups.iter().any(|group| Some(group) != groups.first())
}

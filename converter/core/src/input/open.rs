//! Opens the inputs of a command and refuses inputs that cannot be converted together.

use std::path::{Path, PathBuf};

use crate::error::{Error, Refused, Result};
use crate::input::grouping::assign_lanes;
pub use crate::input::open_input::OpenInput;
use crate::input_file::{Input, canonical_path};
use crate::source::{self, Problem, Source};

/// A file that is read together with an input and is not an input of its own.
struct TakenFile {
    file: PathBuf,
    /// Path of the input that it is read with.
    by: String,
}

/// Opens inputs in order. `format` is the name of their format, `None` to detect it; `offset_of` returns the `--offset` of a path.
pub fn open_inputs(
    paths: &[String],
    sources: &[&'static dyn Source],
    format: Option<&str>,
    offset_of: impl Fn(&str) -> Option<i64>,
) -> Result<Vec<OpenInput>> {
    let mut inputs: Vec<OpenInput> = Vec::new();
    let mut taken: Vec<TakenFile> = Vec::new();
    for path in paths {
        let (input, taken_by) = open_or_replacement(path, sources, &taken)?;
        if let Some(by) = taken_by {
            check_offset_of_part(path, &by, &offset_of)?;
            continue;
        }
        let format = format.or_else(|| format_before(&inputs, &input, sources));
        let mut open = OpenInput::with_format(input, sources, format)?;
        check_distinct(&inputs, &open)?;
        for part in open.source.parts(&open.input.path) {
            if part != open.input.path {
                let bytes = Path::new(&part).metadata().map(|meta| meta.len()).ok();
                open.input.total_bytes = open.input.total_bytes.zip(bytes).map(|(total, bytes)| total + bytes);
            }
            taken.extend(canonical_path(&part).map(|file| TakenFile { file, by: path.clone() }));
        }
        open.place_in_command = inputs.len();
        inputs.push(open);
    }
    Ok(inputs)
}

/// Returns the format of the input before, if the next one holds nothing but the rest of its last stack. Not if the input is recognized: lines
/// of other formats begin with spaces, too.
fn format_before(inputs: &[OpenInput], next: &Input, sources: &[&'static dyn Source]) -> Option<&'static str> {
    let before = inputs.last()?;
    let is_rest = before.source.is_rest_of_stack(next.head());
    (is_rest && source::sniff(sources, next.head()).is_none()).then(|| before.source.name())
}

/// Opens a file, or another part of its recording if it is empty. Also returns the input that it is read with, if it is taken already.
fn open_or_replacement(
    path: &str,
    sources: &[&'static dyn Source],
    taken: &[TakenFile],
) -> Result<(Input, Option<String>)> {
    let taken_by = |path: &str| {
        let file = canonical_path(path)?;
        taken.iter().find(|other| other.file == file).map(|other| other.by.clone())
    };
    let input = Input::open(path)?;
    let by = taken_by(path);
    if by.is_none()
        && input.head().is_empty()
        && let Some(other) = source::first_part(sources, path)
    {
        let mut replacement = Input::open(&other)?;
        path.clone_into(&mut replacement.requested_path);
        return Ok((replacement, taken_by(&other)));
    }
    Ok((input, by))
}

/// Files that are read together have one clock, so they cannot be shifted by different offsets.
fn check_offset_of_part(path: &str, by: &str, offset_of: impl Fn(&str) -> Option<i64>) -> Result<()> {
    let offset = offset_of(path);
    if offset.is_none() || offset == offset_of(by) {
        return Ok(());
    }
    let message = format!("its offset differs from that of {by}, with which it is read");
    let source = Refused::error(message, format!("give the offset for that file: --offset {by}=..."));
    Err(Error::Read { path: path.to_owned(), source })
}

/// Refuses an input that is a copy of one of the others.
pub fn check_distinct(others: &[OpenInput], new: &OpenInput) -> Result<()> {
    let is_same = |other: &&OpenInput| other.input.is_same_log(&new.input, new.traits.is_single_thread);
    match others.iter().find(is_same) {
        Some(first) => Err(Error::Twice { first: first.input.path.clone(), second: new.input.path.clone() }),
        None => Ok(()),
    }
}

/// Returns whether the ids of the inputs are process ids. Inputs with process ids cannot be combined with inputs with thread ids.
///
/// `default` holds for a log that does not say what its ids are.
pub fn ids_are_processes(inputs: &[OpenInput], default: bool) -> Result<bool> {
    let lanes = assign_lanes(inputs);
    // The first piece of a log may hold no event that says it.
    let of_lane = |lane: usize| {
        let pieces = inputs.iter().zip(&lanes).filter(|(_, of)| **of == lane);
        pieces.into_iter().find_map(|(input, _)| input.traits.ids_are_processes).unwrap_or(default)
    };
    let processes = lanes.iter().position(|&lane| of_lane(lane));
    let threads = lanes.iter().position(|&lane| !of_lane(lane));
    if let (Some(processes), Some(threads)) = (processes, threads) {
        let path = |index: usize| inputs[index].input.path.clone();
        let of_processes = path(processes);
        let hint = format!(
            "{}; without `--pid-is process`, the ids of a log that does not say what they are are thread ids",
            thread_ids_hint(inputs[processes].source, &of_processes)
        );
        return Err(Error::MixedIds { of_processes, of_threads: path(threads), hint });
    }
    Ok(processes.is_some())
}

/// Refuses `--pid-is process` if every input says what its ids are, and some are thread ids.
pub fn check_pid_is(inputs: &[OpenInput], is_process: bool) -> Result<()> {
    let of_threads = inputs.iter().find(|input| input.traits.ids_are_processes == Some(false));
    let is_needed = inputs.iter().any(|input| input.traits.ids_are_processes != Some(false));
    match of_threads {
        Some(of_threads) if is_process && !is_needed => {
            Err(Error::IdsOfThreads { path: of_threads.input.path.clone() })
        }
        _ => Ok(()),
    }
}

/// Returns what to do about an input without thread ids.
pub(crate) fn thread_ids_hint(source: &dyn Source, input: &str) -> String {
    let advice = source.explain(Problem::NoThreadIds).map(|explanation| explanation.hint);
    format!("convert {input} on its own, or {}", advice.as_deref().unwrap_or("record it with thread ids"))
}

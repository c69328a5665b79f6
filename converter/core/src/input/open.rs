//! Opens the inputs of a command, and refuses those that cannot be read together.

use std::path::{Path, PathBuf};

use crate::error::{Error, Refused, Result};
use crate::input::{Input, file_of};
use crate::merge::{OpenInput, logs_of};
use crate::run::Options;
use crate::source;

pub fn open_inputs(options: &Options) -> Result<Vec<OpenInput>> {
    let mut inputs: Vec<OpenInput> = Vec::new();
    // Files that an input before them has taken in.
    let mut taken: Vec<(PathBuf, String)> = Vec::new();
    let offset_of = |path: &str| options.hints.get(path).and_then(|beside| beside.offset_ns);
    for path in &options.inputs {
        let is_taken = |path: &str, taken: &[(PathBuf, String)]| {
            let file = file_of(path)?;
            taken.iter().find(|(other, _)| *other == file).map(|(_, by)| by.clone())
        };
        let mut by = is_taken(path, &taken);
        let mut input = Input::open(path)?;
        if by.is_none()
            && input.head().is_empty()
            && let Some(other) = source::instead_of_empty(path)
        {
            by = is_taken(&other, &taken);
            input = Input::open(&other)?;
            input.named.clone_from(path);
        }
        if let Some(by) = by {
            if offset_of(path).is_some() && offset_of(path) != offset_of(&by) {
                let message = format!("its offset is another than that of {by}, with which it is read");
                let source = Refused::error(message, format!("say it of that one: --offset {by}=..."));
                return Err(Error::Read { path: path.clone(), source });
            }
            continue;
        }
        let opened = with_source(options, input)?;
        check_twice(&inputs, &opened)?;
        let (mut input, source) = opened;
        for part in source.parts(&input.path) {
            if part != input.path {
                let bytes = Path::new(&part).metadata().map(|meta| meta.len()).ok();
                input.total_bytes = input.total_bytes.zip(bytes).map(|(total, bytes)| total + bytes);
            }
            taken.extend(file_of(&part).map(|file| (file, path.clone())));
        }
        inputs.push((input, source));
    }
    Ok(inputs)
}

/// Refuses a log that is among the others already.
pub fn check_twice(others: &[OpenInput], (input, source): &OpenInput) -> Result<()> {
    let of_threads = source.name() == source::strace::NAME && source.is_standalone(input.head());
    match others.iter().find(|(other, _)| other.is_same_log(input, of_threads)) {
        Some((first, _)) => Err(Error::Twice { first: first.path.clone(), second: input.path.clone() }),
        None => Ok(()),
    }
}

pub fn with_source(options: &Options, input: Input) -> Result<OpenInput> {
    let source = match &options.source {
        Some(name) => {
            let source = source::by_name(name)?;
            if input.head().is_empty() {
                return Err(Error::Empty { path: input.path });
            }
            source
        }
        None => source::sniff(&input.path, input.head())?,
    };
    Ok((input, source))
}

/// Whether the ids of the inputs are processes, as they say or else the caller: of all of them, or of none.
pub fn pid_is_process(inputs: &[OpenInput], otherwise: bool) -> Result<bool> {
    let told: Vec<_> = inputs.iter().map(|(input, source)| source.pid_is_process(input.head())).collect();
    let logs = logs_of(inputs);
    // A piece may begin with what does not tell.
    let of_log =
        |log: usize| told.iter().zip(&logs).find_map(|(told, of)| told.filter(|_| *of == log)).unwrap_or(otherwise);
    let of_processes = logs.iter().position(|&log| of_log(log));
    let of_threads = logs.iter().position(|&log| !of_log(log));
    if let (Some(processes), Some(threads)) = (of_processes, of_threads) {
        let path = |at: usize| inputs[at].0.path.clone();
        return Err(Error::ThreadTable { of_processes: path(processes), of_threads: path(threads) });
    }
    Ok(of_processes.is_some())
}

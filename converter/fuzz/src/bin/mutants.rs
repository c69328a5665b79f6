//! Runs a target on mutants of the files of folders: mutants TARGET SECONDS SEED ARTIFACT FOLDER...
//!
//! This build counts no branches, so it runs many times as many inputs as the search, from what the search has found. Prints the number of
//! executions to standard error. The first input on which the target panics, or takes more than 2 s of CPU time, is written to ARTIFACT and
//! ends the program.

use std::io::{self, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use syncline_fuzz::mutants::{Random, mutate};
use syncline_fuzz::targets;
use syncline_fuzz::watch::Watch;

const LIMIT: Duration = Duration::from_secs(2);
/// Bytes of most mutants, and of one in sixteen.
const LONGEST: [usize; 2] = [600, 10_000];
/// Executions between two looks at the clock.
const STEP: u64 = 50;

fn main() -> io::Result<ExitCode> {
    let mut words = std::env::args().skip(1);
    let mut word = || words.next().ok_or_else(|| io::Error::other("mutants TARGET SECONDS SEED ARTIFACT FOLDER..."));
    let (name, seconds, seed, artifact) = (word()?, word()?, word()?, PathBuf::from(word()?));
    let target = targets::by_name(&name).ok_or_else(|| io::Error::other(format!("no target {name:?}")))?;
    let (seconds, seed) = (parse(&seconds)?, parse(&seed)?);
    let inputs = read(words)?;

    // The watching thread writes the current input if it is slow.
    let current = Arc::new(Mutex::new(Vec::new()));
    let slow = Arc::clone(&current);
    let watch = Watch::start(LIMIT, move |path: &PathBuf| {
        let _ = std::fs::write(path, &*slow.lock().unwrap_or_else(PoisonError::into_inner));
        let _ = writeln!(io::stderr(), "{}: took more than 2 s", path.display());
    });
    let (begun, mut random, mut executions, mut failed) = (Instant::now(), Random::new(seed), 0, false);
    let (mut mutant, artifact) = (Vec::new(), Arc::new(artifact));
    while !failed && begun.elapsed() < Duration::from_secs(seconds) {
        watch.begin(&artifact);
        for _ in 0..STEP {
            mutate(&inputs, LONGEST[usize::from(random.below(16) == 0)], &mut random, &mut mutant);
            current.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&mutant);
            executions += 1;
            if catch_unwind(AssertUnwindSafe(|| target(&mutant))).is_err() {
                std::fs::write(&*artifact, &mutant)?;
                writeln!(io::stderr(), "{}: panicked", artifact.display())?;
                failed = true;
                break;
            }
        }
        watch.end();
    }
    writeln!(io::stderr(), "executions: {executions}")?;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn parse(number: &str) -> io::Result<u64> {
    number.parse().map_err(|_| io::Error::other(format!("no number: {number:?}")))
}

/// Reads the files of folders in the order of their names.
fn read(folders: impl Iterator<Item = String>) -> io::Result<Vec<Vec<u8>>> {
    let mut inputs = Vec::new();
    for folder in folders {
        let mut paths = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
        paths.sort_unstable();
        for path in paths {
            inputs.push(std::fs::read(path)?);
        }
    }
    inputs.retain(|input| !input.is_empty());
    if inputs.is_empty() { Err(io::Error::other("the folders have no inputs")) } else { Ok(inputs) }
}

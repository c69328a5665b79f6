//! Runs a target on files: inputs TARGET FOLDER|PACK...
//!
//! The files of a folder are taken in the order of their names. A pack is one file with many inputs, as `tests/fuzz_mutants.py` writes it.
//!
//! Prints the number of inputs to standard error, and the name of each on which the target panics; an input of a pack is written to a file
//! of its own then, PACK.NUMBER. An input that takes 20 s of CPU time ends the program. The exit code is 0 if all inputs pass.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use syncline_fuzz::targets::{self, Target};
use syncline_fuzz::watch::Watch;

const LIMIT: Duration = Duration::from_secs(20);

fn main() -> io::Result<ExitCode> {
    let mut words = std::env::args().skip(1);
    let name = words.next().unwrap_or_default();
    let target = targets::by_name(&name).ok_or_else(|| io::Error::other(format!("no target {name:?}")))?;
    let mut runs = Runs {
        target,
        watch: Watch::start(LIMIT, |input: &Input| input.report("took more than 20 s")),
        done: 0,
        failed: 0,
    };
    for word in words.map(PathBuf::from) {
        if word.is_dir() {
            let mut paths = fs::read_dir(word)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
            paths.sort_unstable();
            for path in paths {
                let data = fs::read(&path)?;
                runs.run(path, data, false);
            }
        } else {
            runs.run_pack(&word)?;
        }
    }
    let Runs { done, failed, .. } = runs;
    eprintln!("{done} inputs, {failed} failed");
    Ok(if failed == 0 && done > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

struct Runs {
    target: Target,
    watch: Watch<Input>,
    done: usize,
    failed: usize,
}

impl Runs {
    fn run_pack(&mut self, pack: &Path) -> io::Result<()> {
        let mut reader = BufReader::new(File::open(pack)?);
        let mut number = 0;
        loop {
            let mut length = [0; 4];
            match reader.read_exact(&mut length) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                other => other?,
            }
            let mut data = vec![0; u32::from_le_bytes(length) as usize];
            reader.read_exact(&mut data)?;
            self.run(pack.with_extension(format!("{number:05}")), data, true);
            number += 1;
        }
    }

    fn run(&mut self, path: PathBuf, data: Vec<u8>, is_packed: bool) {
        let input = Arc::new(Input { path, data, is_packed });
        self.done += 1;
        self.watch.begin(&input);
        if catch_unwind(AssertUnwindSafe(|| (self.target)(&input.data))).is_err() {
            self.failed += 1;
            input.report("panicked");
        }
        self.watch.end();
    }
}

struct Input {
    path: PathBuf,
    data: Vec<u8>,
    /// The file of this path does not exist, because a pack holds its data.
    is_packed: bool,
}

impl Input {
    /// Names the input, and sees to it that the file of this name exists.
    fn report(&self, what: &str) {
        let path = self.path.display();
        if self.is_packed
            && let Err(error) = fs::write(&self.path, &self.data)
        {
            eprintln!("{path}: cannot be written: {error}");
        }
        eprintln!("{path}: {what}");
    }
}

//! Runs a target on the files of folders, in the order of their names: inputs TARGET FOLDER...
//!
//! Prints the number of files to standard error, and the name of each file on which the target panics. A file that takes 20 s ends the
//! program. The exit code is 0 if all files pass.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use syncline_fuzz::targets;

const LIMIT: Duration = Duration::from_secs(20);

/// What the target runs on, and since when.
type Current = Arc<Mutex<Option<(PathBuf, Instant)>>>;

fn main() -> io::Result<ExitCode> {
    let mut words = std::env::args().skip(1);
    let name = words.next().unwrap_or_default();
    let target = targets::by_name(&name).ok_or_else(|| io::Error::other(format!("no target {name:?}")))?;
    let current = Current::default();
    watch(current.clone());
    let (mut files, mut failed) = (0, 0);
    for folder in words {
        let mut paths = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
        paths.sort_unstable();
        for path in paths {
            let data = std::fs::read(&path)?;
            set(&current, Some((path.clone(), Instant::now())));
            files += 1;
            if catch_unwind(AssertUnwindSafe(|| target(&data))).is_err() {
                failed += 1;
                report(&path, "panicked");
            }
            set(&current, None);
        }
    }
    eprintln!("{files} inputs, {failed} failed");
    Ok(if failed == 0 && files > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn set(current: &Current, to: Option<(PathBuf, Instant)>) {
    *current.lock().expect("no thread panics while it holds it") = to;
}

fn report(path: &Path, what: &str) {
    eprintln!("{}: {what}", path.display());
}

/// Ends the program if a file takes too long.
fn watch(current: Current) {
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_secs(1));
            if let Some((path, since)) = &*current.lock().expect("no thread panics while it holds it")
                && since.elapsed() > LIMIT
            {
                report(path, "took more than 20 s");
                std::process::exit(2);
            }
        }
    });
}

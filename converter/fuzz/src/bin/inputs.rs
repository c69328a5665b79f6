//! Runs a target on the files of folders, in the order of their names: inputs TARGET FOLDER...
//!
//! Prints the number of files to standard error, and the name of each file on which the target panics. A file that takes 20 s of CPU time
//! ends the program. The exit code is 0 if all files pass.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use syncline_fuzz::targets;
use syncline_fuzz::watch::Watch;

const LIMIT: Duration = Duration::from_secs(20);

fn main() -> io::Result<ExitCode> {
    let mut words = std::env::args().skip(1);
    let name = words.next().unwrap_or_default();
    let target = targets::by_name(&name).ok_or_else(|| io::Error::other(format!("no target {name:?}")))?;
    let watch = Watch::start(LIMIT, |path| report(path, "took more than 20 s"));
    let (mut files, mut failed) = (0, 0);
    for folder in words {
        let mut paths = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
        paths.sort_unstable();
        for path in paths {
            let data = std::fs::read(&path)?;
            files += 1;
            watch.begin(path.clone());
            if catch_unwind(AssertUnwindSafe(|| target(&data))).is_err() {
                failed += 1;
                report(&path, "panicked");
            }
            watch.end();
        }
    }
    eprintln!("{files} inputs, {failed} failed");
    Ok(if failed == 0 && files > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn report(path: &Path, what: &str) {
    eprintln!("{}: {what}", path.display());
}

//! Counts the work of conversions, so that tests/growth.py can compare the work for inputs of different sizes.
//!
//! Reads one conversion from each line of standard input: an output format, options, and the inputs, separated by tabs. Prints for each the
//! steps of the core, the bytes that were allocated, and the events; or `-` and the error.

use std::io::{BufRead, Write, stdin, stdout};

use syncline_core::merge::clock::InputHints;
use syncline_core::options::{Options, OutputFormat};
use syncline_core::run;
use syncline_fuzz::steps;

fn main() -> std::io::Result<()> {
    let folder = tempfile::tempdir()?;
    for line in stdin().lock().lines() {
        let line = line?;
        let mut words = line.split('\t');
        let (ending, flags) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let format = OutputFormat::by_name(ending).ok_or_else(|| std::io::Error::other("an unknown output format"))?;
        let mut options = Options { inputs: words.map(str::to_owned).collect(), workers: 1, ..Options::default() };
        options.source_options.pid_is_process = flags == "processes";
        if flags == "joined" {
            let hints = InputHints { offset_ns: Some(0), ..InputHints::default() };
            options.hints = options.inputs.iter().map(|input| (input.clone(), hints.clone())).collect();
        }
        let output = folder.path().join(format!("out.{}", ending.replace("tables", "d/")));
        let before = steps::so_far();
        let result = run::convert(&options, &output.to_string_lossy(), Some(format), &mut |_| true);
        let after = steps::so_far();
        let (steps, allocated) = (after.0 - before.0, after.1 - before.1);
        match result {
            Ok(summary) => {
                writeln!(stdout(), "{steps}\t{allocated}\t{}", summary.events.iter().sum::<u64>())?;
            }
            Err(error) => writeln!(stdout(), "-\t{}", error.to_string().replace('\n', " "))?,
        }
    }
    Ok(())
}

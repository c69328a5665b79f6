//! Any bytes as two logs of one run, which may hold duplicates of each other.

use std::path::Path;

use crate::checks::Checker;
use syncline_core::error::Error;
use syncline_core::input::Input;
use syncline_core::input::open::OpenInput;
use syncline_core::merge::clock::InputHints;
use syncline_core::options::Options;
use syncline_core::run;
use syncline_core::sink::jsonl::Jsonl;

/// Separates the two logs.
const MARK: &[u8] = b"\n----\n";

pub(super) fn run(data: &[u8]) {
    let [text @ .., offset] = data else { return };
    let Some(at) = text.windows(MARK.len()).position(|window| window == MARK) else { return };
    let halves = [&text[..at], &text[at + MARK.len()..]];
    // With an offset, the clocks of the logs do not matter.
    let hints = |offset_ns| InputHints { offset_ns: Some(offset_ns), ..InputHints::default() };
    let offset = i64::from(*offset as i8) * 1000;
    let options = Options {
        workers: 1,
        hints: [("0".to_owned(), hints(0)), ("1".to_owned(), hints(offset.max(0)))].into(),
        ..Options::default()
    };
    let mut inputs = Vec::new();
    for (name, half) in ["0", "1"].into_iter().zip(halves) {
        let Ok(input) = Input::from_bytes(name, half.to_vec()) else { return };
        let Ok(input) = OpenInput::with_format(input, &options.sources, None) else { return };
        inputs.push(input);
    }
    let mut sink = Jsonl::create(Path::new("-")).expect("standard output is open");
    let mut checker = Checker::new(&mut sink, false);
    match run::convert_into(&options, inputs, &mut checker, &mut |_| true) {
        Ok(_) | Err(Error::NoEvents { .. } | Error::Read { .. } | Error::BeforeZero { .. }) => {}
        Err(other) => panic!("{other}"),
    }
}

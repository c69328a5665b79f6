//! Any bytes as two logs of one run, which may hold duplicates of each other.

use std::path::Path;

use syncline_core::error::Error;
use syncline_core::run;
use syncline_core::sink::jsonl::Jsonl;

use crate::checks::{Checker, TwoLogs};

pub(super) fn run(data: &[u8]) {
    let Some(logs) = TwoLogs::of(data) else { return };
    let (Some(first), Some(second)) = (logs.open(0), logs.open(1)) else { return };
    let mut sink = Jsonl::create(Path::new("-")).expect("standard output is open");
    let mut checker = Checker::new(&mut sink, false);
    match run::convert_into(&logs.options, vec![first, second], &mut checker, &mut |_| true) {
        Ok(_) | Err(Error::NoEvents { .. } | Error::Read { .. } | Error::BeforeZero { .. }) => {}
        Err(other) => panic!("{other}"),
    }
}

//! Any bytes as a trace that Syncline wrote. The rows that are read are consistent, however damaged the trace is.

use syncline_core::input_file::Input;
use syncline_core::names::Names;
use syncline_core::own_trace;

use crate::checks::CollectedRows;

pub(super) fn run(data: &[u8]) {
    let read = || {
        let input = Input::from_bytes("fuzz", data.to_vec()).ok()?;
        let (mut names, mut rows) = (Names::default(), CollectedRows::default());
        let run = own_trace::read(input, &mut rows, &mut names, &mut |_| true).ok()?;
        Some((run.requests, run.losses.total(), rows.0))
    };
    if let Some(first) = read() {
        assert!(first.0 <= first.2.len() as u64, "each request is a row");
        assert_eq!(Some(first), read(), "a trace is read in two ways");
    }
}

//! Any bytes as a low-level log.

use crate::checks::{check_source, source_options};
use syncline_core::source::events_jsonl::EventsJsonl;

pub(super) fn run(data: &[u8]) {
    let [text @ .., options, piece] = data else { return };
    check_source(&EventsJsonl, &source_options(*options), text, usize::from(*piece));
}

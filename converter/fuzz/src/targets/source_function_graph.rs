//! Any bytes as the text of the tracer `function_graph`, at once and in pieces.

use crate::checks::{check_reader, source_options};
use syncline_core::source::function_graph::{self, FunctionGraph};

pub(super) fn run(data: &[u8]) {
    let [text @ .., options, piece] = data else { return };
    check_reader(&FunctionGraph, function_graph::cut, &source_options(*options), text, usize::from(*piece));
}

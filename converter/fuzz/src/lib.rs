//! What tests/fuzz.sh runs: the targets, and the rules that they check.

pub mod checks;
#[cfg(feature = "count")]
pub mod steps;
pub mod targets;

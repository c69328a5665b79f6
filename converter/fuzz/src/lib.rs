//! What tests/fuzz.sh runs: the targets, and the rules that they check.

pub mod checks;
pub mod mutants;
#[cfg(feature = "count")]
pub mod steps;
pub mod targets;
pub mod watch;

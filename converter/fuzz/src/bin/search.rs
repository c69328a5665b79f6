//! libFuzzer's search for inputs that break a target, which the variable `SYNCLINE_FUZZ_TARGET` names: search [OPTION...] [FOLDER...].
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use syncline_fuzz::targets;

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = std::env::var("SYNCLINE_FUZZ_TARGET").unwrap_or_default();
    targets::by_name(&name).unwrap_or_else(|| panic!("SYNCLINE_FUZZ_TARGET names no target: {name:?}"))
});

fuzz_target!(|data: &[u8]| TARGET(data));

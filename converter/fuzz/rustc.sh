#!/bin/sh
# Cargo's RUSTC_WRAPPER for tests/fuzz.sh: coverage counters for what is fuzzed, and for nothing else.
# It is what cargo-fuzz asks of a nightly compiler; the flags themselves are stable.
# With SYNCLINE_COUNT_STEPS=1 the core calls a function at each branch instead (converter/fuzz/src/steps.rs). With SYNCLINE_FUZZ_PLAIN=1
# there are no counters, which take most of the time of a search.
case "${SYNCLINE_FUZZ_PLAIN:+plain}$SYNCLINE_COUNT_STEPS $* " in
"1 "*" --crate-name syncline_core "*)
    exec "$@" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3 -Cllvm-args=-sanitizer-coverage-trace-pc
    ;;
"1 "*) exec "$@" ;;
"plain "*" --crate-name syncline_"*) exec "$@" --cfg fuzzing ;;
"plain "*) exec "$@" ;;
*" --crate-name syncline_core "* | *" --crate-name syncline_fuzz "* | *" --crate-name search "*)
    exec "$@" --cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
        -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
        -Cllvm-args=-sanitizer-coverage-trace-compares
    ;;
*) exec "$@" ;;
esac

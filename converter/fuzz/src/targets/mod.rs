//! The fuzz targets: each takes any bytes, and panics if a rule does not hold.

mod convert;
mod join;
mod order;
mod own_trace;
mod pair;
mod round_trip;
mod source_babeltrace;
mod source_biosnoop;
mod source_blkparse;
mod source_blktrace;
mod source_bpftrace;
mod source_bpftrace_json;
mod source_events_jsonl;
mod source_ftrace;
mod source_function_graph;
mod source_perf;
mod source_perf_data;
mod source_perf_trace;
mod source_perfetto;
mod source_slower;
mod source_strace;
mod source_syncsnoop;
mod source_trace_dat;
mod writes;

/// Runs on the bytes of an input.
pub type Target = fn(&[u8]);

const TARGETS: &[(&str, Target)] = &[
    ("convert", convert::run),
    ("join", join::run),
    ("order", order::run),
    ("own_trace", own_trace::run),
    ("pair", pair::run),
    ("round_trip", round_trip::run),
    ("source_babeltrace", source_babeltrace::run),
    ("source_biosnoop", source_biosnoop::run),
    ("source_blkparse", source_blkparse::run),
    ("source_blktrace", source_blktrace::run),
    ("source_bpftrace_json", source_bpftrace_json::run),
    ("source_events_jsonl", source_events_jsonl::run),
    ("source_ftrace", source_ftrace::run),
    ("source_function_graph", source_function_graph::run),
    ("source_perf", source_perf::run),
    ("source_perf_data", source_perf_data::run),
    ("source_perf_trace", source_perf_trace::run),
    ("source_perfetto", source_perfetto::run),
    ("source_slower", source_slower::run),
    ("source_strace", source_strace::run),
    ("source_bpftrace", source_bpftrace::run),
    ("source_syncsnoop", source_syncsnoop::run),
    ("source_trace_dat", source_trace_dat::run),
    ("writes", writes::run),
];

/// Returns a target by its name.
pub fn by_name(name: &str) -> Option<Target> {
    TARGETS.iter().find(|&&(of, _)| of == name).map(|&(_, target)| target)
}

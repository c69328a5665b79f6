//! Counts the work of conversions, so that tests/growth.py can compare the work for inputs of different sizes.
//!
//! Reads one conversion from each line of standard input: an output format, options, and the inputs, separated by tabs. Prints for each the
//! steps of the core, the bytes that were allocated, and the events; or `-` and the error. A step is one pass through a branch of the core's
//! code, generic code of libraries included (converter/fuzz/rustc.sh). The count does not depend on the machine or on its load.
#![expect(unsafe_code, reason = "an allocator that counts, and the function that instrumented code calls")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{BufRead, Write, stdin, stdout};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use syncline_core::merge::clock::InputHints;
use syncline_core::options::{Options, OutputFormat};
use syncline_core::run;

static STEPS: AtomicU64 = AtomicU64::new(0);
static ALLOCATED: AtomicU64 = AtomicU64::new(0);

/// Called at each branch of instrumented code. The caller is compiled by the same compiler, so the name and the form of the function agree.
#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_trace_pc() {
    STEPS.fetch_add(1, Relaxed);
}

struct Counting;

// SAFETY: passes every call on to the allocator of the system.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size() as u64, Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // It may copy all of the memory.
        ALLOCATED.fetch_add(size as u64, Relaxed);
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() -> std::io::Result<()> {
    let folder = tempfile::tempdir()?;
    for line in stdin().lock().lines() {
        let line = line?;
        let mut words = line.split('\t');
        let (ending, flags) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let format = OutputFormat::by_name(ending).ok_or_else(|| std::io::Error::other("an unknown output format"))?;
        let mut options = Options { inputs: words.map(str::to_owned).collect(), workers: 1, ..Options::default() };
        options.source_options.pid_is_process = flags == "processes";
        if flags == "joined" {
            let hints = InputHints { offset_ns: Some(0), ..InputHints::default() };
            options.hints = options.inputs.iter().map(|input| (input.clone(), hints.clone())).collect();
        }
        let output = folder.path().join(format!("out.{}", ending.replace("tables", "d/")));
        let before = (STEPS.load(Relaxed), ALLOCATED.load(Relaxed));
        let result = run::convert(&options, &output.to_string_lossy(), Some(format), &mut |_| true);
        let (steps, allocated) = (STEPS.load(Relaxed) - before.0, ALLOCATED.load(Relaxed) - before.1);
        match result {
            Ok(summary) => {
                writeln!(stdout(), "{steps}\t{allocated}\t{}", summary.events.iter().sum::<u64>())?;
            }
            Err(error) => writeln!(stdout(), "-\t{}", error.to_string().replace('\n', " "))?,
        }
    }
    Ok(())
}

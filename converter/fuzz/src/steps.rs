//! Counts the steps of the core and the bytes that it allocates. A step is one pass through a branch of the core's code, generic code of
//! libraries included (converter/fuzz/rustc.sh). The count does not depend on the machine or on its load.
#![expect(unsafe_code, reason = "an allocator that counts, and the function that instrumented code calls")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

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

/// Returns the steps and the bytes of this process so far.
pub fn so_far() -> (u64, u64) {
    (STEPS.load(Relaxed), ALLOCATED.load(Relaxed))
}

//! Counts the steps of the core and the bytes that it allocates. A step is one pass through a branch of the core's code, generic code of
//! libraries included (converter/fuzz/rustc.sh). The count does not depend on the machine or on its load.
#![expect(unsafe_code, reason = "an allocator that counts, and the function that instrumented code calls")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The steps of one thread, in a cache line of its own. Only this thread writes it, so it needs no locked instruction, which at each branch
/// would take most of the time of the tests.
#[repr(align(64))]
struct Steps(AtomicU64);

/// More than the threads that a process starts, because two threads with the same place would lose steps.
const PLACES: usize = 1 << 16;
const UNKNOWN: usize = usize::MAX;

static STEPS: [Steps; PLACES] = [const { Steps(AtomicU64::new(0)) }; PLACES];
static THREADS: AtomicUsize = AtomicUsize::new(0);
static ALLOCATED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static PLACE: Cell<usize> = const { Cell::new(UNKNOWN) };
}

/// Called at each branch of instrumented code. The caller is compiled by the same compiler, so the name and the form of the function agree.
#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_trace_pc() {
    let mut place = PLACE.get();
    if place == UNKNOWN {
        place = THREADS.fetch_add(1, Relaxed) % PLACES;
        PLACE.set(place);
    }
    let Steps(steps) = &STEPS[place];
    steps.store(steps.load(Relaxed) + 1, Relaxed);
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
    let threads = THREADS.load(Relaxed).min(PLACES);
    (STEPS[..threads].iter().map(|Steps(steps)| steps.load(Relaxed)).sum(), ALLOCATED.load(Relaxed))
}

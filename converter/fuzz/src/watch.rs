//! Ends the program if a target takes too long on an input.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Clock ticks of a second in `/proc/self/stat`, on every architecture that Linux has today.
const TICKS: u64 = 100;

/// What the target runs on.
pub struct Watch<T>(Arc<Mutex<Current<T>>>);

struct Current<T> {
    /// How many inputs have begun, by which the thread sees that the input is another one.
    begun: u64,
    input: Option<Arc<T>>,
}

impl<T: Send + Sync + 'static> Watch<T> {
    /// Starts the thread that watches. `on_slow` is called with the input that takes longer than `limit`, and then the program ends.
    ///
    /// The limit is one of CPU time, because a busy machine makes the time of day meaningless. It counts from the moment when the thread first
    /// sees an input, up to half a second late: most inputs take less than reading the CPU time of the process would.
    pub fn start(limit: Duration, on_slow: impl Fn(&T) + Send + 'static) -> Self {
        let watched = Arc::new(Mutex::new(Current { begun: 0, input: None }));
        let watch = Self(Arc::clone(&watched));
        std::thread::spawn(move || {
            let (mut seen, mut since) = (0, Duration::ZERO);
            loop {
                std::thread::sleep(Duration::from_millis(500));
                let current = watched.lock().unwrap_or_else(PoisonError::into_inner);
                let now = cpu_time();
                if current.begun != seen {
                    (seen, since) = (current.begun, now);
                }
                if let Some(input) = &current.input
                    && now.saturating_sub(since) > limit
                {
                    on_slow(input);
                    std::process::exit(2);
                }
            }
        });
        watch
    }

    pub fn begin(&self, input: &Arc<T>) {
        let mut current = self.current();
        current.begun += 1;
        current.input = Some(Arc::clone(input));
    }

    pub fn end(&self) {
        self.current().input = None;
    }

    fn current(&self) -> MutexGuard<'_, Current<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// CPU time of this process.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program may contain spaces. The user time is the 14th field, the 12th after the name.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1000 / TICKS)
}

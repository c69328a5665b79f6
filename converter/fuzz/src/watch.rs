//! Ends the program if a target takes too long on an input.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Clock ticks of a second in `/proc/self/stat`, on every architecture that Linux has today.
const TICKS: u64 = 100;

/// What the target runs on, and the CPU time of this process when it began. A busy machine makes the time of day meaningless.
#[derive(Clone, Default)]
pub struct Watch(Arc<Mutex<Option<(PathBuf, Duration)>>>);

impl Watch {
    /// Starts the thread that watches. `on_slow` is called with the input that takes longer than `limit`, and then the program ends.
    pub fn start(limit: Duration, on_slow: impl Fn(&PathBuf) + Send + 'static) -> Self {
        let watch = Self::default();
        let watched = watch.clone();
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(Duration::from_millis(500));
                if let Some((path, since)) = &*watched.0.lock().unwrap_or_else(PoisonError::into_inner)
                    && cpu_time().saturating_sub(*since) > limit
                {
                    on_slow(path);
                    std::process::exit(2);
                }
            }
        });
        watch
    }

    pub fn begin(&self, path: PathBuf) {
        self.set(Some((path, cpu_time())));
    }

    pub fn end(&self) {
        self.set(None);
    }

    fn set(&self, to: Option<(PathBuf, Duration)>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = to;
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

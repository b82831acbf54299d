//! A clock that an operator process uses instead of the machine's: it is faster, and its wall time can jump.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tempfile::TempDir;

/// A clock. Operators that start with its variables share it.
pub struct SimulatedClock {
    speed: u32,
    start: SystemTime,
    /// Holds the file with the time by which the wall time is ahead.
    directory: TempDir,
}

impl SimulatedClock {
    /// A clock that runs `speed` times as fast as the machine's.
    pub fn new(speed: u32) -> Self {
        let clock = Self { speed, start: SystemTime::now(), directory: tempfile::tempdir().unwrap() };
        fs::write(clock.ahead(), 0_i64.to_ne_bytes()).unwrap();
        clock
    }

    /// Moves the wall time of running operators forward, or back, from where it would be without any jump.
    pub fn jump(&self, seconds: i64) {
        let file = File::options().write(true).open(self.ahead()).unwrap();
        file.write_all_at(&(seconds * 1_000_000_000).to_ne_bytes(), 0).unwrap();
    }

    /// Waits for this simulated time.
    pub async fn pass(&self, time: Duration) {
        tokio::time::sleep(time / self.speed).await;
    }

    /// The environment of an operator with this clock.
    pub fn variables(&self) -> [(String, String); 2] {
        let start = self.start.duration_since(UNIX_EPOCH).unwrap().as_nanos();
        let clock = format!("{}:{start}:{}", self.speed, self.ahead().display());
        let library = library().to_str().unwrap().to_owned();
        [("LD_PRELOAD".to_owned(), library), ("SIMULATED_CLOCK".to_owned(), clock)]
    }

    fn ahead(&self) -> PathBuf {
        self.directory.path().join("ahead")
    }
}

/// Returns the library that replaces the clock. The first call compiles it.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/simulated_clock.c");
        let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("simulated_clock.so");
        // Another test process may load the library now.
        let partial = library.with_extension(format!("{}.so", std::process::id()));
        let compiler =
            Command::new("cc").args(["-O2", "-shared", "-fPIC", "-o"]).arg(&partial).arg(source).status();
        assert!(compiler.unwrap().success(), "cc cannot compile {source}");
        fs::rename(&partial, &library).unwrap();
        library
    })
}

//! A program as a child process, with a directory of its own.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A product starts in 1 to 15 s on an idle machine; builds may run beside.
const START_TIMEOUT: Duration = Duration::from_mins(10);

/// Kills the program and its children, and removes the directory, when its stdin closes: that is when the test process
/// ends in any way. Ctrl-C reaches the whole process group, so the shell ignores it.
const GUARD: &str = r#"trap "" HUP INT TERM
dir=$1; shift
setsid "$@" & pid=$!
cat >/dev/null
kill -9 -$pid; wait $pid; rm -rf "$dir""#;

pub struct Process {
    log: PathBuf,
    guard: Child,
}

impl Process {
    /// Starts the program of `command`. `directory` is removed when it has ended.
    pub fn start(command: &Command, directory: tempfile::TempDir) -> Self {
        let log = directory.path().join("output.log");
        let output = File::create(&log).unwrap();
        let mut guarded = Command::new("sh");
        guarded.args(["-c", GUARD, "sh"]).arg(directory.path());
        guarded.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            guarded.env(name, value.unwrap_or_default());
        }
        guarded.current_dir(directory.path()).stdin(Stdio::piped());
        let guard = guarded.stdout(output.try_clone().unwrap()).stderr(output).spawn().unwrap();
        // From here on the guard removes it.
        let _ = directory.keep();
        Self { log, guard }
    }

    /// Waits until `ready`.
    pub async fn wait_until<F: Future<Output = bool>>(&self, ready: impl Fn() -> F) {
        let deadline = Instant::now() + START_TIMEOUT;
        while !ready().await {
            let output = || fs::read_to_string(&self.log).unwrap_or_default();
            assert!(Instant::now() < deadline, "not ready after {START_TIMEOUT:?}:\n{}", output());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

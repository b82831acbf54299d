//! A cgroup that limits the memory of an operator.

use std::fs;
use std::path::{Path, PathBuf};

/// Removed when it is dropped, after its processes have ended.
pub struct Cgroup {
    directory: PathBuf,
    /// The file with the peak of its memory.
    peak: &'static str,
}

impl Cgroup {
    /// Creates a cgroup with this limit below that of this process; `None` if it may not.
    pub fn limited(bytes: usize) -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let field = |line: &str, name: &str| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            (controllers == name).then(|| path.trim_start_matches('/').to_owned())
        };
        let root = Path::new("/sys/fs/cgroup");
        let own_of = |name: &str| own.lines().find_map(|line| field(line, name));
        let (parent, limit, peak) = match own_of("memory") {
            Some(path) => {
                (root.join("memory").join(path), "memory.limit_in_bytes", "memory.max_usage_in_bytes")
            }
            None => (root.join(own_of("")?), "memory.max", "memory.peak"),
        };
        let name = format!("declarest-test-{}-{}", std::process::id(), fastrand::u32(..));
        let directory = parent.join(name);
        fs::create_dir(&directory).ok()?;
        let cgroup = Self { directory, peak };
        fs::write(cgroup.directory.join(limit), bytes.to_string()).ok()?;
        Some(cgroup)
    }

    /// The file that a process writes its id to in order to join.
    pub fn members(&self) -> PathBuf {
        self.directory.join("cgroup.procs")
    }

    /// The most memory that its processes used, page cache included, in MiB.
    pub fn peak(&self) -> Option<u64> {
        let bytes: u64 = fs::read_to_string(self.directory.join(self.peak)).ok()?.trim().parse().ok()?;
        Some(bytes >> 20)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.directory);
    }
}

//! The memory of the process: its limit, and its protection, because it holds secrets.

use std::fs;
use std::io;
use std::path::Path;

use declarest_core::memory;
use rustix::process::{Resource, Rlimit, setrlimit};

/// Memory that is not part of the budget of payloads: the program, the caches of objects, small payloads, and one key
/// derivation.
const RESERVED: usize = 160 << 20;

/// Prevents core dumps of this process (`setrlimit(2)`), also those that are piped to a program. Prevents debuggers
/// of the same user from attaching (`PR_SET_DUMPABLE`, `prctl(2)`).
pub fn keep_private() -> io::Result<()> {
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// Limits the memory of payloads by that of the process: the limit of its cgroup, otherwise the memory of the machine.
pub fn budget() {
    let Some(limit) = limit().or_else(|| machine(&read)) else {
        tracing::warn!("the limit of memory is not known; payloads are not limited by it");
        return;
    };
    let budget = payloads(limit);
    tracing::info!(limit_mib = limit >> 20, payloads_mib = budget >> 20, "memory");
    memory::limit(budget);
}

/// Returns the memory that the cgroup of this process may use, in bytes; `None` means no limit.
pub fn limit() -> Option<usize> {
    cgroup_limit(Path::new("/sys/fs/cgroup"), &read)
}

fn read(file: &str) -> Option<String> {
    fs::read_to_string(file).ok()
}

fn payloads(limit: usize) -> usize {
    limit.saturating_sub(RESERVED).max(limit / 4)
}

/// Returns the smallest limit of the process's cgroup and of those above it: `memory.max` (version 2) or
/// `memory.limit_in_bytes` (version 1). In a container, the path of the cgroup may not exist below `root`; then the
/// files at the root are those of the container.
fn cgroup_limit(root: &Path, read: &impl Fn(&str) -> Option<String>) -> Option<usize> {
    let own = read("/proc/self/cgroup")?;
    let mut limits = Vec::new();
    for line in own.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let (base, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes")
            }
            _ => continue,
        };
        for above in Path::new(path.trim_start_matches('/')).ancestors() {
            let found = read(&base.join(above).join(file).to_string_lossy());
            limits.extend(found.and_then(|text| text.trim().parse::<usize>().ok()));
        }
    }
    // Version 1 states "no limit" as a number near the largest one.
    limits.into_iter().min().filter(|limit| *limit < usize::MAX / 4)
}

fn machine(read: &impl Fn(&str) -> Option<String>) -> Option<usize> {
    let text = read("/proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::version_2(&[("/proc/self/cgroup", "0::/pod/app\n"), ("/c/pod/app/memory.max", "max\n"), ("/c/pod/memory.max", "536870912\n")], Some(512 << 20))]
    #[case::namespaced(&[("/proc/self/cgroup", "0::/\n"), ("/c/memory.max", "268435456\n")], Some(256 << 20))]
    #[case::version_1(&[("/proc/self/cgroup", "5:cpu:/x\n4:memory:/x\n0::/\n"), ("/c/memory/x/memory.limit_in_bytes", "536870912\n"), ("/c/memory/memory.limit_in_bytes", "9223372036854771712\n")], Some(512 << 20))]
    #[case::other_root(&[("/proc/self/cgroup", "4:memory:/docker/x\n"), ("/c/memory/memory.limit_in_bytes", "1073741824\n")], Some(1 << 30))]
    #[case::unlimited(&[("/proc/self/cgroup", "4:memory:/\n"), ("/c/memory/memory.limit_in_bytes", "9223372036854771712\n")], None)]
    #[case::unknown(&[], None)]
    fn limits_of_cgroups(#[case] files: &[(&str, &str)], #[case] expected: Option<usize>) {
        let read =
            |file: &str| files.iter().find(|(name, _)| *name == file).map(|(_, text)| (*text).to_owned());
        assert_eq!(cgroup_limit(Path::new("/c"), &read), expected);
    }

    #[test]
    fn the_machine_is_the_limit_without_a_cgroup() {
        let read = |_: &str| Some("MemFree: 1 kB\nMemTotal:       1048576 kB\n".to_owned());
        assert_eq!(machine(&read), Some(1 << 30));
    }

    #[rstest]
    #[case(512 << 20, 352 << 20)]
    #[case(64 << 20, 16 << 20)]
    fn payloads_get_a_part_of_the_limit(#[case] limit: usize, #[case] expected: usize) {
        assert_eq!(payloads(limit), expected);
    }
}

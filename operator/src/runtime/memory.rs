//! Protects the memory of the process, which holds secrets.

use std::io;

use rustix::process::{Resource, Rlimit, setrlimit};

/// Prevents core dumps of this process (`setrlimit(2)`), also those that are piped to a program. Prevents debuggers
/// of the same user from attaching (`PR_SET_DUMPABLE`, `prctl(2)`).
pub fn keep_private() -> io::Result<()> {
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    Ok(())
}

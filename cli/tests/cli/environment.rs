//! Runs the binary in an environment of its own.

use std::fmt;
use std::process::{Command, Stdio};

/// What a run printed and how it ended.
#[must_use]
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exit {}\n--- stdout\n{}--- stderr\n{}", self.code, self.stdout, self.stderr)
    }
}

/// Runs `declarest` with these arguments and nothing else in its environment.
pub fn declarest(args: &[&str]) -> Run {
    declarest_with(args, &[])
}

/// Runs `declarest` with these arguments and environment variables. Standard output is no terminal.
pub fn declarest_with(args: &[&str], variables: &[(&str, &str)]) -> Run {
    let output = Command::new(env!("CARGO_BIN_EXE_declarest"))
        .args(args)
        .env_clear()
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Run {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

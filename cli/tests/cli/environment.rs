//! Runs the binary in an environment of its own.

use std::fmt;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The output and the exit code of a run.
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

/// Runs `declarest` with these arguments and environment variables. Standard output is not a terminal.
pub fn declarest_with(args: &[&str], variables: &[(&str, &str)]) -> Run {
    Home::new().run_with(args, variables, "")
}

/// A home directory that is removed after the test.
pub struct Home {
    directory: tempfile::TempDir,
}

impl Home {
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    /// A home directory with a catalogue of contexts.
    pub fn with_catalogue(catalogue: &str) -> Self {
        let home = Self::new();
        home.write(".declarest/configs/contexts.yaml", catalogue);
        home
    }

    /// Returns the path of a file in the home directory.
    pub fn path(&self, file: &str) -> PathBuf {
        self.directory.path().join(file)
    }

    pub fn write(&self, file: &str, content: &str) {
        let path = self.path(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content.replace("<home>", self.directory.path().to_str().unwrap())).unwrap();
    }

    pub fn read(&self, file: &str) -> String {
        self.shown(&fs::read_to_string(self.path(file)).unwrap())
    }

    /// Returns the content of the catalogue file.
    pub fn catalogue(&self) -> String {
        self.read(".declarest/configs/contexts.yaml")
    }

    pub fn run(&self, args: &[&str]) -> Run {
        self.run_with(args, &[], "")
    }

    /// Runs `declarest` in this directory. In the output, the directory is replaced with `<home>`.
    pub fn run_with(&self, args: &[&str], variables: &[(&str, &str)], stdin: &str) -> Run {
        let mut child = self
            .command(args, variables)
            .stdin(if stdin.is_empty() { Stdio::null() } else { Stdio::piped() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        if let Some(mut pipe) = child.stdin.take() {
            // A command that does not read its input closes the pipe.
            let _ = pipe.write_all(stdin.as_bytes());
        }
        let output = child.wait_with_output().unwrap();
        Run {
            code: output.status.code().unwrap(),
            stdout: self.shown(&String::from_utf8(output.stdout).unwrap()),
            stderr: self.shown(&String::from_utf8(output.stderr).unwrap()),
        }
    }

    /// `declarest` in this directory, with these variables and no others.
    pub fn command(&self, args: &[&str], variables: &[(&str, &str)]) -> Command {
        let args = args.iter().map(|arg| arg.replace("<home>", self.directory.path().to_str().unwrap()));
        let mut command = Command::new(env!("CARGO_BIN_EXE_declarest"));
        command.args(args).current_dir(self.directory.path());
        command.env_clear().env("HOME", self.directory.path()).envs(variables.iter().copied());
        command
    }

    /// A shell in this directory that finds `declarest` and the programs of the system.
    pub fn shell(&self, script: &str) -> Command {
        let programs = Path::new(env!("CARGO_BIN_EXE_declarest")).parent().unwrap().display();
        let path = format!("{programs}:{}", std::env::var("PATH").unwrap());
        let mut shell = Command::new("bash");
        shell.args(["--norc", "--noprofile", "-c", script]).current_dir(self.directory.path());
        shell.env_clear().env("HOME", self.directory.path()).env("PATH", path);
        shell
    }

    /// Returns a text in which the directory is replaced with `<home>`.
    pub fn shown(&self, text: &str) -> String {
        text.replace(self.directory.path().to_str().unwrap(), "<home>")
    }
}

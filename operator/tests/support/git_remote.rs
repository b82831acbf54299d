//! A Git remote in a temporary directory: a work tree to commit in and the bare repository it pushes to.
#![allow(dead_code, reason = "each test binary that includes this module uses a part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a fixture fails its test")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// The branch that everything happens on.
pub const BRANCH: &str = "main";

/// `git` without any configuration but what is set here, so that a machine's setup changes no test.
/// Author and dates are fixed: the same content has the same commit id everywhere.
pub fn git_command(directory: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(directory).env_clear();
    // Git finds ssh and its own parts through PATH.
    command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    command
        .env("HOME", directory)
        .env("LC_ALL", "C")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        // Without the examples of hooks, which would be copied into each new repository.
        .env("GIT_TEMPLATE_DIR", "")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_AUTHOR_NAME", "Test")
        .env("GIT_AUTHOR_EMAIL", "test@example.test")
        .env("GIT_AUTHOR_DATE", "2026-01-02T03:04:05Z")
        .env("GIT_COMMITTER_NAME", "Test")
        .env("GIT_COMMITTER_EMAIL", "test@example.test")
        .env("GIT_COMMITTER_DATE", "2026-01-02T03:04:05Z");
    command
}

/// Runs the command and returns its output, whatever its exit code.
pub fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"))
}

/// Runs `git` and returns its trimmed standard output; a failure panics with what git said.
pub fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = output(git_command(directory).args(arguments));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?} in {}: {said}", directory.display());
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

pub struct GitRemote {
    directory: TempDir,
}

impl Default for GitRemote {
    fn default() -> Self {
        GitRemote::new()
    }
}

impl GitRemote {
    /// An empty bare repository `desired.git` and a work tree beside it, which has it as `origin`.
    pub fn new() -> GitRemote {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let remote = GitRemote { directory };
        let (bare, work_tree) = (remote.bare(), remote.work_tree());
        for path in [&bare, &work_tree] {
            std::fs::create_dir(path).expect("a directory in a new temporary directory");
        }
        git(&bare, &["init", "--quiet", "--bare", "--initial-branch", BRANCH]);
        git(&work_tree, &["init", "--quiet", "--initial-branch", BRANCH]);
        git(&work_tree, &["remote", "add", "origin", &remote.file_url()]);
        remote
    }

    /// The directory that holds `desired.git`: the project root of a Git server.
    pub fn root(&self) -> &Path {
        self.directory.path()
    }

    pub fn bare(&self) -> PathBuf {
        self.root().join("desired.git")
    }

    pub fn work_tree(&self) -> PathBuf {
        self.root().join("work")
    }

    pub fn file_url(&self) -> String {
        format!("file://{}", self.bare().display())
    }

    /// Writes a file of the work tree; directories appear as needed.
    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) -> &GitRemote {
        let path = self.work_tree().join(path);
        std::fs::create_dir_all(path.parent().expect("a file has a parent")).expect("a directory");
        std::fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        self
    }

    /// Removes a file or a whole directory of the work tree.
    pub fn remove(&self, path: &str) -> &GitRemote {
        let path = self.work_tree().join(path);
        let removed =
            if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
        removed.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        self
    }

    /// Commits the whole work tree, also when nothing changed, and returns the commit id.
    pub fn commit(&self, message: &str) -> String {
        git(&self.work_tree(), &["add", "--all"]);
        git(&self.work_tree(), &["commit", "--quiet", "--allow-empty", "--message", message]);
        self.head()
    }

    /// The commit that the work tree is at.
    pub fn head(&self) -> String {
        git(&self.work_tree(), &["rev-parse", "HEAD"])
    }

    /// Puts branch and work tree back to a commit, to rewrite what came after it.
    pub fn reset_to(&self, commit: &str) -> &GitRemote {
        git(&self.work_tree(), &["reset", "--quiet", "--hard", commit]);
        self
    }

    pub fn push(&self) {
        git(&self.work_tree(), &["push", "--quiet", "origin", BRANCH]);
    }

    pub fn force_push(&self) {
        git(&self.work_tree(), &["push", "--quiet", "--force", "origin", BRANCH]);
    }

    /// Deletes the branch of the bare repository.
    pub fn delete_branch(&self) {
        git(&self.bare(), &["update-ref", "-d", &format!("refs/heads/{BRANCH}")]);
    }

    /// Lets the next commit have no parent. The work tree stays.
    pub fn restart_history(&self) {
        git(&self.work_tree(), &["update-ref", "-d", "HEAD"]);
    }

    /// Drops every object of the bare repository that no ref reaches, as a host does after a force-push.
    pub fn collect_garbage(&self) {
        git(&self.bare(), &["reflog", "expire", "--expire=now", "--all"]);
        git(&self.bare(), &["gc", "--quiet", "--prune=now"]);
    }
}

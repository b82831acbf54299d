//! A remote and a checkout that is connected to it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use declarest_core::repository::{
    Remote, RemoteAuth, RemoteUrl, RepositoryError, Revision, Worktree, WorktreeSettings,
};
use tempfile::TempDir;

use crate::git_remote::{BRANCH, GitRemote, git};

pub struct Checkout {
    pub remote: GitRemote,
    directory: TempDir,
}

impl Checkout {
    /// An empty remote and an empty directory.
    pub fn new() -> Checkout {
        Checkout { remote: GitRemote::new(), directory: tempfile::tempdir().unwrap() }
    }

    /// A checkout of a remote with one commit, `first`.
    pub fn of_one_commit() -> Checkout {
        let checkout = Checkout::new();
        checkout.remote_commits("first");
        checkout.worktree().refresh(deadline()).unwrap();
        assert_eq!(checkout.read("first").as_deref(), Some("first"));
        checkout
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("checkout")
    }

    pub fn settings(&self) -> WorktreeSettings {
        self.settings_for(&self.remote.file_url())
    }

    pub fn settings_for(&self, url: &str) -> WorktreeSettings {
        let url = RemoteUrl::parse_local_allowed(url).unwrap();
        let remote = Some(Remote::new(url, BRANCH, RemoteAuth::None));
        WorktreeSettings { directory: self.path(), auto_init: true, remote }
    }

    pub fn worktree(&self) -> Worktree {
        Worktree::open(self.settings()).unwrap()
    }

    pub fn without_remote(&self) -> Worktree {
        Worktree::open(WorktreeSettings { remote: None, ..self.settings() }).unwrap()
    }

    pub fn worktree_with(&self, remote: Remote) -> Worktree {
        Worktree::open(WorktreeSettings { remote: Some(remote), ..self.settings() }).unwrap()
    }

    pub fn write(&self, file: &str, text: &str) {
        let file = self.path().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    pub fn remove(&self, file: &str) {
        std::fs::remove_file(self.path().join(file)).unwrap();
    }

    pub fn read(&self, file: &str) -> Option<String> {
        std::fs::read_to_string(self.path().join(file)).ok()
    }

    /// Commits a file of that name and content in the checkout.
    pub fn commits(&self, name: &str) -> Revision {
        self.write(name, name);
        self.worktree().commit(name).unwrap().unwrap()
    }

    /// Commits a file of that name and content elsewhere, and pushes it to the remote.
    pub fn remote_commits(&self, name: &str) -> String {
        let commit = self.remote.write(name, name).commit(name);
        self.remote.push();
        commit
    }

    /// Everything in the checkout but `.git`, directories with a slash, sorted.
    pub fn files(&self) -> Vec<String> {
        let mut found = Vec::new();
        collect(&self.path(), "", &mut found);
        found.sort();
        found
    }

    pub fn git(&self, arguments: &[&str]) -> String {
        git(&self.path(), arguments)
    }
}

fn collect(directory: &Path, prefix: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if name == ".git" {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            found.push(format!("{name}/"));
            collect(&entry.path(), &format!("{name}/"), found);
        } else {
            found.push(name);
        }
    }
}

pub fn deadline() -> Instant {
    Instant::now() + Duration::from_mins(1)
}

/// A failed call's category and text.
pub fn failure<T: std::fmt::Debug>(result: Result<T, RepositoryError>) -> (&'static str, String) {
    use declarest_core::error::Categorized;
    let error = result.unwrap_err();
    (error.category().reason(), error.to_string())
}

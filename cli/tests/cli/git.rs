//! Git repositories that the program `git` creates.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::environment::Home;

/// A context on a Git checkout in `work`, with `origin.git` as its remote. Neither exists yet.
pub const WITH_REMOTE: &str = "\
currentContext: dev
contexts:
- name: dev
  repository: {git: {local: {baseDir: <home>/work}, remote: {url: 'file://<home>/origin.git'}}}
  managedServer: {http: {url: 'https://api.test', auth: {customHeaders: [{header: K, value: v}]}}}
";

/// A context on a Git checkout in `work`, without a remote.
pub const WITHOUT_REMOTE: &str = "\
currentContext: dev
contexts:
- name: dev
  repository: {git: {local: {baseDir: <home>/work}}}
  managedServer: {http: {url: 'https://api.test', auth: {customHeaders: [{header: K, value: v}]}}}
";

/// Runs `git` as a fixed user, without configuration files and at a fixed time.
pub fn git(directory: &Path, args: &[&str]) -> String {
    git_at(directory, "2026-01-31T12:00:00+01:00", args)
}

/// Runs `git` at a given time.
pub fn git_at(directory: &Path, date: &str, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(args)
        .current_dir(directory)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .envs([("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_TEMPLATE_DIR", "")])
        .envs([("GIT_AUTHOR_NAME", "Alice"), ("GIT_AUTHOR_EMAIL", "alice@test"), ("GIT_AUTHOR_DATE", date)])
        .envs([("GIT_COMMITTER_NAME", "Bob"), ("GIT_COMMITTER_EMAIL", "bob@test")])
        .env("GIT_COMMITTER_DATE", date)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// A home with the context [`WITH_REMOTE`], an empty remote, and the checkout of another user in `other`.
pub fn home_with_remote() -> Home {
    let home = Home::with_catalogue(WITH_REMOTE);
    git(&home.path(""), &["init", "--quiet", "--bare", "--initial-branch=main", "origin.git"]);
    git(&home.path(""), &["init", "--quiet", "--initial-branch=main", "other"]);
    git(&home.path("other"), &["remote", "add", "origin", "../origin.git"]);
    home
}

/// Another user commits a file and pushes it.
pub fn pushed_by_another(home: &Home, file: &str, content: &str) {
    let other = home.path("other");
    home.write(&format!("other/{file}"), content);
    git(&other, &["add", "--all"]);
    git(&other, &["commit", "--quiet", "--message", &format!("add {file}")]);
    git(&other, &["push", "--quiet", "origin", "HEAD:main"]);
}

/// Whether a file of the home directory exists.
pub fn exists(home: &Home, file: &str) -> bool {
    fs::symlink_metadata(home.path(file)).is_ok()
}

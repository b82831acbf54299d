//! Desired state of many resources, committed without a work tree.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use serde_json::json;

use crate::support::git_remote::{BRANCH, git, git_command};

/// The payload of a resource.
pub fn payload(id: &str, size: usize) -> String {
    let body = json!({
        "id": id, "size": size, "enabled": true,
        "labels": {"team": "bench", "tier": "gold"},
        "limits": [{"name": "cpu", "value": 4}, {"name": "memory", "value": 512}],
        "description": "a resource of the size that people write by hand, with a sentence in it",
    });
    body.to_string()
}

/// [`commit_payloads`] of resources that are given by their path and a number in their payload.
pub fn commit(repository: &Path, resources: impl Iterator<Item = (String, usize)>) -> String {
    let payload_of = |(path, size): (String, usize)| {
        let body = payload(path.rsplit_once('/').unwrap().1, size);
        (path, body)
    };
    commit_payloads(repository, resources.map(payload_of))
}

/// Makes `repository`, which is bare, if it does not exist, and commits payloads by their path on top of what the
/// branch has. Returns the commit.
pub fn commit_payloads(repository: &Path, resources: impl Iterator<Item = (String, String)>) -> String {
    let branch = format!("refs/heads/{BRANCH}");
    let mut stream = format!("commit {branch}\ncommitter Bench <bench@example.test> 1767323045 +0000\n");
    stream.push_str("data 0\n");
    if git(repository, &["for-each-ref", &branch]).is_empty() {
        stream.push('\n');
    } else {
        writeln!(stream, "from {branch}^0").unwrap();
    }
    for (path, body) in resources {
        write!(stream, "M 100644 inline {path}/resource.json\ndata {}\n{body}\n", body.len()).unwrap();
    }
    let mut import = git_command(repository)
        .args(["-c", "core.fsyncMethod=batch", "fast-import", "--quiet"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    import.stdin.take().unwrap().write_all(stream.as_bytes()).unwrap();
    assert!(import.wait().unwrap().success());
    git(repository, &["rev-parse", &branch])
}

/// `count` resources in collections of `members` each.
pub fn spread(count: usize, members: usize) -> impl Iterator<Item = (String, usize)> {
    (0..count).map(move |index| (member(index, members), 1))
}

/// The path of one of them.
pub fn member(index: usize, members: usize) -> String {
    format!("c{}/i{index}", index / members)
}

/// The collections of them.
pub fn collections(count: usize, members: usize) -> Vec<String> {
    (0..count.div_ceil(members)).map(|collection| format!("/c{collection}")).collect()
}

//! Committing, resetting and cleaning.

use rstest::rstest;

use crate::checkout::{Checkout, failure};

#[test]
fn a_commit_holds_everything_but_ignored_files() {
    let checkout = Checkout::of_one_commit();
    for file in ["changed", "deleted", "dir/deleted"] {
        checkout.write(file, "1");
    }
    checkout.write(".gitignore", "*.tmp\n");
    checkout.worktree().commit("setup").unwrap().unwrap();
    checkout.write("changed", "2");
    checkout.write("new/São Paulo/resource.yaml", "name: Rio");
    checkout.write("x.tmp", "");
    checkout.write("[x]*?", "odd name");
    checkout.remove("deleted");
    checkout.remove("dir/deleted");
    let committed = checkout.worktree().commit("declarest: save resource /a\n\nwhy").unwrap().unwrap();
    assert_eq!(checkout.worktree().head().unwrap(), Some(committed));
    assert_eq!(
        checkout.git(&[
            "-c",
            "core.quotePath=off",
            "show",
            "--name-status",
            "--format=%an <%ae>|%cn <%ce>|%B"
        ]),
        "declarest <declarest@local>|declarest <declarest@local>|declarest: save resource /a\n\nwhy\n\n\
         A\t[x]*?\nM\tchanged\nD\tdeleted\nD\tdir/deleted\nA\tnew/São Paulo/resource.yaml"
    );
    assert!(!checkout.worktree().status_offline().unwrap().has_uncommitted());
    assert_eq!(checkout.read("x.tmp").as_deref(), Some(""));
}

#[test]
fn a_clean_checkout_is_not_committed() {
    let checkout = Checkout::of_one_commit();
    let head = checkout.worktree().head().unwrap();
    assert_eq!(checkout.worktree().commit("again").unwrap(), None);
    assert_eq!(checkout.worktree().head().unwrap(), head);
    let empty = Checkout::new();
    assert_eq!(empty.worktree().commit("nothing").unwrap(), None);
    assert_eq!(empty.worktree().head().unwrap(), None);
}

#[rstest]
#[case("", "declarest: update repository resources")]
#[case(" \n", "declarest: update repository resources")]
#[case("mine", "mine")]
fn a_blank_message_is_replaced(#[case] message: &str, #[case] expected: &str) {
    let checkout = Checkout::new();
    checkout.worktree();
    checkout.write("a", "");
    checkout.worktree().commit(message).unwrap().unwrap();
    assert_eq!(checkout.git(&["log", "--format=%D: %B"]), format!("HEAD -> main: {expected}"));
}

#[test]
fn what_was_staged_by_hand_is_committed_too() {
    let checkout = Checkout::of_one_commit();
    checkout.write("staged", "1");
    checkout.git(&["add", "staged"]);
    checkout.git(&["rm", "--quiet", "first"]);
    checkout.worktree().commit("all").unwrap().unwrap();
    assert_eq!(checkout.git(&["ls-files"]), "staged");
}

/// A checkout with one staged, one changed, one removed and one untracked file, and a remote that is ahead.
fn messy() -> Checkout {
    let checkout = Checkout::of_one_commit();
    checkout.write("second", "2");
    checkout.write(".gitignore", "*.tmp\nbuild/\n");
    checkout.worktree().commit("setup").unwrap();
    checkout.remote_commits("theirs");
    checkout.write("first", "changed");
    checkout.remove("second");
    checkout.write("staged", "");
    checkout.git(&["add", "staged"]);
    checkout.write("untracked", "");
    checkout
}

#[test]
fn a_mixed_reset_unstages_and_keeps_the_files() {
    let checkout = messy();
    let (head, files) = (checkout.worktree().head().unwrap(), checkout.files());
    checkout.worktree().reset(false).unwrap();
    assert_eq!((checkout.worktree().head().unwrap(), checkout.files()), (head, files));
    assert_eq!(checkout.git(&["diff", "--cached", "--name-only"]), "");
    assert_eq!(checkout.read("first").unwrap(), "changed");
}

#[test]
fn a_hard_reset_discards_tracked_edits_and_stays_at_head() {
    let checkout = messy();
    let head = checkout.worktree().head().unwrap();
    checkout.worktree().reset(true).unwrap();
    assert_eq!(checkout.worktree().head().unwrap(), head, "not the commit of the remote");
    assert_eq!(checkout.files(), [".gitignore", "first", "second", "untracked"]);
    assert_eq!(checkout.read("first").unwrap(), "first");
    assert_eq!(checkout.git(&["status", "--porcelain"]), "?? untracked");
}

#[rstest]
#[case::mixed(false, &["dir/", "dir/staged", "untracked"])]
#[case::hard(true, &["untracked"])]
fn before_the_first_commit_a_reset_goes_to_nothing(#[case] hard: bool, #[case] left: &[&str]) {
    let checkout = Checkout::new();
    checkout.worktree();
    checkout.write("dir/staged", "");
    checkout.git(&["add", "."]);
    checkout.write("untracked", "");
    checkout.worktree().reset(hard).unwrap();
    assert_eq!(checkout.git(&["ls-files"]), "");
    assert_eq!(checkout.files(), left);
}

#[test]
fn a_clean_leaves_what_head_has_and_what_is_ignored() {
    let checkout = messy();
    for file in ["new/deep/file", "mixed/untracked", "mixed/x.tmp", "build/out", "São Paulo/x"] {
        checkout.write(file, "");
    }
    for directory in ["empty/deep", "build/empty", "nested"] {
        std::fs::create_dir_all(checkout.path().join(directory)).unwrap();
    }
    let nested = checkout.path().join("nested");
    crate::git_remote::git(&nested, &["init", "--quiet"]);
    checkout.write("nested/file", "");
    std::os::unix::fs::symlink(checkout.remote.root(), checkout.path().join("link")).unwrap();
    checkout.worktree().clean().unwrap();
    let files = checkout.files();
    let ours: Vec<_> = files.iter().filter(|file| !file.starts_with("nested/")).collect();
    assert_eq!(
        ours,
        [".gitignore", "build/", "build/empty/", "build/out", "first", "mixed/", "mixed/x.tmp", "second"]
    );
    assert!(files.contains(&"nested/file".to_owned()), "a repository of its own is not ours to remove");
    assert_eq!(checkout.read("first").unwrap(), "first");
    assert!(checkout.remote.bare().exists(), "links are not followed");
}

#[test]
fn a_clean_before_the_first_commit_removes_no_file() {
    let checkout = Checkout::new();
    checkout.worktree();
    checkout.write("dir/staged", "");
    checkout.git(&["add", "."]);
    checkout.write("untracked/deep", "");
    let (category, text) = failure(checkout.worktree().clean());
    assert!(category == "ValidationError" && text.contains("has no commit yet"), "{text}");
    assert_eq!(checkout.files(), ["dir/", "dir/staged", "untracked/", "untracked/deep"]);
}

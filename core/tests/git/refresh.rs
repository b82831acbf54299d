use declarest_core::repository::{Kept, Refreshed, SyncState};
use rstest::rstest;

use crate::checkout::{Checkout, deadline};
use crate::git_remote::git;

fn refresh(checkout: &Checkout) -> Refreshed {
    checkout.worktree().refresh(deadline()).unwrap()
}

#[test]
fn an_empty_checkout_takes_everything() {
    let checkout = Checkout::new();
    let there = checkout.remote_commits("a/b/resource.yaml");
    let to = there.parse().unwrap();
    assert_eq!(refresh(&checkout), Refreshed::FastForwarded { from: None, to });
    assert_eq!(checkout.files(), ["a/", "a/b/", "a/b/resource.yaml"]);
    assert_eq!(checkout.git(&["status", "--porcelain=v1", "--branch"]), "## main");
    assert_eq!(refresh(&checkout), Refreshed::UpToDate);
}

#[test]
fn a_clean_checkout_that_is_behind_follows() {
    let checkout = Checkout::of_one_commit();
    let from = checkout.worktree().head().unwrap();
    checkout.remote.write("second", "2").remove("first");
    let there = checkout.remote.commit("second");
    checkout.remote.push();
    checkout.write("ignored.txt", "mine");
    checkout.write(".git/info/exclude", "ignored.txt");
    let to = there.parse().unwrap();
    assert_eq!(refresh(&checkout), Refreshed::FastForwarded { from, to });
    assert_eq!(checkout.files(), ["ignored.txt", "second"]);
    assert_eq!(checkout.git(&["status", "--porcelain=v1"]), "");
    assert_eq!(checkout.git(&["rev-parse", "HEAD"]), there);
}

#[rstest]
#[case::untracked("new", Kept::Uncommitted)]
#[case::changed("first", Kept::Uncommitted)]
#[case::in_the_way("second", Kept::Uncommitted)]
fn a_dirty_checkout_stays(#[case] file: &str, #[case] reason: Kept) {
    let checkout = Checkout::of_one_commit();
    let head = checkout.worktree().head().unwrap();
    let there = checkout.remote_commits("second");
    checkout.write(file, "mine");
    assert_eq!(refresh(&checkout), Refreshed::Kept(reason));
    assert_eq!(checkout.read(file).unwrap(), "mine");
    assert_eq!(checkout.worktree().head().unwrap(), head);
    assert_eq!(checkout.git(&["rev-parse", "origin/main"]), there, "it was fetched all the same");
}

#[test]
fn an_unborn_branch_with_files_stays() {
    let checkout = Checkout::new();
    checkout.remote_commits("first");
    checkout.worktree();
    checkout.write("first", "mine");
    assert_eq!(refresh(&checkout), Refreshed::Kept(Kept::Uncommitted));
    assert_eq!(checkout.read("first").unwrap(), "mine");
}

#[test]
fn own_commits_are_never_merged_nor_lost() {
    let checkout = Checkout::of_one_commit();
    let mine = checkout.commits("mine");
    assert_eq!(refresh(&checkout), Refreshed::Kept(Kept::Ahead));
    checkout.remote_commits("theirs");
    assert_eq!(refresh(&checkout), Refreshed::Kept(Kept::Diverged));
    assert_eq!(checkout.worktree().head().unwrap(), Some(mine));
    assert_eq!(checkout.files(), ["first", "mine"]);
}

#[test]
fn a_rewritten_remote_is_seen_but_not_followed() {
    let checkout = Checkout::of_one_commit();
    let base = checkout.worktree().head().unwrap().unwrap();
    checkout.remote_commits("second");
    refresh(&checkout);
    let second = checkout.worktree().head().unwrap();
    checkout.remote.reset_to(base.as_str()).write("other", "2");
    let rewritten = checkout.remote.commit("rewritten");
    checkout.remote.force_push();
    assert_eq!(refresh(&checkout), Refreshed::Kept(Kept::Diverged));
    assert_eq!(checkout.worktree().head().unwrap(), second);
    assert_eq!(checkout.git(&["rev-parse", "origin/main"]), rewritten);
    assert_eq!(checkout.worktree().status_offline().unwrap().state, SyncState::Diverged);
}

#[rstest]
#[case::branch(&["checkout", "--quiet", "-b", "work"])]
#[case::detached(&["checkout", "--quiet", "--detach"])]
fn another_branch_stays(#[case] command: &[&str]) {
    let checkout = Checkout::of_one_commit();
    checkout.git(command);
    let main = checkout.git(&["rev-parse", "main"]);
    checkout.remote_commits("second");
    assert_eq!(refresh(&checkout), Refreshed::Kept(Kept::OtherBranch));
    assert_eq!((checkout.git(&["rev-parse", "main"]), checkout.files()), (main, vec!["first".to_owned()]));
}

#[test]
fn nothing_to_take() {
    let checkout = Checkout::new();
    assert_eq!(refresh(&checkout), Refreshed::BranchMissing);
    assert_eq!(checkout.without_remote().refresh(deadline()).unwrap(), Refreshed::NoRemote);
}

#[test]
fn only_the_one_branch_is_fetched() {
    let checkout = Checkout::of_one_commit();
    git(&checkout.remote.work_tree(), &["push", "--quiet", "origin", "main:other", "main:refs/tags/v1"]);
    checkout.remote_commits("second");
    refresh(&checkout);
    let refs = checkout.git(&["for-each-ref", "--format=%(refname)"]);
    assert_eq!(refs, "refs/heads/main\nrefs/remotes/origin/main");
}

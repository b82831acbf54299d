use std::time::Instant;

use declarest_core::repository::SyncState;
use rstest::rstest;

use crate::checkout::{Checkout, deadline, failure};

/// Commits that both sides share, and then each of its own.
#[rstest]
#[case::both_empty(0, 0, 0, SyncState::UpToDate)]
#[case::same(2, 0, 0, SyncState::UpToDate)]
#[case::remote_empty(0, 2, 0, SyncState::Ahead)]
#[case::local_unborn(0, 0, 2, SyncState::Behind)]
#[case::ahead(1, 2, 0, SyncState::Ahead)]
#[case::behind(1, 0, 2, SyncState::Behind)]
#[case::diverged(1, 1, 2, SyncState::Diverged)]
#[case::unrelated(0, 2, 1, SyncState::Diverged)]
fn states(#[case] shared: usize, #[case] ahead: usize, #[case] behind: usize, #[case] state: SyncState) {
    let checkout = Checkout::new();
    for number in 0..shared {
        checkout.remote_commits(&format!("shared{number}"));
    }
    checkout.worktree().refresh(deadline()).unwrap();
    for number in 0..ahead {
        checkout.commits(&format!("local{number}"));
    }
    for number in 0..behind {
        checkout.remote_commits(&format!("remote{number}"));
    }
    let status = checkout.worktree().status(deadline()).unwrap();
    assert_eq!((status.state, status.ahead, status.behind), (state, ahead, behind));
    assert!(!status.has_uncommitted());
}

#[test]
fn without_remote_there_is_nothing_to_compare_with() {
    let checkout = Checkout::of_one_commit();
    checkout.write("new", "");
    let worktree = checkout.without_remote();
    for status in [worktree.status(deadline()).unwrap(), worktree.status_offline().unwrap()] {
        assert_eq!((status.state, status.ahead, status.behind), (SyncState::NoRemote, 0, 0));
        assert!(status.has_uncommitted());
    }
}

#[test]
fn a_branch_that_the_remote_lost_counts_as_no_commits() {
    let checkout = Checkout::of_one_commit();
    crate::git_remote::git(&checkout.remote.bare(), &["update-ref", "-d", "refs/heads/main"]);
    let offline = checkout.worktree().status_offline().unwrap();
    assert_eq!(offline.state, SyncState::UpToDate);
    let status = checkout.worktree().status(deadline()).unwrap();
    assert_eq!((status.state, status.ahead), (SyncState::Ahead, 1));
    assert_eq!(checkout.git(&["for-each-ref", "refs/remotes"]), "");
}

#[test]
fn where_the_branch_is_missing_here_head_is_compared() {
    let checkout = Checkout::of_one_commit();
    checkout.git(&["checkout", "--quiet", "-b", "work"]);
    checkout.git(&["branch", "--quiet", "-D", "main"]);
    checkout.commits("mine");
    let status = checkout.worktree().status(deadline()).unwrap();
    assert_eq!((status.state, status.ahead), (SyncState::Ahead, 1));
    checkout.git(&["checkout", "--quiet", "--detach"]);
    let status = checkout.worktree().status(deadline()).unwrap();
    assert_eq!((status.state, status.ahead), (SyncState::Ahead, 1));
    checkout.git(&["branch", "--quiet", "main", "HEAD~1"]);
    let status = checkout.worktree().status(deadline()).unwrap();
    assert_eq!((status.state, status.ahead), (SyncState::UpToDate, 0));
}

#[test]
fn a_status_changes_no_file_and_no_branch() {
    let checkout = Checkout::of_one_commit();
    let before = (checkout.files(), checkout.git(&["rev-parse", "main"]));
    let there = checkout.remote_commits("second");
    checkout.worktree().status(deadline()).unwrap();
    assert_eq!((checkout.files(), checkout.git(&["rev-parse", "main"])), before);
    assert_eq!(checkout.git(&["rev-parse", "origin/main"]), there);
}

#[test]
fn the_offline_status_and_cleanliness_need_no_remote() {
    let checkout = Checkout::of_one_commit();
    checkout.remote_commits("second");
    std::fs::remove_dir_all(checkout.remote.bare()).unwrap();
    let worktree = checkout.worktree();
    assert_eq!(worktree.status_offline().unwrap().state, SyncState::UpToDate);
    worktree.require_clean().unwrap();
    assert_eq!(failure(worktree.status(deadline())).0, "NotFoundError");
}

#[test]
fn every_uncommitted_file_is_listed() {
    let checkout = Checkout::of_one_commit();
    for file in ["changed", "deleted", "staged", "both", "typed", "gone", "a/same"] {
        checkout.write(file, "1");
    }
    checkout.write(".gitignore", "ignored\n*.tmp\n");
    checkout.worktree().commit("more").unwrap();
    checkout.worktree().require_clean().unwrap();
    for file in ["ignored/file", "a/x.tmp"] {
        checkout.write(file, "");
    }
    checkout.worktree().require_clean().unwrap();
    for file in ["changed", "staged", "both", "new/deep/file", "new/São Paulo", "added"] {
        checkout.write(file, "22");
    }
    checkout.git(&["add", "staged", "both", "added"]);
    checkout.write("both", "333");
    checkout.git(&["rm", "--quiet", "--cached", "gone"]);
    for file in ["deleted", "typed"] {
        checkout.remove(file);
    }
    std::os::unix::fs::symlink("first", checkout.path().join("typed")).unwrap();
    let status = checkout.worktree().status(deadline()).unwrap();
    let lines = status
        .files
        .iter()
        .map(|file| format!("{}{} {}", file.staging.code(), file.worktree.code(), file.path));
    assert_eq!(
        lines.collect::<Vec<_>>(),
        [
            "A  added", "MM both", " M changed", " D deleted", "D? gone", "?? new/São Paulo",
            "?? new/deep/file", "M  staged", " T typed",
        ]
    );
    assert!(status.has_uncommitted() && checkout.worktree().require_clean().is_err());
}

#[test]
fn changes_are_refused_where_something_is_uncommitted_unless_nothing_ever_was_committed() {
    let checkout = Checkout::new();
    checkout.worktree();
    for number in 0..7 {
        checkout.write(&format!("f{number}"), "");
    }
    checkout.worktree().require_clean().unwrap();
    checkout.worktree().commit("all").unwrap();
    checkout.worktree().require_clean().unwrap();
    for number in 0..7 {
        checkout.write(&format!("f{number}"), "changed");
    }
    let (category, text) = failure(checkout.worktree().require_clean());
    assert_eq!(category, "ValidationError");
    assert!(
        text.ends_with(
            "has uncommitted changes (f0, f1, f2, f3, f4 and 2 more); commit or discard them first"
        ),
        "{text}"
    );
}

#[test]
fn a_passed_deadline_ends_a_status() {
    let checkout = Checkout::of_one_commit();
    checkout.remote_commits("second");
    let (category, text) = failure(checkout.worktree().status(Instant::now()));
    assert_eq!(category, "TransportError");
    assert!(text.ends_with("fetching branch \"main\" was cancelled because it took too long"), "{text}");
}

use declarest_core::repository::{Remote, RemoteAuth, RemoteUrl, Worktree, WorktreeSettings};
use rstest::rstest;

use crate::checkout::{Checkout, deadline, failure};
use crate::git_remote::git;

#[test]
fn init_makes_the_directory_and_records_the_remote_again_and_again() {
    let checkout = Checkout::new();
    for _ in 0..2 {
        let worktree = Worktree::init(checkout.settings()).unwrap();
        assert_eq!(worktree.head().unwrap(), None);
        assert_eq!(worktree.directory(), checkout.path());
        assert_eq!(checkout.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
        assert_eq!(checkout.git(&["remote", "get-url", "origin"]), checkout.remote.file_url());
    }
    let kept = checkout.commits("a");
    assert_eq!(Worktree::init(checkout.settings()).unwrap().head().unwrap(), Some(kept));
}

#[test]
fn a_new_repository_starts_on_the_configured_branch() {
    let checkout = Checkout::new();
    let url = RemoteUrl::parse("git@h.test:a.git").unwrap();
    checkout.worktree_with(Remote::new(url, "env/prod", RemoteAuth::None));
    assert_eq!(checkout.git(&["symbolic-ref", "HEAD"]), "refs/heads/env/prod");
}

#[test]
fn without_remote_it_starts_on_main_and_keeps_an_origin_that_is_there() {
    let checkout = Checkout::new();
    Worktree::init(WorktreeSettings { remote: None, ..checkout.settings() }).unwrap();
    assert_eq!(checkout.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    checkout.git(&["remote", "add", "origin", "https://h.test/theirs"]);
    Worktree::init(WorktreeSettings { remote: None, ..checkout.settings() }).unwrap();
    assert_eq!(checkout.git(&["remote", "get-url", "origin"]), "https://h.test/theirs");
}

#[test]
fn auto_init_may_be_off_but_not_for_an_explicit_init() {
    let checkout = Checkout::new();
    let settings = WorktreeSettings { auto_init: false, ..checkout.settings() };
    let (category, text) = failure(Worktree::open(settings.clone()));
    assert_eq!(category, "NotFoundError");
    assert!(text.contains("is not a Git repository; run `declarest repository init`"), "{text}");
    std::fs::create_dir(checkout.path()).unwrap();
    assert_eq!(failure(Worktree::open(settings.clone())).0, "NotFoundError");
    Worktree::init(settings.clone()).unwrap();
    Worktree::open(settings).unwrap();
}

#[test]
fn a_repository_above_is_not_taken_for_the_checkout() {
    let checkout = Checkout::new();
    let inner = checkout.worktree().directory().join("inner");
    std::fs::create_dir(&inner).unwrap();
    let settings = WorktreeSettings { directory: inner.clone(), auto_init: false, ..checkout.settings() };
    assert_eq!(failure(Worktree::open(settings.clone())).0, "NotFoundError");
    Worktree::init(settings).unwrap();
    assert!(inner.join(".git").is_dir());
}

#[test]
fn what_is_no_checkout_is_refused() {
    let checkout = Checkout::new();
    std::fs::write(checkout.path(), "a file").unwrap();
    let (category, text) = failure(Worktree::open(checkout.settings()));
    assert_eq!((category, text.ends_with("is not a directory")), ("ValidationError", true), "{text}");

    let checkout = Checkout::new();
    checkout.worktree();
    checkout.git(&["config", "core.bare", "true"]);
    let (category, text) = failure(Worktree::open(checkout.settings()));
    assert_eq!((category, text.contains("is a bare Git repository")), ("ValidationError", true), "{text}");

    let checkout = Checkout::new();
    checkout.write(".git", "noise");
    assert_eq!(failure(Worktree::open(checkout.settings())).0, "InternalError");

    let checkout = Checkout::new();
    let url = RemoteUrl::parse("https://h.test/a").unwrap();
    let remote = Some(Remote::new(url, "a..b", RemoteAuth::None));
    let (category, text) = failure(Worktree::open(WorktreeSettings { remote, ..checkout.settings() }));
    assert_eq!((category, text.as_str()), ("ValidationError", "\"a..b\" is not a legal branch name"));
}

#[rstest]
#[case::init("init")]
#[case::status("status")]
#[case::refresh("refresh")]
#[case::push("push")]
fn the_address_of_origin_follows_the_configuration(#[case] command: &str) {
    let checkout = Checkout::of_one_commit();
    checkout.git(&["remote", "set-url", "origin", "https://user:hunter2@h.test/a"]);
    match command {
        "init" => drop(Worktree::init(checkout.settings()).unwrap()),
        "status" => drop(checkout.worktree().status(deadline()).unwrap()),
        "refresh" => drop(checkout.worktree().refresh(deadline()).unwrap()),
        _ => drop(checkout.worktree().push(false, deadline()).unwrap()),
    }
    assert_eq!(checkout.git(&["remote", "get-url", "origin"]), checkout.remote.file_url());
    assert!(!git(&checkout.path(), &["config", "--list", "--local"]).contains("hunter2"));
}

use std::os::unix::fs::PermissionsExt;

use declarest_core::repository::{Remote, RemoteAuth, RemoteUrl, SyncState};
use rstest::rstest;

use crate::checkout::{Checkout, deadline, failure};
use crate::git_http::GitHttp;
use crate::git_remote::git;

const HINT: &str = "; refresh, reconcile, push again";

/// The remote over HTTP; every client may push.
fn over_http(checkout: &Checkout) -> (GitHttp, Remote) {
    git(&checkout.remote.bare(), &["config", "http.receivepack", "true"]);
    let server = GitHttp::start(checkout.remote.root(), None);
    let url = RemoteUrl::parse(&server.url("desired.git")).unwrap();
    (server, Remote::new(url, "main", RemoteAuth::None))
}

fn there(checkout: &Checkout, branch: &str) -> String {
    git(&checkout.remote.bare(), &["rev-parse", branch])
}

#[rstest]
#[case::file(false)]
#[case::http(true)]
fn a_push_takes_the_commits_there(#[case] http: bool) {
    let checkout = Checkout::of_one_commit();
    let http = http.then(|| over_http(&checkout));
    let worktree = match &http {
        Some((_, remote)) => checkout.worktree_with(remote.clone()),
        None => checkout.worktree(),
    };
    let head = checkout.commits("mine");
    let pushed = worktree.push(false, deadline()).unwrap();
    assert_eq!((pushed.revision, pushed.up_to_date), (head.clone(), false));
    assert_eq!(there(&checkout, "main"), head.as_str());
    assert_eq!(worktree.status_offline().unwrap().state, SyncState::UpToDate);
    let pushed = worktree.push(false, deadline()).unwrap();
    assert_eq!((pushed.revision, pushed.up_to_date), (head, true));
}

#[test]
fn a_push_starts_an_empty_remote() {
    let checkout = Checkout::new();
    checkout.worktree();
    let head = checkout.commits("mine");
    checkout.worktree().push(false, deadline()).unwrap();
    assert_eq!(there(&checkout, "main"), head.as_str());
}

#[test]
fn the_branches_may_have_different_names() {
    let checkout = Checkout::of_one_commit();
    checkout.git(&["checkout", "--quiet", "-b", "work"]);
    let head = checkout.commits("mine");
    checkout.worktree().push(false, deadline()).unwrap();
    assert_eq!(there(&checkout, "main"), head.as_str());
    assert_eq!(git(&checkout.remote.bare(), &["for-each-ref", "--format=%(refname)"]), "refs/heads/main");
}

#[rstest]
#[case::unfetched_over_file(false, false)]
#[case::unfetched_over_http(true, false)]
#[case::fetched_over_file(false, true)]
#[case::fetched_over_http(true, true)]
fn a_push_that_would_lose_commits_needs_force(#[case] http: bool, #[case] fetched: bool) {
    let checkout = Checkout::of_one_commit();
    let http = http.then(|| over_http(&checkout));
    let worktree = match &http {
        Some((_, remote)) => checkout.worktree_with(remote.clone()),
        None => checkout.worktree(),
    };
    let theirs = checkout.remote_commits("theirs");
    let mine = checkout.commits("mine");
    if fetched {
        worktree.refresh(deadline()).unwrap();
    }
    let (category, text) = failure(worktree.push(false, deadline()));
    assert_eq!((category, text.ends_with(HINT)), ("ConflictError", true), "{text}");
    assert!(text.contains(" rejected the push to branch \"main\": cannot push "), "{text}");
    assert_eq!(there(&checkout, "main"), theirs);
    worktree.push(true, deadline()).unwrap();
    assert_eq!(there(&checkout, "main"), mine.as_str());
}

/// The remote itself refuses, reference by reference, in an answer that is otherwise a success.
#[rstest]
#[case::hook("pre-receive", false, "pre-receive hook declined")]
#[case::update("update", false, "hook declined")]
#[case::force("denied", true, "non-fast-forward")]
fn what_the_remote_refuses_is_a_failure(#[case] rule: &str, #[case] force: bool, #[case] reason: &str) {
    let checkout = Checkout::of_one_commit();
    let (_server, remote) = over_http(&checkout);
    let before = checkout.remote_commits("theirs");
    if force {
        git(&checkout.remote.bare(), &["config", "receive.denyNonFastForwards", "true"]);
    } else {
        let hook = checkout.remote.bare().join("hooks").join(rule);
        std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
        std::fs::write(&hook, "#!/bin/sh\nexit 1\n").unwrap();
        std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
        checkout.worktree().refresh(deadline()).unwrap();
    }
    checkout.commits("mine");
    let worktree = checkout.worktree_with(remote);
    let (category, text) = failure(worktree.push(force, deadline()));
    assert_eq!(category, "ConflictError", "{text}");
    assert!(text.contains(&format!("rejected the push to branch \"main\": {reason}{HINT}")), "{text}");
    assert_eq!(there(&checkout, "main"), before);
    assert_ne!(worktree.status_offline().unwrap().state, SyncState::UpToDate, "nothing was pushed");
}

#[test]
fn what_cannot_be_pushed_says_why() {
    let checkout = Checkout::new();
    let (category, text) = failure(checkout.worktree().push(false, deadline()));
    assert_eq!(category, "ValidationError");
    assert!(text.ends_with("branch \"main\" has no commit yet"), "{text}");
    checkout.commits("mine");
    checkout.git(&["checkout", "--quiet", "--detach"]);
    let (category, text) = failure(checkout.worktree().push(false, deadline()));
    assert_eq!(category, "ValidationError");
    assert!(text.ends_with("HEAD is detached; check out a branch first"), "{text}");
    let (category, text) = failure(checkout.without_remote().push(false, deadline()));
    assert_eq!(category, "ValidationError");
    assert!(text.ends_with("no remote is configured"), "{text}");
}

#[rstest]
#[case::down(Some(503), "TransportError")]
#[case::forbidden(Some(403), "AuthError")]
#[case::hidden(Some(404), "NotFoundError")]
#[case::unauthorised(None, "AuthError")]
fn a_push_that_does_not_arrive(#[case] status: Option<u16>, #[case] expected: &str) {
    let checkout = Checkout::of_one_commit();
    checkout.commits("mine");
    let server = GitHttp::start(checkout.remote.root(), Some("hunter2"));
    server.set_failure(status);
    let url = RemoteUrl::parse(&server.url("desired.git")).unwrap();
    let auth = RemoteAuth::Token { user: None, token: "hunter3".to_owned().into() };
    let worktree = checkout.worktree_with(Remote::new(url, "main", auth));
    let (category, text) = failure(worktree.push(false, deadline()));
    assert_eq!(category, expected, "{text}");
    assert!(text.contains(&server.url("desired.git")) && !text.contains("hunter"), "{text}");
}

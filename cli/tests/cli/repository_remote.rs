//! `repository` commands on a checkout and its remote.

use rstest::rstest;

use crate::environment::Home;
use crate::git::{WITH_REMOTE, exists, git, home_with_remote, pushed_by_another};

fn status(home: &Home) -> String {
    let run = home.run(&["repository", "status"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run}");
    run.stdout.trim_end().to_owned()
}

fn commit(home: &Home, file: &str, content: &str) {
    home.write(&format!("work/{file}"), content);
    let run = home.run(&["repository", "commit", "-m", &format!("write {file}")]);
    assert_eq!(run.code, 0, "{run}");
}

#[test]
fn from_nothing_to_a_push() {
    let home = home_with_remote();
    insta::assert_snapshot!(home.run(&["repository", "init"]), @r"
    exit 0
    --- stdout
    --- stderr
    ");
    let origin = git(&home.path("work"), &["remote", "get-url", "origin"]);
    assert_eq!(origin, format!("file://{}", home.path("origin.git").display()));
    assert_eq!(status(&home), "type=git state=up_to_date ahead=0 behind=0 hasUncommitted=false");
    commit(&home, "shops/rio/resource.json", "{}");
    assert_eq!(status(&home), "type=git state=ahead ahead=1 behind=0 hasUncommitted=false");
    insta::assert_snapshot!(home.run(&["repository", "push"]), @r"
    exit 0
    --- stdout
    --- stderr
    ");
    let head = git(&home.path("work"), &["rev-parse", "HEAD"]);
    assert_eq!(git(&home.path("origin.git"), &["rev-parse", "main"]), head);
    assert_eq!(status(&home), "type=git state=up_to_date ahead=0 behind=0 hasUncommitted=false");
    let again = home.run(&["repository", "push", "-v"]);
    assert_eq!((again.code, again.stderr), (0, format!("verbose: the remote is already at {head}\n")));
}

#[test]
fn a_push_needs_a_commit() {
    let home = home_with_remote();
    insta::assert_snapshot!(home.run(&["repository", "push"]), @r#"
    exit 2
    --- stdout
    --- stderr
    cannot push <home>/work: branch "main" has no commit yet
    "#);
}

#[test]
fn a_refresh_takes_what_others_pushed() {
    let home = home_with_remote();
    pushed_by_another(&home, "shops/rio/resource.json", "{}");
    insta::assert_snapshot!(home.run(&["repository", "refresh"]), @r"
    exit 0
    --- stdout
    --- stderr
    ");
    assert_eq!(home.read("work/shops/rio/resource.json"), "{}");
    pushed_by_another(&home, "shops/ava/resource.json", "[]");
    assert_eq!(status(&home), "type=git state=behind ahead=0 behind=1 hasUncommitted=false");
    assert!(!exists(&home, "work/shops/ava"));
    assert_eq!(home.run(&["repository", "refresh"]).code, 0);
    assert_eq!(home.read("work/shops/ava/resource.json"), "[]");
    assert_eq!(status(&home), "type=git state=up_to_date ahead=0 behind=0 hasUncommitted=false");
}

#[test]
fn a_refresh_touches_no_uncommitted_work() {
    let home = home_with_remote();
    pushed_by_another(&home, "a", "1");
    assert_eq!(home.run(&["repository", "refresh"]).code, 0);
    pushed_by_another(&home, "b", "1");
    home.write("work/a", "mine");
    insta::assert_snapshot!(home.run(&["repository", "refresh"]), @r"
    exit 0
    --- stdout
    --- stderr
    fetched, but the files were not changed: there are uncommitted changes; commit or discard them, then refresh again
    ");
    assert_eq!(home.read("work/a"), "mine");
    assert!(!exists(&home, "work/b"));
    insta::assert_snapshot!(home.run(&["repository", "status", "-v"]), @r"
    exit 0
    --- stdout
    type=git state=behind ahead=0 behind=1 hasUncommitted=true
    worktree:
     M a
    --- stderr
    ");
}

#[test]
fn diverged() {
    let home = home_with_remote();
    pushed_by_another(&home, "a", "1");
    assert_eq!(home.run(&["repository", "refresh"]).code, 0);
    pushed_by_another(&home, "b", "theirs");
    commit(&home, "b", "mine");
    insta::assert_snapshot!(home.run(&["repository", "status", "-o", "yaml"]), @r"
    exit 0
    --- stdout
    ahead: 1
    behind: 1
    hasUncommitted: false
    state: diverged
    --- stderr
    ");
    let refreshed = home.run(&["repository", "refresh"]);
    assert_eq!(refreshed.code, 0);
    assert!(refreshed.stderr.contains("merge or rebase with git"), "{refreshed}");
    assert_eq!(home.read("work/b"), "mine");
    let rejected = home.run(&["repository", "push"]);
    assert_eq!(rejected.code, 5, "{rejected}");
    assert!(rejected.stderr.contains("refresh, reconcile, push again"), "{rejected}");
    assert_eq!(git(&home.path("origin.git"), &["show", "main:b"]), "theirs");
    insta::assert_snapshot!(home.run(&["repository", "push", "--force-push"]), @r"
    exit 0
    --- stdout
    --- stderr
    ");
    assert_eq!(git(&home.path("origin.git"), &["show", "main:b"]), "mine");
}

#[test]
fn offline_is_what_was_last_seen() {
    let home = home_with_remote();
    pushed_by_another(&home, "a", "1");
    assert_eq!(home.run(&["repository", "refresh"]).code, 0);
    pushed_by_another(&home, "b", "1");
    let offline = home.run(&["repository", "status", "--offline"]);
    assert_eq!(offline.stdout, "type=git state=up_to_date ahead=0 behind=0 hasUncommitted=false\n");
    std::fs::remove_dir_all(home.path("origin.git")).unwrap();
    assert_eq!(home.run(&["repository", "status", "--offline"]).code, 0);
}

#[test]
fn a_refresh_reports_a_missing_branch() {
    let home = home_with_remote();
    insta::assert_snapshot!(home.run(&["repository", "refresh"]), @r#"
    exit 0
    --- stdout
    --- stderr
    the remote has no branch "main" yet; nothing was fetched
    "#);
}

#[rstest]
#[case(&["repository", "status"])]
#[case(&["repository", "refresh"])]
#[case(&["repository", "push"])]
fn a_remote_that_is_not_there(#[case] args: &[&str]) {
    let home = Home::with_catalogue(WITH_REMOTE);
    commit(&home, "a", "1");
    let run = home.run(args);
    assert_eq!((run.code, run.stdout.as_str()), (3, ""), "{run}");
    assert!(run.stderr.contains("origin.git"), "{run}");
}

#[test]
fn a_remote_that_does_not_answer() {
    // Nothing listens on a port that was just given back.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/r.git");
    let home = Home::with_catalogue(&WITH_REMOTE.replace("file://<home>/origin.git", &url));
    let run = home.run(&["repository", "status"]);
    assert_eq!((run.code, run.stdout.as_str()), (6, ""), "{run}");
    assert!(run.stderr.starts_with(&format!("repository {url}: ")), "{run}");
}

#[test]
fn another_branch() {
    let catalogue = WITH_REMOTE.replace("origin.git'", "origin.git', branch: live");
    let home = home_with_remote();
    home.write(".declarest/configs/contexts.yaml", &catalogue);
    commit(&home, "a", "1");
    assert_eq!(home.run(&["repository", "push"]).code, 0);
    assert_eq!(git(&home.path("origin.git"), &["show", "live:a"]), "1");
    assert_eq!(status(&home), "type=git state=up_to_date ahead=0 behind=0 hasUncommitted=false");
}

#[test]
fn a_commit_asks_for_no_credentials() {
    let catalogue = WITH_REMOTE
        .replace(
            "contexts:",
            "credentials: [{name: ops, username: alice, password: {prompt: true}}]\ncontexts:",
        )
        .replace(
            "file://<home>/origin.git'",
            "https://h.test/r.git', auth: {basic: {credentialsRef: {name: ops}}}",
        );
    let home = Home::with_catalogue(&catalogue);
    commit(&home, "a", "1");
    assert_eq!(home.run(&["repository", "status", "--offline"]).code, 0);
    let push = home.run(&["repository", "push"]);
    assert_eq!(push.code, 2, "{push}");
    assert!(push.stderr.contains(" without a terminal on standard input"), "{push}");
}

#[test]
fn a_refresh_does_not_overwrite_an_ignored_file() {
    let home = home_with_remote();
    pushed_by_another(&home, ".gitignore", "local.env\n");
    assert_eq!(home.run(&["repository", "refresh"]).code, 0);
    home.write("work/local.env", "mine");
    home.write("other/local.env", "theirs");
    git(&home.path("other"), &["add", "--force", "local.env"]);
    git(&home.path("other"), &["commit", "--quiet", "--message", "add it"]);
    git(&home.path("other"), &["push", "--quiet", "origin", "HEAD:main"]);
    let run = home.run(&["repository", "refresh"]);
    assert_ne!(run.code, 0, "{run}");
    assert_eq!(home.read("work/local.env"), "mine");
}

/// A first commit beside those of the remote could only be pushed by discarding them.
#[test]
fn a_new_checkout_does_not_begin_a_history_beside_that_of_its_remote() {
    let home = home_with_remote();
    pushed_by_another(&home, "shops/rio/resource.json", "{}");
    let save = ["resource", "save", "/shops/oslo", "-f", "{\"id\": 1}"];
    insta::assert_snapshot!(home.run(&save), @r#"
    exit 5
    --- stdout
    --- stderr
    [ERROR] command execution failed: <home>/work has no commit yet, and the branch "main" of its remote has some; run "declarest repository refresh" first.
    "#);
    assert!(!exists(&home, "work/shops"));
    assert_eq!(home.run(&["repository", "refresh"]).code, 0);
    assert_eq!(home.run(&save).code, 0);
    assert_eq!(git(&home.path("origin.git"), &["rev-list", "--count", "main"]), "2");
}

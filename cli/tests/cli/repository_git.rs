//! `repository` commands on checkouts, without a remote.

use rstest::rstest;

use crate::environment::Home;
use crate::git::{WITH_REMOTE, WITHOUT_REMOTE, exists, git, home_with_remote};

#[rstest]
#[case(&["repository", "status"])]
#[case(&["repository", "tree"])]
#[case(&["repository", "refresh"])]
#[case(&["repository", "commit", "-m", "x"])]
fn a_missing_checkout_is_made_unless_forbidden(#[case] args: &[&str]) {
    let home = Home::with_catalogue(WITHOUT_REMOTE);
    let run = home.run(args);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(git(&home.path("work"), &["symbolic-ref", "HEAD"]), "refs/heads/main");
    let forbidden = WITHOUT_REMOTE.replace("baseDir: <home>/work", "baseDir: <home>/work, autoInit: false");
    let home = Home::with_catalogue(&forbidden);
    let run = home.run(args);
    assert_eq!(run.code, 3, "{run}");
    let message = "<home>/work is not a Git repository; run `declarest repository init`, or allow autoInit";
    assert!(run.stderr.contains(message), "{run}");
    assert!(!exists(&home, "work/.git"));
    assert_eq!(home.run(&["repository", "init"]).code, 0);
    assert_eq!(home.run(args).code, 0);
}

#[test]
fn a_damaged_checkout_is_named() {
    let home = Home::with_catalogue(WITHOUT_REMOTE);
    assert_eq!(home.run(&["repository", "init"]).code, 0);
    std::fs::remove_file(home.path("work/.git/HEAD")).unwrap();
    insta::assert_snapshot!(home.run(&["repository", "status"]), @r"
    exit 1
    --- stdout
    --- stderr
    could not open <home>/work: its .git is incomplete; restore it, or move the directory away to start again
    ");
}

#[test]
fn the_lock_of_a_crashed_process_is_named() {
    let home = Home::with_catalogue(WITHOUT_REMOTE);
    assert_eq!(home.run(&["repository", "init"]).code, 0);
    home.write("work/a.txt", "");
    home.write("work/.git/index.lock", "");
    let run = home.run(&["repository", "commit", "-m", "x"]);
    assert_eq!(run.code, 1, "{run}");
    let message =
        "<home>/work/.git/index.lock exists; remove it if the process that created it has ended early";
    assert!(run.stderr.contains(message), "{run}");
}

#[test]
fn from_nothing_to_a_commit() {
    let home = Home::with_catalogue(WITHOUT_REMOTE);
    insta::assert_snapshot!(home.run(&["repository", "init"]), @r"
    exit 0
    --- stdout
    --- stderr
    ");
    home.write("work/shops/rio/resource.json", "{}");
    home.write("work/a b.txt", "");
    insta::assert_snapshot!(home.run(&["repository", "status"]), @r"
    exit 0
    --- stdout
    type=git state=no_remote remote=not_configured hasUncommitted=true
    --- stderr
    ");
    insta::assert_snapshot!(home.run(&["repository", "status", "-v"]), @r"
    exit 0
    --- stdout
    type=git state=no_remote remote=not_configured hasUncommitted=true
    worktree:
    ?? a b.txt
    ?? shops/rio/resource.json
    --- stderr
    ");
    insta::assert_snapshot!(home.run(&["repository", "commit", "-m", "the first"]), @r"
    exit 0
    --- stdout
    --- stderr
    [OK] command executed successfully.
    ");
    let shown = git(&home.path("work"), &["log", "--format=%an <%ae> %cn <%ce> %s", "--name-only"]);
    insta::assert_snapshot!(shown, @r"
    declarest <declarest@local> declarest <declarest@local> the first

    a b.txt
    shops/rio/resource.json
    ");
    insta::assert_snapshot!(home.run(&["repository", "status", "-v"]), @r"
    exit 0
    --- stdout
    type=git state=no_remote remote=not_configured hasUncommitted=false
    worktree=clean
    --- stderr
    ");
}

#[test]
fn a_commit_takes_removed_files_and_leaves_ignored_ones() {
    let home = Home::with_catalogue(WITHOUT_REMOTE);
    home.write("work/a", "1");
    home.write("work/b", "1");
    home.write("work/.gitignore", "*.tmp\n");
    home.write("work/c.tmp", "1");
    assert_eq!(home.run(&["repository", "commit", "-m", "one"]).code, 0);
    std::fs::remove_file(home.path("work/a")).unwrap();
    home.write("work/b", "2");
    insta::assert_snapshot!(home.run(&["repository", "status", "-v", "-o", "json"]), @r#"
    exit 0
    --- stdout
    {
      "state": "no_remote",
      "ahead": 0,
      "behind": 0,
      "hasUncommitted": true,
      "worktree": [
        {
          "path": "a",
          "staging": " ",
          "worktree": "D"
        },
        {
          "path": "b",
          "staging": " ",
          "worktree": "M"
        }
      ]
    }
    --- stderr
    "#);
    insta::assert_snapshot!(home.run(&["repository", "commit", "-m", "two", "-o", "json", "-n"]), @r#"
    exit 0
    --- stdout
    {
      "committed": true
    }
    --- stderr
    "#);
    let files = git(&home.path("work"), &["ls-tree", "-r", "--name-only", "HEAD"]);
    assert_eq!(files, ".gitignore\nb");
}

#[test]
fn nothing_to_commit_is_a_success() {
    let home = Home::with_catalogue(WITHOUT_REMOTE);
    insta::assert_snapshot!(home.run(&["repository", "commit", "-m", "x", "-o", "json"]), @r#"
    exit 0
    --- stdout
    {
      "committed": false
    }
    --- stderr
    [OK] command executed successfully.
    "#);
    insta::assert_snapshot!(home.run(&["repository", "commit", "-m", "x", "-v"]), @r"
    exit 0
    --- stdout
    --- stderr
    verbose: there is nothing to commit
    [OK] command executed successfully.
    ");
}

#[test]
fn a_commit_needs_a_message() {
    let home = Home::with_catalogue(WITHOUT_REMOTE);
    let run = home.run(&["repository", "commit"]);
    insta::assert_snapshot!(run, @r"
    exit 2
    --- stdout
    --- stderr
    [ERROR] command execution failed: message is required: give it with --message.
    ");
    insta::assert_snapshot!(home.run(&["repository", "commit", "-m", "  "]), @r"
    exit 2
    --- stdout
    --- stderr
    [ERROR] command execution failed: --message is blank; write a commit message.
    ");
    assert!(!exists(&home, "work"));
}

#[test]
fn without_a_remote_there_is_nowhere_to_push_to() {
    let home = Home::with_catalogue(WITHOUT_REMOTE);
    home.write("work/a", "1");
    assert_eq!(home.run(&["repository", "commit", "-m", "one"]).code, 0);
    insta::assert_snapshot!(home.run(&["repository", "push"]), @r"
    exit 2
    --- stdout
    --- stderr
    cannot push <home>/work: no remote is configured
    ");
    insta::assert_snapshot!(home.run(&["repository", "refresh", "-v"]), @r"
    exit 0
    --- stdout
    --- stderr
    verbose: no remote is configured
    ");
}

#[test]
fn a_bare_repository_or_a_file_is_no_checkout() {
    let home = Home::with_catalogue(WITHOUT_REMOTE);
    home.write("work", "a file");
    let run = home.run(&["repository", "status"]);
    assert_eq!((run.code, run.stderr.as_str()), (2, "repository root <home>/work is not a directory\n"));
}

/// A commit would lose the second parent, and could contain conflict markers.
#[rstest]
#[case::conflict("git merge --quiet side", &["repository", "commit", "-m", "x"])]
#[case::merged("git merge --quiet --no-commit --strategy=ours side", &["repository", "commit", "-m", "x"])]
#[case::clean("git merge --quiet --no-commit --strategy=ours side", &["resource", "save", "/b", "-f", "{}"])]
#[case::rebase("git rebase --quiet side", &["repository", "commit", "-m", "x"])]
fn an_unfinished_merge_is_not_committed(#[case] begun: &str, #[case] args: &[&str]) {
    let home = Home::with_catalogue(WITHOUT_REMOTE);
    let work = home.path("work");
    let commit = |content: &str| {
        home.write("work/a/resource.json", content);
        git(&work, &["add", "--all"]);
        git(&work, &["commit", "--quiet", "--message", content]);
    };
    assert_eq!(home.run(&["repository", "init"]).code, 0);
    commit("{}");
    git(&work, &["checkout", "--quiet", "-b", "side"]);
    commit(r#"{"side": 1}"#);
    git(&work, &["checkout", "--quiet", "main"]);
    commit(r#"{"main": 1}"#);
    let identity = "export GIT_COMMITTER_NAME=Bob GIT_COMMITTER_EMAIL=bob@test";
    // It ends with an error if there is a conflict.
    home.shell(&format!("{identity}; cd work && {begun}")).output().unwrap();
    let before = git(&work, &["log", "--all", "--format=%h %s"]);
    let run = home.run_with(args, &[("DECLAREST_IGNORE_WARNINGS", "1")], "");
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("has not ended; end or abort it with git first"), "{run}");
    assert_eq!(git(&work, &["log", "--all", "--format=%h %s"]), before);
    assert!(!exists(&home, "work/b"));
}

/// With `autoSync`, what is saved on another branch is not pushed to the branch that the operator applies.
#[test]
fn a_save_on_another_branch_is_not_pushed() {
    let home = home_with_remote();
    let catalogue = WITH_REMOTE.replace("origin.git'}", "origin.git', autoSync: true}");
    home.write(
        ".declarest/configs/contexts.yaml",
        &catalogue.replace("<home>", &home.path("").display().to_string()),
    );
    let save =
        |name: &str| home.run(&["resource", "save", &format!("/shops/{name}"), "-f", r#"{"id": "x"}"#]);
    let pushed = || git(&home.path("origin.git"), &["rev-list", "--count", "main"]);
    assert_eq!((save("rio").code, pushed().as_str()), (0, "1"));
    git(&home.path("work"), &["checkout", "--quiet", "-b", "feature"]);
    let run = save("lima");
    assert_eq!((run.code, pushed().as_str()), (0, "1"), "{run}");
    assert!(run.stderr.contains("not pushed"), "{run}");
}

/// After `git stash pop`, no merge is in progress.
#[test]
fn conflicts_are_not_committed() {
    let home = Home::with_catalogue(WITHOUT_REMOTE);
    assert_eq!(home.run(&["repository", "init"]).code, 0);
    let work = home.path("work");
    let commit = |content: &str| {
        home.write("work/a.txt", content);
        assert_eq!(home.run(&["repository", "commit", "-m", content]).code, 0);
    };
    commit("one");
    home.write("work/a.txt", "two");
    git(&work, &["stash", "--quiet"]);
    commit("three");
    let popped =
        std::process::Command::new("git").current_dir(&work).args(["stash", "pop", "--quiet"]).output();
    assert!(!popped.unwrap().status.success());
    let run = home.run(&["repository", "commit", "-m", "conflict"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("has conflicts"), "{run}");
}

/// Files outside of a sparse checkout would count as deleted.
#[test]
fn a_sparse_checkout_is_refused() {
    let home = Home::with_catalogue(WITHOUT_REMOTE);
    assert_eq!(home.run(&["repository", "init"]).code, 0);
    for file in ["shops/rio/resource.json", "users/ana/resource.json"] {
        home.write(&format!("work/{file}"), "{}");
    }
    assert_eq!(home.run(&["repository", "commit", "-m", "both"]).code, 0);
    git(&home.path("work"), &["sparse-checkout", "set", "shops"]);
    assert!(!exists(&home, "work/users/ana"));
    let run = home.run(&["repository", "commit", "-m", "sparse"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("git sparse-checkout disable"), "{run}");
    assert_eq!(home.run(&["resource", "save", "/shops/lima", "-f", r#"{"id": "lima"}"#]).code, 2);
}

/// A directory that has files before `autoInit` creates the checkout may also hold private files.
#[rstest]
#[case(&["resource", "save", "/shops/rio", "-f", r#"{"id": "rio"}"#])]
#[case(&["resource", "copy", "/shops/ava", "/shops/rio", "--override-attributes", "/id=rio"])]
fn the_first_commit_does_not_contain_other_files(#[case] args: &[&str]) {
    let home = Home::with_catalogue(WITHOUT_REMOTE);
    home.write("work/.env", "TOKEN=1");
    home.write("work/shops/_/metadata.yaml", "resource: {alias: /id}");
    home.write("work/shops/ava/resource.json", r#"{"id": "ava"}"#);
    let run = home.run(args);
    let message = "<home>/work has no commit yet, and the first one would contain files that declare neither \
                   resources nor metadata (.env); commit them with \"declarest repository commit\", move them away, \
                   or list them in .gitignore";
    assert!(run.code == 2 && run.stderr.contains(message), "{run}");
    assert!(!exists(&home, "work/shops/rio"));
    home.write("work/.gitignore", ".env\n");
    assert_eq!(home.run(args).code, 0);
    let files = git(&home.path("work"), &["ls-tree", "-r", "--name-only", "HEAD"]);
    let expected =
        [".gitignore", "shops/_/metadata.yaml", "shops/ava/resource.json", "shops/rio/resource.json"];
    assert_eq!(files.lines().collect::<Vec<_>>(), expected);
}

//! `repository reset`, `clean` and `check`.

use rstest::rstest;

use crate::environment::Home;
use crate::git::{WITHOUT_REMOTE, exists, git};

const FILESYSTEM: &str = "\
currentContext: dev
contexts:
- name: dev
  repository: {filesystem: {baseDir: <home>/work}}
  managedServer: {http: {url: 'https://api.test', auth: {customHeaders: [{header: K, value: v}]}}}
";

/// A checkout with a commit, and on top of it a staged change, an untracked file and an ignored one.
fn dirty() -> Home {
    let home = Home::with_catalogue(WITHOUT_REMOTE);
    home.write("work/a", "1");
    home.write("work/.gitignore", "*.tmp");
    assert_eq!(home.run(&["repository", "commit", "-m", "one"]).code, 0);
    home.write("work/a", "2");
    git(&home.path("work"), &["add", "a"]);
    home.write("work/new/b", "1");
    home.write("work/c.tmp", "1");
    home
}

fn porcelain(home: &Home) -> String {
    git(&home.path("work"), &["status", "--porcelain", "--ignored"])
}

#[rstest]
#[case(&["repository", "reset"], " M a\n?? new/\n!! c.tmp", "2")]
#[case(&["repository", "reset", "--hard"], "?? new/\n!! c.tmp", "1")]
#[case(&["repository", "clean"], "!! c.tmp", "1")]
fn what_is_discarded(#[case] args: &[&str], #[case] expected: &str, #[case] content: &str) {
    let home = dirty();
    assert_eq!(porcelain(&home), "M  a\n?? new/\n!! c.tmp");
    let run = home.run(args);
    assert_eq!(run.to_string(), "exit 0\n--- stdout\n--- stderr\n");
    assert_eq!((porcelain(&home).as_str(), home.read("work/a").as_str()), (expected, content));
    assert_eq!(exists(&home, "work/new"), expected.contains("new"));
}

/// A command that is killed while it writes leaves a temporary file.
#[test]
fn temporary_files_are_not_committed() {
    let home = Home::with_catalogue(WITHOUT_REMOTE);
    home.write("work/a", "1");
    assert_eq!(home.run(&["repository", "commit", "-m", "one"]).code, 0);
    home.write("work/new/.declarest-Xi2R0W", "half a pay");
    home.write("work/.declarest-secret-Xi2R0W", "");
    let status = home.run(&["repository", "status"]);
    assert!(status.stdout.contains("hasUncommitted=false"), "{status}");
    home.write("work/new/.declarest-other-file", "1");
    assert_eq!(home.run(&["repository", "commit", "-m", "two"]).code, 0);
    assert_eq!(git(&home.path("work"), &["ls-files"]), "a\nnew/.declarest-other-file");
    assert_eq!(home.run(&["repository", "clean"]).code, 0);
    assert_eq!(porcelain(&home), "");
}

/// Names of files are bytes on Unix.
#[test]
fn a_file_whose_name_is_not_utf_8_is_discarded() {
    let home = dirty();
    let name: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"caf\xe9");
    std::fs::write(home.path("work").join(name), "1").unwrap();
    let run = home.run(&["repository", "clean"]);
    assert_eq!(run.to_string(), "exit 0\n--- stdout\n--- stderr\n");
    assert_eq!(porcelain(&home), "!! c.tmp");
}

#[test]
fn before_the_first_commit_all_is_new() {
    let home = Home::with_catalogue(WITHOUT_REMOTE);
    home.write("work/a", "1");
    assert_eq!(home.run(&["repository", "reset", "--hard"]).code, 0);
    assert_eq!(home.read("work/a"), "1");
    let run = home.run(&["repository", "clean"]);
    assert!(run.code == 2 && run.stderr.contains("<home>/work has no commit yet, so all its files"), "{run}");
    assert_eq!(home.read("work/a"), "1");
}

#[rstest]
#[case(&["repository", "reset", "--hard"])]
#[case(&["repository", "clean"])]
fn a_plain_directory_stays_as_it_is(#[case] args: &[&str]) {
    let home = Home::with_catalogue(FILESYSTEM);
    home.write("work/a", "1");
    assert_eq!(home.run(args).to_string(), "exit 0\n--- stdout\n--- stderr\n");
    assert_eq!(home.read("work/a"), "1");
}

#[test]
fn check_needs_a_directory() {
    let home = Home::with_catalogue(FILESYSTEM);
    insta::assert_snapshot!(home.run(&["repository", "check"]), @r"
    exit 3
    --- stdout
    --- stderr
    repository root <home>/work does not exist
    ");
    home.write("work", "a file");
    insta::assert_snapshot!(home.run(&["repository", "check"]), @r"
    exit 2
    --- stdout
    --- stderr
    repository root <home>/work is not a directory
    ");
    assert_eq!(Home::with_catalogue(WITHOUT_REMOTE).run(&["repository", "check"]).code, 0);
}

#[rstest]
#[case(FILESYSTEM)]
#[case(WITHOUT_REMOTE)]
fn check_is_silent_where_all_is_well(#[case] catalogue: &str) {
    let home = Home::with_catalogue(catalogue);
    home.write("work/shops/_/metadata.yaml", "resource: {defaults: {value: '{{include defaults.yaml}}'}}");
    home.write("work/shops/_/defaults.yaml", "a: 1");
    home.write("work/shops/rio/resource.yaml", "a: 2");
    assert_eq!(home.run(&["repository", "check"]).to_string(), "exit 0\n--- stdout\n--- stderr\n");
}

#[test]
fn check_warns_about_what_has_no_effect() {
    let home = Home::with_catalogue(FILESYSTEM);
    for file in [
        "work/resource.yaml",
        "work/shops/_/metadata.yml",
        "work/shops/rio/defaults.yaml",
        "work/shops/rio/resource.yaml",
        "work/shops/rio/resource.json",
    ] {
        home.write(file, "");
    }
    insta::assert_snapshot!(home.run(&["repository", "check"]), @r"
    exit 0
    --- stdout
    --- stderr
    [WARNING] resource /shops/rio has several payload files (shops/rio/resource.json, shops/rio/resource.yaml); keep one of them
    [WARNING] resource.yaml has no effect: the root is never a resource; move it into a directory of its own
    [WARNING] shops/_/metadata.yml has no effect: metadata is read from metadata.yaml and metadata.json; rename it
    [WARNING] shops/rio/defaults.yaml has no effect: no metadata document next to it includes it; include it, or remove it
    ");
    let quiet = home.run(&["repository", "check", "--ignore-warnings"]);
    assert_eq!(quiet.to_string(), "exit 0\n--- stdout\n--- stderr\n");
}

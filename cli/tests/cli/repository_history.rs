//! `repository history`.

use rstest::rstest;

use crate::environment::Home;
use crate::git::{WITHOUT_REMOTE, git, git_at};

/// A checkout whose commits are the same in every run.
fn home() -> Home {
    let home = Home::with_catalogue(WITHOUT_REMOTE);
    std::fs::create_dir(home.path("work")).unwrap();
    let work = home.path("work");
    git(&work, &["init", "--quiet", "--initial-branch=main"]);
    for (file, date, message) in [
        ("shops/rio/resource.json", "2026-01-01T12:00:00+01:00", "declarest: save resource /shops/rio"),
        ("shops/ava/resource.json", "2026-01-02T12:00:00Z", "Add Ava\n\nIt opens in May.\n\nNot in June."),
        ("README.md", "2026-01-03T12:00:00-05:30", "open\nearlier"),
    ] {
        home.write(&format!("work/{file}"), file);
        git(&work, &["add", "--all"]);
        git_at(&work, date, &["commit", "--quiet", "--message", message]);
    }
    home
}

#[test]
fn text() {
    insta::assert_snapshot!(home().run(&["repository", "history"]), @r"
    exit 0
    --- stdout
    commit 8400d2a1064e3c8a3a7b555f80671cb1ff21c027
    Author: Alice <alice@test>
    Date:   2026-01-03T12:00:00-05:30

        open earlier
    commit 89925c9f717abcd1be651846e3c71f2f5575ab04
    Author: Alice <alice@test>
    Date:   2026-01-02T12:00:00Z

        Add Ava

        It opens in May.

        Not in June.
    commit 4ba91c8faf8210654c3fd0615dacde3f0d5a1b96
    Author: Alice <alice@test>
    Date:   2026-01-01T12:00:00+01:00

        declarest: save resource /shops/rio
    --- stderr
    ");
}

#[test]
fn json() {
    insta::assert_snapshot!(home().run(&["repository", "history", "-o", "json", "--max-count", "2"]), @r#"
    exit 0
    --- stdout
    [
      {
        "hash": "8400d2a1064e3c8a3a7b555f80671cb1ff21c027",
        "author": "Alice",
        "email": "alice@test",
        "date": "2026-01-03T12:00:00-05:30",
        "subject": "open earlier"
      },
      {
        "hash": "89925c9f717abcd1be651846e3c71f2f5575ab04",
        "author": "Alice",
        "email": "alice@test",
        "date": "2026-01-02T12:00:00Z",
        "subject": "Add Ava",
        "body": "It opens in May.\n\nNot in June."
      }
    ]
    --- stderr
    "#);
}

#[test]
fn oneline() {
    insta::assert_snapshot!(home().run(&["repository", "history", "--oneline"]), @r"
    exit 0
    --- stdout
    8400d2a1064e open earlier
    89925c9f717a Add Ava
    4ba91c8faf82 declarest: save resource /shops/rio
    --- stderr
    ");
}

#[rstest]
#[case(&[], "open earlier|Add Ava|declarest: save resource /shops/rio")]
#[case(&["--max-count", "1"], "open earlier")]
#[case(&["--max-count", "2", "--reverse"], "Add Ava|open earlier")]
#[case(&["--max-count", "0"], "open earlier|Add Ava|declarest: save resource /shops/rio")]
#[case(&["--author", "ALICE@"], "open earlier|Add Ava|declarest: save resource /shops/rio")]
#[case(&["--author", "bob"], "")]
#[case(&["--grep", "JUNE"], "Add Ava")]
#[case(&["--since", "2026-01-02"], "open earlier|Add Ava")]
#[case(&["--until", "2026-01-02"], "declarest: save resource /shops/rio")]
#[case(&["--until", "2026-01-02 23:59:59"], "Add Ava|declarest: save resource /shops/rio")]
#[case(&["--since", "2026-01-02T12:00:01Z"], "open earlier")]
#[case(&["--until", "2026-01-01T11:00:00Z"], "declarest: save resource /shops/rio")]
#[case(&["--since", "2026-01-02", "--until", "2026-01-03"], "Add Ava")]
#[case(&["--path", "shops"], "Add Ava|declarest: save resource /shops/rio")]
#[case(&["--path", "/shops/rio/"], "declarest: save resource /shops/rio")]
#[case(&["--path", "shops/r"], "declarest: save resource /shops/rio")]
#[case(&["--path", "shops/rio/resource."], "declarest: save resource /shops/rio")]
#[case(&["--path", "shops/r/"], "")]
#[case(&["--path", "READ"], "open earlier")]
#[case(&["--path", "shops/rio", "--path", "README.md"], "open earlier|declarest: save resource /shops/rio")]
#[case(&["--path", "shops", "--max-count", "1"], "Add Ava")]
#[case(&["--path", "none"], "")]
fn filters(#[case] args: &[&str], #[case] expected: &str) {
    assert_eq!(subjects(&home(), args), expected);
}

/// Returns the subjects that `repository history` lists.
fn subjects(home: &Home, args: &[&str]) -> String {
    let args: Vec<_> = ["repository", "history", "--oneline"].iter().chain(args).copied().collect();
    let run = home.run(&args);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run}");
    let subjects: Vec<_> = run.stdout.lines().filter_map(|line| Some(line.split_once(' ')?.1)).collect();
    subjects.join("|")
}

#[rstest]
#[case(&[], "m6|m5|m4|m3|m2|m1")]
#[case(&["--max-count", "3"], "m6|m5|m4")]
#[case(&["--reverse"], "m1|m2|m3|m4|m5|m6")]
fn commits_of_one_second_are_in_their_order(#[case] args: &[&str], #[case] expected: &str) {
    let home = Home::with_catalogue(WITHOUT_REMOTE);
    std::fs::create_dir(home.path("work")).unwrap();
    let work = home.path("work");
    git(&work, &["init", "--quiet", "--initial-branch=main"]);
    for number in 1..=6 {
        git(&work, &["commit", "--quiet", "--allow-empty", "--message", &format!("m{number}")]);
    }
    assert_eq!(subjects(&home, args), expected);
}

#[rstest]
#[case("--since")]
#[case("--until")]
fn dates_are_checked_first(#[case] flag: &str) {
    let run = Home::with_catalogue(WITHOUT_REMOTE).run(&["repository", "history", flag, "yesterday"]);
    let message = format!(
        "{flag} \"yesterday\" is not a date; write YYYY-MM-DD, or RFC 3339 like 2026-01-31T12:00:00Z\n"
    );
    assert_eq!((run.code, run.stderr), (2, message));
}

#[test]
fn without_commits_there_is_none() {
    let home = Home::with_catalogue(WITHOUT_REMOTE);
    assert_eq!(home.run(&["repository", "history"]).to_string(), "exit 0\n--- stdout\n--- stderr\n");
    assert_eq!(home.run(&["repository", "history", "-o", "json"]).stdout, "[]\n");
}

#[test]
fn plain_directories_have_none() {
    let home = Home::with_catalogue(
        &WITHOUT_REMOTE.replace("git: {local: ", "filesystem: ").replace("work}}}", "work}}"),
    );
    insta::assert_snapshot!(home.run(&["repository", "history"]), @r"
    exit 0
    --- stdout
    repository history is not supported by filesystem repositories
    --- stderr
    ");
    assert_eq!(home.run(&["repository", "history", "-o", "json"]).stdout, "[]\n");
}

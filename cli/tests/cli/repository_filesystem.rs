//! `repository` commands on plain directories.

use rstest::rstest;

use crate::environment::Home;
use crate::git::exists;

const CATALOGUE: &str = "\
currentContext: dev
contexts:
- name: dev
  repository: {filesystem: {baseDir: <home>/files}}
  managedServer: {http: {url: 'https://api.test', auth: {customHeaders: [{header: K, value: v}]}}}
";

#[test]
fn init_makes_the_directory_once() {
    let home = Home::with_catalogue(CATALOGUE);
    insta::assert_snapshot!(home.run(&["repository", "init"]), @r"
    exit 0
    --- stdout
    --- stderr
    ");
    assert!(home.path("files").is_dir());
    assert_eq!(home.run(&["repository", "init"]).code, 0);
    home.write("elsewhere", "a file");
    std::fs::remove_dir(home.path("files")).unwrap();
    std::fs::rename(home.path("elsewhere"), home.path("files")).unwrap();
    insta::assert_snapshot!(home.run(&["repository", "init"]), @r"
    exit 2
    --- stdout
    --- stderr
    repository root <home>/files is not a directory
    ");
}

#[test]
fn there_is_nothing_to_compare_with() {
    let home = Home::with_catalogue(CATALOGUE);
    insta::assert_snapshot!(home.run(&["repository", "status"]), @r"
    exit 0
    --- stdout
    type=filesystem sync=not_applicable hasUncommitted=false
    --- stderr
    ");
    let verbose = home.run(&["repository", "status", "-v"]);
    assert_eq!(verbose.to_string(), home.run(&["repository", "status"]).to_string());
    insta::assert_snapshot!(home.run(&["repository", "status", "-o", "json"]), @r#"
    exit 0
    --- stdout
    {
      "state": "no_remote",
      "ahead": 0,
      "behind": 0,
      "hasUncommitted": false
    }
    --- stderr
    "#);
}

#[test]
fn refresh_does_nothing() {
    let home = Home::with_catalogue(CATALOGUE);
    insta::assert_snapshot!(home.run(&["repository", "refresh", "-v"]), @r"
    exit 0
    --- stdout
    --- stderr
    verbose: nothing to refresh: a filesystem repository has no remote
    ");
    assert!(!exists(&home, "files"));
}

#[test]
fn there_is_nothing_to_commit_to_or_push_from() {
    let home = Home::with_catalogue(CATALOGUE);
    insta::assert_snapshot!(home.run(&["repository", "push"]), @r#"
    exit 2
    --- stdout
    --- stderr
    a push needs a Git repository, but the repository of context "dev" is a filesystem repository
    "#);
    insta::assert_snapshot!(home.run(&["repository", "commit", "-m", "x"]), @r#"
    exit 2
    --- stdout
    --- stderr
    [ERROR] command execution failed: a commit needs a Git repository, but the repository of context "dev" is a filesystem repository.
    "#);
}

#[test]
fn tree() {
    let home = Home::with_catalogue(CATALOGUE);
    insta::assert_snapshot!(home.run(&["repository", "tree"]), @r"
    exit 3
    --- stdout
    --- stderr
    repository root <home>/files does not exist
    ");
    for file in [
        "files/shops/rio/resource.yaml",
        "files/shops/rio/tills/t1/resource.yaml",
        "files/shops/rio/tills/_/metadata.yaml",
        "files/shops/ava/resource.json",
        "files/shops/_/metadata.yaml",
        "files/_/metadata.yaml",
        "files/.github/workflows/ci.yaml",
        "files/staff/São Paulo 1.5/resource.txt",
        "files/README.md",
    ] {
        home.write(file, "");
    }
    insta::assert_snapshot!(home.run(&["repository", "tree"]), @r"
    exit 0
    --- stdout
    shops
    ├── ava
    └── rio
        └── tills
            └── t1
    staff
    └── São Paulo 1.5
    --- stderr
    ");
}

#[test]
fn an_empty_tree_is_nothing() {
    let home = Home::with_catalogue(CATALOGUE);
    std::fs::create_dir(home.path("files")).unwrap();
    insta::assert_snapshot!(home.run(&["repository", "tree"]), @r"
    exit 0
    --- stdout
    --- stderr
    ");
}

#[test]
fn the_tree_is_text_only() {
    let home = Home::with_catalogue(CATALOGUE);
    std::fs::create_dir(home.path("files")).unwrap();
    insta::assert_snapshot!(home.run(&["repository", "tree", "-o", "json"]), @r#"
    exit 2
    --- stdout
    --- stderr
    "declarest repository tree" prints text only; remove --output json
    "#);
    assert_eq!(home.run_with(&["repository", "tree"], &[("DECLAREST_OUTPUT", "json")], "").code, 0);
}

#[rstest]
#[case(&["repository", "status"])]
#[case(&["repository", "tree"])]
#[case(&["repository", "init"])]
#[case(&["repository", "refresh"])]
#[case(&["repository", "push"])]
fn all_need_a_context(#[case] args: &[&str]) {
    let run = Home::new().run(args);
    assert_eq!((run.code, run.stdout.as_str()), (3, ""), "{run}");
    assert!(run.stderr.starts_with("current context not set"), "{run}");
    let unknown: Vec<_> = args.iter().copied().chain(["-c", "prod"]).collect();
    let run = Home::with_catalogue(CATALOGUE).run(&unknown);
    assert_eq!((run.code, run.stderr.as_str()), (3, "context \"prod\" not found; there are dev\n"), "{run}");
}

#[test]
fn a_context_without_a_repository() {
    let home = Home::with_catalogue(
        "currentContext: dev\ncontexts:\n- name: dev\n  managedServer: {http: {url: 'https://api.test', auth: \
         {customHeaders: [{header: K, value: v}]}}}\n",
    );
    insta::assert_snapshot!(home.run(&["repository", "status"]), @r#"
    exit 2
    --- stdout
    --- stderr
    repository is not configured in context "dev"; set repository
    "#);
    for command in ["get", "list"] {
        let run = home.run(&["resource", command, "/shops/rio", "--source", "repository"]);
        let message = "repository is not configured in context \"dev\"; set repository\n";
        assert_eq!((run.code, run.stderr.as_str()), (2, message), "{command}");
    }
}

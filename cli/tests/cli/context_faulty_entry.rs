//! Contexts that share a name, and contexts without a name, do not affect other contexts.

use rstest::rstest;

use crate::environment::{Home, Run};

/// The context `dev` is valid. The other contexts of the catalogue are `entries`.
fn home(entries: &[&str]) -> Home {
    let entries = format!("  - {}\n", entries.join("\n  - "));
    let home = Home::with_catalogue(&format!(
        "currentContext: dev\ncontexts:\n{entries}  - name: dev\n    repository: {{filesystem: {{baseDir: <home>/repo}}}}\n"
    ));
    home.write("repo/shops/rio/resource.json", r#"{"id": "rio"}"#);
    home
}

fn get(home: &Home, context: &str) -> Run {
    home.run(&["resource", "get", "/shops/rio", "--source", "repository", "-c", context])
}

const TWINS: [&str; 2] = [
    "{name: twin, repository: {filesystem: {baseDir: /a}}}",
    "{name: twin, repository: {filesystem: {baseDir: /b}}}",
];
const SAME_NAME: &str =
    "line 4, column 6: contexts[1].name: contexts[0] already has the name \"twin\"; names must be unique";

#[test]
fn contexts_that_share_a_name_cannot_be_used() {
    let home = home(&TWINS);
    assert_eq!(get(&home, "dev").code, 0);
    let before = home.catalogue();
    home.write("twin.yaml", TWINS[0]);
    for command in [
        &["resource", "get", "/shops/rio", "--source", "repository", "-c", "twin"][..],
        &["context", "show", "twin"],
        &["context", "use", "twin"],
        &["context", "delete", "twin"],
        &["context", "rename", "twin", "other"],
        &["context", "update", "-f", "<home>/twin.yaml"],
        &["context", "validate"],
    ] {
        let run = home.run(command);
        assert_eq!(run.code, 2, "{command:?} {run}");
        assert!(run.stderr.contains(SAME_NAME), "{command:?} {run}");
    }
    assert_eq!(home.catalogue(), before);
}

#[test]
fn names_that_are_equal_after_their_references_are_replaced() {
    let home = home(&["{name: '${A}', repository: {filesystem: {baseDir: /a}}}", TWINS[1]]);
    let run = home.run_with(&["context", "resolve", "twin"], &[("A", "twin")], "");
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains(SAME_NAME), "{run}");
}

#[rstest]
#[case::missing("{repository: {filesystem: {baseDir: /canary}}}", "contexts[0]: \"name\" is missing")]
#[case::empty(
    "{name: ' ', repository: {filesystem: {baseDir: /canary}}}",
    "contexts[0].name: must not be empty"
)]
#[case::not_an_object("canary", "contexts[0]: expected an object, found a string")]
fn a_context_without_a_name(#[case] entry: &str, #[case] reason: &str) {
    let home = home(&[entry]);
    assert_eq!(get(&home, "dev").code, 0);
    assert_eq!(home.run(&["context", "list", "-o", "text"]).stdout, "dev\n");
    // A change of another context keeps the entry.
    assert_eq!(home.run(&["context", "rename", "dev", "test"]).code, 0);
    assert!(home.catalogue().contains("canary"), "{}", home.catalogue());
    assert_eq!(get(&home, "test").code, 0);
    let run = home.run(&["context", "validate"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains(&reason.replace("contexts[0]", "contexts[1]")), "{run}");
}

//! Secrets in answers that are lists, whichever command shows them.

use rstest::rstest;

use crate::server::{Route, Server};

const CANARY: &str = "c4n-pin";

const BARE: &str = r#"[{"id":"rio","pin":"c4n-pin-1","tier":"free"},{"id":"lima","pin":"c4n-pin-2"}]"#;
const WITH_ITEMS: &str =
    r#"{"total":2,"items":[{"id":"rio","pin":"c4n-pin-1"},{"id":"lima","pin":"c4n-pin-2"}]}"#;
const TWO_ARRAYS: &str = r#"{"links":[{"rel":"next"}],"data":[{"id":"rio","pin":"c4n-pin-1"}]}"#;
const EMBEDDED: &str = r#"{"_embedded":{"shops":[{"id":"rio","pin":"c4n-pin-1"}]},"page":{"size":20}}"#;
const BY_NAME: &str = r#"{"rio":{"pin":"c4n-pin-1"},"lima":{"pin":"c4n-pin-2"}}"#;
const SAME_NAME: &str = r#"{"pin":"next","items":[{"id":"rio","pin":"c4n-pin-1"}]}"#;

const METADATA: (&str, &str) = ("shops/_/metadata.yaml", "resource: {secretAttributes: [/pin]}\n");

/// What `declarest` with these arguments prints about a server whose list of shops is `answer`.
fn run(answer: &'static str, files: &[(&str, &str)], args: &[&str]) -> String {
    let rio = r#"{"id":"rio","pin":"c4n-pin-1","tier":"free"}"#;
    let routes: Box<[Route]> = Box::new([("GET /shops", 200, answer), ("GET /shops/rio", 200, rio)]);
    let home = Server::new(Box::leak(routes)).home();
    for (file, content) in files {
        home.write(&format!("repo/{file}"), content);
    }
    let verbose = [("DECLAREST_VERBOSE", "3"), ("DECLAREST_IGNORE_WARNINGS", "1")];
    home.run_with(args, &verbose, "").to_string()
}

#[rstest]
#[case::array(BARE)]
#[case::items(WITH_ITEMS)]
#[case::two_arrays(TWO_ARRAYS)]
#[case::embedded(EMBEDDED)]
#[case::by_name(BY_NAME)]
#[case::same_name_beside_the_list(SAME_NAME)]
fn a_collection_that_answers_a_get(#[case] answer: &'static str, #[values("/shops", "/shops/")] path: &str) {
    for flags in [&[][..], &["-o", "text"], &["-o", "yaml"], &["--prune-defaults"], &["--show-metadata"]] {
        let shown = run(answer, &[METADATA], &[&["resource", "get", path], flags].concat());
        assert!(!shown.contains(CANARY), "{shown}");
    }
    // Without the attribute, the command prints what the server sent.
    let plain = run(answer, &[], &["resource", "get", "/shops"]);
    assert!(plain.contains(CANARY), "{plain}");
}

#[test]
fn entries_of_an_array_keep_everything_else() {
    let shown = run(BARE, &[METADATA], &["resource", "get", "/shops"]);
    let shown = shown.split("--- stderr").next().unwrap();
    insta::assert_snapshot!(shown, @r#"
    exit 0
    --- stdout
    [
      {
        "id": "rio",
        "pin": "{{secret .}}",
        "tier": "free"
      },
      {
        "id": "lima",
        "pin": "{{secret .}}"
      }
    ]
    "#);
}

#[rstest]
#[case::attributes("resource: {secretAttributes: [/pin]}\n")]
#[case::whole("resource: {secret: true}\n")]
fn metadata_of_one_entry(#[case] document: &str) {
    let answer = r#"[{"id":"rio","pin":"c4n-pin-1"},{"id":"lima"}]"#;
    for path in ["/shops", "/shops/"] {
        let shown = run(answer, &[("shops/rio/metadata.yaml", document)], &["resource", "get", path]);
        let stdout = shown.split("--- stderr").next().unwrap();
        assert!(!stdout.contains(CANARY), "{path} {shown}");
    }
}

#[test]
fn show_secrets_shows_the_entries() {
    let server = Server::new(&[("GET /shops", 200, BARE)]);
    let home = server.home();
    home.write("repo/shops/_/metadata.yaml", METADATA.1);
    let shown = home.run(&["resource", "get", "/shops", "--show-secrets"]).to_string();
    assert!(shown.contains("c4n-pin-1") && shown.contains("c4n-pin-2"), "{shown}");
}

#[rstest]
#[case::list(&["resource", "list", "/shops"])]
#[case::recursive(&["resource", "list", "/shops", "-r", "-o", "json"])]
#[case::from_the_repository(&["resource", "get", "/shops", "--source", "repository"])]
#[case::listed_from_the_repository(&["resource", "list", "/shops", "--source", "repository", "-o", "json"])]
#[case::diff(&["resource", "diff", "/shops"])]
#[case::diff_of_everything(&["resource", "diff", "/shops", "-r", "-U", "all"])]
#[case::diff_json(&["resource", "diff", "/shops", "-o", "json"])]
#[case::explain(&["resource", "explain", "/shops"])]
#[case::plan(&["plan", "/shops", "-o", "json"])]
#[case::plan_text(&["plan", "/shops"])]
#[case::update(&["resource", "update", "/shops", "-o", "json"])]
fn a_declared_list(#[case] args: &[&str], #[values(BARE, WITH_ITEMS)] answer: &'static str) {
    for declared in [
        r#"[{"id":"rio","pin":"c4n-pin-3"}]"#,
        r#"[{"id":"rio","pin":"c4n-pin-3"},{"id":"lima","pin":"c4n-pin-2"},{"id":"ava","pin":"c4n-pin-4"}]"#,
        r#"{"total":1,"items":[{"id":"rio","pin":"c4n-pin-3"}]}"#,
    ] {
        let shown = run(answer, &[METADATA, ("shops/resource.json", declared)], args);
        assert!(!shown.contains(CANARY), "{shown}");
    }
}

#[test]
fn a_list_shows_secrets_on_request() {
    let shown = run(BARE, &[METADATA], &["resource", "list", "/shops", "--show-secrets", "-o", "json"]);
    let shown = shown.split("--- stderr").next().unwrap();
    assert!(shown.contains("c4n-pin-1") && shown.contains("c4n-pin-2"), "{shown}");
    let masked = run(BARE, &[METADATA], &["resource", "list", "/shops", "-o", "json"]);
    assert!(!masked.contains(CANARY), "{masked}");
}

//! The file of the catalogue: its location, references and access rights.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use rstest::rstest;

use crate::environment::Home;

/// Every field of the schema.
const FULL: &str = include_str!("full.yaml");

const DEV: &str =
    "currentContext: dev\ncontexts:\n  - name: dev\n    repository: {filesystem: {baseDir: /r}}\n";

#[test]
fn a_catalogue_with_every_field_is_valid_and_survives_being_rewritten() {
    let home = Home::with_catalogue(FULL);
    assert_eq!(home.run(&["context", "list", "-o", "text"]).stdout, "git\nfiles\nserver\n");
    let before = home.run(&["context", "list"]).stdout;
    assert_eq!(
        home.run(&["context", "migrate"]).to_string(),
        "exit 0\n--- stdout\ncontext catalog migrated\n--- stderr\n"
    );
    assert_eq!(home.run(&["context", "list"]).stdout, before);
    let rewritten = home.catalogue();
    assert!(
        rewritten.starts_with("currentContext: git\ndefaultEditor: nano -w\ncredentials:\n"),
        "{rewritten}"
    );
    assert!(rewritten.contains("\n  - name: files\n    "), "{rewritten}");
    assert!(rewritten.contains("${SHOP_TOKEN}"), "files keep references: {rewritten}");
}

#[rstest]
#[case("<home>/other.yaml", "other.yaml")]
#[case("~/other.yaml", "other.yaml")]
#[case("  deep/other.yaml ", "deep/other.yaml")]
fn the_environment_may_name_another_file(#[case] variable: &str, #[case] file: &str) {
    let home = Home::new();
    home.write(file, DEV);
    let variable = variable.replace("<home>", home.path("").to_str().unwrap());
    let run =
        home.run_with(&["context", "current", "-o", "text"], &[("DECLAREST_CONTEXTS_FILE", &variable)], "");
    assert_eq!(run.stdout, "dev\n", "{run}");
}

#[test]
fn a_missing_catalogue_is_empty() {
    insta::assert_snapshot!(Home::new().run(&["context", "list"]), @r"
    exit 0
    --- stdout
    []
    --- stderr
    ");
    insta::assert_snapshot!(Home::new().run(&["context", "current"]), @r#"
    exit 3
    --- stdout
    --- stderr
    current context not set; there are no contexts in <home>/.declarest/configs/contexts.yaml; create one with "declarest init" or "declarest context add"
    "#);
    let unknown = Home::new().run(&["context", "use", "dev", "--contexts-file", "<home>/typo.yaml"]);
    insta::assert_snapshot!(unknown, @r#"
    exit 3
    --- stdout
    --- stderr
    context "dev" not found; there are no contexts in <home>/typo.yaml; create one with "declarest init" or "declarest context add"
    "#);
    let without_current =
        Home::with_catalogue("contexts: [{name: dev, repository: {filesystem: {baseDir: /r}}}]");
    insta::assert_snapshot!(without_current.run(&["context", "current"]), @r#"
    exit 3
    --- stdout
    --- stderr
    current context not set; choose one with "declarest context use NAME" or --context
    "#);
}

#[test]
fn reading_closes_the_file_to_others() {
    let home = Home::with_catalogue(DEV);
    let file = home.path(".declarest/configs/contexts.yaml");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(home.run(&["context", "list"]).code, 0);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_new_file_is_private() {
    let home = Home::new();
    let input = r#"{"name": "dev", "repository": {"filesystem": {"baseDir": "/r"}}}"#;
    assert_eq!(home.run_with(&["context", "add"], &[], input).code, 0);
    let mode = |file: &str| fs::metadata(home.path(file)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(".declarest/configs/contexts.yaml"), 0o600);
}

#[test]
fn only_what_the_chosen_context_refers_to_must_be_set() {
    let home = Home::with_catalogue(
        "currentContext: ${CURRENT}\ncontexts:\n\
         - {name: dev, repository: {filesystem: {baseDir: ' ${DIR} '}}, preferences: {url: 'https://${DIR}', '${DIR}': x}}\n\
         - {name: prod, repository: {filesystem: {baseDir: '${UNSET}'}}}\n",
    );
    let variables = [("CURRENT", "dev"), ("DIR", "/data")];
    let run = home.run_with(&["context", "resolve"], &variables, "");
    insta::assert_snapshot!(run, @r#"
    exit 0
    --- stdout
    {
      "metadata": {
        "baseDir": "/data"
      },
      "name": "dev",
      "preferences": {
        "${DIR}": "x",
        "url": "https://${DIR}"
      },
      "repository": {
        "filesystem": {
          "baseDir": "/data"
        }
      }
    }
    --- stderr
    "#);
    let run = home.run_with(&["context", "resolve", "prod"], &variables, "");
    insta::assert_snapshot!(run, @r"
    exit 2
    --- stdout
    --- stderr
    <home>/.declarest/configs/contexts.yaml: line 4, column 42: contexts[1].repository.filesystem.baseDir: must not be empty; set the environment variable UNSET
    ");
}

#[test]
fn formats_of_references_are_checked_once_they_are_known() {
    let catalogue = "currentContext: dev\ncontexts:\n  - name: dev\n    managedServer:\n      http:\n        \
                     url: ${URL}\n        auth: {customHeaders: [{header: X-Key, value: '${KEY}'}]}\n";
    let home = Home::with_catalogue(catalogue);
    assert_eq!(home.run(&["context", "validate"]).code, 0);
    let run = home.run_with(&["context", "resolve"], &[("URL", "api.test"), ("KEY", "k")], "");
    insta::assert_snapshot!(run, @r"
    exit 2
    --- stdout
    --- stderr
    <home>/.declarest/configs/contexts.yaml: line 6, column 9: contexts[0].managedServer.http.url: is not a URL; write it like https://api.example.com/v1
    ");
    let run = home.run_with(&["context", "resolve"], &[("URL", "http://api.test")], "");
    insta::assert_snapshot!(run, @r"
    exit 2
    --- stdout
    --- stderr
    <home>/.declarest/configs/contexts.yaml: line 7, column 48: contexts[0].managedServer.http.auth.customHeaders[0].value: must not be empty; set the environment variable KEY
    ");
}

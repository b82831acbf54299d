//! `resource get`.

use rstest::rstest;

use crate::server::{Route, Server};

const SHOPS: &[Route] = &[
    ("GET /shops", 200, r#"[{"id":42,"name":"rio","pin":"1"},{"id":7,"name":"acme","pin":"2"}]"#),
    ("GET /shops/42", 200, r#"{"name":"rio","id":42,"open":true,"pin":"0420"}"#),
    ("GET /notes/a", 200, "plain text"),
    ("GET /list/x", 200, r#"{"a":1,"id":"x"}"#),
    ("POST /list/search", 200, r#"{"found":true}"#),
    ("GET /broken/x", 500, "out of order"),
    ("GET /closed/x", 403, r#"{"error":"no"}"#),
    ("GET /odd/x", 418, "teapot"),
    ("GET /twins", 200, r#"[{"id":1,"name":"a"},{"id":2,"name":"a"}]"#),
];

const NAMES: &str = "resource: {id: /id, alias: /name, secretAttributes: [/pin]}";

/// What `resource get` with these arguments prints on a server with `SHOPS`.
fn get(files: &[(&str, &str)], args: &[&str]) -> String {
    let home = Server::new(SHOPS).home();
    for (file, content) in files {
        home.write(&format!("repo/{file}"), content);
    }
    let args: Vec<&str> = ["resource", "get", "--ignore-warnings"].iter().chain(args).copied().collect();
    home.run(&args).to_string()
}

#[test]
fn by_alias_through_the_list_of_the_collection() {
    insta::assert_snapshot!(get(&[("shops/_/metadata.yaml", NAMES)], &["/shops/rio"]), @r#"
    exit 0
    --- stdout
    {
      "id": 42,
      "name": "rio",
      "open": true,
      "pin": "{{secret .}}"
    }
    --- stderr
    "#);
}

#[rstest]
#[case::argument(&["/shops/42"])]
#[case::flag(&["-p", "/shops/42"])]
#[case::both(&["/shops/42", "--path", "/shops/42"])]
#[case::backslashes(&["\\shops\\\\42"])]
fn paths(#[case] args: &[&str]) {
    insta::allow_duplicates! {
        insta::assert_snapshot!(get(&[], args), @r#"
        exit 0
        --- stdout
        {
          "id": 42,
          "name": "rio",
          "open": true,
          "pin": "0420"
        }
        --- stderr
        "#);
    }
}

#[test]
fn a_slash_at_the_end_lists() {
    insta::assert_snapshot!(get(&[("shops/_/metadata.yaml", NAMES)], &["/shops/"]), @r#"
    exit 0
    --- stdout
    [
      {
        "id": 7,
        "name": "acme",
        "pin": "{{secret .}}"
      },
      {
        "id": 42,
        "name": "rio",
        "pin": "{{secret .}}"
      }
    ]
    --- stderr
    "#);
}

#[test]
fn collections_as_text_are_paths() {
    insta::assert_snapshot!(get(&[("shops/_/metadata.yaml", NAMES)], &["/shops/", "-o", "text"]), @r"
    exit 0
    --- stdout
    /shops/acme
    /shops/rio
    --- stderr
    ");
}

#[test]
fn a_list_is_one_request() {
    let server = Server::new(SHOPS);
    let home = server.home();
    home.write("repo/shops/_/metadata.yaml", NAMES);
    assert_eq!(home.run(&["resource", "get", "/shops/"]).code, 0);
    assert_eq!(server.requests(), "GET /shops");
}

#[rstest]
#[case::path("/shops/rio")]
#[case::segment("rio")]
#[case::id("42")]
#[case::several("x,42")]
fn exclusions(#[case] exclude: &str) {
    let args = ["/shops/", "-o", "text", "--exclude", exclude];
    insta::allow_duplicates! {
        insta::assert_snapshot!(get(&[("shops/_/metadata.yaml", NAMES)], &args), @r"
        exit 0
        --- stdout
        /shops/acme
        --- stderr
        ");
    }
}

#[test]
fn an_answer_that_is_no_list_is_read_as_a_resource() {
    insta::assert_snapshot!(get(&[], &["/list/x/", "-o", "yaml"]), @r#"
    exit 0
    --- stdout
    a: 1
    id: x
    --- stderr
    "#);
}

#[test]
fn text_is_raw() {
    insta::assert_snapshot!(get(&[], &["/notes/a"]), @r"
    exit 0
    --- stdout
    plain text--- stderr
    ");
    insta::assert_snapshot!(get(&[], &["/notes/a", "-o", "text"]), @r"
    exit 0
    --- stdout
    plain text
    --- stderr
    ");
    insta::assert_snapshot!(get(&[], &["/notes/a", "-o", "json"]), @r#"
    exit 0
    --- stdout
    "plain text"
    --- stderr
    "#);
}

#[test]
fn the_method_of_the_request() {
    insta::assert_snapshot!(get(&[], &["/list/search", "--http-method", "post"]), @r#"
    exit 0
    --- stdout
    {
      "found": true
    }
    --- stderr
    "#);
}

#[test]
fn whole_secrets_are_a_bare_placeholder() {
    let files = [("notes/_/metadata.yaml", "resource: {secret: true}")];
    insta::assert_snapshot!(get(&files, &["/notes/a"]), @r"
    exit 0
    --- stdout
    {{secret .}}--- stderr
    ");
    insta::assert_snapshot!(get(&files, &["/notes/a", "-o", "json"]), @r#"
    exit 0
    --- stdout
    "{{secret .}}"
    --- stderr
    "#);
}

#[test]
fn defaults_are_pruned() {
    let metadata = "resource: {defaults: {value: {open: true, name: lima}}}";
    let files = [("shops/_/metadata.yaml", metadata)];
    insta::assert_snapshot!(get(&files, &["/shops/42", "--prune-defaults"]), @r#"
    exit 0
    --- stdout
    {
      "id": 42,
      "name": "rio",
      "pin": "0420"
    }
    --- stderr
    "#);
    let all = "resource: {defaults: {value: {open: true, name: rio, id: 42, pin: '0420'}}}";
    insta::assert_snapshot!(get(&[("shops/_/metadata.yaml", all)], &["/shops/42", "--prune-defaults"]), @r"
    exit 0
    --- stdout
    {}
    --- stderr
    ");
}

#[rstest]
#[case::absent(&["/shops/absent"], 3, "not found")]
#[case::server_error(&["/broken/x"], 6, "500")]
#[case::forbidden(&["/closed/x"], 4, "403")]
#[case::other_status(&["/odd/x"], 2, "418")]
#[case::no_path(&[], 2, "path is required")]
#[case::two_paths(&["/a", "-p", "/b"], 2, "path mismatch between positional argument and --path")]
#[case::traversal(&["/a/../b"], 2, "logical path must not contain traversal segments")]
#[case::reserved(&["/a/_"], 2, "reserved segment")]
#[case::source(&["/a", "--source", "both"], 2, "--source \"both\" is not supported")]
#[case::method(&["/a", "--http-method", "A B"], 2, "is not an HTTP method")]
#[case::method_of_repository(&["/a", "--source", "repository", "--http-method", "PUT"], 2, "managed-server")]
#[case::not_declared(&["/a", "--source", "repository"], 3, "not found")]
#[case::format(&["/a", "-o", "xml"], 2, "invalid output format")]
#[case::flag(&["/a", "--nope"], 1, "--nope")]
fn failures(#[case] args: &[&str], #[case] code: i32, #[case] fragment: &str) {
    let run = get(&[], args);
    assert!(run.starts_with(&format!("exit {code}\n--- stdout\n--- stderr\n")), "{run}");
    assert!(run.contains(fragment), "{run}");
    assert!(!run.contains("[ERROR]"), "{run}");
}

#[test]
fn twins_are_ambiguous() {
    insta::assert_snapshot!(get(&[("twins/_/metadata.yaml", NAMES)], &["/twins/a"]), @r#"
    exit 5
    --- stdout
    --- stderr
    cannot determine whether /twins/a exists: its names are ambiguous: several entries of the list of its collection have its id or its alias (ids: 1, 2); correct the names in the payload or the name of the directory, remove resource.alias if aliases are not unique, or delete an entry that is a duplicate
    "#);
}

#[test]
fn without_context() {
    let run = crate::environment::declarest(&["resource", "get", "/a"]);
    assert_eq!((run.code, run.stdout.as_str()), (3, ""));
    assert!(run.stderr.starts_with("current context not set"), "{}", run.stderr);
}

#[test]
fn metadata_is_shown_rendered_and_without_secrets() {
    let metadata = "resource: {id: /id, alias: /name, secretAttributes: [/pin]}\n\
        operations: {update: {query: {pin: '{{/pin}}'}}}";
    let files = [("notes/_/metadata.yaml", metadata), ("shops/_/metadata.yaml", metadata)];
    insta::assert_snapshot!(get(&files, &["/shops/rio", "--show-metadata", "-o", "yaml"]), @r#"
    exit 0
    --- stdout
    metadata:
        operations:
            compare:
                path: /shops/42
            create:
                headers:
                    Accept: application/json
                    Content-Type: application/json
                method: POST
                path: /shops
            delete:
                headers:
                    Accept: application/json
                method: DELETE
                path: /shops/42
            get:
                headers:
                    Accept: application/json
                method: GET
                path: /shops/42
            list:
                headers:
                    Accept: application/json
                method: GET
                path: /shops
            update:
                headers:
                    Accept: application/json
                    Content-Type: application/json
                method: PUT
                path: /shops/42
                query:
                    pin: '{{secret .}}'
        resource:
            alias: rio
            id: "42"
            remoteCollectionPath: /shops
            secretAttributes:
                - /pin
    payload:
        id: 42
        name: rio
        open: true
        pin: '{{secret .}}'
    --- stderr
    "#);
}

/// The metadata of one resource applies also if the resource is requested by its id.
#[rstest]
#[case("/shops/rio")]
#[case("/shops/42")]
fn secrets_of_one_resource(#[case] path: &str) {
    let files = [
        ("shops/_/metadata.yaml", "resource: {id: /id, alias: /name}"),
        ("shops/rio/metadata.yaml", "resource: {secretAttributes: [/pin]}"),
    ];
    let run = get(&files, &[path]);
    assert!(run.contains("\"pin\": \"{{secret .}}\"") && !run.contains("0420"), "{run}");
}

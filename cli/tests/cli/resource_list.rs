//! `resource list`.

use rstest::rstest;

use crate::environment::Run;
use crate::server::{Route, Server};

const ROUTES: &[Route] = &[
    (
        "GET /shops",
        200,
        r#"{"items":[{"id":42,"name":"acme","pin":1},{"id":"u7","name":"b"},{"id":9,"name":"acme/eu"}],"total":3}"#,
    ),
    ("GET /object", 200, r#"{"a":1}"#),
    ("POST /search", 200, "[]"),
    ("GET /pages", 200, r#"{"items":[{"id":"p1"}],"next":"/pages?page=2"}"#),
    ("GET /pages?page=2", 200, r#"{"items":[{"id":"p2"}],"next":"?page=3"}"#),
    ("GET /pages?page=3", 200, r#"{"items":[{"id":"p3"}],"next":null}"#),
    ("GET /numbered?from=0&max=2", 200, r#"[{"id":"n1"},{"id":"n2"}]"#),
    ("GET /numbered?from=2&max=2", 200, r#"[{"id":"n3"}]"#),
    ("GET /more", 200, r#"{"items":[{"id":"m1"}],"hasMore":true}"#),
    ("GET /policies", 200, r#"{"keys":["till"]}"#),
    ("GET /policies/till", 200, r#"{"rules":"read"}"#),
    ("GET /twins", 200, r#"[{"id":1,"name":"a"},{"id":2,"name":"a"}]"#),
    ("GET /same", 200, r#"[{"name":"a"},{"name":"a"}]"#),
    ("GET /broken", 200, r#"{"items":[{"id":"b1"}],"next":"?page=2"}"#),
    ("GET /broken?page=2", 400, "no such page"),
];

const FILES: &[(&str, &str)] = &[
    ("repo/shops/_/metadata.yaml", "resource: {id: /id, alias: /name, secretAttributes: [/pin]}"),
    ("repo/shops/rio/resource.json", r#"{"id":"u1","name":"Rio","pin":"0420"}"#),
    ("repo/shops/lima/resource.yaml", "id: u222\nname: L"),
    ("repo/shops/rio/tills/t1/resource.json", r#"{"id":"t1"}"#),
    (
        "repo/policies/_/metadata.yaml",
        "resource: {id: /name, alias: /name}\noperations:\n  list: {mode: names, transforms: [{jqExpression: .keys}]}\n  \
         get: {transforms: [{jqExpression: '. + {name: \"{{/name}}\"}'}]}\n",
    ),
    ("repo/twins/_/metadata.yaml", "resource: {id: /id, alias: /name}"),
    ("repo/same/_/metadata.yaml", "resource: {id: /name}"),
    ("repo/empty/_/metadata.yaml", "{}"),
    (
        "repo/numbered/_/metadata.yaml",
        "operations: {list: {pagination: {style: offset, parameter: from, sizeParameter: max, size: 2}}}",
    ),
];

fn list(args: &[&str]) -> Run {
    let home = Server::new(ROUTES).home();
    for (file, content) in FILES {
        home.write(file, content);
    }
    home.run(&["resource", "list", "--ignore-warnings"].iter().chain(args).copied().collect::<Vec<_>>())
}

#[test]
fn names_in_columns() {
    insta::assert_snapshot!(list(&["/shops", "-o", "text"]), @r"
    exit 0
    --- stdout
    acme (42)
    b    (u7)
    --- stderr
    ");
}

#[test]
fn recursive_keeps_what_the_server_nests() {
    insta::assert_snapshot!(list(&["/shops", "-r", "-o", "text"]), @r"
    exit 0
    --- stdout
    acme    (42)
    acme/eu (9)
    b       (u7)
    --- stderr
    ");
}

#[test]
fn payloads_sorted_by_path_and_masked() {
    insta::assert_snapshot!(list(&["/shops/"]), @r#"
    exit 0
    --- stdout
    [
      {
        "id": 42,
        "name": "acme",
        "pin": "{{secret .}}"
      },
      {
        "id": "u7",
        "name": "b"
      }
    ]
    --- stderr
    "#);
}

#[test]
fn exclusions_repeat() {
    insta::assert_snapshot!(list(&["/shops", "-o", "text", "--exclude", "42", "--exclude", "/x,/y"]), @r"
    exit 0
    --- stdout
    b (u7)
    --- stderr
    ");
}

#[test]
fn all_pages() {
    insta::assert_snapshot!(list(&["/pages", "-o", "text"]), @r"
    exit 0
    --- stdout
    p1 (p1)
    p2 (p2)
    p3 (p3)
    --- stderr
    ");
    insta::assert_snapshot!(list(&["/numbered", "-o", "text"]), @r"
    exit 0
    --- stdout
    n1 (n1)
    n2 (n2)
    n3 (n3)
    --- stderr
    ");
}

#[rstest]
#[case::two_resources(
    "/twins",
    "list of /twins: the entries with the ids 1 and 2 have the same name \"a\"; rename one of them on"
)]
#[case::one_id(
    "/same",
    "list of /same: the alias \"a\" is ambiguous, because several entries have it; set resource.alias to a unique value"
)]
fn entries_with_the_same_name(#[case] path: &str, #[case] message: &str) {
    let run = list(&[path]);
    assert_eq!(run.code, 5, "{run}");
    assert!(run.stderr.starts_with(message), "{run}");
}

#[test]
fn a_list_with_pages_that_cannot_be_requested() {
    let home = Server::new(ROUTES).home();
    insta::assert_snapshot!(home.run(&["resource", "list", "/more", "-o", "text"]), @r"
    exit 0
    --- stdout
    m1 (m1)
    --- stderr
    the list of /more has further pages; configure operations.list.pagination in more/_/metadata.yaml to request them
    ");
}

#[test]
fn of_the_repository() {
    insta::assert_snapshot!(list(&["/shops", "--source", "repository", "-o", "text"]), @r"
    exit 0
    --- stdout
    L   (u222)
    Rio (u1)
    --- stderr
    ");
    insta::assert_snapshot!(list(&["/", "-r", "--source", "repository", "-o", "yaml"]), @r"
    exit 0
    --- stdout
    - id: u222
      name: L
    - id: u1
      name: Rio
      pin: '{{secret .}}'
    - id: t1
    --- stderr
    ");
}

#[rstest]
#[case(&["/empty", "--source", "repository"])]
#[case(&["/search", "--http-method", "POST"])]
fn nothing(#[case] args: &[&str]) {
    insta::allow_duplicates! {
        insta::assert_snapshot!(list(args), @r"
        exit 0
        --- stdout
        []
        --- stderr
        ");
    }
}

#[rstest]
#[case::no_list(&["/object"], 2, "without an array")]
#[case::absent(&["/nowhere"], 3, "404")]
#[case::broken_page(&["/broken"], 2, "list of /broken: page 2: GET /broken: remote request failed with status 400")]
#[case::not_declared(&["/nowhere", "--source", "repository"], 3, "not found in the repository")]
#[case::no_path(&[], 2, "path is required")]
fn failures(#[case] args: &[&str], #[case] code: i32, #[case] fragment: &str) {
    let run = list(args);
    assert_eq!((run.code, run.stdout.as_str()), (code, ""));
    assert!(run.stderr.contains(fragment), "{}", run.stderr);
}

#[test]
fn transforms_of_listed_names_have_the_attributes_of_the_identity() {
    let run = list(&["/policies", "-o", "jq=.[0]"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "{\"name\":\"till\",\"rules\":\"read\"}\n"), "{run}");
}

//! `resource metadata`.

use rstest::rstest;

use crate::environment::{Home, Run};
use crate::server::{Route, Server};

const ROUTES: &[Route] = &[("GET /known", 200, "[]"), ("GET /known/a", 200, r#"{"id":"a"}"#)];

const FILES: &[(&str, &str)] = &[
    ("repo/_/metadata.yaml", "operations: {defaults: {transforms: [{excludeAttributes: /etag}]}}"),
    (
        "repo/customers/_/metadata.yaml",
        "resource: {id: /id, alias: /name, remoteCollectionPath: /api/customers}\n\
         operations: {update: {method: PATCH, query: {by: '{{/id}}'}}, list: {transforms: [{jqExpression: .items}]}}",
    ),
    ("repo/customers/acme/metadata.json", r#"{"operations":{"get":{"headers":{"X-View":"full"}}}}"#),
    ("repo/customers/acme/resource.json", r#"{"id":42,"name":"acme"}"#),
];

fn home() -> Home {
    let home = Server::new(ROUTES).home();
    for (file, content) in FILES {
        home.write(file, content);
    }
    home
}

fn metadata(home: &Home, args: &[&str], stdin: &str) -> Run {
    let all = ["resource", "metadata", "--ignore-warnings"];
    home.run_with(&all.iter().chain(args).copied().collect::<Vec<_>>(), &[], stdin)
}

/// What a command prints, as YAML to be short.
fn shown(args: &[&str]) -> Run {
    let args: Vec<&str> = args.iter().chain(&["-o", "yaml"]).copied().collect();
    metadata(&home(), &args, "")
}

#[test]
fn get_lays_what_is_stored_over_conventions() {
    insta::assert_snapshot!(shown(&["get", "/customers/"]), @r"
    exit 0
    --- stdout
    operations:
        compare:
            path: ./{{/id}}
            transforms: []
        create:
            body: null
            headers: {}
            method: POST
            path: .
            query: {}
            transforms: []
            validate: {}
        defaults:
            transforms:
                - excludeAttributes:
                    - /etag
        delete:
            body: null
            headers: {}
            method: DELETE
            path: ./{{/id}}
            query: {}
            transforms: []
            validate: {}
        get:
            body: null
            headers: {}
            method: GET
            path: ./{{/id}}
            query: {}
            transforms: []
            validate: {}
        list:
            body: null
            headers: {}
            method: GET
            path: .
            query: {}
            transforms:
                - jqExpression: .items
            validate: {}
        update:
            body: null
            headers: {}
            method: PATCH
            path: ./{{/id}}
            query:
                by: '{{/id}}'
            transforms: []
            validate: {}
    resource:
        alias: /name
        defaults: {}
        externalizedAttributes: []
        format: any
        id: /id
        remoteCollectionPath: /api/customers
        requiredAttributes: []
        secret: false
        secretAttributes: []
    selector:
        descendants: false
    --- stderr
    ");
}

#[test]
fn overrides_are_what_is_stored() {
    insta::assert_snapshot!(shown(&["get", "/customers/_", "--overrides-only"]), @r"
    exit 0
    --- stdout
    operations:
        list:
            transforms:
                - jqExpression: .items
        update:
            method: PATCH
            query:
                by: '{{/id}}'
    resource:
        alias: /name
        id: /id
        remoteCollectionPath: /api/customers
    --- stderr
    ");
    insta::assert_snapshot!(shown(&["get", "/customers/acme", "--overrides-only"]), @r"
    exit 0
    --- stdout
    operations:
        get:
            headers:
                X-View: full
    --- stderr
    ");
}

#[test]
fn metadata_of_known_members_is_inferred() {
    let run = metadata(&Server::new(ROUTES).home(), &["get", "/known/a", "-o", "yaml"], "");
    insta::assert_snapshot!(run, @r#"
    exit 0
    --- stdout
    operations:
        compare:
            path: /known/a
        create:
            method: POST
            path: /known/a
        delete:
            method: DELETE
            path: /known/a
        get:
            method: GET
            path: /known/a
        list:
            method: GET
            path: /known
        update:
            method: PUT
            path: /known/a
    resource:
        remoteCollectionPath: /known
    --- stderr
    no document governs /known/a: this metadata is inferred, and requests use only the defaults and what the OpenAPI document supplies; "declarest resource metadata infer /known/a --apply" stores it
    "#);
}

#[test]
fn resolve_merges_all_documents() {
    insta::assert_snapshot!(shown(&["resolve", "/customers/acme"]), @r"
    exit 0
    --- stdout
    operations:
        defaults:
            transforms:
                - excludeAttributes:
                    - /etag
        get:
            headers:
                X-View: full
        list:
            transforms:
                - jqExpression: .items
        update:
            method: PATCH
            query:
                by: '{{/id}}'
    resource:
        alias: /name
        id: /id
        remoteCollectionPath: /api/customers
    --- stderr
    ");
    insta::assert_snapshot!(shown(&["resolve", "/_/"]), @r"
    exit 0
    --- stdout
    operations:
        defaults:
            transforms:
                - excludeAttributes:
                    - /etag
    --- stderr
    ");
}

#[test]
fn render_is_json() {
    insta::assert_snapshot!(metadata(&home(), &["render", "/customers/acme"], ""), @r#"
    exit 0
    --- stdout
    {
      "headers": {
        "Accept": "application/json",
        "X-View": "full"
      },
      "method": "GET",
      "path": "/api/customers/42",
      "transforms": [
        {
          "excludeAttributes": [
            "/etag"
          ]
        }
      ]
    }
    --- stderr
    "#);
}

#[rstest]
#[case::positional(&["render", "/customers/acme", "update"])]
#[case::flag(&["render", "-p", "/customers/acme", "update"])]
#[case::both(&["render", "/customers/acme", "update", "--path", "/customers/acme"])]
fn render_an_operation(#[case] args: &[&str]) {
    insta::allow_duplicates! {
        insta::assert_snapshot!(shown(args), @r#"
        exit 0
        --- stdout
        headers:
            Accept: application/json
            Content-Type: application/json
        method: PATCH
        path: /api/customers/42
        query:
            by: "42"
        transforms:
            - excludeAttributes:
                - /etag
        --- stderr
        "#);
    }
}

#[test]
fn the_list_is_that_of_the_path_and_does_not_see_a_payload() {
    insta::assert_snapshot!(shown(&["render", "/customers", "list"]), @r"
    exit 0
    --- stdout
    headers:
        Accept: application/json
    method: GET
    path: /api/customers
    transforms:
        - excludeAttributes:
            - /etag
        - jqExpression: .items
    --- stderr
    ");
    let home = home();
    home.write("repo/shops/_/metadata.yaml", "operations: {list: {path: '/by/{{/shop}}'}}\n");
    home.write("repo/shops/rio/tills/_/metadata.yaml", "operations: {list: {path: '/tills/of/{{/shop}}'}}\n");
    home.write("repo/shops/rio/resource.yaml", "{id: rio, shop: other}\n");
    let run = metadata(&home, &["render", "/shops/rio/tills", "list"], "");
    insta::assert_snapshot!(run, @r#"
    exit 0
    --- stdout
    {
      "headers": {
        "Accept": "application/json"
      },
      "method": "GET",
      "path": "/tills/of/rio",
      "transforms": [
        {
          "excludeAttributes": [
            "/etag"
          ]
        }
      ]
    }
    --- stderr
    "#);
}

#[test]
fn compare_sends_nothing() {
    insta::assert_snapshot!(shown(&["render", "/customers/acme", "compare"]), @r"
    exit 0
    --- stdout
    path: /api/customers/42
    transforms:
        - excludeAttributes:
            - /etag
    --- stderr
    ");
}

#[test]
fn selectors_are_shown_as_written() {
    insta::assert_snapshot!(shown(&["render", "/customers/_"]), @r"
    exit 0
    --- stdout
    method: GET
    path: .
    transforms:
        - excludeAttributes:
            - /etag
        - jqExpression: .items
    --- stderr
    ");
    insta::assert_snapshot!(shown(&["render", "/customers/", "update"]), @r"
    exit 0
    --- stdout
    method: PATCH
    path: ./{{/id}}
    query:
        by: '{{/id}}'
    transforms:
        - excludeAttributes:
            - /etag
    --- stderr
    ");
}

#[test]
fn inferred_metadata_is_stored_as_printed() {
    let home = home();
    home.write("repo/shops/rio/tills/front/resource.json", r#"{"till": "front"}"#);
    insta::assert_snapshot!(metadata(&home, &["infer", "/shops/_/tills/", "--apply", "-o", "yaml"], ""), @r"
    exit 0
    --- stdout
    resource:
        alias: '{{/till}}'
    --- stderr
    ");
    insta::assert_snapshot!(home.read("repo/shops/_/tills/_/metadata.yaml"), @r"
    resource:
        alias: '{{/till}}'
    ");
    assert_eq!(metadata(&home, &["infer", "/other/"], "").code, 0);
    assert!(!home.path("repo/other").exists());
}

#[test]
fn set_replaces_and_unset_removes() {
    let home = home();
    let set = metadata(&home, &["set", "/customers/acme"], r#"{"resource":{"secret":true}}"#);
    assert_eq!(set.to_string(), "exit 0\n--- stdout\n--- stderr\n");
    assert_eq!(home.read("repo/customers/acme/metadata.yaml"), "resource:\n    secret: true\n");
    assert!(!home.path("repo/customers/acme/metadata.json").exists());
    let unset = metadata(&home, &["unset", "/customers/acme"], "");
    assert_eq!(unset.to_string(), "exit 0\n--- stdout\n--- stderr\n");
    assert!(!home.path("repo/customers/acme/metadata.yaml").exists());
    assert!(home.path("repo/customers/acme/resource.json").exists());
    assert_eq!(metadata(&home, &["unset", "/customers/acme"], "").code, 0, "it may be repeated");
}

#[test]
fn set_goes_to_the_directory_of_metadata() {
    let home = Home::with_catalogue(
        "currentContext: dev\ncontexts:\n- name: dev\n  repository: {filesystem: {baseDir: '<home>/repo'}}\n  \
         metadata: {baseDir: '<home>/rules'}\n",
    );
    std::fs::create_dir(home.path("repo")).unwrap();
    std::fs::create_dir(home.path("rules")).unwrap();
    home.write("m.yaml", "resource: {id: /uid}");
    assert_eq!(metadata(&home, &["set", "/a/", "-f", "<home>/m.yaml"], "").code, 0);
    assert_eq!(home.read("rules/a/_/metadata.yaml"), "resource:\n    id: /uid\n");
}

#[rstest]
#[case::no_overrides(&["get", "/known/", "--overrides-only"], "", 3, "not found")]
#[case::no_path(&["resolve"], "", 2, "path is required")]
#[case::operation(&["render", "/a", "drop"], "", 2, "use get, create, update")]
#[case::recursive(&["infer", "/a/", "-r"], "", 2, "--recursive")]
#[case::no_input(&["set", "/a/"], "", 2, "input is required")]
#[case::unknown_key(&["set", "/a/"], r#"{"resource":{"ID":"/id"}}"#, 2, "ID")]
#[case::selector_of_a_resource(&["set", "/a/b"], r#"{"selector":{"descendants":true}}"#, 2, "selector")]
#[case::template(&["set", "/a/"], r#"{"resource":{"id":"{{/a"}}"#, 2, "standard input")]
#[case::no_terminal(&["edit", "/a/"], "", 2, "cannot ask for the metadata of /a/ without a terminal")]
fn failures(#[case] args: &[&str], #[case] stdin: &str, #[case] code: i32, #[case] fragment: &str) {
    let run = metadata(&home(), args, stdin);
    assert_eq!((run.code, run.stdout.as_str()), (code, ""), "{}", run.stderr);
    assert!(run.stderr.contains(fragment), "{}", run.stderr);
}

#[test]
fn a_path_that_neither_documents_nor_the_server_know_is_not_found() {
    let run = metadata(&Server::new(ROUTES).home(), &["get", "/nowhere"], "");
    assert_eq!((run.code, run.stdout.as_str()), (3, ""), "{run}");
    assert!(run.stderr.contains("not found"), "{run}");
}

/// The document describes clients, whose `secret` is inferred to be secret.
const CLIENTS: &str = r#"{"openapi": "3.0.3", "paths": {
    "/clients": {"get": {}, "post": {}},
    "/clients/{id}": {"get": {}, "put": {}}
}}"#;

#[test]
fn inferred_metadata_is_added_to_stored_metadata() {
    let home = home();
    home.write("openapi.json", CLIENTS);
    let catalogue = home.catalogue().replace("auth: {", "openapi: '<home>/openapi.json', auth: {");
    home.write(".declarest/configs/contexts.yaml", &catalogue);
    home.write(
        "repo/clients/_/metadata.yaml",
        "resource: {id: /uid, secretAttributes: [/registrationAccessToken]}\n\
         operations: {compare: {transforms: [{excludeAttributes: [/seen]}]}}\n",
    );
    let run = metadata(&home, &["infer", "/clients/", "--apply", "-o", "yaml"], "");
    insta::assert_snapshot!(run, @r"
    exit 0
    --- stdout
    operations:
        compare:
            transforms:
                - excludeAttributes:
                    - /seen
    resource:
        alias: '{{/id}}'
        id: /uid
        secretAttributes:
            - /registrationAccessToken
            - /secret
    --- stderr
    ");
    let stored = home.read("repo/clients/_/metadata.yaml");
    assert!(run.stdout == stored, "{stored}");
}

#[test]
fn a_list_of_secrets_is_not_shortened_by_an_inferred_one() {
    let home = home();
    home.write(
        "repo/_/_/metadata.yaml",
        "selector: {descendants: true}\nresource: {secretAttributes: [/pin]}\n",
    );
    let run = metadata(&home, &["infer", "/clients/", "--apply"], "");
    assert_eq!(run.code, 0, "{run}");
    let stored = home.read("repo/clients/_/metadata.yaml");
    assert!(stored.contains("- /pin\n") && stored.contains("- /secret\n"), "{stored}");
}

#[test]
fn get_shows_the_documents_that_govern_a_path_without_a_request() {
    let server = Server::new(ROUTES);
    let home = server.home();
    home.write(
        "repo/shops/_/metadata.yaml",
        "resource: {id: /uid}\noperations: {get: {query: {full: 'yes'}}}\n",
    );
    let run = metadata(&home, &["get", "/shops/rio", "-o", "yaml"], "");
    insta::assert_snapshot!(run, @r#"
    exit 0
    --- stdout
    operations:
        compare:
            path: ./{{/id}}
            transforms: []
        create:
            body: null
            headers: {}
            method: POST
            path: .
            query: {}
            transforms: []
            validate: {}
        defaults:
            transforms: []
        delete:
            body: null
            headers: {}
            method: DELETE
            path: ./{{/id}}
            query: {}
            transforms: []
            validate: {}
        get:
            body: null
            headers: {}
            method: GET
            path: ./{{/id}}
            query:
                full: "yes"
            transforms: []
            validate: {}
        list:
            body: null
            headers: {}
            method: GET
            path: .
            query: {}
            transforms: []
            validate: {}
        update:
            body: null
            headers: {}
            method: PUT
            path: ./{{/id}}
            query: {}
            transforms: []
            validate: {}
    resource:
        alias: /id
        defaults: {}
        externalizedAttributes: []
        format: any
        id: /uid
        remoteCollectionPath: /shops
        requiredAttributes: []
        secret: false
        secretAttributes: []
    --- stderr
    "#);
    assert_eq!(server.requests(), "");
}

#[test]
fn changes_are_committed_on_request() {
    let home = Home::with_catalogue(crate::git::WITHOUT_REMOTE);
    let work = home.path("work");
    std::fs::create_dir(&work).unwrap();
    crate::git::git(&work, &["init", "--initial-branch=main"]);
    let log = || crate::git::git(&work, &["log", "--format=%s"]);
    let document = r#"{"resource": {"id": "/code"}}"#;
    let set = metadata(&home, &["set", "/shops/_", "--commit", "-f", "-"], document);
    assert_eq!(set.code, 0, "{set}");
    assert_eq!(log(), "declarest: change metadata of /shops/_");
    // Other changes are not included.
    home.write("work/stray.txt", "x");
    let unset = metadata(&home, &["unset", "/shops/_", "--commit"], "");
    assert_eq!(unset.code, 2, "{unset}");
    assert!(home.path("work/shops/_/metadata.yaml").exists());
    std::fs::remove_file(home.path("work/stray.txt")).unwrap();
    assert_eq!(metadata(&home, &["unset", "/shops/_", "--commit"], "").code, 0);
    assert_eq!(log().lines().count(), 2);
    // A directory without Git.
    let plain = metadata(&self::home(), &["set", "/shops/_", "--commit", "-f", "-"], document);
    assert_eq!(plain.code, 2, "{plain}");
    assert!(plain.stderr.contains("--commit"), "{plain}");
}

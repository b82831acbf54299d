//! `resource request`.

use rstest::rstest;

use crate::world::World;

/// `rio` has the id 7 on the server, which its payload states.
fn shops() -> World {
    let world = World::new(
        &["/shops", "/v2/shops"],
        &[
            (
                "shops/_/metadata.yaml",
                "resource: {id: /id, alias: /name, remoteCollectionPath: /v2/shops, secretAttributes: [/pin]}\n\
                 operations: {update: {validate: {requiredAttributes: [/name]}}, get: {headers: {X-View: full}}}\n",
            ),
            ("shops/rio/resource.json", r#"{"id": "7", "name": "rio", "tier": "gold"}"#),
        ],
    );
    world.live("/v2/shops/7", r#"{"id": "7", "name": "rio", "tier": "free"}"#);
    world.live("/shops/lima", r#"{"id": "lima"}"#);
    world
}

fn request(world: &World, args: &[&str]) -> String {
    world.run(&[&["resource", "request"], args].concat()).to_string()
}

#[test]
fn get_prints_the_body() {
    let world = shops();
    insta::assert_snapshot!(request(&world, &["get", "/shops/7"]), @r#"
    exit 0
    --- stdout
    {
      "id": "7",
      "name": "rio",
      "tier": "free"
    }
    --- stderr
    "#);
    insta::assert_snapshot!(request(&world, &["get", "/shops/", "-o", "yaml"]), @r#"
    exit 0
    --- stdout
    - id: "7"
      name: rio
      tier: free
    --- stderr
    "#);
    let log = world.server.log();
    assert_eq!(log[0].to_string(), "GET /v2/shops/7");
}

#[test]
fn a_path_without_metadata_is_literal() {
    let world = World::new(&["/notes"], &[]);
    insta::assert_snapshot!(request(&world, &["post", "/notes", "-f", r#"{"id": "a"}"#, "-v"]), @r#"
    exit 0
    --- stdout
    {
      "id": "a"
    }
    --- stderr
    [OK] command executed successfully.
    "#);
    assert_eq!(world.writes(), ["POST /notes"]);
    assert!(world.observed("/notes/a").is_some());
}

#[rstest]
#[case::put("put", "PUT /v2/shops/7")]
#[case::patch("patch", "PATCH /v2/shops/7")]
fn writes_go_to_the_address_of_metadata(#[case] method: &str, #[case] write: &str) {
    let world = shops();
    let body = r#"{"id": "7", "name": "rio", "tier": "silver"}"#;
    insta::allow_duplicates! {
        insta::assert_snapshot!(request(&world, &[method, "/shops/rio", "-f", body]), @r"
        exit 0
        --- stdout
        --- stderr
        [OK] command executed successfully.
        ");
    }
    assert_eq!(world.writes(), [write]);
}

#[test]
fn without_input_the_content_of_the_repository_is_sent() {
    let world = shops();
    let run = request(&world, &["put", "/shops/rio"]);
    assert!(run.starts_with("exit 0"), "{run}");
    assert_eq!(world.observed("/v2/shops/7").unwrap()["tier"], "gold");
}

#[test]
fn post_to_a_collection_creates() {
    let world = shops();
    let run = request(&world, &["post", "/shops/", "-f", r#"{"id": "8", "name": "oslo"}"#]);
    assert!(run.starts_with("exit 0"), "{run}");
    assert_eq!(world.writes(), ["POST /v2/shops"]);
}

#[test]
fn a_missing_address_of_metadata_is_replaced_by_the_path() {
    let world = shops();
    let run = request(&world, &["put", "/shops/lima", "-f", r#"{"id": "lima", "name": "lima", "size": 1}"#]);
    assert!(run.starts_with("exit 0"), "{run}");
    assert_eq!(world.writes(), ["PUT /v2/shops/lima", "PUT /shops/lima"]);
}

#[test]
fn headers_override_those_of_metadata() {
    let server = crate::byte_server::ByteServer::new("/notes/a", "text/plain", "hello");
    let home = server.home();
    let args = [
        "resource", "request", "put", "/notes/a", "-f", "x=y", "--content-type", "text/plain",
        "--ignore-warnings",
    ];
    let run = home.run(&args);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(server.written(), ("text/plain".to_owned(), "x=y".to_owned()));
    let run = home.run(&[&args[..], &["-H", "Content-Type: text/x-note"]].concat());
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(server.written().0, "text/x-note");
    let get = home
        .run(&["resource", "request", "get", "/notes/a", "--ignore-warnings", "--accept-type", "text/plain"]);
    assert_eq!(get.stdout, "hello");
}

#[test]
fn delete_needs_consent() {
    let world = shops();
    insta::assert_snapshot!(request(&world, &["delete", "/shops/rio"]), @r"
    exit 2
    --- stdout
    --- stderr
    [ERROR] command execution failed: resource request delete cannot be undone; confirm it with --yes.
    ");
    let run = request(&world, &["delete", "/shops/rio", "--yes"]);
    assert!(run.starts_with("exit 0"), "{run}");
    assert_eq!(world.writes(), ["DELETE /v2/shops/7"]);
}

#[rstest]
#[case::no_path(&["get"], 2, "path is required")]
#[case::not_found(&["get", "/notes/none"], 3, "404")]
#[case::validation(&["put", "/shops/rio", "-f", r#"{"id":"7"}"#], 2, "/name")]
#[case::header(&["get", "/shops/7", "-H", "no header"], 2, "--header has neither")]
#[case::assignments(&["post", "/shops/", "-f", "a=b"], 2, "is neither a file")]
#[case::method(&["fetch", "/shops"], 1, "unrecognized subcommand")]
fn failures(#[case] args: &[&str], #[case] code: i32, #[case] fragment: &str) {
    let run = shops().run(&[&["resource", "request"], args].concat());
    assert_eq!((run.code, run.stdout.as_str()), (code, ""), "{run}");
    assert!(run.stderr.contains(fragment), "{run}");
}

#[test]
fn a_header_with_a_secret_is_not_logged() {
    let world = shops();
    let run = request(&world, &["get", "/shops/7", "-H", "Authorization: Bearer c4n4ry", "-vvv"]);
    assert!(run.starts_with("exit 0") && !run.contains("c4n4ry"), "{run}");
}

#[test]
fn other_methods_are_literal() {
    let world = shops();
    for method in ["head", "options", "trace", "connect"] {
        let _ = request(&world, &[method, "/shops/lima"]);
    }
    let log: Vec<String> = world.server.log().iter().map(ToString::to_string).collect();
    // The target of CONNECT is the host, not a path (RFC 9110 section 9.3.6).
    assert_eq!(log, ["HEAD /shops/lima", "OPTIONS /shops/lima", "TRACE /shops/lima", "CONNECT /"]);
}

#[test]
fn the_envelope_of_earlier_versions() {
    let world = shops();
    insta::assert_snapshot!(request(&world, &["get", "/shops/7", "--envelope"]), @r#"
    exit 0
    --- stdout
    {
      "Descriptor": {
        "Extension": ".json",
        "MediaType": "application/json",
        "PayloadType": "json"
      },
      "Value": {
        "id": "7",
        "name": "rio",
        "tier": "free"
      }
    }
    --- stderr
    "#);
    let template = ["resource", "template", "/shops/rio", "--envelope", "-f", "-"];
    let template = world.run_with(&template, r#"{"id": "7", "name": "rio"}"#);
    assert!(template.to_string().contains("\"Value\""), "{template}");
}

#[test]
fn a_placeholder_is_not_sent() {
    let world = shops();
    for method in ["put", "patch", "post"] {
        let run = request(&world, &[method, "/shops/7", "-f", r#"{"name": "rio", "pin": "{{secret .}}"}"#]);
        assert!(run.starts_with("exit 2") && run.contains("has a placeholder at \"/pin\""), "{run}");
    }
    assert!(world.server.log().is_empty());
}

//! Creates whose answer is only a `Location`: the server assigns the id.

use rstest::rstest;

use crate::environment::{Home, Run};
use crate::server::{Route, Server};

/// The server ignores the tier of a create.
const ROUTES: &[Route] = &[
    ("GET /shops", 200, "[]"),
    ("GET /shops", 200, r#"[{"id": "41", "name": "rio", "tier": "free"}]"#),
    ("POST /shops", 201, "/shops/41"),
    ("GET /shops/41", 200, r#"{"id": "41", "name": "rio", "tier": "free"}"#),
    ("PUT /shops/41", 200, r#"{"id": "41", "name": "rio", "tier": "gold"}"#),
    ("POST /shops/41/tills", 201, r#"{"id": "t1"}"#),
];

/// Runs a command on a shop with a till.
fn run(args: &[&str]) -> (Home, Run, String) {
    let server = Server::new(ROUTES);
    let home = server.home();
    home.write("repo/shops/_/metadata.yaml", "resource: {id: /id, alias: /name}\n");
    home.write("repo/shops/rio/resource.json", r#"{"name": "rio", "tier": "gold"}"#);
    home.write("repo/shops/rio/tills/t1/resource.json", r#"{"id": "t1"}"#);
    let run = home.run(args);
    assert_eq!(run.code, 0, "{run}\n{}", server.requests());
    (home, run, server.requests())
}

#[test]
fn an_apply_completes_the_resource_at_its_location() {
    let (.., requests) = run(&["resource", "apply", "/shops/rio"]);
    assert!(requests.ends_with("POST /shops\nGET /shops/41\nPUT /shops/41\nGET /shops"), "{requests}");
}

#[rstest]
#[case("apply")]
#[case("create")]
fn children_are_created_below_the_location(#[case] command: &str) {
    let (.., requests) = run(&["resource", command, "/shops", "--recursive"]);
    assert!(requests.contains("POST /shops\n"), "{requests}");
    assert!(requests.contains("POST /shops/41/tills"), "{requests}");
}

#[rstest]
#[case("apply")]
#[case("create")]
fn the_result_is_read_at_the_location(#[case] command: &str) {
    let (_, shown, _) = run(&["resource", command, "/shops/rio", "-v"]);
    let record: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!((&record["RemoteID"], &record["Payload"]["tier"]), (&"41".into(), &"free".into()), "{shown}");
    assert_eq!(record["ResolvedRemotePath"], "/shops/41", "{shown}");
    let (home, ..) = run(&["resource", command, "/shops/rio", "--refresh"]);
    let saved: serde_json::Value = serde_json::from_str(&home.read("repo/shops/rio/resource.json")).unwrap();
    assert_eq!(saved, serde_json::json!({"id": "41", "name": "rio", "tier": "free"}));
}

/// An id with a space, and a query.
#[test]
fn a_location_is_a_url() {
    let server = Server::new(&[
        ("GET /shops", 200, "[]"),
        ("GET /shops", 200, r#"[{"id": "4 1", "name": "rio"}]"#),
        ("POST /shops", 201, "/shops/4%201?view=full"),
        ("GET /shops/4%201", 200, r#"{"id": "4 1", "name": "rio"}"#),
    ]);
    let home = server.home();
    home.write("repo/shops/_/metadata.yaml", "resource: {id: /id, alias: /name}\n");
    home.write("repo/shops/rio/resource.json", r#"{"name": "rio"}"#);
    let run = home.run(&["resource", "apply", "/shops/rio"]);
    assert_eq!(run.code, 0, "{run}\n{}", server.requests());
    assert!(
        server.requests().ends_with("POST /shops\nGET /shops/4%201\nGET /shops"),
        "{}",
        server.requests()
    );
}

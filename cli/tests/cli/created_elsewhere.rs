//! Creates whose answer is only a `Location`: the server assigns the id.

use rstest::rstest;

use crate::server::{Route, Server};

/// The server ignores the tier of a create. Its list shows nothing yet, as one that is filled later.
const ROUTES: &[Route] = &[
    ("GET /shops", 200, "[]"),
    ("POST /shops", 201, "/shops/41"),
    ("GET /shops/41", 200, r#"{"id": "41", "name": "rio", "tier": "free"}"#),
    ("PUT /shops/41", 200, r#"{"id": "41", "name": "rio", "tier": "gold"}"#),
    ("POST /shops/41/tills", 201, r#"{"id": "t1"}"#),
];

/// Runs a command on a shop with a till, and returns its requests.
fn requests(args: &[&str]) -> String {
    let server = Server::new(ROUTES);
    let home = server.home();
    home.write("repo/shops/_/metadata.yaml", "resource: {id: /id, alias: /name}\n");
    home.write("repo/shops/rio/resource.json", r#"{"name": "rio", "tier": "gold"}"#);
    home.write("repo/shops/rio/tills/t1/resource.json", r#"{"id": "t1"}"#);
    let run = home.run(args);
    assert_eq!(run.code, 0, "{run}\n{}", server.requests());
    server.requests()
}

#[test]
fn an_apply_completes_the_resource_at_its_location() {
    let requests = requests(&["resource", "apply", "/shops/rio"]);
    assert!(requests.ends_with("POST /shops\nGET /shops/41\nPUT /shops/41"), "{requests}");
}

#[rstest]
#[case("apply")]
#[case("create")]
fn children_are_created_below_the_location(#[case] command: &str) {
    let requests = requests(&["resource", command, "/shops", "--recursive"]);
    assert!(requests.contains("POST /shops\n"), "{requests}");
    assert!(requests.contains("POST /shops/41/tills"), "{requests}");
}

//! Servers that ignore differences of names, such as those with a database whose collation ignores accents.

use declarest_core::sync::{Options, Outcome};
use rstest::rstest;
use serde_json::json;

use crate::api_server::{Answer, ApiServer, Ids, Request};
use crate::rest_server::Config;
use crate::world::{World, failure};

/// The path as the server stores it.
fn folded(path: &str) -> String {
    path.to_lowercase().replace("e\u{301}", "e").replace('\u{e9}', "e")
}

/// A server that finds a resource by a name that is alike, and keeps the name that it has.
fn lenient() -> ApiServer {
    ApiServer::start(&["/shops"], |request, store| {
        let known = store.paths().find(|path| folded(path) == folded(&request.path)).cloned();
        let path = known.unwrap_or_else(|| request.path.clone());
        Request { path, ..request.clone() }.rest(store, Ids::Stated("id"))
    })
}

/// Git now declares the resource under a name that the server does not distinguish from the former one.
#[rstest]
#[case::form("cafe\u{301}", "caf\u{e9}", "")]
#[case::accents("cafe", "caf\u{e9}", "")]
#[case::case("Caf\u{e9}", "caf\u{e9}", "")]
#[case::alias("cafe\u{301}", "caf\u{e9}", "resource: {id: /id, alias: /id}")]
#[tokio::test]
async fn a_name_that_the_server_does_not_distinguish_is_the_same_resource(
    #[case] former: &str,
    #[case] name: &str,
    #[case] metadata: &str,
) {
    let server = lenient();
    server.put(&format!("/shops/{former}"), json!({"id": former}));
    let world = World::new(Config::default(), &[("shops/_/metadata.yaml", metadata)]);
    world.declare(&format!("shops/{name}/resource.json"), &json!({"id": name}).to_string());
    let candidate = (format!("/shops/{former}"), json!({"id": former}).to_string());
    let report = world.sync_on(server.url(), &[(&candidate.0, &candidate.1)]).await;
    assert_eq!((report.kept.len(), server.count("DELETE")), (1, 0), "{report:?}");
    assert_eq!(server.paths(), [candidate.0]);
}

/// Most servers have two resources then.
#[tokio::test]
async fn a_name_that_the_server_distinguishes_is_another_resource() {
    let server = ApiServer::rest(&["/shops"], Ids::Stated("id"));
    server.put("/shops/cafe\u{301}", json!({"id": "cafe\u{301}"}));
    let world = World::new(Config::default(), &[]);
    world.declare("shops/caf\u{e9}/resource.json", &json!({"id": "caf\u{e9}"}).to_string());
    let candidate = ("/shops/cafe\u{301}", r#"{"id":"cafe\u0301"}"#);
    let report = world.sync_on(server.url(), &[candidate]).await;
    assert_eq!((report.outcome, report.stats.pruned), (Outcome::Succeeded, 1), "{report:?}");
    assert_eq!(server.paths(), ["/shops/caf\u{e9}"]);
}

/// A server that assigns ids and refuses a name that another resource has in another case.
#[tokio::test]
async fn a_name_that_is_taken_in_another_case_is_named() {
    let server = ApiServer::start(&["/users"], |request, store| {
        let name = |user: &serde_json::Value| folded(user["name"].as_str().unwrap_or_default());
        let is_taken = store.members("/users").iter().any(|user| name(user) == name(&request.body));
        if request.method == "POST" && is_taken {
            return Answer::json(409, &json!({"error": "name taken"}));
        }
        request.rest(store, Ids::Given)
    });
    server.put("/users/n1", json!({"id": "n1", "name": "Alice"}));
    let metadata = ("users/_/metadata.yaml", "resource: {id: /id, alias: /name}");
    let world =
        World::new(Config::default(), &[metadata, ("users/ALICE/resource.json", r#"{"name":"ALICE"}"#)]);
    let (reason, message) = failure(&world.sync_on(server.url(), &[]).await);
    assert_eq!(reason, "ConflictError");
    assert!(message.contains(r#""error":"name taken""#), "{message}");
    assert!(
        message.ends_with(
            "the list shows the name \"Alice\", and the server may ignore case and accents: use this spelling in Git, or rename \
             the resource on the server"
        ),
        "{message}"
    );
    assert_eq!(server.paths(), ["/users/n1"]);
}

/// A server that stores names in lower case. The user corrected the name in Git.
#[tokio::test]
async fn a_name_that_the_server_has_changed_is_the_same_resource() {
    let server = ApiServer::start(&["/users"], |request, store| {
        let name = request.path.strip_prefix("/users/").unwrap_or_default().to_lowercase();
        let user = store.members("/users").into_iter().find(|user| user["name"] == name.as_str());
        match user.filter(|_| request.method == "GET") {
            Some(user) => Answer::json(200, &user),
            None => request.rest(store, Ids::Given),
        }
    });
    server.put("/users/n1", json!({"id": "n1", "name": "zo\u{eb}"}));
    let metadata = ("users/_/metadata.yaml", "resource: {id: /id, alias: /name}");
    let world = World::new(Config::default(), &[metadata]);
    world.declare("users/zo\u{eb}/resource.json", r#"{"name":"zoë"}"#);
    let report = world.sync_on(server.url(), &[("/users/Zo\u{eb}", r#"{"name":"Zoë"}"#)]).await;
    assert_eq!((report.stats.unchanged, report.stats.failed), (1, 0), "{report:?}");
    let declared_at = report.kept.iter().filter_map(|kept| kept.declared_at.as_ref());
    assert_eq!(declared_at.map(ToString::to_string).collect::<Vec<_>>(), ["/users/zo\u{eb}"]);
    assert_eq!(server.paths(), ["/users/n1"]);
}

/// A server that ignores what follows a semicolon.
#[tokio::test]
async fn an_answer_with_another_id_is_another_resource() {
    let server = ApiServer::start(&["/shops"], |request, store| {
        let path = request.path.split(';').next().unwrap_or_default().to_owned();
        Request { path, ..request.clone() }.rest(store, Ids::Stated("id"))
    });
    let foreign = json!({"id": "rio", "tier": "free"});
    server.put("/shops/rio", foreign.clone());
    let declared = r#"{"id":"rio;v2","tier":"gold"}"#;
    let world = World::new(Config::default(), &[("shops/rio;v2/resource.json", declared)]);
    let updated = world.sync_on(server.url(), &[]).await;
    let world = World::new(Config::default(), &[]);
    let options = Options { allow_empty: true, ..Options::default() };
    let deleted = world.sync_with(server.url(), &[("/shops/rio;v2", declared)], &options).await;
    for report in [updated, deleted] {
        let (reason, message) = failure(&report);
        assert_eq!(reason, "ConflictError");
        assert!(message.contains("the payload states the id rio;v2"), "{message}");
    }
    assert_eq!((server.writes().len(), server.get("/shops/rio")), (0, Some(foreign)));
}

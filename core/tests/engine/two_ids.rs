//! Resources with two ids: GitLab addresses an issue by `iid`, and its member `id` has the number of another issue.

use declarest_core::sync::Outcome;
use rstest::rstest;
use serde_json::{Value, json};

use crate::api_server::{Answer, ApiServer, Ids, Request, Store};
use crate::rest_server::Config;
use crate::world::World;

/// The server keeps both ids in updates.
fn issues(request: &Request, store: &mut Store) -> Answer {
    let mut request = request.clone();
    if request.method == "PUT" {
        "PATCH".clone_into(&mut request.method);
        if let Value::Object(members) = &mut request.body {
            members.retain(|name, _| name != "id" && name != "iid");
        }
    }
    request.rest(store, Ids::Stated("iid"))
}

const BY_DEFAULT: &str = "";
const BY_REMOTE_ID: &str = r#"get: {path: "./{{/remoteID}}"}"#;

/// Without an alias, only the ids show which issue an answer is about.
#[rstest]
#[case::by_default(BY_DEFAULT)]
#[case::with_a_path(BY_REMOTE_ID)]
#[tokio::test]
async fn the_id_is_sufficient(#[case] get: &str) {
    let server = ApiServer::start(&["/issues"], issues);
    for (iid, id) in [(1, 3), (2, 1), (3, 2)] {
        server.put(&format!("/issues/{iid}"), json!({"id": id, "iid": iid, "body": ""}));
    }
    let metadata = format!("resource: {{id: /iid}}\noperations: {{compare: {{mode: declared}}, {get}}}");
    let world = World::new(Config::default(), &[("issues/_/metadata.yaml", &metadata)]);
    world.declare("issues/1/resource.json", r#"{"id": 3, "iid": 1, "body": "new"}"#);
    let two = [("/issues/2", r#"{"id": 1, "iid": 2, "body": ""}"#)];
    let report = world.sync_on(server.url(), &two).await;
    assert_eq!((report.outcome, report.stats.pruned), (Outcome::Succeeded, 1), "{report:?}");
    assert_eq!(server.writes(), ["PUT /issues/1 200", "DELETE /issues/2 204"]);
}

/// The file states no id, as a person writes it, or both, as the server shows them.
#[rstest]
#[case::no_id(BY_DEFAULT, json!({"title": "one", "body": "new"}))]
#[case::both_ids(BY_DEFAULT, json!({"id": 3, "iid": 1, "title": "one", "body": "new"}))]
#[case::no_id_with_a_path(BY_REMOTE_ID, json!({"title": "one", "body": "new"}))]
#[case::both_ids_with_a_path(BY_REMOTE_ID, json!({"id": 3, "iid": 1, "title": "one", "body": "new"}))]
#[tokio::test]
async fn the_id_that_metadata_states_addresses_the_resource(#[case] get: &str, #[case] one: Value) {
    let server = ApiServer::start(&["/issues"], issues);
    for (iid, id, title) in [(1, 3, "one"), (2, 1, "two"), (3, 2, "three")] {
        let issue = json!({"id": id, "iid": iid, "title": title, "body": ""});
        server.put(&format!("/issues/{iid}"), issue);
    }
    let metadata =
        format!("resource: {{id: /iid, alias: /title}}\noperations: {{compare: {{mode: declared}}, {get}}}");
    let world = World::new(Config::default(), &[("issues/_/metadata.yaml", &metadata)]);
    world.declare("issues/one/resource.json", &one.to_string());
    let two = [("/issues/two", r#"{"id": 1, "iid": 2, "title": "two"}"#)];
    let report = world.sync_on(server.url(), &two).await;
    assert_eq!((report.outcome, report.stats.pruned), (Outcome::Succeeded, 1), "{report:?}");
    assert_eq!(server.writes(), ["PUT /issues/1 200", "DELETE /issues/2 204"]);
    assert_eq!(server.get("/issues/1").unwrap()["body"], "new");
    let report = world.sync_on(server.url(), &two).await;
    assert_eq!((report.stats.unchanged, report.stats.pruned), (1, 0), "{report:?}");
}

/// The server has flows at their `id` only, although metadata names them by their alias.
#[tokio::test]
async fn the_id_of_the_server_addresses_a_resource_that_it_does_not_have_at_its_name() {
    let server = ApiServer::rest(&["/flows"], Ids::Given);
    server.put("/flows/u-1", json!({"id": "u-1", "alias": "browser", "on": false}));
    let metadata = "resource: {id: /alias, alias: /alias}";
    let world = World::new(Config::default(), &[("flows/_/metadata.yaml", metadata)]);
    world.declare("flows/browser/resource.json", r#"{"id": "u-1", "alias": "browser", "on": true}"#);
    let report = world.sync_on(server.url(), &[]).await;
    assert_eq!(report.outcome, Outcome::Succeeded, "{report:?}");
    assert_eq!(server.writes(), ["PUT /flows/u-1 200"]);
}

/// A note has the id that `resource.id` finds nowhere, and another one is at the address of its `id`.
#[tokio::test]
async fn a_resource_at_an_unknown_address_is_not_written() {
    let server = ApiServer::start(&["/notes"], |request, store| {
        if request.method == "GET" && request.path == "/notes" {
            return Answer::json(200, &json!([{"id": 1, "key": "k", "title": "one"}]));
        }
        request.rest(store, Ids::Stated("id"))
    });
    server.put("/notes/1", json!({"id": 9, "key": "other", "title": "nine"}));
    let metadata = "resource: {id: /key, alias: /title}";
    let world = World::new(Config::default(), &[("notes/_/metadata.yaml", metadata)]);
    world.declare("notes/one/resource.json", r#"{"title": "one"}"#);
    let report = world.sync_on(server.url(), &[]).await;
    let message = "cannot determine whether /notes/one exists: the server shows another resource at the address with the id k; \
                   correct resource.id, or state operations.get.path or operations.get.from: list; the place is \
                   notes/_/metadata.yaml";
    assert_eq!(report.failures[0].message, message, "{report:?}");
    assert_eq!(server.writes(), Vec::<String>::new());
}

/// With the wrong id in metadata, the list shows one issue, and its address has another one.
#[tokio::test]
async fn another_resource_at_the_address_of_an_entry_is_not_written() {
    let server = ApiServer::start(&["/issues"], issues);
    for (iid, id, title) in [(1, 3, "one"), (3, 2, "three")] {
        server.put(&format!("/issues/{iid}"), json!({"id": id, "iid": iid, "title": title, "body": ""}));
    }
    let metadata = "resource: {id: /id, alias: /title}";
    let world = World::new(Config::default(), &[("issues/_/metadata.yaml", metadata)]);
    world.declare("issues/one/resource.json", r#"{"title": "one", "body": "new"}"#);
    let report = world.sync_on(server.url(), &[]).await;
    assert!(
        report.failures[0].message.contains("another resource at the address with the id 3"),
        "{report:?}"
    );
    assert_eq!(server.writes(), Vec::<String>::new());
}

/// `etcd` shows only the roles of a user.
#[tokio::test]
async fn names_that_the_server_does_not_show_are_not_differences() {
    let server = ApiServer::start(&["/users"], |request, store| {
        if request.is("GET", "/users/ana") {
            return Answer::json(200, &json!({"roles": []}));
        }
        request.rest(store, Ids::Stated("name"))
    });
    server.put("/users/ana", json!({"name": "ana"}));
    let metadata = "resource: {id: /name, alias: /name}\noperations: {compare: {mode: declared}}";
    let world = World::new(Config::default(), &[("users/_/metadata.yaml", metadata)]);
    world.declare("users/ana/resource.json", r#"{"name": "ana", "roles": []}"#);
    let report = world.sync_on(server.url(), &[]).await;
    assert_eq!((report.outcome, report.stats.unchanged), (Outcome::Succeeded, 1), "{report:?}");
}

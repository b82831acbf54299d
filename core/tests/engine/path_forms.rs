//! Metadata that writes one path of the server in several forms.

use rstest::rstest;
use serde_json::json;

use crate::api_server::{ApiServer, Ids};
use crate::rest_server::Config;
use crate::world::World;

const LITERAL: &str = "resource: {id: /name, alias: /name, remoteCollectionPath: /vh}";
const ENCODED: &str = "
resource: {id: /name, alias: /name, pathNames: percentEncoded}
operations: {get: {path: '/vh/{{/name}}'}, update: {path: '/vh/{{/name}}'}, delete: {path: '/vh/{{/name}}'}}
";
const PAYLOAD: &str = r#"{"name": "a b"}"#;

/// The commit declares the host in another collection, with other metadata.
#[rstest]
#[case::encoded(LITERAL, ENCODED)]
#[case::literal(ENCODED, LITERAL)]
#[tokio::test]
async fn a_declared_resource_is_not_deleted_at_the_other_form_of_its_path(
    #[case] before: &str,
    #[case] after: &str,
) {
    let server = ApiServer::rest(&["/vh"], Ids::Stated("name"));
    server.put("/vh/a b", json!({"name": "a b"}));
    let world = World::new(Config::default(), &[]);
    world.declare("hosts/_/metadata.yaml", before);
    world.declare("v/_/metadata.yaml", after);
    world.declare("v/a b/resource.json", PAYLOAD);
    let report = world.sync_on(server.url(), &[("/hosts/a b", PAYLOAD)]).await;
    assert_eq!((report.stats.unchanged, report.stats.pruned), (1, 0), "{report:?}");
    assert_eq!(report.kept.len(), 1, "{report:?}");
    assert_eq!(server.writes(), Vec::<String>::new());
}

/// `/hosts/a b` is no longer declared, and the queue `x` is below it on the server.
#[tokio::test]
async fn a_parent_of_a_declared_resource_is_not_deleted_at_the_other_form_of_its_path() {
    let server = ApiServer::rest(&["/vh", "/vh/a b/q"], Ids::Stated("name"));
    server.put("/vh/a b", json!({"name": "a b"}));
    server.put("/vh/a b/q/x", json!({"name": "x"}));
    let world = World::new(Config::default(), &[]);
    world.declare("hosts/_/metadata.yaml", LITERAL);
    let below = "
resource: {id: /name, alias: /name, pathNames: percentEncoded}
operations: {get: {path: '/vh/a%20b/q/{{/name}}'}, delete: {path: '/vh/a%20b/q/{{/name}}'}}
";
    world.declare("queues/_/metadata.yaml", below);
    world.declare("queues/x/resource.json", r#"{"name": "x"}"#);
    let report = world.sync_on(server.url(), &[("/hosts/a b", PAYLOAD)]).await;
    assert_eq!((report.stats.unchanged, report.stats.pruned), (1, 0), "{report:?}");
    assert_eq!(server.writes(), Vec::<String>::new());
}

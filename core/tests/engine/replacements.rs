//! Resources that the server deletes together with others that are replaced.

use declarest_core::sync::{Options, Reading};
use rstest::rstest;
use serde_json::json;

use crate::rest_server::Config;
use crate::scene::Scene;
use crate::world::World;

const REPLACED: (&str, &str) = ("hosts/_/metadata.yaml", "resource: {replaceOn: [/kind]}");

fn hosts() -> Config {
    let collections = ["/hosts", "/hosts/*/services", "/users"].map(str::to_owned).to_vec();
    Config { collections, ..Config::default() }
}

/// The server deletes the services together with their host.
#[rstest]
#[case::whole_scope(true)]
#[case::reported_as_equal(false)]
#[tokio::test]
async fn what_is_below_a_replaced_resource_is_created_again(#[case] counted: bool) {
    let world = World::new(hosts(), &[REPLACED]);
    world.declare("hosts/web/resource.json", r#"{"id":"web","kind":"new"}"#);
    for service in ["http", "ssh"] {
        let file = format!("hosts/web/services/{service}/resource.json");
        world.declare(&file, &json!({"id": service}).to_string());
    }
    world.declare("hosts/db/resource.json", r#"{"id":"db","kind":"new"}"#);
    world.server.put_by_hand("/hosts/web", json!({"id": "web", "kind": "old"}));
    world.server.put_by_hand("/hosts/db", json!({"id": "db", "kind": "new"}));
    world.server.put_by_hand("/hosts/web/services/http", json!({"id": "http"}));
    world.server.put_by_hand("/hosts/web/services/ssh", json!({"id": "ssh"}));
    let options = Options { keep_compared: !counted, ..Options::default() };
    let report = world.apply(world.plan(&options).await).await;
    assert_eq!(
        world.writes(),
        [
            "DELETE /hosts/web 204",
            "POST /hosts 201",
            "POST /hosts/web/services 201",
            "POST /hosts/web/services 201"
        ]
    );
    let stats = report.stats;
    assert_eq!((stats.created, stats.unchanged, stats.pruned, stats.failed), (3, 1, 1, 0), "{report:?}");
    assert_eq!(stats.applied, 4);
    assert_eq!(world.sync().await.stats.unchanged, 4);
}

/// A user depends on a host, by metadata or by a reference to its id. The value of the reference is known after the host
/// is created, so the user is then read once more.
#[rstest]
#[case::stated("resource: {dependsOn: ['/hosts/{{/host}}']}", json!({"id": "ana", "host": "web"}), 2)]
#[case::collection("resource: {dependsOn: [/hosts]}", json!({"id": "ana", "host": "web"}), 2)]
#[case::reference("{}", json!({"id": "ana", "host": r#"{{ref "/hosts/web" "/id"}}"#}), 3)]
#[tokio::test]
async fn what_depends_on_a_replaced_resource_is_read_again(
    #[case] metadata: &str,
    #[case] user: serde_json::Value,
    #[case] reads: usize,
) {
    let mut scene = Scene::new(hosts());
    scene.write(REPLACED.0, REPLACED.1);
    scene.write("users/_/metadata.yaml", metadata);
    scene.declare("/hosts/web", &json!({"id": "web", "kind": "new"}));
    scene.declare("/users/ana", &user);
    scene.declare("/users/bob", &json!({"id": "bob", "host": "db"}));
    scene.server().put_by_hand("/hosts/web", json!({"id": "web", "kind": "old"}));
    scene.server().put_by_hand("/users/ana", json!({"id": "ana", "host": "web"}));
    scene.server().put_by_hand("/users/bob", json!({"id": "bob", "host": "db"}));
    let report = scene.run(Reading::Each).await;
    assert_eq!((report.stats.created, report.stats.unchanged), (1, 2), "{report:?}");
    assert_eq!(scene.server().counts().of("GET", "/users/ana"), reads, "{:?}", scene.asked());
}

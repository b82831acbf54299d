//! Differences that the transforms of an update remove from its request. The server answers 204, as it does to an update
//! with an effect.

use declarest_core::sync::{Options, Outcome};
use rstest::rstest;
use serde_json::json;

use crate::rest_server::Config;
use crate::world::{World, failure};

const METADATA: &str = r"
resource: {id: /name, alias: /name}
operations: {update: {method: PATCH, transforms: [{excludeAttributes: [/name, /type]}]}}
";

/// A pool whose type is fixed when it is created.
fn pools(declared: &str, metadata: &str) -> World {
    let world = World::new(Config::default(), &[("pools/_/metadata.yaml", metadata)]);
    world.server.put_by_hand("/pools/p", json!({"name": "p", "type": "process", "limit": 1}));
    world.declare("pools/p/resource.json", declared);
    world
}

#[tokio::test]
async fn an_update_that_would_change_nothing_is_not_sent() {
    let world = pools(r#"{"name": "p", "type": "kubernetes", "limit": 1}"#, METADATA);
    let report = world.sync().await;
    assert_eq!(report.stats.failed, 1, "{report:?}");
    let (category, message) = failure(&report);
    assert_eq!(category, "ValidationError");
    let expected = "/pools/p differs only at /type, which operations.update.transforms remove from the request or \
                    replace; correct these transforms; if the server sets the value, exclude it in operations.compare.transforms; \
                    if an update cannot change it, state resource.replaceOn: then the resource is deleted and created \
                    again";
    assert_eq!(message, expected);
    assert!(world.writes().is_empty(), "{:?}", world.writes());
}

#[tokio::test]
async fn what_the_update_contains_is_sent() {
    let world = pools(r#"{"name": "p", "type": "kubernetes", "limit": 2}"#, METADATA);
    assert_eq!(world.sync().await.stats.updated, 1);
    assert_eq!(world.server.get("/pools/p").unwrap()["limit"], 2);
    let report = world.sync().await;
    assert!(failure(&report).1.contains("differs only at /type"), "{report:?}");
}

#[tokio::test]
async fn an_attribute_that_cannot_be_updated_can_replace_the_resource() {
    let metadata = METADATA.replace("{id:", "{replaceOn: [/type], id:");
    let world = pools(r#"{"name": "p", "type": "kubernetes", "limit": 1}"#, &metadata);
    assert_eq!(world.sync().await.outcome, Outcome::Succeeded);
    assert_eq!(world.server.get("/pools/p").unwrap()["type"], "kubernetes");
}

/// A server removes what a PUT lacks.
#[tokio::test]
async fn an_update_that_may_remove_an_attribute_is_sent() {
    let metadata = METADATA.replace("method: PATCH, ", "").replace("/name, /type]", "/type]");
    let world = pools(r#"{"name": "p", "limit": 1}"#, &metadata);
    assert_eq!(world.sync().await.outcome, Outcome::Succeeded);
    assert_eq!(world.sync().await.stats.unchanged, 1);
}

/// Each of these requests may have an effect.
#[rstest]
// Rundeck derives the type of a key from its content, which it does not show.
#[case::content("writeOnlyAttributes: [/content], ", r#", "content": "k""#, "")]
#[case::part("writeOnlyAttributes: [/a/content], ", r#", "a": {"content": "k"}"#, "")]
#[case::query("", "", r#"query: {type: "{{/type}}"}, "#)]
#[case::header("", "", r#"headers: {X-Type: "{{/type}}"}, "#)]
#[tokio::test]
async fn an_update_that_may_change_the_difference_is_sent(
    #[case] resource: &str,
    #[case] hidden: &str,
    #[case] operation: &str,
) {
    let metadata = METADATA.replace("{id:", &format!("{{{resource}id:"));
    let metadata = metadata.replace("update: {", &format!("update: {{{operation}"));
    let declared = format!(r#"{{"name": "p", "type": "public", "limit": 1{hidden}}}"#);
    let world = pools(&declared, &metadata);
    world.server.put_by_hand("/pools/p", json!({"name": "p", "type": "process", "limit": 1, "a": {}}));
    world.sync().await;
    assert_eq!(world.writes().len(), 1, "{:?}", world.writes());
}

/// The steps of the comparison move what differs.
#[tokio::test]
async fn an_update_of_a_part_is_sent() {
    let lifted = r#"transforms: [{jqExpression: ".config + {name}"}]"#;
    let operations = format!("{{update: {{method: PATCH, {lifted}}}, compare: {{{lifted}}}}}");
    let metadata = format!("resource: {{id: /name, alias: /name}}\noperations: {operations}");
    let world = pools(r#"{"name": "p", "config": {"ttl": 1}}"#, &metadata);
    world.server.put_by_hand("/pools/p", json!({"name": "p", "config": {"ttl": 2}}));
    world.sync().await;
    assert_eq!(world.writes().len(), 1, "{:?}", world.writes());
}

#[tokio::test]
async fn a_forced_update_is_sent() {
    let world = pools(r#"{"name": "p", "type": "kubernetes", "limit": 1}"#, METADATA);
    let options = Options { force: true, ..Options::default() };
    let plan = world.plan(&options).await;
    assert_eq!(world.apply(plan).await.stats.updated, 1);
}

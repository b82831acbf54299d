//! Answers of a gateway or a maintenance page instead of those of the server, with status 200.

use rstest::rstest;
use serde_json::json;

use crate::api_server::{Answer, ApiServer, Ids};
use crate::rest_server::Config;
use crate::world::{World, failure};

const SHOP: &str = r#"{"id": "rio", "tier": "gold"}"#;

/// Each update would replace what only the server has.
#[rstest]
#[case::text("text/plain", "", "a text; the resource is an object or an array")]
#[case::unknown_type("application/x-gateway", "", "bytes; the resource is an object or an array")]
#[case::merge("text/plain", "operations: {update: {mode: merge}}", "a text")]
#[case::json_patch("text/plain; charset=utf-8", "operations: {update: {mode: json-patch}}", "a text")]
#[tokio::test]
async fn a_text_is_not_the_content_of_an_object(
    #[case] content_type: &'static str,
    #[case] metadata: &str,
    #[case] reason: &str,
) {
    let live = json!({"id": "rio", "tier": "free", "owner": "ava"});
    let server = ApiServer::start(&["/shops"], move |request, store| {
        let is_answered = request.is("GET", "/shops/rio") && store.mode == "gateway";
        let gateway = is_answered.then(|| Answer::text(200, content_type, "upstream connect error"));
        gateway.unwrap_or_else(|| request.rest(store, Ids::Stated("id")))
    });
    server.put("/shops/rio", live.clone());
    server.mode("gateway");
    let world = World::new(Config::default(), &[("shops/_/metadata.yaml", metadata)]);
    world.declare("shops/rio/resource.json", SHOP);
    let report = world.sync_on(server.url(), &[]).await;
    let (category, message) = failure(&report);
    assert_eq!(category, "ValidationError", "{message}");
    assert!(message.contains("GET /shops/rio") && message.contains(reason), "{message}");
    let pruned = World::new(Config::default(), &[("shops/_/metadata.yaml", metadata)]);
    pruned.declare("shops/lima/resource.json", r#"{"id": "lima"}"#);
    let report = pruned.sync_on(server.url(), &[("/shops/rio", SHOP)]).await;
    assert_eq!((report.stats.pruned, server.get("/shops/rio")), (0, Some(live)), "{report:?}");
}

/// The entry of the list lacks an attribute, and the member cannot be read.
#[rstest]
#[case::merge(404, "operations: {update: {mode: merge}}", Some("only a list shows it"))]
#[case::json_patch(405, "operations: {update: {mode: json-patch}}", Some("only a list shows it"))]
#[case::path_without_a_value(
    200,
    "operations: {get: {path: '/shops/{{/region}}/{{/id}}'}, update: {mode: merge}}",
    Some("only a list shows it")
)]
#[case::stated(404, "operations: {get: {from: list}, update: {mode: merge}}", None)]
#[case::merge_patch(404, "operations: {update: {mode: merge-patch}}", None)]
#[case::replace(404, "operations: {}", None)]
#[tokio::test]
async fn an_entry_of_a_list_is_not_merged(
    #[case] status: u16,
    #[case] operations: &str,
    #[case] reason: Option<&str>,
) {
    let server = ApiServer::start(&["/shops"], move |request, store| {
        if request.method != "GET" {
            return request.rest(store, Ids::Stated("id"));
        }
        match request.path.as_str() {
            "/shops" => Answer::json(200, &json!([{"id": "rio", "tier": "free"}])),
            _ if status == 200 => request.rest(store, Ids::Stated("id")),
            _ => Answer::empty(status),
        }
    });
    let live = json!({"id": "rio", "tier": "free", "owner": "ava"});
    server.put("/shops/rio", live.clone());
    let metadata = format!("resource: {{id: /id, alias: /id}}\n{operations}");
    let world = World::new(Config::default(), &[("shops/_/metadata.yaml", &metadata)]);
    world.declare("shops/rio/resource.json", SHOP);
    let report = world.sync_on(server.url(), &[]).await;
    match reason {
        Some(reason) => {
            let (category, message) = failure(&report);
            assert_eq!((category, server.get("/shops/rio")), ("ValidationError", Some(live)), "{message}");
            assert!(message.contains(reason), "{message}");
        }
        None => assert_eq!(report.stats.updated, 1, "{report:?}"),
    }
}

/// A string in JSON, and what transforms make of a text, may be the content.
#[rstest]
#[case::json("application/json", "\"rio\"", "")]
#[case::transformed(
    "text/plain",
    "gold",
    "operations: {get: {transforms: [{jqExpression: '{id: \"rio\", tier: .}'}]}}"
)]
#[tokio::test]
async fn other_texts_are_compared(
    #[case] content_type: &'static str,
    #[case] body: &'static str,
    #[case] metadata: &str,
) {
    let server = ApiServer::start(&["/shops"], move |request, store| {
        let page = request.is("GET", "/shops/rio").then(|| Answer::text(200, content_type, body));
        page.unwrap_or_else(|| request.rest(store, Ids::Stated("id")))
    });
    server.put("/shops/rio", json!({}));
    let world = World::new(Config::default(), &[("shops/_/metadata.yaml", metadata)]);
    world.declare("shops/rio/resource.json", SHOP);
    let report = world.sync_on(server.url(), &[]).await;
    let updated = usize::from(metadata.is_empty());
    assert_eq!((report.stats.updated, report.stats.unchanged), (updated, 1 - updated), "{report:?}");
}

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
    let server = ApiServer::start(&["/shops"], move |request, store| match request.is("GET", "/shops/rio") {
        true if store.mode == "gateway" => Answer::text(200, content_type, "upstream connect error"),
        _ => request.rest(store, Ids::Stated("id")),
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
    let server = ApiServer::start(&["/shops"], move |request, store| match request.is("GET", "/shops/rio") {
        true => Answer::text(200, content_type, body),
        false => request.rest(store, Ids::Stated("id")),
    });
    server.put("/shops/rio", json!({}));
    let world = World::new(Config::default(), &[("shops/_/metadata.yaml", metadata)]);
    world.declare("shops/rio/resource.json", SHOP);
    let report = world.sync_on(server.url(), &[]).await;
    let updated = usize::from(metadata.is_empty());
    assert_eq!((report.stats.updated, report.stats.unchanged), (updated, 1 - updated), "{report:?}");
}

//! Answers of the shape of a list that are not what they seem.

use rstest::rstest;
use serde_json::{Value, json};

use super::{Scene, assert_reports};
use crate::support::api_server::{Answer, ApiServer, Ids};

const BY_NAME: &str = "resource: {id: /name, alias: /name}\n";
const BY_ID: &str = "resource: {id: /id, alias: /name}\n";

#[rstest]
#[case::blank(BY_NAME, Ids::Stated("name"), json!({"name": "", "type": "direct"}))]
#[case::null(BY_NAME, Ids::Stated("name"), json!({"name": null}))]
#[case::nothing(BY_NAME, Ids::Stated("name"), json!({"type": "direct"}))]
#[case::without_metadata("", Ids::Given, json!({"type": "direct"}))]
#[case::no_name_and_no_id(BY_ID, Ids::Given, json!({"type": "direct"}))]
#[case::an_id_and_no_name(BY_ID, Ids::Given, json!({"id": "n0", "name": ""}))]
#[tokio::test]
async fn an_entry_without_a_name_is_not_in_the_way_of_others(
    #[case] metadata: &str,
    #[case] ids: Ids,
    #[case] nameless: Value,
) {
    let server = ApiServer::start(&["/exchanges"], move |request, store| {
        if request.is("GET", "/exchanges") {
            let all = [vec![nameless.clone()], store.members("/exchanges")].concat();
            return Answer::json(200, &json!(all));
        }
        request.rest(store, ids)
    });
    server.put("/exchanges/logs", json!({"id": "logs", "name": "logs"}));
    let (scene, _) = Scene::start(
        server,
        &[
            ("exchanges/_/metadata.yaml", metadata),
            ("exchanges/orders/resource.json", r#"{"name": "orders"}"#),
        ],
    )
    .await;
    scene.converges(1).await;
    scene.full_run().await;
    scene.deletes_nothing();
    assert_eq!(scene.server.writes(), ["POST /exchanges 201"]);
}

/// A flow, as Keycloak shows it: one object with one array, which is not the list of what is below the flow.
fn flow() -> Value {
    json!({
        "id": "f1", "alias": "browser", "description": "the login", "providerId": "basic-flow",
        "topLevel": true, "builtIn": false, "authenticationExecutions": [],
    })
}

#[tokio::test]
async fn an_object_with_an_array_does_not_prove_that_something_is_missing() {
    let server = ApiServer::start(&["/flows/browser"], |request, store| {
        if request.is("GET", "/flows/browser") {
            return Answer::json(200, &flow());
        }
        request.rest(store, Ids::Given)
    });
    server.put("/flows/browser/x1", json!({"id": "x1", "name": "otp"}));
    let before = server.all();
    let (scene, mut status) = Scene::start(
        server,
        &[
            ("flows/browser/_/metadata.yaml", BY_ID),
            ("flows/browser/otp/resource.json", r#"{"name": "otp"}"#),
        ],
    )
    .await;
    for _ in 0..3 {
        assert_eq!(scene.server.writes(), Vec::<String>::new());
        assert_eq!(scene.server.all(), before);
        assert_reports(&status, "/flows/browser/otp");
        status = scene.full_run().await;
    }
}

/// What is right: metadata says where the list is.
#[tokio::test]
async fn a_list_that_metadata_takes_out_of_an_object_counts() {
    let server = ApiServer::start(&["/flows/browser"], |request, store| {
        if request.is("GET", "/flows/browser") {
            let mut flow = flow();
            flow["authenticationExecutions"] = json!(store.members("/flows/browser"));
            return Answer::json(200, &flow);
        }
        request.rest(store, Ids::Given)
    });
    server.put("/flows/browser/x1", json!({"id": "x1", "name": "otp"}));
    let metadata = "resource: {id: /id, alias: /name}
operations: {list: {transforms: [{jqExpression: .authenticationExecutions}]}}
";
    let scene = Scene::synced(
        server,
        &[
            ("flows/browser/_/metadata.yaml", metadata),
            ("flows/browser/otp/resource.json", r#"{"name": "otp"}"#),
            ("flows/browser/sms/resource.json", r#"{"name": "sms"}"#),
        ],
    )
    .await;
    scene.converges(1).await;
    assert_eq!(scene.server.writes(), ["POST /flows/browser 201"]);
}

//! What was written must be there, and writes must not hinder each other.

use std::time::Duration;

use rstest::rstest;
use serde_json::json;

use super::{Scene, outcome, succeeded};
use crate::support::api_server::{Answer, ApiServer, Ids};

#[rstest]
#[case::shows_what_it_made("shown")]
#[case::shows_only_where("location")]
#[case::shows_nothing("nothing")]
#[tokio::test]
async fn a_run_succeeds_only_once_the_server_holds_what_was_created(#[case] mode: &str) {
    let server = ApiServer::start(&["/executions"], |request, store| {
        if request.method != "POST" {
            return request.rest(store, Ids::Given);
        }
        // As Keycloak does: what a create says of this is ignored.
        let mut ignoring = request.clone();
        ignoring.body["requirement"] = json!("DISABLED");
        let answer = ignoring.create(store, Ids::Given);
        match store.mode.as_str() {
            "shown" => answer,
            "location" => answer.without_body(),
            _ => Answer::empty(201),
        }
    });
    server.mode(mode);
    let (scene, status) = Scene::start(
        server,
        &[
            ("executions/_/metadata.yaml", "resource: {id: /id, alias: /provider}\n"),
            ("executions/otp/resource.json", r#"{"provider": "otp", "requirement": "REQUIRED"}"#),
        ],
    )
    .await;
    let held = scene.server.get("/executions/n7").unwrap();
    assert!(!succeeded(&status) || held["requirement"] == "REQUIRED", "Ready with {held}");
    assert!(succeeded(&status), "it can be put right in the same run: {:?}", scene.server.writes());
    assert_eq!(scene.server.writes(), ["POST /executions 201", "PUT /executions/n7 200"]);
}

/// What is right: where the answer shows what was sent, nothing more is written.
#[tokio::test]
async fn what_is_created_as_declared_is_written_once() {
    let server = ApiServer::rest(&["/executions"], Ids::Given);
    let scene = Scene::synced(
        server,
        &[
            ("executions/_/metadata.yaml", "resource: {id: /id, alias: /provider}\n"),
            ("executions/otp/resource.json", r#"{"provider": "otp", "requirement": "REQUIRED"}"#),
        ],
    )
    .await;
    scene.converges(1).await;
    assert_eq!(scene.server.writes(), ["POST /executions 201"]);
}

/// Compare may show the id, as where metadata lists what counts.
#[tokio::test]
async fn an_id_that_the_server_gave_is_not_drift() {
    let metadata = "resource: {id: /id, alias: /name}
operations: {compare: {transforms: [{jqExpression: '{id, name, size}'}]}}
";
    let server = ApiServer::rest(&["/jobs"], Ids::Given);
    let scene = Scene::synced(
        server,
        &[
            ("jobs/_/metadata.yaml", metadata),
            ("jobs/nightly/resource.json", r#"{"name": "nightly", "size": 1}"#),
        ],
    )
    .await;
    for _ in 0..2 {
        let status = scene.full_run().await;
        assert_eq!(scene.server.writes(), ["POST /jobs 201"]);
        assert!(succeeded(&status), "{}", outcome(&status));
    }
    // What is right: the rest still counts.
    scene.server.put("/jobs/n7", json!({"id": "n7", "name": "nightly", "size": 9}));
    scene.converges(1).await;
    assert_eq!(scene.server.get("/jobs/n7").unwrap()["size"], 1);
}

#[tokio::test]
async fn writes_to_one_address_wait_for_each_other() {
    const RECORDS: usize = 8;
    let server = ApiServer::start(&["/zone"], |request, store| {
        if !request.is("PATCH", "/zone") {
            return request.rest(store, Ids::Stated("name"));
        }
        if !request.alone {
            return Answer::json(500, &json!({"error": "the zone is locked"}));
        }
        let name = request.body["name"].as_str().unwrap_or_default().to_owned();
        store.put(&format!("/zone/{name}"), request.body.clone());
        Answer::empty(204).after(Duration::from_millis(60))
    });
    let names: Vec<String> = (0..RECORDS).map(|index| format!("r{index}")).collect();
    let mut files = vec![(
        "zone/_/metadata.yaml".to_owned(),
        "resource: {id: /name, alias: /name}\noperations: {update: {method: PATCH, path: .}}\n".to_owned(),
    )];
    for name in &names {
        server.put(&format!("/zone/{name}"), json!({"name": name, "ttl": 60}));
        files.push((format!("zone/{name}/resource.json"), json!({"name": name, "ttl": 300}).to_string()));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, &**text)).collect();
    let (scene, status) = Scene::start(server, &files).await;
    let refused = scene.server.log().iter().filter(|request| request.status == 500).count();
    assert_eq!(refused, 0, "{:?}", scene.server.writes());
    assert!(succeeded(&status));
    assert_eq!(scene.server.count("PATCH"), RECORDS);
    assert!(scene.server.all().values().all(|record| record["ttl"] == 300));
}

//! Resources whose names no run finds after the server has assigned an id. Each run would create another one.

use declarest_core::sync::Reading;
use rstest::rstest;
use serde_json::{Value, json};

use crate::rest_server::Config;
use crate::scene::Scene;

/// A server that assigns ids and ignores names. Labels have the name `bug` in Git.
fn scene(metadata: &str, payload: &Value) -> Scene {
    let labels = || vec!["/labels".to_owned()];
    let config = Config { collections: labels(), server_ids: labels(), ..Config::default() };
    let mut scene = Scene::new(config);
    scene.write("labels/_/metadata.yaml", metadata);
    scene.declare("/labels/bug", payload);
    scene
}

#[rstest]
#[case::only_an_id("resource: {id: /id}", json!({"name": "bug"}))]
#[case::no_usual_name("{}", json!({"color": "red"}))]
#[tokio::test]
async fn what_no_run_finds_is_created_once(#[case] metadata: &str, #[case] payload: Value) {
    let scene = scene(metadata, &payload);
    for _ in 0..2 {
        let report = scene.run(Reading::Each).await;
        assert_eq!((report.failures.len(), report.stats.created), (1, 0), "{report:?}");
        let message = &report.failures[0].message;
        assert!(message.contains("/labels/bug: created with the id"), "{message}");
        assert!(message.contains("resource.alias in labels/_/metadata.yaml"), "{message}");
    }
    assert_eq!(scene.server().resources().len(), 1);
}

#[tokio::test]
async fn it_is_found_after_a_correction_of_metadata() {
    let mut scene = scene("resource: {id: /id}", &json!({"name": "bug"}));
    assert_eq!(scene.run(Reading::Each).await.failures.len(), 1);
    scene.write("labels/_/metadata.yaml", "resource: {id: /id, alias: /name}");
    let report = scene.run(Reading::Each).await;
    assert_eq!((report.failures.len(), report.stats.unchanged), (0, 1), "{report:?}");
}

//! Full runs that get the answers which an earlier one found to be as desired.

use declarest_core::sync::{FailureReason, Reading, Report};
use rstest::rstest;
use serde_json::json;

use crate::rest_server::{Config, Matcher};
use crate::scene::Scene;

fn apps(payloads: &[(&str, &str)], metadata: &str) -> Scene {
    let mut scene = Scene::new(Config { collections: vec!["/apps".to_owned()], ..Config::default() });
    for (name, payload) in payloads {
        scene.declare(&format!("/apps/{name}"), &serde_json::from_str(payload).unwrap());
    }
    scene.write("apps/_/metadata.yaml", metadata);
    scene
}

const TWO: [(&str, &str); 2] = [("a", r#"{"id":"a","size":1}"#), ("b", r#"{"id":"b","size":2}"#)];

/// Two resources in their desired state, each of which was read and compared once since they were created.
async fn compared(metadata: &str) -> Scene {
    let scene = apps(&TWO, metadata);
    assert_eq!(scene.again(Reading::Each).await.stats.created, 2);
    assert_eq!(counts(&scene.again(Reading::Each).await), (0, 2));
    assert!(scene.files_read() >= 2);
    scene
}

/// How many were written, and how many left alone.
#[track_caller]
fn counts(report: &Report) -> (usize, usize) {
    assert_eq!(report.stats.failed, 0, "{report:?}");
    (report.stats.created + report.stats.updated, report.stats.unchanged)
}

#[tokio::test]
async fn each_is_read_once_more_and_nothing_is_looked_up_in_git() {
    let scene = compared("{}").await;
    for _ in 0..2 {
        assert_eq!(counts(&scene.again(Reading::Each).await), (0, 2));
        assert_eq!(scene.asked(), ["1 GET /apps/a", "1 GET /apps/b"]);
        assert_eq!(scene.files_read(), 0);
    }
}

#[tokio::test]
async fn another_answer_is_compared_without_asking_for_it_twice() {
    let scene = compared("{}").await;
    scene.server().put_by_hand("/apps/a", json!({"id": "a", "size": 7}));
    assert_eq!(counts(&scene.again(Reading::Each).await), (1, 1));
    assert_eq!(scene.asked(), ["1 GET /apps/a", "1 GET /apps/b", "1 PUT /apps/a"]);
    assert_eq!(counts(&scene.again(Reading::Each).await), (0, 2));
    assert_eq!((scene.files_read(), scene.server().counts().total()), (0, 2));
}

#[tokio::test]
async fn another_answer_that_is_as_desired_serves_from_then_on() {
    let scene = compared("operations: {compare: {transforms: [{excludeAttributes: [/seen]}]}}").await;
    scene.server().put_by_hand("/apps/a", json!({"id": "a", "size": 1, "seen": "today"}));
    assert_eq!(counts(&scene.again(Reading::Each).await), (0, 2));
    assert!(scene.files_read() > 0);
    assert_eq!(counts(&scene.again(Reading::Each).await), (0, 2));
    assert_eq!((scene.files_read(), scene.server().counts().total()), (0, 2));
}

#[tokio::test]
async fn what_is_gone_is_made_again() {
    let scene = compared("{}").await;
    scene.server().delete_by_hand("/apps/a");
    assert_eq!(counts(&scene.again(Reading::Each).await), (1, 1));
    assert_eq!(scene.asked(), ["1 GET /apps", "1 GET /apps/a", "1 GET /apps/b", "1 POST /apps"]);
    assert_eq!(counts(&scene.again(Reading::Each).await), (0, 2));
}

#[tokio::test]
async fn a_server_that_fails_proves_nothing_and_refutes_nothing() {
    let scene = compared("{}").await;
    scene.server().fail(Matcher::new("GET", "/apps/a"), 403, 1);
    let report = scene.again(Reading::Each).await;
    assert_eq!((report.stats.failed, report.stats.unchanged), (1, 1), "{report:?}");
    assert!(matches!(report.failures[0].reason, FailureReason::Category(_)), "{report:?}");
    assert_eq!(scene.server().counts().of("GET", "/apps/a"), 1);
    assert_eq!(counts(&scene.again(Reading::Each).await), (0, 2));
}

#[tokio::test]
async fn a_commit_has_everything_compared_again() {
    let mut scene = compared("{}").await;
    scene.declare("/apps/a", &json!({"id": "a", "size": 9}));
    assert_eq!(counts(&scene.again(Reading::Each).await), (1, 1));
    assert_eq!(scene.server().get("/apps/a"), Some(json!({"id": "a", "size": 9})));
}

#[tokio::test]
async fn a_drift_check_in_between_changes_nothing() {
    let scene = compared("{}").await;
    assert_eq!(counts(&scene.interval().await), (0, 2));
    assert_eq!(counts(&scene.again(Reading::Each).await), (0, 2));
    assert_eq!(scene.files_read(), 0);
}

#[rstest]
#[case::jq("operations: {get: {transforms: [{jqExpression: '.'}]}}")]
#[case::two_names("resource: {id: '{{/id}}', alias: '{{/size}}'}")]
#[tokio::test]
async fn what_depends_on_more_than_one_answer_is_compared_each_time(#[case] metadata: &str) {
    let scene = apps(&[("a", r#"{"id":"a","size":"a"}"#)], metadata);
    for _ in 0..3 {
        let report = scene.again(Reading::Each).await;
        assert_eq!(report.stats.failed, 0, "{report:?}");
        assert!(scene.files_read() > 0);
    }
}

#[tokio::test]
async fn what_holds_secrets_is_compared_each_time() {
    let scene = apps(&[("a", r#"{"id":"a","pw":"{{secret .}}"}"#)], "{}");
    let scene = scene.with_secrets(&[("apps/a:/pw", "first")]).await;
    scene.again(Reading::Each).await;
    assert_eq!(counts(&scene.again(Reading::Each).await), (0, 1));
    scene.store_secret("apps/a:/pw", "second").await;
    assert_eq!(counts(&scene.again(Reading::Each).await), (1, 0));
    assert_eq!(scene.server().get("/apps/a"), Some(json!({"id": "a", "pw": "second"})));
}

#[tokio::test]
async fn requests_that_differ_in_more_than_their_path_are_repeated_as_they_were() {
    let scene = compared("operations: {get: {query: {view: '{{/size}}'}, path: '/apps/{{/id}}'}}").await;
    assert_eq!(counts(&scene.again(Reading::Each).await), (0, 2));
    assert_eq!(scene.files_read(), 0);
}

#[tokio::test]
async fn after_a_run_that_failed_the_whole_scope_is_looked_at_again() {
    let scene = compared("{}").await;
    scene.server().put_by_hand("/apps/a", json!({"id": "a", "size": 7}));
    scene.server().fail(Matcher::new("PUT", "/apps/a"), 422, 1);
    assert_eq!(scene.again(Reading::Each).await.stats.failed, 1);
    scene.server().put_by_hand("/apps/a", json!({"id": "a", "size": 1}));
    assert_eq!(counts(&scene.again(Reading::Each).await), (0, 2));
    assert!(scene.listed() > 0, "something else may have been left to do");
    assert_eq!(counts(&scene.again(Reading::Each).await), (0, 2));
    assert_eq!(scene.listed(), 0);
}

//! Loading and watching a directory of manifests.

use std::fs;
use std::path::Path;
use std::time::Duration;

use kube::ResourceExt as _;
use kube::api::{ListParams, PostParams};
use rstest::rstest;
use serde_json::json;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::api;
use super::widgets::{crd, merge, refusal, resource, secrets, widget, widgets};
use crate::standalone::{Api, LoadReport, Manifests, ManifestsError};

fn manifest(name: &str, url: &str) -> String {
    format!("apiVersion: example.io/v1\nkind: Widget\nmetadata:\n  name: {name}\nspec:\n  url: {url}\n")
}

fn directory(files: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    directory
}

async fn load(directory: &Path, client: &kube::Client) -> LoadReport {
    Manifests::new(directory.to_owned(), client.clone()).load().await.unwrap()
}

async fn names(client: &kube::Client) -> Vec<String> {
    let all: kube::Api<kube::api::DynamicObject> = kube::Api::all_with(client.clone(), &resource());
    let list = all.list(&ListParams::default()).await.unwrap();
    list.iter().map(|object| format!("{}/{}", object.namespace().unwrap(), object.name_any())).collect()
}

#[tokio::test]
async fn every_document_of_every_file_is_applied() {
    let several = format!(
        "# comment\n---\n{}---\n{}---\n",
        manifest("a", "http://a"),
        manifest("b", "http://b").replace("name: b", "name: b\n  namespace: two")
    );
    let json = json!({"apiVersion": "example.io/v1", "kind": "Widget", "metadata": {"name": "c"},
                      "spec": {"url": "http://c"}, "status": {"message": "ignored"}});
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "x"}},
    ]});
    let directory = directory(&[
        ("one.yaml", &several),
        ("sub/two.json", &json.to_string()),
        ("sub/deep/three.yml", &list.to_string()),
        ("README.md", "not a manifest"),
        (".hidden.yaml", "not: {a manifest"),
        ("..data/four.yaml", "not: {a manifest"),
    ]);
    let client = api().client();
    let report = load(directory.path(), &client).await;
    assert_eq!(report, LoadReport { applied: 4, ..LoadReport::default() });
    assert_eq!(names(&client).await, ["default/a", "default/c", "two/b"]);
    assert!(widgets(&client).get("c").await.unwrap().data.get("status").is_none());
    assert_eq!(secrets(&client).get("s").await.unwrap().data.unwrap()["a"].0, b"x");
}

#[rstest]
#[case::schema(
    "spec:\n  url: nowhere\n",
    3,
    "spec.url: Invalid value: \"nowhere\": spec.url in body should match '^https?://'"
)]
#[case::rule("spec: {url: http://x, auth: {}}\n", 3, "exactly one of auth.token and auth.password")]
#[case::unknown("spec: {url: http://x, extra: y}\n", 3, "unknown field \"spec.extra\"")]
#[tokio::test]
async fn an_invalid_document_is_reported_with_its_place(
    #[case] spec: &str,
    #[case] line: usize,
    #[case] message: &str,
) {
    let text = format!(
        "# first\n\n---\napiVersion: example.io/v1\nkind: Widget\nmetadata: {{name: bad}}\n{spec}---\n{}",
        manifest("good", "http://x")
    );
    let directory = directory(&[("sub/file.yaml", &text)]);
    let client = api().client();
    let report = load(directory.path(), &client).await;
    assert_eq!((report.applied, report.problems.len(), report.deletions_withheld), (1, 1, false));
    let problem = &report.problems[0];
    assert_eq!((problem.file.to_str().unwrap(), problem.document, problem.line), ("sub/file.yaml", 1, line));
    assert!(problem.message.contains(message), "{}", problem.message);
    assert_eq!(names(&client).await, ["default/good"]);
}

#[rstest]
#[case::syntax("a.yaml", "kind: [\n", "not YAML")]
#[case::json("a.json", "{\n\"kind\": }", "not JSON")]
#[case::scalar("a.yaml", "just text\n", "a manifest must be an object")]
#[case::nameless("a.yaml", "apiVersion: v1\nkind: Secret\n", "metadata.name is missing")]
#[case::kindless("a.yaml", "apiVersion: v1\nmetadata: {name: x}\n", "kind is missing")]
#[case::number_in_string_data(
    "a.yaml",
    "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\nstringData: {port: 80}\n",
    "stringData.port is not a string; quote it"
)]
#[case::unknown_field(
    "a.yaml",
    "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\nstringdata: {a: b}\n",
    "unknown field \"stringdata\"; use apiVersion, kind"
)]
#[case::unknown_kind(
    "a.yaml",
    "apiVersion: declarest.io/v1alpha9\nkind: Widget\nmetadata: {name: w}\n",
    "is not served in standalone mode"
)]
#[tokio::test]
async fn nothing_is_deleted_while_a_document_cannot_be_read(
    #[case] file: &str,
    #[case] text: &str,
    #[case] message: &str,
) {
    let directory = directory(&[("w.yaml", &manifest("w", "http://w"))]);
    let client = api().client();
    load(directory.path(), &client).await;
    fs::remove_file(directory.path().join("w.yaml")).unwrap();
    fs::write(directory.path().join(file), text).unwrap();
    let report = load(directory.path(), &client).await;
    assert!(report.deletions_withheld);
    assert!(report.problems[0].message.contains(message), "{:?}", report.problems);
    assert_eq!(names(&client).await, ["default/w"]);
    fs::remove_file(directory.path().join(file)).unwrap();
    assert_eq!(load(directory.path(), &client).await.deleted, 1);
    assert_eq!(names(&client).await, Vec::<String>::new());
}

#[tokio::test]
async fn unknown_types_and_duplicates_are_reported() {
    let deployment = "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: d}\n";
    let twice = format!("{}---\n{}", manifest("a", "http://1"), manifest("a", "http://2"));
    let directory = directory(&[("d.yaml", deployment), ("twice.yaml", &twice)]);
    let client = api().client();
    let report = load(directory.path(), &client).await;
    let messages: Vec<&str> = report.problems.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(
        messages,
        ["apps/v1 ReplicaSet is not served in standalone mode", "Widget default/a is declared twice"]
    );
    assert_eq!(widgets(&client).get("a").await.unwrap().data["spec"]["url"], "http://1");
}

#[tokio::test]
async fn only_objects_from_manifests_are_deleted_also_after_a_restart() {
    let state = tempfile::tempdir().unwrap();
    let directory = directory(&[("a.yaml", &manifest("a", "http://a"))]);
    let client = Api::restore(vec![crd()], state.path()).unwrap().client();
    load(directory.path(), &client).await;
    widgets(&client).create(&PostParams::default(), &widget("by-hand")).await.unwrap();
    fs::remove_file(directory.path().join("a.yaml")).unwrap();

    let client = Api::restore(vec![crd()], state.path()).unwrap().client();
    assert_eq!(names(&client).await, ["default/a", "default/by-hand"]);
    assert_eq!(load(directory.path(), &client).await.deleted, 1);
    assert_eq!(names(&client).await, ["default/by-hand"]);
}

#[tokio::test]
async fn fields_and_secret_keys_that_a_document_drops_are_removed() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: one, b: two}\n";
    let spec = format!("{}  size: 2\n", manifest("a", "http://a"));
    let directory = directory(&[("s.yaml", secret), ("a.yaml", &spec)]);
    let client = api().client();
    load(directory.path(), &client).await;
    fs::write(directory.path().join("s.yaml"), secret.replace("a: one, ", "")).unwrap();
    fs::write(directory.path().join("a.yaml"), manifest("a", "http://a")).unwrap();
    load(directory.path(), &client).await;
    let data = secrets(&client).get("s").await.unwrap().data.unwrap();
    assert_eq!(data.keys().collect::<Vec<_>>(), ["b"]);
    let object = widgets(&client).get("a").await.unwrap();
    assert!(object.data["spec"].get("size").is_none());
    assert_eq!(object.metadata.generation, Some(2));
}

#[tokio::test]
async fn loading_again_changes_nothing() {
    let directory = directory(&[("a.yaml", &manifest("a", "http://a"))]);
    let client = api().client();
    load(directory.path(), &client).await;
    let first = widgets(&client).get("a").await.unwrap();
    load(directory.path(), &client).await;
    assert_eq!(widgets(&client).get("a").await.unwrap(), first);
    merge(&client, "a", &json!({"spec": {"url": "http://by-hand"}})).await.unwrap();
    load(directory.path(), &client).await;
    assert_eq!(widgets(&client).get("a").await.unwrap().data["spec"]["url"], "http://a");
}

#[tokio::test]
async fn a_missing_directory_is_an_error() {
    let client = api().client();
    let result = Manifests::new("/nonexistent/manifests".into(), client).load().await;
    let Err(error @ ManifestsError::Directory { .. }) = result else { panic!("loaded: {result:?}") };
    assert!(error.to_string().contains("/nonexistent/manifests"), "{error}");
}

/// Such an object could not be read again.
#[tokio::test]
async fn metadata_of_a_wrong_type_is_refused() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: x, labels: foo}\nstringData: {a: c4nary}\n";
    let directory = directory(&[("a.yaml", secret), ("w.yaml", &manifest("w", "http://w"))]);
    let client = api().client();
    for _ in 0..2 {
        let report = load(directory.path(), &client).await;
        assert_eq!(report.problems.len(), 1, "{:?}", report.problems);
        let message = &report.problems[0].message;
        assert!(message.contains("metadata: Invalid value") && !message.contains("c4nary"), "{message}");
        assert_eq!(names(&client).await, ["default/w"]);
    }
}

/// Waits until the widget of the manifest exists (or does not).
async fn wait_for(client: &kube::Client, name: &str, present: bool) {
    let reached = async {
        while widgets(client).get_opt(name).await.unwrap().is_some() != present {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), reached).await.expect("the change is applied");
}

#[tokio::test]
async fn a_watched_directory_is_applied_until_shutdown() {
    let directory = directory(&[("a.yaml", &manifest("a", "http://a"))]);
    let client = api().client();
    let shutdown = CancellationToken::new();
    let manifests = Manifests::new(directory.path().to_owned(), client.clone());
    let changes = manifests.changes();
    manifests.load().await.unwrap();
    // A change between the first load and the watch, as the operator starts.
    fs::write(directory.path().join("b.yaml"), manifest("b", "http://b")).unwrap();
    let watching = tokio::spawn(manifests.watch(changes, shutdown.clone()));
    wait_for(&client, "b", true).await;
    fs::remove_file(directory.path().join("a.yaml")).unwrap();
    wait_for(&client, "a", false).await;
    fs::create_dir(directory.path().join("sub")).unwrap();
    fs::write(directory.path().join("sub/a.yaml"), manifest("a", "http://again")).unwrap();
    wait_for(&client, "a", true).await;
    // A log that another process writes all the time.
    let log = directory.path().join("app.log");
    let stop = shutdown.clone();
    let logging = std::thread::spawn(move || {
        while !stop.is_cancelled() {
            fs::write(&log, "line").unwrap();
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    fs::write(directory.path().join("c.yaml"), manifest("c", "http://c")).unwrap();
    wait_for(&client, "c", true).await;
    shutdown.cancel();
    logging.join().unwrap();
    tokio::time::timeout(Duration::from_secs(10), watching).await.expect("the watch ends").unwrap();
    assert_eq!(refusal(widgets(&client).get("none").await).0, 404);
}

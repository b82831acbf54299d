//! State files: restarts, watches across restarts, and damaged files.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::widgets::{apply_status, crd, merge, partial, refusal, secrets, widget, widgets};
use crate::standalone::Api;

fn restore(directory: &Path) -> Api {
    Api::restore(vec![crd()], directory).expect("the state is restored")
}

fn saved(directory: &Path, name: &str) -> Option<Value> {
    let text = std::fs::read_to_string(directory.join(format!("api/widgets/default/{name}.json"))).ok()?;
    Some(serde_json::from_str(&text).expect("state files are JSON"))
}

#[tokio::test]
async fn a_confirmed_write_is_on_disk() {
    let directory = tempfile::tempdir().unwrap();
    let client = restore(directory.path()).client();
    widgets(&client).create(&PostParams::default(), &widget("a")).await.unwrap();
    let object = apply_status(&client, "m", "a", &json!({"message": "done"})).await;
    let file = saved(directory.path(), "a").unwrap();
    assert_eq!(file, serde_json::to_value(&object).unwrap());
    let mode =
        |path: &str| std::fs::metadata(directory.path().join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("api/widgets/default/a.json"), 0o600);
    assert_eq!(mode("api/widgets/default"), 0o700);
    widgets(&client).delete("a", &DeleteParams::default()).await.unwrap();
    assert_eq!(saved(directory.path(), "a"), None);
}

#[tokio::test]
async fn a_restart_keeps_identity_generation_status_and_finalizers() {
    let directory = tempfile::tempdir().unwrap();
    let client = restore(directory.path()).client();
    let manifest = partial("a", &json!({"spec": {"url": "http://a"}}));
    let params = PatchParams::apply("manifests");
    widgets(&client).patch("a", &params, &Patch::Apply(&manifest)).await.unwrap();
    merge(&client, "a", &json!({"spec": {"size": 2}, "metadata": {"finalizers": ["example.io/a"]}}))
        .await
        .unwrap();
    let before = apply_status(&client, "m", "a", &json!({"message": "done"})).await;

    let client = restore(directory.path()).client();
    let after = widgets(&client).get("a").await.unwrap();
    assert_eq!(after, before);
    let same = widgets(&client).patch("a", &params, &Patch::Apply(&manifest)).await.unwrap();
    assert_eq!(same, before);
    let changed = partial("a", &json!({"spec": {"url": "http://b"}}));
    let changed = widgets(&client).patch("a", &params, &Patch::Apply(&changed)).await.unwrap();
    assert_eq!(changed.metadata.generation, Some(3));
    assert_eq!(changed.uid(), before.uid());
    let revision =
        |object: &kube::api::DynamicObject| -> u64 { object.resource_version().unwrap().parse().unwrap() };
    assert!(revision(&changed) > revision(&before));
    // A field that a manager applied before the restart is removed when the manager drops it after the restart.
    let object = apply_status(&client, "m", "a", &json!({"count": 1})).await;
    assert_eq!(object.data["status"], json!({"count": 1}));
}

#[tokio::test]
async fn watches_from_before_a_restart_must_list_again() {
    let directory = tempfile::tempdir().unwrap();
    let client = restore(directory.path()).client();
    widgets(&client).create(&PostParams::default(), &widget("a")).await.unwrap();
    widgets(&client).create(&PostParams::default(), &widget("b")).await.unwrap();
    let client = restore(directory.path()).client();
    let mut events = Box::pin(widgets(&client).watch(&kube::api::WatchParams::default(), "1").await.unwrap());
    let event = futures::StreamExt::next(&mut events).await;
    let Some(Ok(kube::api::WatchEvent::Error(status))) = event else { panic!("not refused: {event:?}") };
    assert_eq!(status.code, 410);
}

#[tokio::test]
async fn secrets_are_never_written() {
    let directory = tempfile::tempdir().unwrap();
    let client = restore(directory.path()).client();
    let secret =
        serde_json::from_value(json!({"metadata": {"name": "s"}, "stringData": {"a": "x"}})).unwrap();
    secrets(&client).create(&PostParams::default(), &secret).await.unwrap();
    widgets(&client).create(&PostParams::default(), &widget("a")).await.unwrap();
    let kinds: Vec<_> = std::fs::read_dir(directory.path().join("api"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(kinds, ["widgets"]);
    let client = restore(directory.path()).client();
    assert_eq!(refusal(secrets(&client).get("s").await).0, 404);
}

#[tokio::test]
async fn a_rejected_write_does_not_change_the_object() {
    let directory = tempfile::tempdir().unwrap();
    let client = restore(directory.path()).client();
    widgets(&client).create(&PostParams::default(), &widget("a")).await.unwrap();
    // A directory has the name of the file, so nothing can be saved.
    let file = directory.path().join("api/widgets/default/a.json");
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    let (code, reason, message) = refusal(merge(&client, "a", &json!({"spec": {"size": 2}})).await);
    assert_eq!((code, reason.as_str()), (500, "InternalError"));
    assert!(message.contains("cannot save object state"), "{message}");
    let object = widgets(&client).get("a").await.unwrap();
    assert_eq!(object.metadata.generation, Some(1));
}

#[tokio::test]
async fn damaged_and_foreign_files_do_not_stop_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let client = restore(directory.path()).client();
    for name in ["a", "b"] {
        widgets(&client).create(&PostParams::default(), &widget(name)).await.unwrap();
    }
    let place = directory.path().join("api/widgets/default");
    std::fs::write(place.join("a.json"), "{").unwrap();
    std::fs::copy(place.join("b.json"), place.join("c.json")).unwrap();
    std::fs::write(place.join(".declarest-secret-d"), "half").unwrap();
    let client = restore(directory.path()).client();
    let names: Vec<String> = widgets(&client)
        .list(&ListParams::default())
        .await
        .unwrap()
        .iter()
        .map(kube::ResourceExt::name_any)
        .collect();
    assert_eq!(names, ["b"]);
}

#[tokio::test]
async fn restored_dependents_of_a_deleted_owner_are_collected() {
    let directory = tempfile::tempdir().unwrap();
    let client = restore(directory.path()).client();
    let owner = widgets(&client).create(&PostParams::default(), &widget("a")).await.unwrap();
    let claim: PersistentVolumeClaim = serde_json::from_value(json!({
        "metadata": {"name": "c", "ownerReferences": [{
            "apiVersion": "example.io/v1", "kind": "Widget", "name": "a", "uid": owner.uid().unwrap(),
        }]},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }))
    .unwrap();
    let claims =
        |client: &kube::Client| kube::Api::<PersistentVolumeClaim>::default_namespaced(client.clone());
    claims(&client).create(&PostParams::default(), &claim).await.unwrap();
    let client = restore(directory.path()).client();
    claims(&client).get("c").await.unwrap();
    std::fs::remove_file(directory.path().join("api/widgets/default/a.json")).unwrap();
    let client = restore(directory.path()).client();
    assert_eq!(refusal(claims(&client).get("c").await).0, 404);
}

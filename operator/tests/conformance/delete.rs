use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::client;
use crate::support::widgets::{merge, refusal, widget, widgets};

async fn create(client: &Client, name: &str, metadata: &Value) -> DynamicObject {
    let mut object = serde_json::to_value(widget(name)).unwrap();
    json_patch::merge(&mut object["metadata"], metadata);
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    widgets(client).create(&PostParams::default(), &object).await.unwrap()
}

async fn names(client: &Client) -> Vec<String> {
    widgets(client)
        .list(&ListParams::default())
        .await
        .unwrap()
        .iter()
        .map(kube::ResourceExt::name_any)
        .collect()
}

#[tokio::test]
async fn without_finalizers_an_object_goes_at_once() {
    let client = client().await;
    create(&client, "a", &json!({})).await;
    let deleted = widgets(&client).delete("a", &DeleteParams::default()).await.unwrap();
    assert!(deleted.is_right());
    assert_eq!(refusal(widgets(&client).delete("a", &DeleteParams::default()).await).0, 404);
}

#[tokio::test]
async fn the_last_finalizer_lets_an_object_go() {
    let client = client().await;
    let api = widgets(&client);
    create(&client, "a", &json!({"finalizers": ["example.io/one", "example.io/two"]})).await;
    let marked = api.delete("a", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert!(marked.metadata.deletion_timestamp.is_some());
    assert_eq!(marked.metadata.generation, Some(2));
    let again = api.delete("a", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert_eq!(again.resource_version(), marked.resource_version());

    let patch = json!({"metadata": {"finalizers": ["example.io/one", "example.io/new"]}});
    let (code, _, message) = refusal(merge(&client, "a", &patch).await);
    assert_eq!(code, 422);
    assert!(message.contains("metadata.finalizers: Forbidden: no new finalizers can be added"), "{message}");

    let one = json!({"metadata": {"finalizers": ["example.io/one"], "deletionTimestamp": null}});
    let left = merge(&client, "a", &one).await.unwrap();
    assert!(left.metadata.deletion_timestamp.is_some());
    merge(&client, "a", &json!({"metadata": {"finalizers": null}})).await.unwrap();
    assert_eq!(refusal(api.get("a").await).0, 404);
}

#[tokio::test]
async fn preconditions_protect_the_successor_of_an_object() {
    let client = client().await;
    let api = widgets(&client);
    let first = create(&client, "a", &json!({})).await;
    let preconditions = Preconditions { uid: Some("other".to_owned()), resource_version: None };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    assert_eq!(refusal(api.delete("a", &params).await).0, 409);
    let preconditions = Preconditions { uid: first.uid(), resource_version: first.resource_version() };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    api.delete("a", &params).await.unwrap();
}

#[tokio::test]
async fn a_collection_goes_by_selector() {
    let client = client().await;
    create(&client, "a", &json!({"labels": {"x": "1"}})).await;
    create(&client, "b", &json!({"labels": {"x": "2"}})).await;
    let selected = ListParams::default().labels("x=1");
    widgets(&client).delete_collection(&DeleteParams::default(), &selected).await.unwrap();
    assert_eq!(names(&client).await, ["b"]);
}

#[tokio::test]
async fn a_write_to_an_object_that_went_is_not_found() {
    let client = client().await;
    let patch = Patch::Merge(json!({"status": {"message": "late"}}));
    let (code, reason, _) =
        refusal(widgets(&client).patch_status("a", &PatchParams::default(), &patch).await);
    assert_eq!((code, reason.as_str()), (404, "NotFound"));
}

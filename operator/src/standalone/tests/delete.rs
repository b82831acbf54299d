use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use super::{api, merge, refusal, widget, widgets};

async fn create(client: &Client, name: &str, metadata: &Value) -> DynamicObject {
    let mut object = serde_json::to_value(widget(name)).unwrap();
    json_patch::merge(&mut object["metadata"], metadata);
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    widgets(client).create(&PostParams::default(), &object).await.unwrap()
}

fn owned_by(owner: &DynamicObject) -> Value {
    json!({"apiVersion": "example.io/v1", "kind": "Widget", "name": owner.name_any(), "uid": owner.uid().unwrap()})
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
    let client = api().client();
    create(&client, "a", &json!({})).await;
    let deleted = widgets(&client).delete("a", &DeleteParams::default()).await.unwrap();
    assert!(deleted.is_right());
    assert_eq!(refusal(widgets(&client).delete("a", &DeleteParams::default()).await).0, 404);
}

#[tokio::test]
async fn the_last_finalizer_lets_an_object_go() {
    let client = api().client();
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
    let client = api().client();
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
async fn dependents_follow_their_last_owner() {
    let client = api().client();
    let (a, b) = (create(&client, "a", &json!({})).await, create(&client, "b", &json!({})).await);
    create(&client, "both", &json!({"ownerReferences": [owned_by(&a), owned_by(&b)]})).await;
    let child = create(&client, "child", &json!({"ownerReferences": [owned_by(&a)]})).await;
    create(&client, "grandchild", &json!({"ownerReferences": [owned_by(&child)]})).await;

    widgets(&client).delete("a", &DeleteParams::default()).await.unwrap();
    assert_eq!(names(&client).await, ["b", "both"]);
    let left = widgets(&client).get("both").await.unwrap();
    assert_eq!(left.owner_references().len(), 1);
    widgets(&client).delete("b", &DeleteParams::default()).await.unwrap();
    assert_eq!(names(&client).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_dependent_of_nobody_is_collected_and_one_of_a_stranger_is_not() {
    let client = api().client();
    let mut gone = owned_by(&create(&client, "a", &json!({})).await);
    gone["uid"] = json!("never-existed");
    create(&client, "lost", &json!({ "ownerReferences": [gone] })).await;
    let stranger = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "elsewhere"});
    create(&client, "kept", &json!({ "ownerReferences": [stranger] })).await;
    assert_eq!(names(&client).await, ["a", "kept"]);
}

#[tokio::test]
async fn orphans_survive_and_foreground_waits() {
    let client = api().client();
    let a = create(&client, "a", &json!({})).await;
    create(&client, "orphan", &json!({"ownerReferences": [owned_by(&a)]})).await;
    widgets(&client).delete("a", &DeleteParams::orphan()).await.unwrap();
    assert_eq!(names(&client).await, ["orphan"]);
    assert!(widgets(&client).get("orphan").await.unwrap().owner_references().is_empty());

    let b = create(&client, "b", &json!({})).await;
    let held = json!({"ownerReferences": [owned_by(&b)], "finalizers": ["example.io/hold"]});
    create(&client, "held", &held).await;
    widgets(&client).delete("b", &DeleteParams::foreground()).await.unwrap();
    assert_eq!(names(&client).await, ["b", "held", "orphan"]);
    assert_eq!(widgets(&client).get("b").await.unwrap().finalizers(), ["foregroundDeletion"]);
    merge(&client, "held", &json!({"metadata": {"finalizers": null}})).await.unwrap();
    assert_eq!(names(&client).await, ["orphan"]);
}

#[tokio::test]
async fn a_collection_goes_by_selector() {
    let client = api().client();
    create(&client, "a", &json!({"labels": {"x": "1"}})).await;
    create(&client, "b", &json!({"labels": {"x": "2"}})).await;
    let selected = ListParams::default().labels("x=1");
    widgets(&client).delete_collection(&DeleteParams::default(), &selected).await.unwrap();
    assert_eq!(names(&client).await, ["b"]);
}

#[tokio::test]
async fn a_write_to_an_object_that_went_is_not_found() {
    let client = api().client();
    let patch = Patch::Merge(json!({"status": {"message": "late"}}));
    let (code, reason, _) =
        refusal(widgets(&client).patch_status("a", &PatchParams::default(), &patch).await);
    assert_eq!((code, reason.as_str()), (404, "NotFound"));
}

//! Owners and dependents. kube-apiserver leaves these to the garbage collector of another process.

use kube::api::{DeleteParams, DynamicObject, ListParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use super::api;
use super::widgets::{merge, widget, widgets};

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
async fn dependents_are_deleted_with_their_last_owner() {
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
async fn a_dependent_without_owner_is_collected_unless_the_owner_type_is_unknown() {
    let client = api().client();
    let mut gone = owned_by(&create(&client, "a", &json!({})).await);
    gone["uid"] = json!("never-existed");
    create(&client, "lost", &json!({ "ownerReferences": [gone] })).await;
    let stranger = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "d", "uid": "elsewhere"});
    create(&client, "kept", &json!({ "ownerReferences": [stranger] })).await;
    assert_eq!(names(&client).await, ["a", "kept"]);
}

#[tokio::test]
async fn orphans_are_kept_and_foreground_deletion_waits() {
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

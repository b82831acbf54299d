use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::client;
use crate::support::widgets::{apply_status, merge, partial, refusal, widget, widgets};

fn condition(kind: &str, status: &str) -> Value {
    json!({"type": kind, "status": status})
}

#[tokio::test]
async fn a_status_apply_replaces_what_the_manager_applied_before() {
    let client = client().await;
    widgets(&client).create(&PostParams::default(), &widget("a")).await.unwrap();
    let first = json!({
        "message": "working", "count": 0, "webhook": {"path": "/x"},
        "conditions": [condition("Ready", "False"), condition("Stalled", "True")],
    });
    apply_status(&client, "operator", "a", &first).await;
    let second = json!({"count": 1, "conditions": [condition("Ready", "True")]});
    let object = apply_status(&client, "operator", "a", &second).await;
    assert_eq!(object.data["status"], second);
    assert_eq!(object.metadata.generation, Some(1));
}

#[tokio::test]
async fn an_apply_leaves_what_others_own() {
    let client = client().await;
    widgets(&client).create(&PostParams::default(), &widget("a")).await.unwrap();
    apply_status(
        &client,
        "other",
        "a",
        &json!({"message": "theirs", "conditions": [condition("Other", "True")]}),
    )
    .await;
    apply_status(&client, "operator", "a", &json!({"count": 1, "conditions": [condition("Ready", "True")]}))
        .await;
    let object = apply_status(&client, "operator", "a", &json!({"count": 2})).await;
    assert_eq!(
        object.data["status"],
        json!({"message": "theirs", "count": 2, "conditions": [condition("Other", "True")]})
    );
}

#[tokio::test]
async fn the_same_apply_twice_keeps_the_revision() {
    let client = client().await;
    widgets(&client).create(&PostParams::default(), &widget("a")).await.unwrap();
    let status = json!({"message": "m", "conditions": [condition("Ready", "True")]});
    let first = apply_status(&client, "operator", "a", &status).await;
    let second = apply_status(&client, "operator", "a", &status).await;
    assert_eq!(first, second);
}

#[tokio::test]
async fn an_apply_creates_and_takes_back_what_it_drops() {
    let client = client().await;
    let api = widgets(&client);
    let params = PatchParams::apply("gitops");
    let full = partial(
        "a",
        &json!({
            "metadata": {"labels": {"x": "1"}},
            "spec": {"url": "http://a", "size": 2, "tags": ["a", "b"], "headers": {"H": "1"}},
        }),
    );
    let made = api.patch("a", &params, &Patch::Apply(&full)).await.unwrap();
    assert_eq!(made.metadata.generation, Some(1));
    merge(&client, "a", &json!({"metadata": {"labels": {"y": "2"}}})).await.unwrap();

    let less = partial("a", &json!({"spec": {"url": "http://a", "tags": ["b", "c"]}}));
    let object = api.patch("a", &params, &Patch::Apply(&less)).await.unwrap();
    assert_eq!(
        object.data["spec"],
        json!({"url": "http://a", "tags": ["b", "c"], "interval": "1m", "mode": "apply"})
    );
    assert_eq!(object.labels().keys().collect::<Vec<_>>(), ["y"]);
    assert_eq!(object.metadata.generation, Some(2));
}

#[tokio::test]
async fn a_field_of_another_manager_is_taken_only_by_force() {
    let client = client().await;
    let api = widgets(&client);
    let mine = partial("a", &json!({"spec": {"url": "http://a", "size": 1}}));
    api.patch("a", &PatchParams::apply("first"), &Patch::Apply(&mine)).await.unwrap();
    let theirs = partial("a", &json!({"spec": {"size": 2}}));
    let (code, reason, message) =
        refusal(api.patch("a", &PatchParams::apply("second"), &Patch::Apply(&theirs)).await);
    assert_eq!((code, reason.as_str()), (409, "Conflict"));
    assert_eq!(message, "Apply failed with 1 conflict: conflict with \"first\": .spec.size");
    let agreed = partial("a", &json!({"spec": {"size": 1}}));
    api.patch("a", &PatchParams::apply("second"), &Patch::Apply(&agreed)).await.unwrap();
    let forced = PatchParams::apply("second").force();
    let object = api.patch("a", &forced, &Patch::Apply(&theirs)).await.unwrap();
    assert_eq!(object.data["spec"]["size"], 2);

    // The first manager lost the field, so dropping it no longer removes it.
    let dropped = partial("a", &json!({"spec": {"url": "http://a"}}));
    let object = api.patch("a", &PatchParams::apply("first"), &Patch::Apply(&dropped)).await.unwrap();
    assert_eq!(object.data["spec"]["size"], 2);
}

#[tokio::test]
async fn conflicts_are_listed_by_manager() {
    let client = client().await;
    let api = widgets(&client);
    let mine = partial("a", &json!({"spec": {"url": "http://a", "size": 1, "headers": {"H": "1"}}}));
    api.patch("a", &PatchParams::apply("first"), &Patch::Apply(&mine)).await.unwrap();
    apply_status(&client, "first", "a", &json!({"message": "m"})).await;
    let theirs = partial("a", &json!({"spec": {"size": 2, "headers": {"H": "2"}}}));
    let (_, _, message) =
        refusal(api.patch("a", &PatchParams::apply("second"), &Patch::Apply(&theirs)).await);
    assert_eq!(
        message,
        "Apply failed with 2 conflicts: conflicts with \"first\":\n- .spec.size\n- .spec.headers.H"
    );
    let status = partial("a", &json!({"status": {"message": "n"}}));
    let (_, _, message) =
        refusal(api.patch_status("a", &PatchParams::apply("second"), &Patch::Apply(&status)).await);
    assert_eq!(
        message,
        "Apply failed with 1 conflict: conflict with \"first\" with subresource \"status\": .status.message"
    );
}

#[tokio::test]
async fn each_endpoint_owns_its_own_part() {
    let client = client().await;
    let api = widgets(&client);
    let both = partial("a", &json!({"spec": {"url": "http://a"}, "status": {"message": "m"}}));
    let params = PatchParams::apply("operator").force();
    let object = api.patch("a", &params, &Patch::Apply(&both)).await.unwrap();
    assert!(object.data.get("status").is_none());
    let other = partial("a", &json!({"spec": {"url": "http://b"}, "status": {"message": "m"}}));
    let object = api.patch_status("a", &params, &Patch::Apply(&other)).await.unwrap();
    assert_eq!(object.data["spec"]["url"], "http://a");
    assert_eq!(object.data["status"]["message"], "m");
    let entries: Vec<(Option<String>, Option<String>)> = object
        .managed_fields()
        .iter()
        .map(|entry| (entry.operation.clone(), entry.subresource.clone()))
        .collect();
    let apply = Some("Apply".to_owned());
    assert_eq!(entries, [(apply.clone(), None), (apply, Some("status".to_owned()))]);
}

#[tokio::test]
async fn an_apply_needs_a_manager_and_a_status_needs_its_object() {
    let client = client().await;
    let patch = partial("a", &json!({"status": {"message": "m"}}));
    let api = widgets(&client);
    let (code, _, _) = refusal(api.patch_status("a", &PatchParams::apply("m"), &Patch::Apply(&patch)).await);
    assert_eq!(code, 404);
    let (code, _, message) = refusal(api.patch("a", &PatchParams::default(), &Patch::Apply(&patch)).await);
    assert_eq!(code, 422);
    assert!(message.contains("fieldManager: Required value"), "{message}");
}

#[tokio::test]
async fn managed_fields_read_as_kubernetes_writes_them() {
    let client = client().await;
    let patch = partial(
        "a",
        &json!({"metadata": {"labels": {"x": "1"}}, "spec": {"url": "http://a", "tags": ["t"]}}),
    );
    let api = widgets(&client);
    api.patch("a", &PatchParams::apply("m"), &Patch::Apply(&patch)).await.unwrap();
    apply_status(&client, "m", "a", &json!({"conditions": [condition("Ready", "True")]})).await;
    let object = api.get("a").await.unwrap();
    let fields: Vec<&Value> =
        object.managed_fields().iter().map(|entry| &entry.fields_v1.as_ref().unwrap().0).collect();
    assert_eq!(
        fields,
        [
            &json!({"f:metadata": {"f:labels": {"f:x": {}}}, "f:spec": {"f:tags": {"v:\"t\"": {}}, "f:url": {}}}),
            &json!({"f:status": {"f:conditions": {
                "k:{\"type\":\"Ready\"}": {".": {}, "f:status": {}, "f:type": {}},
            }}}),
        ]
    );
}

use std::collections::BTreeMap;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, PersistentVolumeClaim, Secret};
use k8s_openapi::api::events::v1::Event as EventsEvent;
use kube::ResourceExt as _;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::widgets::{merge, refusal, resource, secrets, widget, widget_with, widgets};
use crate::{client, namespace};

#[tokio::test]
async fn a_created_object_gets_identity_generation_and_defaults() {
    let client = client().await;
    let made = widgets(&client).create(&PostParams::default(), &widget("a")).await.unwrap();
    assert_eq!(made.metadata.generation, Some(1));
    assert_eq!(made.metadata.namespace.as_deref(), Some(client.default_namespace()));
    assert_eq!(made.uid().unwrap().len(), 36);
    assert!(made.metadata.creation_timestamp.is_some());
    assert_eq!(made.data["spec"], json!({"url": "https://example.org", "interval": "1m", "mode": "apply"}));
    let read = widgets(&client).get("a").await.unwrap();
    assert_eq!(read, made);
}

#[tokio::test]
async fn generated_names_differ_and_keep_their_prefix() {
    let client = client().await;
    let mut names = Vec::new();
    for _ in 0..3 {
        let mut object = widget("");
        object.metadata.name = None;
        object.metadata.generate_name = Some("run-".to_owned());
        names.push(widgets(&client).create(&PostParams::default(), &object).await.unwrap().name_any());
    }
    assert!(names.iter().all(|name| name.starts_with("run-") && name.len() == 9), "{names:?}");
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 3);
}

#[tokio::test]
async fn refusals_carry_code_reason_and_wording_of_kubernetes() {
    let client = client().await;
    let api = widgets(&client);
    let (code, reason, message) = refusal(api.get("none").await);
    assert_eq!((code, reason.as_str()), (404, "NotFound"));
    assert_eq!(message, "widgets.example.io \"none\" not found");

    api.create(&PostParams::default(), &widget("a")).await.unwrap();
    let (code, reason, message) = refusal(api.create(&PostParams::default(), &widget("a")).await);
    assert_eq!((code, reason.as_str()), (409, "AlreadyExists"));
    assert_eq!(message, "widgets.example.io \"a\" already exists");

    let (code, reason, message) = refusal(secrets(&client).get("none").await);
    assert_eq!((code, reason.as_str()), (404, "NotFound"));
    assert_eq!(message, "secrets \"none\" not found");
}

#[rstest]
#[case::upper_case("Bad")]
#[case::climbing("..")]
#[case::trailing_dash("a-")]
#[case::space("a b")]
#[tokio::test]
async fn names_are_subdomains(#[case] name: &str) {
    let client = client().await;
    let (code, reason, message) =
        refusal(widgets(&client).create(&PostParams::default(), &widget(name)).await);
    assert_eq!((code, reason.as_str()), (422, "Invalid"));
    assert!(message.contains("metadata.name: Invalid value:"), "{message}");
    assert!(message.contains("a lowercase RFC 1123 subdomain must consist of"), "{message}");
}

#[tokio::test]
async fn an_update_needs_the_revision_it_was_made_from() {
    let client = client().await;
    let api = widgets(&client);
    let first = api.create(&PostParams::default(), &widget("a")).await.unwrap();
    let mut second = first.clone();
    second.data["spec"]["size"] = json!(2);
    let second = api.replace("a", &PostParams::default(), &second).await.unwrap();
    assert_eq!(second.metadata.generation, Some(2));
    assert_ne!(second.resource_version(), first.resource_version());

    let (code, reason, message) = refusal(api.replace("a", &PostParams::default(), &first).await);
    assert_eq!((code, reason.as_str()), (409, "Conflict"));
    assert!(message.starts_with(
        "Operation cannot be fulfilled on widgets.example.io \"a\": the object has been modified"
    ));

    let mut unconditional = second.clone();
    unconditional.metadata.resource_version = None;
    let (code, _, message) = refusal(api.replace("a", &PostParams::default(), &unconditional).await);
    assert_eq!(code, 422);
    assert!(
        message.contains("metadata.resourceVersion: Invalid value: 0: must be specified for an update"),
        "{message}"
    );
}

#[tokio::test]
async fn writes_that_change_nothing_keep_the_revision() {
    let client = client().await;
    let made = widgets(&client).create(&PostParams::default(), &widget("a")).await.unwrap();
    let again = widgets(&client).replace("a", &PostParams::default(), &made).await.unwrap();
    assert_eq!(again, made);
    let patched = merge(&client, "a", &json!({"spec": {"mode": "apply"}})).await.unwrap();
    assert_eq!(patched.resource_version(), made.resource_version());
}

#[tokio::test]
async fn generation_counts_spec_changes_only() {
    let client = client().await;
    widgets(&client).create(&PostParams::default(), &widget("a")).await.unwrap();
    let labelled = merge(&client, "a", &json!({"metadata": {"labels": {"x": "y"}}})).await.unwrap();
    assert_eq!(labelled.metadata.generation, Some(1));
    let patch = json!({"status": {"message": "hello"}});
    let api = widgets(&client);
    let status = api.patch_status("a", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    assert_eq!(status.metadata.generation, Some(1));
    let changed = merge(&client, "a", &json!({"spec": {"size": 3}})).await.unwrap();
    assert_eq!(changed.metadata.generation, Some(2));
    assert_eq!(changed.data["status"]["message"], "hello");
}

#[tokio::test]
async fn status_and_spec_have_their_own_endpoints() {
    let client = client().await;
    let api = widgets(&client);
    let mut object = widget("a");
    object.data["status"] = json!({"message": "mine"});
    let mut made = api.create(&PostParams::default(), &object).await.unwrap();
    assert!(made.data.get("status").is_none());

    made.data["status"] = json!({"message": "mine"});
    let updated = api.replace("a", &PostParams::default(), &made).await.unwrap();
    assert!(updated.data.get("status").is_none());

    made.data["spec"]["url"] = json!("https://elsewhere.example");
    made.metadata.labels = Some(BTreeMap::from([("x".to_owned(), "y".to_owned())]));
    let updated = api.replace_status("a", &PostParams::default(), &made).await.unwrap();
    assert_eq!(updated.data["status"]["message"], "mine");
    assert_eq!(updated.data["spec"]["url"], "https://example.org");
    assert_eq!(updated.labels().len(), 0);
}

#[tokio::test]
async fn patches_of_three_kinds_reach_the_object() {
    let client = client().await;
    let api = widgets(&client);
    api.create(&PostParams::default(), &widget_with("a", &json!({"url": "http://a", "size": 1})))
        .await
        .unwrap();
    let removed = merge(&client, "a", &json!({"spec": {"size": null, "headers": {"A": "1"}}})).await.unwrap();
    assert!(removed.data["spec"].get("size").is_none());
    assert_eq!(removed.data["spec"]["headers"], json!({"A": "1"}));

    let operations: json_patch::Patch = serde_json::from_value(
        json!([{"op": "add", "path": "/metadata/finalizers", "value": ["example.io/a"]}]),
    )
    .unwrap();
    let patch = Patch::Json::<()>(operations);
    let patched = api.patch("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(patched.finalizers(), ["example.io/a"]);

    let guarded: json_patch::Patch =
        serde_json::from_value(json!([{"op": "test", "path": "/spec/url", "value": "other"}])).unwrap();
    let (code, _, _) = refusal(api.patch("a", &PatchParams::default(), &Patch::Json::<()>(guarded)).await);
    assert_eq!(code, 422);

    let strategic = Patch::Strategic(json!({"spec": {"size": 2}}));
    let (code, reason, _) = refusal(api.patch("a", &PatchParams::default(), &strategic).await);
    assert_eq!((code, reason.as_str()), (415, "UnsupportedMediaType"));
}

#[tokio::test]
async fn dry_runs_change_nothing() {
    let client = client().await;
    let api = widgets(&client);
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let shown = api.create(&dry, &widget("a")).await.unwrap();
    assert_eq!(shown.data["spec"]["mode"], "apply");
    assert_eq!(refusal(api.get("a").await).0, 404);
}

#[tokio::test]
async fn lists_select_by_namespace_label_and_name() {
    let client = client().await;
    let [one, two] = [namespace("one").await, namespace("two").await];
    for (namespace, name, tier) in [(&one, "a", "web"), (&one, "b", "db"), (&two, "c", "web")] {
        let mut object = widget(name);
        let labels = [("tier", tier), ("suite", &one)];
        object.metadata.labels =
            Some(labels.map(|(label, value)| (label.to_owned(), value.to_owned())).into());
        let api: kube::Api<DynamicObject> =
            kube::Api::namespaced_with(client.clone(), namespace, &resource());
        api.create(&PostParams::default(), &object).await.unwrap();
    }
    let all: kube::Api<DynamicObject> = kube::Api::all_with(client.clone(), &resource());
    let names = async |labels: &str, fields: &str| -> Vec<String> {
        let params = ListParams::default().labels(&format!("suite={one}{labels}")).fields(fields);
        let mut names: Vec<_> =
            all.list(&params).await.unwrap().iter().map(DynamicObject::name_any).collect();
        names.sort();
        names
    };
    assert_eq!(names("", "").await, ["a", "b", "c"]);
    assert_eq!(names(",tier=web", "").await, ["a", "c"]);
    assert_eq!(names(",tier in (db, cache),tier", "").await, ["b"]);
    assert_eq!(names(",tier!=web,!other", "").await, ["b"]);
    assert_eq!(names(",tier notin (web)", "").await, ["b"]);
    assert_eq!(names("", "metadata.name=c").await, ["c"]);
    assert_eq!(names("", &format!("metadata.namespace={two}")).await, ["c"]);
    let (code, _, message) = refusal(all.list(&ListParams::default().fields("spec.url=x")).await);
    assert_eq!((code, message.as_str()), (400, "field label not supported: spec.url"));
    let suite = ListParams::default().labels(&format!("suite={one}"));
    assert_eq!(all.list_metadata(&suite).await.unwrap().items.len(), 3);
}

#[tokio::test]
async fn secrets_take_string_data_and_keep_base64() {
    let client = client().await;
    let secret: Secret = serde_json::from_value(json!({
        "metadata": {"name": "s"}, "stringData": {"a": "plain"}, "data": {"b": "Yg=="},
    }))
    .unwrap();
    let made = secrets(&client).create(&PostParams::default(), &secret).await.unwrap();
    let data = made.data.unwrap();
    assert_eq!(data["a"].0, b"plain");
    assert_eq!(data["b"].0, b"b");
    assert_eq!(made.string_data, None);
    assert_eq!(made.type_.as_deref(), Some("Opaque"));
    assert_eq!(made.metadata.generation, None);
    let metadata = secrets(&client).get_metadata("s").await.unwrap();
    assert_eq!(metadata.metadata.uid, made.metadata.uid);

    let broken = Patch::Merge(json!({"data": {"a": "not base64!"}}));
    let (code, reason, _) = refusal(secrets(&client).patch("s", &PatchParams::default(), &broken).await);
    assert_eq!((code, reason.as_str()), (422, "Invalid"));
}

#[tokio::test]
async fn claims_are_pending_and_fixed() {
    let client = client().await;
    let claims: kube::Api<PersistentVolumeClaim> = kube::Api::default_namespaced(client);
    let claim = |modes: Value, storage: &str| -> PersistentVolumeClaim {
        serde_json::from_value(json!({
            "metadata": {"name": "c"},
            "spec": {"accessModes": modes, "resources": {"requests": {"storage": storage}}},
        }))
        .unwrap()
    };
    let made = claims.create(&PostParams::default(), &claim(json!(["ReadWriteOnce"]), "1Gi")).await.unwrap();
    assert_eq!(made.status.unwrap().phase.as_deref(), Some("Pending"));
    let change = Patch::Merge(json!({"spec": {"accessModes": ["ReadWriteMany"]}}));
    let (code, _, message) = refusal(claims.patch("c", &PatchParams::default(), &change).await);
    assert_eq!(code, 422);
    assert!(message.contains("spec: Forbidden: spec is immutable after creation"), "{message}");
}

#[tokio::test]
async fn events_of_both_groups_are_the_same_events() {
    let client = client().await;
    let events: kube::Api<EventsEvent> = kube::Api::default_namespaced(client.clone());
    let event: EventsEvent = serde_json::from_value(json!({
        "metadata": {"generateName": "a-"}, "action": "Sync", "reason": "Ready", "type": "Normal",
        "note": "all good", "reportingController": "declarest", "reportingInstance": "x",
        "eventTime": "2026-01-02T03:04:05.000000Z",
        "regarding": {"kind": "Widget", "name": "a", "namespace": "default", "uid": "u"},
    }))
    .unwrap();
    let made = events.create(&PostParams::default(), &event).await.unwrap();
    assert_eq!(made.note.as_deref(), Some("all good"));
    let series =
        Patch::Merge(json!({"series": {"count": 2, "lastObservedTime": "2026-01-02T03:04:06.000000Z"}}));
    events.patch(&made.name_any(), &PatchParams::default(), &series).await.unwrap();

    let core: kube::Api<Event> = kube::Api::default_namespaced(client);
    let selected = ListParams::default().fields("involvedObject.name=a,involvedObject.uid=u");
    let found = core.list(&selected).await.unwrap();
    assert_eq!(found.items.len(), 1);
    assert_eq!(found.items[0].message.as_deref(), Some("all good"));
    assert_eq!(found.items[0].involved_object.kind.as_deref(), Some("Widget"));
    assert_eq!(found.items[0].series.as_ref().unwrap().count, Some(2));
    let other = ListParams::default().fields("regarding.name=b");
    assert_eq!(events.list(&other).await.unwrap().items.len(), 0);
}

#[tokio::test]
async fn leases_are_guarded_by_their_revision() {
    let client = client().await;
    let leases: kube::Api<Lease> = kube::Api::default_namespaced(client);
    let lease: Lease =
        serde_json::from_value(json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}})).unwrap();
    let first = leases.create(&PostParams::default(), &lease).await.unwrap();
    let mut taken = first.clone();
    taken.spec.as_mut().unwrap().holder_identity = Some("b".to_owned());
    leases.replace("l", &PostParams::default(), &taken).await.unwrap();
    assert_eq!(refusal(leases.replace("l", &PostParams::default(), &first).await).0, 409);
}

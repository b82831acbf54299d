//! The custom resource that tests of a Kubernetes API use, and short ways to say what they do with it. All
//! of them work in the default namespace of the client.

#![allow(dead_code, reason = "shared by several test targets")]

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

/// A type with a bit of everything that schemas of this project use.
pub fn crd() -> CustomResourceDefinition {
    let text = json!({"type": "string"});
    let spec = json!({
        "type": "object",
        "required": ["url"],
        "x-kubernetes-validations": [{
            "rule": "!has(self.auth) || (has(self.auth.token) != has(self.auth.password))",
            "message": "exactly one of auth.token and auth.password",
        }],
        "properties": {
            "url": {"type": "string", "pattern": "^https?://"},
            "interval": {
                "type": "string", "default": "1m",
                "x-kubernetes-validations": [{
                    "rule": "duration(self) >= duration('30s')",
                    "messageExpression": "'must be at least 30s, not ' + self",
                }],
            },
            "size": {"type": "integer", "minimum": 1, "maximum": 10},
            "mode": {"type": "string", "enum": ["apply", "observe"], "default": "apply"},
            "limit": {"x-kubernetes-int-or-string": true},
            "label": {"type": "string", "nullable": true, "maxLength": 5},
            "name": {"type": "string", "x-kubernetes-validations": [{
                "rule": "self == oldSelf", "message": "is immutable",
            }]},
            "auth": {"type": "object", "properties": {"token": text, "password": text}},
            "tags": {
                "type": "array", "x-kubernetes-list-type": "set", "maxItems": 3, "items": text,
                "x-kubernetes-validations": [{"rule": "self.all(tag, tag.matches('^[a-z]+$'))"}],
            },
            "nested": {"type": "object", "properties": {
                "deep": {"type": "boolean", "default": true},
            }},
            "headers": {"type": "object", "additionalProperties": text},
        },
    });
    let status = json!({
        "type": "object",
        "properties": {
            "message": text,
            "count": {"type": "integer"},
            "webhook": {"type": "object", "properties": {"path": text}},
            "conditions": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
                "items": {
                    "type": "object", "required": ["type", "status"],
                    "properties": {"type": text, "status": text, "reason": text},
                },
            },
        },
    });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.io"},
        "spec": {
            "group": "example.io",
            "scope": "Namespaced",
            "names": {
                "kind": "Widget", "plural": "widgets", "singular": "widget", "shortNames": ["wd"],
                "categories": ["all"],
            },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "URL", "type": "string", "jsonPath": ".spec.url"},
                    {"name": "Ready", "type": "string",
                     "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"},
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
                "schema": {"openAPIV3Schema": {
                    "type": "object", "required": ["spec"],
                    "properties": {"spec": spec, "status": status},
                }},
            }],
        },
    });
    serde_json::from_value(definition).unwrap()
}

pub fn resource() -> ApiResource {
    ApiResource {
        group: "example.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "example.io/v1".to_owned(),
        kind: "Widget".to_owned(),
        plural: "widgets".to_owned(),
    }
}

pub fn widgets(client: &Client) -> kube::Api<DynamicObject> {
    kube::Api::default_namespaced_with(client.clone(), &resource())
}

pub fn secrets(client: &Client) -> kube::Api<Secret> {
    kube::Api::default_namespaced(client.clone())
}

/// A valid widget.
pub fn widget(name: &str) -> DynamicObject {
    DynamicObject::new(name, &resource()).data(json!({"spec": {"url": "https://example.org"}}))
}

/// A widget with this spec.
pub fn widget_with(name: &str, spec: &Value) -> DynamicObject {
    DynamicObject::new(name, &resource()).data(json!({ "spec": spec }))
}

/// A partial widget for patches.
pub fn partial(name: &str, content: &Value) -> Value {
    let mut object = json!({"apiVersion": "example.io/v1", "kind": "Widget", "metadata": {"name": name}});
    json_patch::merge(&mut object, content);
    object
}

pub async fn merge(client: &Client, name: &str, patch: &Value) -> kube::Result<DynamicObject> {
    widgets(client).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await
}

pub async fn apply_status(client: &Client, manager: &str, name: &str, status: &Value) -> DynamicObject {
    let patch = partial(name, &json!({ "status": status }));
    let params = PatchParams::apply(manager).force();
    widgets(client).patch_status(name, &params, &Patch::Apply(&patch)).await.unwrap()
}

/// Code, reason and message of a refusal.
pub fn refusal<T: std::fmt::Debug>(result: kube::Result<T>) -> (u16, String, String) {
    match result {
        Err(kube::Error::Api(status)) => (status.code, status.reason.clone(), status.message.clone()),
        other => panic!("expected a refusal, got {other:?}"),
    }
}

//! Writes the status of objects, only if it changed.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{ApiResource, DynamicObject, ObjectMeta, Patch, PatchParams};
use kube::core::Status;
use kube::{Api, Client};
use serde_json::{Value, json};

use super::conditions::{self, Verdict};
use super::error::Failure;

/// The field manager of the operator.
pub const FIELD_MANAGER: &str = "declarest-operator";

/// Hides values of placeholders in the parts of a status that quote the spec or errors. Other parts, such as paths of
/// resources, are input of later rounds.
pub fn conceal(status: &mut Value, shown: &impl Fn(&str) -> String) {
    let failed = status.get_mut("failedResources").and_then(Value::as_array_mut);
    let messages = failed.into_iter().flatten().filter_map(|failed| failed.get_mut("message"));
    for message in messages {
        *message = json!(shown(message.as_str().unwrap_or_default()));
    }
    for field in ["resolvedPath", "localPath"] {
        if let Some(path) = status.get_mut(field).filter(|path| path.is_string()) {
            *path = json!(shown(path.as_str().unwrap_or_default()));
        }
    }
}

/// Returns the failure to report if the API server refused a status because its definition does not have one of the fields:
/// the definition is older than the operator.
pub fn old_definition(error: &kube::Error) -> Option<Failure> {
    let is_unknown = |status: &Status| status.message.contains("field not declared in schema");
    matches!(error, kube::Error::Api(status) if is_unknown(status)).then(|| {
        let Failure { reason, message, .. } = Failure::api("write the status", error);
        let advice =
            "the CustomResourceDefinition is older than the operator: apply the definitions of its version";
        Failure::new(reason, format!("{message}; {advice}"))
    })
}

/// A status of which only the conditions and the generation change.
pub struct Judged {
    /// The conditions before.
    pub previous: Vec<Condition>,
    pub conditions: Vec<Condition>,
    pub status: Value,
}

impl Judged {
    /// Returns the `current` status with the conditions of `verdict`.
    pub fn new(current: Option<&Value>, verdict: &Verdict<'_>) -> Result<Self, kube::Error> {
        let previous: Vec<Condition> = current
            .and_then(|status| status.get("conditions"))
            .and_then(|conditions| serde_json::from_value(conditions.clone()).ok())
            .unwrap_or_default();
        let conditions = conditions::compute(&previous, verdict, Timestamp::now());
        let mut status = current.cloned().unwrap_or_else(|| json!({}));
        status["observedGeneration"] = json!(verdict.generation);
        status["conditions"] = serde_json::to_value(&conditions).map_err(kube::Error::SerdeError)?;
        Ok(Self { previous, conditions, status })
    }
}

/// Writes `status` with server-side apply on the status subresource. If it equals `current`, the status of the
/// object, nothing is sent. Returns the new version of the object if it was written.
pub async fn apply(
    client: &Client,
    resource: &ApiResource,
    object: &ObjectMeta,
    current: Option<&Value>,
    status: &Value,
) -> Result<Option<String>, kube::Error> {
    if current == Some(status) {
        return Ok(None);
    }
    let name = object.name.as_deref().unwrap_or_default();
    let patch = json!({
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        // If the object was replaced by another with the same name, the uid causes a conflict.
        "metadata": {"name": name, "namespace": object.namespace, "uid": object.uid},
        "status": status,
    });
    let namespace = object.namespace.as_deref().unwrap_or_default();
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, resource);
    let written =
        api.patch_status(name, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(patch)).await?;
    Ok(written.metadata.resource_version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_messages_are_concealed() {
        let shown = |text: &str| text.replace("hidden", "${NAME}");
        let mut status = json!({
            "localPath": "/volumes/hidden", "resolvedPath": "/hidden/store", "lastFetchedRevision": "hidden",
            "failedResources": [{"path": "/hidden", "message": "at hidden"}],
        });
        conceal(&mut status, &shown);
        let expected = json!({
            "localPath": "/volumes/${NAME}", "resolvedPath": "/${NAME}/store", "lastFetchedRevision": "hidden",
            "failedResources": [{"path": "/hidden", "message": "at ${NAME}"}],
        });
        assert_eq!(status, expected);
    }
}

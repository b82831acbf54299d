//! Writes `status`, and only when it says something new.

use kube::api::{ApiResource, DynamicObject, ObjectMeta, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

/// Owner of the fields we write.
pub const FIELD_MANAGER: &str = "declarest-operator";

/// Writes `status` by server-side apply on the status subresource. `current` is what the object holds;
/// if the two are equal, nothing is sent and the answer is `false`.
pub async fn apply(
    client: &Client,
    resource: &ApiResource,
    object: &ObjectMeta,
    current: Option<&Value>,
    status: &Value,
) -> Result<bool, kube::Error> {
    if current == Some(status) {
        return Ok(false);
    }
    let name = object.name.as_deref().unwrap_or_default();
    let patch = json!({
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        // The uid makes this a conflict if the object was replaced by a namesake meanwhile.
        "metadata": {"name": name, "namespace": object.namespace, "uid": object.uid},
        "status": status,
    });
    let namespace = object.namespace.as_deref().unwrap_or_default();
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, resource);
    api.patch_status(name, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(patch)).await?;
    Ok(true)
}

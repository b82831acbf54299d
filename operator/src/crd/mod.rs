//! The four kinds of `declarest.io/v1alpha1`: one file per kind, and the blocks that they share in this file.
//!
//! Doc comments on fields become the texts of `kubectl explain`. A rule that a schema or a CEL expression can
//! state is stated there. The `validate` method of each spec checks all other rules, and again those that must
//! hold without an API server, after `${NAME}` placeholders are expanded.

// Kind and field names in texts for kubectl explain, which prints backticks as they are.
#![allow(clippy::doc_markdown)]

pub mod contract;
pub mod generate;
mod insecure;
mod interval;
pub mod managed_server;
mod prune_limit;
pub mod reference;
pub mod resource_repository;
mod schedule;
pub mod secret_store;
pub mod sync_policy;
#[cfg(test)]
mod tests;
pub mod validation;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResourceExt, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use insecure::{Insecure, insecure_settings};
pub use interval::{Interval, parse_duration};
pub use managed_server::{ManagedServer, ManagedServerSpec, ManagedServerStatus};
pub use prune_limit::PruneLimit;
pub use resource_repository::{ResourceRepository, ResourceRepositorySpec, ResourceRepositoryStatus};
pub use schedule::Schedule;
pub use secret_store::{SecretStore, SecretStoreSpec, SecretStoreStatus};
pub use sync_policy::{SyncPolicy, SyncPolicySpec, SyncPolicyStatus};
pub use validation::{FieldError, FieldErrors, Limits};

/// Conditions as `status.conditions` holds them: a list that is merged by `type`.
pub type Conditions = Vec<Condition>;

/// The references of a spec to Secrets, each with the path of its field in the object.
pub type SecretRefs = Vec<(String, SecretKeyRef)>;

/// Returns every reference of a spec to a key of a Secret, in the order of the fields.
pub fn secret_refs(spec: &impl Serialize) -> SecretRefs {
    let mut refs = SecretRefs::new();
    add_secret_refs("spec", &serde_json::to_value(spec).unwrap_or_default(), &mut refs);
    refs
}

fn add_secret_refs(field: &str, value: &Value, refs: &mut SecretRefs) {
    // The name counts, because the names of headers can be `name` and `key`, too.
    if field.ends_with("Ref")
        && let Ok(secret) = SecretKeyRef::deserialize(value)
    {
        return refs.push((field.to_owned(), secret));
    }
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                add_secret_refs(&format!("{field}.{name}"), member, refs);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                add_secret_refs(&format!("{field}[{index}]"), item, refs);
            }
        }
        _ => {}
    }
}

/// Returns the definitions of all kinds, as they are installed into a cluster.
pub fn all() -> Vec<CustomResourceDefinition> {
    let mut crds = [ManagedServer::crd(), ResourceRepository::crd(), SecretStore::crd(), SyncPolicy::crd()];
    for version in crds.iter_mut().flat_map(|crd| &mut crd.spec.versions) {
        if let Some(schema) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            finish_schema(schema);
            // kstatus treats an object without a status as current, although the operator has not looked at it.
            let properties = schema.properties.as_mut();
            if let Some(status) = properties.and_then(|properties| properties.get_mut("status")) {
                status.default = Some(JSON(json!({"observedGeneration": -1})));
            }
        }
    }
    crds.into()
}

/// Adapts the output of the derive macros to API servers and kubectl.
///
/// - `nullable` is removed, so that an explicit null is dropped, as for the built-in kinds. Otherwise, `has()`
///   in a CEL rule would count it as present.
/// - Lines are joined. Doc comments are wrapped for editors, and kubectl wraps them again.
fn finish_schema(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    if let Some(description) = &mut schema.description {
        let paragraphs: Vec<_> = description.split("\n\n").map(|lines| lines.replace('\n', " ")).collect();
        *description = paragraphs.join("\n\n");
    }
    for property in schema.properties.iter_mut().flat_map(|properties| properties.values_mut()) {
        finish_schema(property);
    }
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => finish_schema(items),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(finish_schema),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        finish_schema(values);
    }
}

/// One key of a Secret in the same namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct SecretKeyRef {
    /// Name of the Secret. A missing Secret is an error.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Key in the Secret's data. A missing key or an empty value is an error.
    #[schemars(length(min = 1))]
    pub key: String,
}

/// An object in the same namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct LocalRef {
    /// Name of the object.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// How the server's certificate is verified, and the client certificate to present.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "has(self.clientCertRef) == has(self.clientKeyRef)",
    "set clientCertRef and clientKeyRef together, or neither"
))]
pub struct Tls {
    /// PEM bundle of certificate authorities to trust instead of the system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_cert_ref: Option<SecretKeyRef>,
    /// PEM certificate to present to the server; needs clientKeyRef.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cert_ref: Option<SecretKeyRef>,
    /// PEM private key of clientCertRef.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_key_ref: Option<SecretKeyRef>,
    /// Accept any certificate. An attacker on the network can then read and change all traffic; for tests only.
    #[serde(default)]
    pub insecure_skip_verify: bool,
}

/// The proxy for outgoing connections. A field that is not set is taken from the operator's environment
/// (`HTTP_PROXY`, `HTTPS_PROXY`, `NO_PROXY`); an empty block disables proxies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Proxy {
    /// Proxy for http targets: an http or https URL without credentials.
    #[serde(rename = "httpURL", skip_serializing_if = "Option::is_none")]
    #[schemars(
        regex(pattern = validation::HTTP_URL),
        extend("x-kubernetes-validations" = validation::without_credentials())
    )]
    pub http_url: Option<String>,
    /// Proxy for https targets: an http or https URL without credentials.
    #[serde(rename = "httpsURL", skip_serializing_if = "Option::is_none")]
    #[schemars(
        regex(pattern = validation::HTTP_URL),
        extend("x-kubernetes-validations" = validation::without_credentials())
    )]
    pub https_url: Option<String>,
    /// Comma-separated targets to reach without the proxy: `*`, IP, CIDR, `host[:port]`, `example.com` (with
    /// its subdomains), `.example.com` (subdomains only). Loopback addresses never use the proxy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_proxy: Option<String>,
    /// User name and password for the proxy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<BasicAuth>,
}

/// A user name and a password, each in a Secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BasicAuth {
    /// Secret key that holds the user name.
    pub username_ref: SecretKeyRef,
    /// Secret key that holds the password.
    pub password_ref: SecretKeyRef,
}

/// A volume that outlives the operator's pod. It is used only if an administrator mounted the claim into the
/// operator; otherwise the operator's own state directory is used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "has(self.existingPVC) != has(self.pvc)",
    "set exactly one of existingPVC and pvc"
))]
pub struct Storage {
    /// An existing PersistentVolumeClaim.
    #[serde(rename = "existingPVC", default, skip_serializing_if = "Option::is_none")]
    pub existing_pvc: Option<LocalRef>,
    /// A PersistentVolumeClaim to create. It is deleted together with this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pvc: Option<ClaimTemplate>,
}

/// The spec of a PersistentVolumeClaim to create.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimTemplate {
    /// StorageClass; by default the default class of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
    /// How the volume may be mounted.
    #[schemars(length(min = 1))]
    pub access_modes: Vec<AccessMode>,
    /// The resources to request.
    pub requests: ClaimRequests,
}

/// The resources that a PersistentVolumeClaim requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimRequests {
    /// Size of the volume as a Kubernetes quantity, for example `10Gi`.
    #[schemars(regex(pattern = validation::QUANTITY))]
    pub storage: String,
}

/// An access mode of a PersistentVolumeClaim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[strum(const_into_str)]
pub enum AccessMode {
    ReadWriteOnce,
    ReadOnlyMany,
    ReadWriteMany,
    ReadWriteOncePod,
}

impl Tls {
    fn check(&self, field: &str, errors: &mut FieldErrors) {
        if self.client_cert_ref.is_some() != self.client_key_ref.is_some() {
            errors.push(field, "set clientCertRef and clientKeyRef together, or neither");
        }
    }
}

impl Proxy {
    fn check(&self, field: &str, errors: &mut FieldErrors) {
        for (name, url) in [("httpURL", &self.http_url), ("httpsURL", &self.https_url)] {
            if let Some(url) = url {
                errors.check(&format!("{field}.{name}"), validation::http_url(url));
            }
        }
    }
}

impl Storage {
    fn check(&self, field: &str, errors: &mut FieldErrors) {
        if self.existing_pvc.is_some() == self.pvc.is_some() {
            errors.push(field, "set exactly one of existingPVC and pvc");
        }
        if let Some(claim) = &self.existing_pvc {
            claim.check(&format!("{field}.existingPVC"), errors);
        }
        if let Some(claim) = &self.pvc {
            if claim.access_modes.is_empty() {
                errors.push(&format!("{field}.pvc.accessModes"), "name at least one access mode");
            }
            errors.check(
                &format!("{field}.pvc.requests.storage"),
                validation::quantity(&claim.requests.storage),
            );
        }
    }
}

impl LocalRef {
    fn check(&self, field: &str, errors: &mut FieldErrors) {
        if self.name.trim().is_empty() {
            errors.push(&format!("{field}.name"), "must not be empty");
        }
    }
}

/// Returns the schema of `status.conditions`: a list merged by type, with the limits of the Kubernetes API
/// conventions.
fn conditions_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "description": "The latest observations of the object; `Ready` summarizes them.",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": {
                    "type": "string",
                    "format": "date-time",
                    "description": "Time of the last change of status."
                },
                "message": {
                    "type": "string",
                    "maxLength": 32768,
                    "description": "Description of the state and how to correct it."
                },
                "observedGeneration": {
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                    "description": "The metadata.generation that the condition describes."
                },
                "reason": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                    "description": "The cause as one CamelCase word."
                },
                "status": {
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                    "description": "Whether the condition holds."
                },
                "type": {
                    "type": "string",
                    "maxLength": 316,
                    "description": "Name of the condition in CamelCase."
                }
            }
        }
    })
}

/// Returns the schema of a point in time (RFC 3339).
fn time_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}

const fn enabled() -> bool {
    true
}

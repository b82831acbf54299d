//! Decides whether one request to the API server is allowed.

use std::time::Duration;

use kube::api::{ApiResource, ListParams};
use kube::core::DynamicObject;
use kube::core::Status;
use kube::core::admission::{AdmissionRequest, AdmissionResponse, Operation};
use kube::{Api, Client, ResourceExt as _};
use serde_json::Value;

use super::warnings;
use crate::access::{self, Right};
use crate::controller::context::Settings;
use crate::controller::kind::Kind;
use crate::controller::sync_policy::{Claim, overlapping};
use crate::crd::{FieldErrors, ManagedServer, ResourceRepository, SecretStore, SyncPolicy};

/// Limit of the time of a request to the API server, which waits 10 s for the webhook. A review needs at most one.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Reviews requests.
pub struct Reviewer {
    client: Client,
    settings: Settings,
    /// The namespaces of the operator; empty for all. It has no rights in others, so it allows requests for them.
    namespaces: Vec<String>,
}

/// A kind whose objects are reviewed.
pub trait Reviewed: Kind {
    /// The field of the spec of a policy that refers to an object of this kind, if there is one.
    const REFERENCE: Option<&'static str>;

    /// Returns the resources that the object owns, if it is a policy that does.
    fn claim(&self, _: &Settings) -> Option<Claim> {
        None
    }
}

impl Reviewed for ResourceRepository {
    const REFERENCE: Option<&'static str> = Some("resourceRepositoryRef");
}

impl Reviewed for ManagedServer {
    const REFERENCE: Option<&'static str> = Some("managedServerRef");
}

impl Reviewed for SecretStore {
    const REFERENCE: Option<&'static str> = Some("secretStoreRef");
}

impl Reviewed for SyncPolicy {
    const REFERENCE: Option<&'static str> = None;

    fn claim(&self, settings: &Settings) -> Option<Claim> {
        Claim::expanded(self, settings)
    }
}

/// Why a request is denied: the reason and the HTTP status of the Kubernetes conventions, and a message.
struct Denial {
    reason: &'static str,
    code: u16,
    message: String,
}

impl Denial {
    fn invalid(message: impl Into<String>) -> Self {
        Self { reason: "Invalid", code: 422, message: message.into() }
    }

    /// The caller is not authenticated, so the values of placeholders are not shown, and messages may contain them.
    fn of_fields(errors: &FieldErrors, spec: &Value) -> Self {
        if spec.to_string().contains("${") {
            let fields: Vec<&str> = errors.fields().collect();
            return Self::invalid(format!(
                "invalid after the expansion of placeholders: {}",
                fields.join(", ")
            ));
        }
        Self::invalid(errors.to_string())
    }

    fn conflict(message: String) -> Self {
        Self { reason: "Conflict", code: 409, message }
    }

    fn forbidden(message: String) -> Self {
        Self { reason: "Forbidden", code: 403, message }
    }

    fn internal(message: String) -> Self {
        Self { reason: "InternalError", code: 500, message }
    }
}

impl Reviewer {
    pub fn new(client: Client, settings: Settings, namespaces: Vec<String>) -> Self {
        Self { client, settings, namespaces }
    }

    /// Returns the response to a request about an object of kind `K`.
    pub async fn review<K: Reviewed>(&self, request: &AdmissionRequest<DynamicObject>) -> AdmissionResponse {
        let mut response = AdmissionResponse::from(request);
        let is_ours = |namespace: &String| self.namespaces.is_empty() || self.namespaces.contains(namespace);
        if !request.namespace.as_ref().is_none_or(is_ours) {
            return response;
        }
        let reviewed = match request.operation {
            Operation::Create | Operation::Update => self.review_write::<K>(request).await,
            Operation::Delete => self.review_deletion::<K>(request).await.map(|()| Vec::new()),
            Operation::Connect => Ok(Vec::new()),
        };
        match reviewed {
            Ok(warnings) => response.warnings = Some(warnings).filter(|warnings| !warnings.is_empty()),
            Err(Denial { reason, code, message }) => {
                let (name, namespace) = (&request.name, &request.namespace);
                tracing::info!(kind = K::NAME, name, namespace, message, "denied");
                response.allowed = false;
                response.result = Status::failure(&message, reason).with_code(code);
            }
        }
        response
    }

    /// Checks an object that is created or changed. Returns warnings.
    async fn review_write<K: Reviewed>(
        &self,
        request: &AdmissionRequest<DynamicObject>,
    ) -> Result<Vec<String>, Denial> {
        let Some(object) = &request.object else { return Err(Denial::invalid("the request has no object")) };
        // The controllers must be able to remove finalizers, whatever the spec is.
        if object.metadata.deletion_timestamp.is_some() {
            return Ok(Vec::new());
        }
        // Labels, annotations and finalizers of an object that was invalid before can be changed.
        let before = request.old_object.as_ref();
        if before.is_some_and(|before| before.data.get("spec") == object.data.get("spec")) {
            return Ok(Vec::new());
        }
        let written: K = typed(object)?;
        let spec = object.data.get("spec").unwrap_or(&Value::Null);
        let expanded = self.settings.expand(&written).map_err(|failure| Denial::invalid(failure.message))?;
        expanded.validate(&self.settings.limits).map_err(|errors| Denial::of_fields(&errors, spec))?;
        let before = before.and_then(|before| typed::<K>(before).ok());
        let template = |object: &K| object.storage().and_then(|(storage, _)| storage.pvc.clone());
        let wanted = template(&written);
        if wanted.is_some() && before.as_ref().and_then(template) != wanted {
            self.check_right_to_claims(request).await?;
        }
        if let Some(claim) = written.claim(&self.settings) {
            let before = before.and_then(|before| before.claim(&self.settings));
            self.check_overlap(&claim, before.as_ref(), request.namespace.as_deref()).await?;
        }
        Ok(warnings::of_spec(spec))
    }

    /// Rejects a template of a claim by a user who may not create claims, because the operator creates it for the user.
    async fn check_right_to_claims(&self, request: &AdmissionRequest<DynamicObject>) -> Result<(), Denial> {
        let namespace = request.namespace.as_deref().unwrap_or_default();
        let user = request.user_info.clone();
        let name = user.username.clone().unwrap_or_default();
        let right = Right::CreateClaims(namespace);
        let allowed = answered(access::is_allowed(&self.client, user, right)).await.map_err(|cause| {
            Denial::internal(format!("cannot review the right of {name} to create claims: {cause}"))
        })?;
        if allowed {
            return Ok(());
        }
        Err(Denial::forbidden(format!(
            "storage.pvc: user \"{name}\" may not create persistentvolumeclaims in the namespace \"{namespace}\"; \
             get this right, or use storage.existingPVC"
        )))
    }

    /// Rejects a policy that begins to overlap another one. A policy that overlapped before can still be changed.
    async fn check_overlap(
        &self,
        own: &Claim,
        before: Option<&Claim>,
        namespace: Option<&str>,
    ) -> Result<(), Denial> {
        if before.is_some_and(|before| (&before.scope, &before.server) == (&own.scope, &own.server)) {
            return Ok(());
        }
        let others = self.policies(namespace.unwrap_or_default()).await?;
        // A policy that cannot be decoded does not run, so it does not own resources.
        let others = others.iter().filter_map(|other| typed::<SyncPolicy>(other).ok()?.claim(&self.settings));
        match overlapping(own, others) {
            None => Ok(()),
            // The paths may contain values of placeholders, which are not shown.
            Some(other) => Err(Denial::invalid(format!(
                "spec.source.path overlaps that of the SyncPolicy \"{}\"; change one of the paths, or delete one policy",
                other.name
            ))),
        }
    }

    /// Rejects the deletion of an object that a policy uses.
    async fn review_deletion<K: Reviewed>(
        &self,
        request: &AdmissionRequest<DynamicObject>,
    ) -> Result<(), Denial> {
        let Some(field) = K::REFERENCE else { return Ok(()) };
        let policies = self.policies(request.namespace.as_deref().unwrap_or_default()).await?;
        // The deletion of a collection has no name, but is reviewed for each of its objects.
        let name = match &request.old_object {
            Some(object) => object.name_any(),
            None => request.name.clone(),
        };
        let uses = |policy: &&DynamicObject| {
            let mut reference = policy.data["spec"][field]["name"].clone();
            // A placeholder without a value names nothing.
            let expanded =
                self.settings.expansion.expand("name", &mut reference, &|name| std::env::var(name).ok());
            policy.metadata.deletion_timestamp.is_none() && expanded.is_ok() && reference == name.as_str()
        };
        let users: Vec<String> =
            policies.iter().filter(uses).map(|policy| format!("\"{}\"", policy.name_any())).collect();
        if users.is_empty() {
            return Ok(());
        }
        Err(Denial::conflict(format!(
            "{} \"{}\" is used by SyncPolicy {}; delete the policy first, or let it use another object",
            K::NAME,
            name,
            users.join(", ")
        )))
    }

    /// Reads the policies of a namespace from the API server, because a cache may lack the latest ones. They are not
    /// decoded, because one that cannot be decoded, for example from before a schema change, must not block the others.
    async fn policies(&self, namespace: &str) -> Result<Vec<DynamicObject>, Denial> {
        let kind = ApiResource::erase::<SyncPolicy>(&());
        let policies: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &kind);
        let all = ListParams::default();
        let listed = answered(policies.list(&all)).await.map_err(|cause| {
            Denial::internal(format!("cannot list the SyncPolicies of the namespace {namespace}: {cause}"))
        })?;
        Ok(listed.items)
    }
}

/// Waits for the answer of the API server. Returns the reason if there is none.
async fn answered<T>(answer: impl Future<Output = Result<T, kube::Error>>) -> Result<T, String> {
    match tokio::time::timeout(TIMEOUT, answer).await {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no response within {} s", TIMEOUT.as_secs())),
    }
}

fn typed<K: Kind>(object: &DynamicObject) -> Result<K, Denial> {
    let value = serde_json::to_value(object).unwrap_or_default();
    serde_json::from_value(value)
        .map_err(|error| Denial::invalid(format!("the object cannot be decoded: {error}")))
}

//! The operator's objects, and what their status reports.

use declarest_core::error::Category;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde::Serialize;
use serde_json::Value;

use super::PolicyArguments;
use crate::cluster::Cluster;
use crate::error::Failure;

/// The kinds of objects, with their plural names, in the order of their dependencies.
const KINDS: [(&str, &str); 4] = [
    ("ManagedServer", "managedservers"),
    ("ResourceRepository", "resourcerepositories"),
    ("SecretStore", "secretstores"),
    ("SyncPolicy", "syncpolicies"),
];

/// The largest number of objects of one answer.
const PAGE: u32 = 500;

/// One object, as its status describes it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub kind: &'static str,
    pub namespace: String,
    pub name: String,
    /// The status of the condition Ready: True, False or Unknown. Unknown if it describes an earlier spec.
    pub ready: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The message of the condition Reconciling if it is True and differs: what the operator is doing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspended: Option<bool>,
    /// The commit that was applied, or fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Time at which the last successful run ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_sync: Option<String>,
    /// Counts of the last run that had work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Value>,
}

impl Report {
    fn of(kind: &'static str, object: &DynamicObject) -> Self {
        let text = |pointer: &str| object.data.pointer(pointer)?.as_str().map(str::to_owned);
        let conditions = object.data.pointer("/status/conditions").and_then(Value::as_array);
        let of_spec = |type_: &str| {
            let condition = conditions?.iter().find(|condition| condition["type"] == type_)?;
            let observed = condition["observedGeneration"].as_i64();
            (observed.is_none() || observed == object.metadata.generation).then_some(condition)
        };
        let ready = of_spec("Ready");
        let of_ready = |key: &str| ready?[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let status = of_ready("status");
        let unhandled = || "the operator has not handled the current spec".to_owned();
        let message = if ready.is_some() { of_ready("message") } else { Some(unhandled()) };
        let works = of_spec("Reconciling").filter(|condition| condition["status"] == "True");
        let progress = works.and_then(|works| works["message"].as_str()).map(str::to_owned);
        Self {
            kind,
            namespace: object.namespace().unwrap_or_default(),
            name: object.name_any(),
            ready: status.unwrap_or_else(|| "Unknown".to_owned()),
            reason: of_ready("reason"),
            progress: progress.filter(|progress| Some(progress) != message.as_ref()),
            message,
            suspended: (kind == "SyncPolicy").then(|| is_suspended(object)),
            revision: text("/status/lastAppliedRepoRevision").or_else(|| text("/status/lastFetchedRevision")),
            last_sync: text("/status/lastSuccessfulSyncTime"),
            resources: object.data.pointer("/status/resourceStats").cloned(),
        }
    }

    /// Returns the report of a policy.
    pub fn of_policy(object: &DynamicObject) -> Self {
        Self::of("SyncPolicy", object)
    }

    /// Returns the kind and the name, as `kubectl` prints them: `syncpolicy/shops`.
    pub fn title(&self) -> String {
        format!("{}/{}", self.kind.to_ascii_lowercase(), self.name)
    }
}

/// Lists the objects of a namespace, or of all namespaces, by kind, namespace and name.
pub async fn list(cluster: &Cluster, namespace: Option<&str>) -> Result<Vec<Report>, Failure> {
    let mut reports = Vec::new();
    for (kind, plural) in KINDS {
        let resource = resource(kind, plural);
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(cluster.client.clone(), namespace, &resource),
            None => Api::all_with(cluster.client.clone(), &resource),
        };
        let mut page = ListParams::default().limit(PAGE);
        let first = reports.len();
        loop {
            let answer = api.list(&page).await.map_err(|error| without_crds(cluster.failure(&error)))?;
            reports.extend(answer.items.iter().map(|object| Report::of(kind, object)));
            match answer.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => break,
            }
        }
        let key = |report: &Report| (report.namespace.clone(), report.name.clone());
        reports[first..].sort_by_key(key);
    }
    Ok(reports)
}

/// A SyncPolicy of a cluster.
pub struct Policy {
    cluster: Cluster,
    api: Api<DynamicObject>,
    name: String,
}

impl Policy {
    /// Prepares the access to the policy.
    pub async fn connect(arguments: &PolicyArguments) -> Result<Self, Failure> {
        let cluster = Cluster::connect(&arguments.cluster).await?;
        let resource = resource("SyncPolicy", "syncpolicies");
        let api = Api::namespaced_with(cluster.client.clone(), &cluster.namespace, &resource);
        Ok(Self { cluster, api, name: arguments.name.clone() })
    }

    /// Reads the policy.
    pub async fn read(&self) -> Result<DynamicObject, Failure> {
        self.api.get(&self.name).await.map_err(|error| self.failure(&error))
    }

    /// Changes the policy with a JSON Merge Patch (RFC 7386).
    pub async fn patch(&self, patch: Value) -> Result<DynamicObject, Failure> {
        let parameters =
            PatchParams { field_manager: Some("declarest-cli".to_owned()), ..PatchParams::default() };
        let patched = self.api.patch(&self.name, &parameters, &Patch::Merge(patch)).await;
        patched.map_err(|error| self.failure(&error))
    }

    fn failure(&self, error: &kube::Error) -> Failure {
        let failure = self.cluster.failure(error);
        if failure.category() != Category::NotFound {
            return failure;
        }
        let namespace = &self.cluster.namespace;
        let message = format!("SyncPolicy \"{}\" not found in namespace \"{namespace}\"", self.name);
        let hint = "\"declarest operator status -A\" lists the policies of all namespaces".to_owned();
        Failure::new(Category::NotFound, message).with_hint(|_| Some(hint))
    }
}

/// Returns whether a policy is suspended.
pub fn is_suspended(policy: &DynamicObject) -> bool {
    policy.data.pointer("/spec/suspend").and_then(Value::as_bool).unwrap_or_default()
}

fn resource(kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("declarest.io", "v1alpha1", kind), plural)
}

fn without_crds(failure: Failure) -> Failure {
    let hint = |failure: &Failure| {
        let missing = failure.category() == Category::NotFound;
        missing.then(|| "install the CRDs of DeclaREST in this cluster".to_owned())
    };
    failure.with_hint(hint)
}

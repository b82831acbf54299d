//! SyncPolicy: the unit of execution, which refers to a repository, a server and a secret store.

use std::time::Duration;

use declarest_core::path::LogicalPath;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Conditions, FieldErrors, Interval, LocalRef, PruneLimit, Schedule, conditions_schema, enabled,
    time_schema, validation,
};

const MIN_SYNC_INTERVAL: Duration = Duration::from_secs(10);

/// The resources to keep in sync, the schedule, and the limits of a sync.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "declarest.io",
    version = "v1alpha1",
    kind = "SyncPolicy",
    plural = "syncpolicies",
    shortname = "sp",
    category = "declarest",
    namespaced,
    status = "SyncPolicyStatus",
    derive = "PartialEq",
    doc = "Keeps a ManagedServer in sync with the resources that a ResourceRepository declares below one path.",
    printcolumn = r#"{"name": "Repo", "type": "string", "jsonPath": ".spec.resourceRepositoryRef.name"}"#,
    printcolumn = r#"{"name": "Server", "type": "string", "jsonPath": ".spec.managedServerRef.name"}"#,
    printcolumn = r#"{"name": "Revision", "type": "string", "jsonPath": ".status.lastAppliedRepoRevision"}"#,
    printcolumn = r#"{"name": "Last Sync", "type": "date", "jsonPath": ".status.lastSuccessfulSyncTime"}"#,
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Mode", "type": "string", "jsonPath": ".spec.mode", "priority": 1}"#,
    printcolumn = r#"{"name": "Failed", "type": "integer", "jsonPath": ".status.resourceStats.failed", "priority": 1}"#,
    printcolumn = r#"{"name": "Status", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].message", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
pub struct SyncPolicySpec {
    /// The ResourceRepository that declares desired state.
    pub resource_repository_ref: LocalRef,
    /// The ManagedServer to keep in sync.
    pub managed_server_ref: LocalRef,
    /// The SecretStore with the values of secret placeholders. Without it, a resource with a placeholder fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_store_ref: Option<LocalRef>,
    /// The part of the repository that this policy owns.
    pub source: Source,
    /// Options of a sync.
    #[serde(default)]
    pub sync: SyncOptions,
    /// `apply` writes to the server; `observe` only reports differences.
    #[serde(default)]
    pub mode: SyncMode,
    /// Interval at which the whole scope is compared with the server and drift is corrected, at least 10s.
    #[serde(default = "default_sync_interval")]
    #[schemars(extend("x-kubernetes-validations" = validation::at_least(MIN_SYNC_INTERVAL)))]
    pub sync_interval: Interval,
    /// Additional runs, in UTC, that read every resource individually: five cron fields, for example `0 3 * * 0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = validation::or_placeholder(validation::CRON)))]
    pub full_resync_cron: Option<String>,
    /// If true, the policy does not sync.
    #[serde(default)]
    pub suspend: bool,
}

/// The part of the repository that a policy owns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// Logical path of a resource or collection; `/` is the whole repository. Policies of a namespace must not
    /// overlap if they refer to the same server.
    #[schemars(length(min = 1))]
    pub path: String,
    /// If true, all resources below path are included; otherwise only the resource at path or, if path is not a
    /// resource, the resources directly in it.
    #[serde(default = "enabled")]
    pub recursive: bool,
}

/// Options of a sync.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncOptions {
    /// Delete resources from the server that Git declared while this policy ran and no longer declares.
    pub prune: bool,
    /// Write all resources in every run, also those that are equal. Mode observe ignores it.
    pub force: bool,
    /// Allow pruning if Git no longer declares any resource below source.path.
    pub allow_empty: bool,
    /// Limit of the deletions in one run: a count, or a percentage of the resources that the policy owns. If a
    /// run has more than 10 deletions and exceeds the limit, it deletes nothing; raise the limit to approve it.
    pub prune_limit: PruneLimit,
}

/// Whether a policy writes to the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SyncMode {
    #[default]
    Apply,
    Observe,
}

/// The results of the last runs of the policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncPolicyStatus {
    /// The metadata.generation that this status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Commit that the last run read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_attempted_repo_revision: Option<String>,
    /// Last commit that was applied without a failure. A run with mode observe applies nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_applied_repo_revision: Option<String>,
    /// Whether the last run covered the whole scope or only the changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_sync_mode: Option<RunKind>,
    /// Counts of the last run that had work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_stats: Option<ResourceStats>,
    /// Start of the last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time_schema")]
    pub last_attempt_time: Option<Time>,
    /// Time at which the last successful run ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time_schema")]
    pub last_successful_sync_time: Option<Time>,
    /// Time of the last run that compared the whole scope.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time_schema")]
    pub last_full_resync_time: Option<Time>,
    /// Hash of the versions of the Secrets of the server and the store at the last completed run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_secret_resource_version_hash: Option<String>,
    /// Hash of the generations of the policy and its dependencies at the last completed run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_applied_config_hash: Option<String>,
    /// Outcome of the last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_run_outcome: Option<RunOutcome>,
    /// Whether the last run had mode observe, so that it wrote nothing.
    #[serde(skip_serializing_if = "is_false")]
    pub last_run_observed: bool,
    /// Identifies the record of write-only values that the last run used. A process with another record discards its own.
    #[serde(rename = "recordID", skip_serializing_if = "Option::is_none")]
    pub record_id: Option<String>,
    /// Cause of the last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_trigger: Option<String>,
    /// Resources that the last run could not bring to their desired state, at most 50.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub failed_resources: Vec<FailedResource>,
    /// Whether failedResources is incomplete.
    #[serde(skip_serializing_if = "is_false")]
    pub failed_resources_truncated: bool,
    /// Resources that still differ after they were written, at most 50. After three writes without effect, a
    /// resource is not written again until Git or the metadata changes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub unsettled_resources: Vec<UnsettledResource>,
    /// Resources that differ and were not written because mode is observe, at most 50.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub drifted_resources: Vec<DriftedResource>,
    /// Whether the last run, or the last full run, deleted nothing because its deletions need approval (pruneLimit,
    /// allowEmpty).
    #[serde(skip_serializing_if = "is_false")]
    pub prune_refused: bool,
    /// Number of consecutive runs that did not succeed.
    pub consecutive_failures: i32,
    /// Latest time of the next run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time_schema")]
    pub next_sync_time: Option<Time>,
    /// Last handled value of the annotation `declarest.io/sync-requested-at`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_sync_request: Option<String>,
    /// Commit at which the inventory begins. The policy may prune resources that this commit declares, or a later
    /// commit that a run attempted to apply. Advances after a run that examined all resources to prune.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inventory_base_revision: Option<String>,
    /// Resources of commits before inventoryBaseRevision that may still be pruned, at most 50: their deletion failed,
    /// Git declares resources below them, or their current declarations cannot be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub inventory_pending: Vec<String>,
    /// Identifies the server, repository, branch and source of the inventory. If one of them changes, the
    /// inventory starts again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inventory_owner: Option<String>,
    /// Identifies the inventory. The revisions of other inventories in a mirror are not used, such as those that a
    /// former leader attempted.
    #[serde(rename = "inventoryID", skip_serializing_if = "Option::is_none")]
    pub inventory_id: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Conditions,
}

/// Whether a run covered the whole scope or only the changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunKind {
    Incremental,
    Full,
}

/// Outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RunOutcome {
    Succeeded,
    PartiallyFailed,
    Failed,
}

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ResourceStats {
    /// Desired resources that the run selected; resources to prune are not counted.
    pub targeted: i32,
    /// Targeted resources that are in their desired state: created, updated or unchanged.
    pub applied: i32,
    /// Resources deleted from the server.
    pub pruned: i32,
    /// Targeted resources that are not in their desired state, and deletions that failed.
    pub failed: i32,
    /// Resources created on the server.
    pub created: i32,
    /// Resources updated on the server.
    pub updated: i32,
    /// Resources that were already equal.
    pub unchanged: i32,
    /// Resources that differ and were not written because mode is observe.
    pub drifted: i32,
}

/// A resource that could not be brought to its desired state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FailedResource {
    /// Logical path of the resource.
    pub path: String,
    /// Failed operation: create, update, replace, prune, read or list.
    pub operation: String,
    /// The cause as one CamelCase word.
    pub reason: String,
    /// Description of the failure.
    pub message: String,
    /// Number of consecutive runs in which the resource failed.
    #[serde(default)]
    pub attempts: i32,
}

/// A resource that differs from Git in mode observe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DriftedResource {
    /// Logical path of the resource.
    pub path: String,
    /// Operation that mode apply would execute: create, update, replace or prune.
    pub operation: String,
    /// JSON Pointers to the differences, at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub pointers: Vec<String>,
}

/// A resource that still has the same difference right after it was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnsettledResource {
    /// Logical path of the resource.
    pub path: String,
    /// JSON Pointers to the differences, at most 20.
    #[schemars(length(max = 20))]
    pub pointers: Vec<String>,
    /// Digest of the difference, the desired payload and the metadata. It does not reveal secrets.
    pub digest: String,
    /// Number of consecutive runs that wrote it without effect.
    pub writes: i32,
    /// How to correct it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

// serde determines the signature.
#[allow(clippy::trivially_copy_pass_by_ref)]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

fn default_sync_interval() -> Interval {
    Interval::new("5m")
}

impl SyncPolicySpec {
    /// Checks all rules of the spec, after expansion, except the syntax of fullResyncCron. The schedule parses it.
    pub fn validate(&self) -> Result<Option<Schedule>, FieldErrors> {
        let mut errors = FieldErrors::default();
        self.resource_repository_ref.check("spec.resourceRepositoryRef", &mut errors);
        self.managed_server_ref.check("spec.managedServerRef", &mut errors);
        if let Some(store) = &self.secret_store_ref {
            store.check("spec.secretStoreRef", &mut errors);
        }
        errors.check("spec.source.path", self.scope());
        errors.check("spec.sync.pruneLimit", self.sync.prune_limit.limit());
        let cron = self.full_resync_cron.as_ref();
        let schedule = cron.map(|cron| Schedule::parse(cron, Timestamp::now())).transpose();
        let schedule = errors.check("spec.fullResyncCron", schedule).flatten();
        errors.check("spec.syncInterval", self.sync_interval.at_least(MIN_SYNC_INTERVAL));
        errors.into_result().map(|()| schedule)
    }

    /// Returns `source.path`, normalised.
    pub fn scope(&self) -> Result<LogicalPath, String> {
        LogicalPath::parse_scope(&self.source.path).map_err(|error| error.to_string())
    }
}

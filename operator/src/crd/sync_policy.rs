//! SyncPolicy: the unit of execution, which joins a repository, a server and a secret store.

use std::time::Duration;

use declarest_core::path::LogicalPath;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Conditions, FieldErrors, Interval, LocalRef, PruneLimit, conditions_schema, enabled, time_schema,
};

const MIN_SYNC_INTERVAL: Duration = Duration::from_secs(10);

/// What to keep equal, how often, and how far the operator may go.
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
    doc = "Keeps a ManagedServer equal to what a ResourceRepository declares below one path.",
    printcolumn = r#"{"name": "Repo", "type": "string", "jsonPath": ".spec.resourceRepositoryRef.name"}"#,
    printcolumn = r#"{"name": "Server", "type": "string", "jsonPath": ".spec.managedServerRef.name"}"#,
    printcolumn = r#"{"name": "Revision", "type": "string", "jsonPath": ".status.lastAppliedRepoRevision"}"#,
    printcolumn = r#"{"name": "Last Sync", "type": "date", "jsonPath": ".status.lastSuccessfulSyncTime"}"#,
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name": "Mode", "type": "string", "jsonPath": ".spec.mode", "priority": 1}"#,
    printcolumn = r#"{"name": "Failed", "type": "integer", "jsonPath": ".status.resourceStats.failed", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
pub struct SyncPolicySpec {
    /// The ResourceRepository that declares desired state.
    pub resource_repository_ref: LocalRef,
    /// The ManagedServer to keep equal to it.
    pub managed_server_ref: LocalRef,
    /// The SecretStore that secret placeholders are read from. Without it a resource with a placeholder
    /// fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_store_ref: Option<LocalRef>,
    /// The part of the repository that this policy owns.
    pub source: Source,
    /// What a sync may do.
    #[serde(default)]
    pub sync: SyncOptions,
    /// `apply` corrects the server; `observe` only reports the differences and writes nothing.
    #[serde(default)]
    pub mode: SyncMode,
    /// How often the whole scope is compared with the server and drift is corrected, at least 10s.
    #[serde(default = "default_sync_interval")]
    pub sync_interval: Interval,
    /// Extra times, in UTC, at which every resource is read by itself: five cron fields, `0 3 * * 0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_resync_cron: Option<String>,
    /// Stop syncing until this is false again.
    #[serde(default)]
    pub suspend: bool,
}

/// The part of the repository that a policy owns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// Logical path of a resource or collection; `/` is the whole repository. Two policies of a namespace
    /// must not overlap.
    #[schemars(length(min = 1))]
    pub path: String,
    /// Include everything below path; otherwise path itself and the resources directly in it.
    #[serde(default = "enabled")]
    pub recursive: bool,
}

/// What a sync may do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncOptions {
    /// Delete from the server what Git declared while this policy ran and declares no longer.
    pub prune: bool,
    /// Write resources that are already equal too, in every run.
    pub force: bool,
    /// Allow pruning when nothing at all is declared below source.path any more.
    pub allow_empty: bool,
    /// The most that one run may prune: a count, or a percentage of what the policy owns. A run with more
    /// than 10 deletions above this limit deletes nothing; raise the limit to approve it.
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

/// What the last runs of the policy did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncPolicyStatus {
    /// The metadata.generation that this status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Commit that the last run worked on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_attempted_repo_revision: Option<String>,
    /// Commit that was last applied without a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_applied_repo_revision: Option<String>,
    /// Whether the last run looked at the whole scope or at what changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_sync_mode: Option<RunKind>,
    /// Counts of the last run that had something to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_stats: Option<ResourceStats>,
    /// When the last run started.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time_schema")]
    pub last_attempt_time: Option<Time>,
    /// When a run last ended without a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time_schema")]
    pub last_successful_sync_time: Option<Time>,
    /// When a run last compared the whole scope.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time_schema")]
    pub last_full_resync_time: Option<Time>,
    /// Hash of the versions of all referenced Secrets at the last completed run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_secret_resource_version_hash: Option<String>,
    /// Hash of the generations of the policy and its dependencies at the last completed run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_applied_config_hash: Option<String>,
    /// How the last run ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_run_outcome: Option<RunOutcome>,
    /// Why the last run happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_trigger: Option<String>,
    /// Resources that the last run could not bring to their desired state, at most 50.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub failed_resources: Vec<FailedResource>,
    /// Whether failedResources does not name all of them.
    #[serde(skip_serializing_if = "is_false")]
    pub failed_resources_truncated: bool,
    /// Resources that differ again although they were written, at most 50. After three writes in vain a
    /// resource is left alone until Git or the metadata changes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub unsettled_resources: Vec<UnsettledResource>,
    /// Whether the last run deleted nothing because it would have been too much.
    #[serde(skip_serializing_if = "is_false")]
    pub prune_refused: bool,
    /// Runs in a row that did not succeed.
    pub consecutive_failures: i32,
    /// When the next run is due at the latest.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time_schema")]
    pub next_sync_time: Option<Time>,
    /// The value of the annotation `declarest.io/sync-requested-at` that was last acted on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_sync_request: Option<String>,
    /// Commit at which the inventory begins: what it declares, or a later commit that a run attempted, is what
    /// the policy may prune. Advances when a full run that prunes left nothing undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inventory_base_revision: Option<String>,
    /// Stands for what the inventory belongs to: server, repository, branch and source. If one of them changes,
    /// the inventory begins anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inventory_owner: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Conditions,
}

/// Whether a run looked at the whole scope or at what changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunKind {
    Incremental,
    Full,
}

/// How a run ended.
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
    /// Desired resources that the run selected, without those to prune.
    pub targeted: i32,
    /// Targeted resources that are in their desired state: created, updated and unchanged ones.
    pub applied: i32,
    /// Resources deleted from the server.
    pub pruned: i32,
    /// Targeted resources that are not in their desired state, and deletions that failed.
    pub failed: i32,
    /// Resources created on the server.
    pub created: i32,
    /// Resources changed on the server.
    pub updated: i32,
    /// Resources that were equal already.
    pub unchanged: i32,
    /// Resources that differ and were left alone, because mode is observe.
    pub drifted: i32,
}

/// A resource that could not be brought to its desired state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FailedResource {
    /// Logical path of the resource.
    pub path: String,
    /// What was tried: create, update, delete or read.
    pub operation: String,
    /// The cause as one CamelCase word.
    pub reason: String,
    /// What happened.
    pub message: String,
    /// Runs in a row in which the resource failed.
    #[serde(default)]
    pub attempts: i32,
}

/// A resource that differs in the same way right after it was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnsettledResource {
    /// Logical path of the resource.
    pub path: String,
    /// Where it differs, as JSON Pointers, at most 20.
    #[schemars(length(max = 20))]
    pub pointers: Vec<String>,
    /// Stands for the difference, the desired payload and the metadata. In it no secret can be found.
    pub digest: String,
    /// Runs in a row that wrote it in vain.
    pub writes: i32,
    /// What to do; empty as long as the resource is still written.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

// The signature is serde's.
#[allow(clippy::trivially_copy_pass_by_ref)]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

fn default_sync_interval() -> Interval {
    Interval::new("5m")
}

impl SyncPolicySpec {
    /// Checks, after expansion, everything that makes a spec usable, except the syntax of fullResyncCron:
    /// whoever computes the schedule reads it.
    pub fn validate(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        self.resource_repository_ref.check("spec.resourceRepositoryRef", &mut errors);
        self.managed_server_ref.check("spec.managedServerRef", &mut errors);
        if let Some(store) = &self.secret_store_ref {
            store.check("spec.secretStoreRef", &mut errors);
        }
        errors.check("spec.source.path", self.scope());
        errors.check("spec.sync.pruneLimit", self.sync.prune_limit.limit());
        errors.check("spec.syncInterval", self.sync_interval.at_least(MIN_SYNC_INTERVAL));
        errors.into_result()
    }

    /// `source.path`, normalised.
    pub fn scope(&self) -> Result<LogicalPath, String> {
        LogicalPath::parse_scope(&self.source.path).map_err(|error| error.to_string())
    }
}

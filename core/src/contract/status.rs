//! The result of verifications as a document: `status.contract` of a ManagedServer, and the output of the CLI.

// Texts for kubectl explain, which prints backticks as they are.
#![allow(clippy::doc_markdown)]

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::finding::Finding;
use super::target::WorkloadKind;

/// The number of versions in the history.
pub const MAX_HISTORY: usize = 10;
/// The number of errors and of warnings of a document.
pub const MAX_FINDINGS: usize = 20;

macro_rules! documents {
    ($($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* })*) => {
        $(
            $(#[$meta])*
            #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
            #[serde(rename_all = "camelCase", default)]
            pub struct $name {
                $($(#[$field_meta])* pub $field: $type,)*
            }
        )*
    };
}

documents! {
    /// The contract of a service, and how its objects in the cluster compare with it.
    ContractStatus {
        /// Invalid, Reference, Degraded or Healthy.
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<Phase>,
        /// Name of the service in the contract.
        #[serde(skip_serializing_if = "Option::is_none")]
        service_name: Option<String>,
        /// Version of the service in the contract.
        #[serde(skip_serializing_if = "Option::is_none")]
        version: Option<String>,
        /// Source of the document: `inline`, its URL, or its image with digest.
        #[serde(skip_serializing_if = "Option::is_none")]
        source: Option<String>,
        /// Image reference of the contract's package, without its digest.
        #[serde(skip_serializing_if = "Option::is_none")]
        image_ref: Option<String>,
        /// SHA-256 of the document.
        #[serde(skip_serializing_if = "Option::is_none")]
        hash: Option<String>,
        /// Whether the last good copy is used, because the document could not be fetched again.
        stale: bool,
        /// Whether dependent policies may run, if spec.contract.gateSync is true.
        #[serde(skip_serializing_if = "Option::is_none")]
        gate: Option<Gate>,
        /// Time of the last verification.
        #[serde(skip_serializing_if = "Option::is_none")]
        last_verified_time: Option<String>,
        /// Findings in the document.
        #[serde(skip_serializing_if = "Option::is_none")]
        validation: Option<Validation>,
        /// Number of checks by status.
        #[serde(skip_serializing_if = "Option::is_none")]
        summary: Option<Summary>,
        /// Results of the checks.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        checks: Vec<Check>,
        /// The objects that are compared.
        #[serde(skip_serializing_if = "Option::is_none")]
        resources: Option<Resources>,
        /// Ports of the contract and of the Service.
        #[serde(skip_serializing_if = "Option::is_none")]
        ports: Option<Ports>,
        /// Results of the probes.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        endpoints: Vec<EndpointResult>,
        /// The workload as it was observed.
        #[serde(skip_serializing_if = "Option::is_none")]
        observed: Option<Observed>,
        /// Fields of the contract with their observed values.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        comparison: Vec<Comparison>,
        /// Versions of the contract that were loaded, the newest first.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        history: Vec<HistoryEntry>,
    }
    /// Findings in a document.
    Validation {
        /// What makes it invalid.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        errors: Vec<Finding>,
        /// What its authors should look at.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<Finding>,
    }
    /// Number of checks by status. Disabled checks are not counted.
    Summary {
        /// All of them.
        total: i32,
        /// Checks that are True.
        passed: i32,
        /// Checks that are False.
        failed: i32,
        /// Checks that are Unknown.
        unknown: i32,
    }
    /// Result of a check.
    Check {
        /// Name of the check.
        #[serde(rename = "type")]
        kind: CheckKind,
        /// True, False or Unknown.
        status: CheckStatus,
        /// Reason of the status.
        reason: String,
        /// Severity if the check fails: error, warning or off.
        severity: Severity,
        /// Expected and observed value in one sentence.
        #[serde(skip_serializing_if = "String::is_empty")]
        message: String,
        /// Value of the contract.
        #[serde(skip_serializing_if = "String::is_empty")]
        expected: String,
        /// Value in the cluster.
        #[serde(skip_serializing_if = "String::is_empty")]
        observed: String,
        /// Time when the status changed last.
        #[serde(skip_serializing_if = "Option::is_none")]
        last_transition_time: Option<String>,
    }
    /// The objects that are compared.
    Resources {
        /// The Service.
        #[serde(skip_serializing_if = "Option::is_none")]
        service: Option<ServiceResource>,
        /// The workload.
        #[serde(skip_serializing_if = "Option::is_none")]
        workload: Option<WorkloadResource>,
    }
    /// A Service.
    ServiceResource {
        /// Name.
        name: String,
        /// Type, such as ClusterIP.
        #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
        kind: Option<String>,
        /// Whether it exists; missing if that is not known.
        #[serde(skip_serializing_if = "Option::is_none")]
        exists: Option<bool>,
    }
    /// A workload.
    WorkloadResource {
        /// Kind, if it is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        kind: Option<WorkloadKind>,
        /// Name.
        name: String,
        /// Whether it exists; missing if that is not known.
        #[serde(skip_serializing_if = "Option::is_none")]
        exists: Option<bool>,
    }
    /// Ports of the contract and of the Service, at most 50 in each list.
    Ports {
        /// Ports of the http and grpc interfaces.
        expected: Vec<i32>,
        /// TCP ports of the Service.
        observed: Vec<i32>,
        /// Expected ports that the Service does not have.
        missing: Vec<i32>,
        /// Ports of the Service that no interface has.
        unexpected: Vec<i32>,
    }
    /// Result of a probe.
    EndpointResult {
        /// health or metrics.
        #[serde(rename = "type")]
        kind: String,
        /// URL of the request, without its query.
        url: String,
        /// Whether the probe succeeded.
        reachable: bool,
        /// Status of the response.
        #[serde(skip_serializing_if = "Option::is_none")]
        status_code: Option<i32>,
        /// Time to the result.
        latency_ms: i64,
        /// The fault.
        #[serde(skip_serializing_if = "String::is_empty")]
        error: String,
        /// Time of the probe.
        #[serde(skip_serializing_if = "String::is_empty")]
        time: String,
    }
    /// A workload as it was observed.
    Observed {
        /// Kind.
        #[serde(skip_serializing_if = "Option::is_none")]
        workload_kind: Option<WorkloadKind>,
        /// Type of its upgrade strategy.
        #[serde(skip_serializing_if = "Option::is_none")]
        strategy: Option<String>,
        /// Pod management policy of a StatefulSet.
        #[serde(skip_serializing_if = "Option::is_none")]
        pod_management_policy: Option<String>,
        /// Seconds that a pod has to end.
        #[serde(skip_serializing_if = "Option::is_none")]
        termination_grace_period_seconds: Option<i64>,
        /// Images of the template, at most 10.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        images: Vec<ContainerImage>,
        /// Volumes of the template.
        #[serde(skip_serializing_if = "Option::is_none")]
        storage: Option<Storage>,
        /// Number of replicas.
        #[serde(skip_serializing_if = "Option::is_none")]
        replicas: Option<Replicas>,
        /// Autoscaler of the workload.
        #[serde(skip_serializing_if = "Option::is_none")]
        autoscaler: Option<AutoscalerRange>,
    }
    /// Image of a container.
    ContainerImage {
        /// Name of the container.
        container: String,
        /// Its image.
        image: String,
    }
    /// Volumes of a template.
    Storage {
        /// Names of claims and of claim templates, at most 10.
        claims: Vec<String>,
        /// Whether it has an emptyDir or a generic ephemeral volume.
        empty_dir: bool,
    }
    /// Number of replicas.
    Replicas {
        /// Desired.
        desired: i64,
        /// Current.
        current: i64,
        /// Ready.
        ready: i64,
    }
    /// Range of an autoscaler.
    AutoscalerRange {
        /// Name of the autoscaler.
        name: String,
        /// Smallest number of replicas.
        min: i64,
        /// Largest number of replicas.
        max: i64,
    }
    /// Field of the contract with its observed value.
    Comparison {
        /// Path of the field in the contract.
        field: String,
        /// Value of the contract.
        #[serde(skip_serializing_if = "String::is_empty")]
        expected: String,
        /// Value in the cluster.
        #[serde(skip_serializing_if = "String::is_empty")]
        observed: String,
        /// match, mismatch or unknown.
        result: Agreement,
    }
    /// Version of a contract that was loaded.
    HistoryEntry {
        /// Name of the service.
        service_name: String,
        /// Version of the service.
        version: String,
        /// Source of the document.
        source: String,
        /// SHA-256 of the document.
        hash: String,
        /// Time when it was loaded.
        time: String,
    }
}

macro_rules! words {
    ($($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $text:literal),* $(,)? })*) => {
        $(
            $(#[$meta])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
            pub enum $name {
                $($(#[$variant_meta])* #[serde(rename = $text)] $variant,)*
            }

            impl $name {
                /// All values, in order.
                pub const ALL: [Self; [$($text),*].len()] = [$(Self::$variant),*];

                /// Returns its name.
                pub const fn as_str(self) -> &'static str {
                    match self { $(Self::$variant => $text,)* }
                }
            }

            impl JsonSchema for $name {
                fn schema_name() -> Cow<'static, str> {
                    stringify!($name).into()
                }

                fn json_schema(_: &mut SchemaGenerator) -> Schema {
                    json_schema!({"type": "string", "enum": [$($text),*]})
                }
            }
        )*
    };
}

words! {
    /// Phase of a contract.
    Phase {
        /// There is no valid document.
        Invalid = "Invalid",
        /// The contract has no target.
        Reference = "Reference",
        /// A check failed, or could not be made.
        Degraded = "Degraded",
        /// All checks succeeded.
        #[default]
        Healthy = "Healthy",
    }
    /// Whether dependent policies may run.
    Gate {
        /// They wait.
        #[default]
        Closed = "Closed",
        /// They run.
        Open = "Open",
    }
    /// Status of a check.
    CheckStatus {
        /// The cluster matches the contract.
        True = "True",
        /// It does not.
        False = "False",
        /// That is not known, or not asked.
        #[default]
        Unknown = "Unknown",
    }
    /// Severity of a failed check.
    Severity {
        /// It closes the gate.
        #[default]
        Error = "error",
        /// It is only reported.
        Warning = "warning",
        /// The check is not made.
        Off = "off",
    }
    /// Result of a comparison.
    Agreement {
        /// Both values agree.
        Match = "match",
        /// They differ.
        Mismatch = "mismatch",
        /// The observed value is not known.
        #[default]
        Unknown = "unknown",
    }
    /// Name of a check.
    CheckKind {
        /// The Service exists.
        #[default]
        ServiceExists = "ServiceExists",
        /// The workload exists.
        WorkloadExists = "WorkloadExists",
        /// The Service has the ports of the interfaces.
        PortsAligned = "PortsAligned",
        /// The workload has the kind that the contract needs.
        WorkloadKindMatches = "WorkloadKindMatches",
        /// The health endpoint answers.
        HealthEndpointReachable = "HealthEndpointReachable",
        /// The workload runs the image.
        ImageMatches = "ImageMatches",
        /// The workload is upgraded as declared.
        UpgradeStrategyMatches = "UpgradeStrategyMatches",
        /// Pods have the declared time to end.
        GracefulShutdownMatches = "GracefulShutdownMatches",
        /// The workload has the declared storage.
        StateModelMatches = "StateModelMatches",
        /// The metrics endpoint answers.
        MetricsEndpointReachable = "MetricsEndpointReachable",
        /// The number of replicas is in the declared range.
        ScalingMatches = "ScalingMatches",
    }
}

impl CheckKind {
    /// Returns the check with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// Returns the severity of the check unless the user sets another one.
    pub const fn default_severity(self) -> Severity {
        match self {
            Self::ServiceExists
            | Self::WorkloadExists
            | Self::PortsAligned
            | Self::WorkloadKindMatches
            | Self::HealthEndpointReachable => Severity::Error,
            Self::ImageMatches
            | Self::UpgradeStrategyMatches
            | Self::GracefulShutdownMatches
            | Self::StateModelMatches
            | Self::MetricsEndpointReachable
            | Self::ScalingMatches => Severity::Warning,
        }
    }
}

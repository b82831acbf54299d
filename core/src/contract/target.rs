//! The objects that a contract is compared with.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};
use url::Url;

use super::model::{Contract, StateKind, Workload};

/// A kind of workload.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Display, IntoStaticStr,
)]
pub enum WorkloadKind {
    /// A Deployment.
    Deployment,
    /// A `StatefulSet`.
    StatefulSet,
    /// A `DaemonSet`.
    DaemonSet,
    /// A Job.
    Job,
    /// A `CronJob`.
    CronJob,
}

impl WorkloadKind {
    /// All kinds, in the order in which they are read if a contract does not state another.
    pub const ALL: [Self; 5] =
        [Self::Deployment, Self::StatefulSet, Self::DaemonSet, Self::Job, Self::CronJob];

    /// Returns its name.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns the kind with this name, in any case.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str().eq_ignore_ascii_case(name))
    }

    /// Whether its pods run until they have done their work.
    pub const fn is_finite(self) -> bool {
        matches!(self, Self::Job | Self::CronJob)
    }
}

impl JsonSchema for WorkloadKind {
    fn schema_name() -> Cow<'static, str> {
        "WorkloadKind".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "enum": Self::ALL.map(Self::as_str)})
    }
}

/// The Service and the workload of a contract, and how its endpoints are probed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The namespace of the Service and the workload.
    pub namespace: String,
    /// The name of the Service.
    pub service: Option<String>,
    /// The name of the workload. By default that of the Service.
    pub workload: Option<String>,
    /// The kind of the workload, if no other may be read.
    pub kind: Option<WorkloadKind>,
    /// The destination of probes.
    pub probe: ProbeVia,
}

/// The destination of probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeVia {
    /// The Service; without one, the origin of this URL if there is one.
    Service(Option<Url>),
    /// The origin of this URL.
    Origin(Url),
    /// Endpoints are not probed.
    Nothing,
}

impl Target {
    /// Returns the name of the workload; `None` if there is no target.
    pub fn workload_name(&self) -> Option<&str> {
        self.workload.as_deref().or(self.service.as_deref())
    }

    /// Returns the kinds of workloads to read, in order. The first that exists is the workload.
    pub fn kinds(&self, contract: &Contract) -> Vec<WorkloadKind> {
        use WorkloadKind::{CronJob, DaemonSet, Deployment, Job, StatefulSet};
        if let Some(kind) = self.kind {
            return vec![kind];
        }
        let Some(runtime) = &contract.runtime else { return WorkloadKind::ALL.to_vec() };
        match (runtime.workload, runtime.state.kind) {
            (Workload::Job, _) => vec![Job, CronJob],
            (Workload::Scheduled, _) => vec![CronJob, Job],
            (Workload::Service, StateKind::Stateful) => vec![StatefulSet, Deployment, DaemonSet],
            (Workload::Service, _) => WorkloadKind::ALL.to_vec(),
        }
    }
}

//! What was observed of a target at one time: the input of the checks.

use std::collections::BTreeMap;

use super::objects::{Autoscaler, Claim, EndpointSlice, Pod, Service, Template, Workload};
use super::target::WorkloadKind;

/// The result of reading an object or a list.
#[derive(Clone, Debug, PartialEq)]
pub enum Read<T> {
    /// It was read.
    Found(T),
    /// It does not exist.
    Absent,
    /// It could not be read, with the reason.
    Failed(String),
}

impl<T> Read<T> {
    /// Returns the object, if it was read.
    pub fn found(&self) -> Option<&T> {
        match self {
            Self::Found(object) => Some(object),
            Self::Absent | Self::Failed(_) => None,
        }
    }
}

/// The objects of a target. What no check needs is [`Read::Absent`].
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The time, in seconds since 1970.
    pub now: i64,
    /// The Service.
    pub service: Read<Service>,
    /// The workload.
    pub workload: Read<FoundWorkload>,
    /// The `EndpointSlices` of the Service.
    pub slices: Read<Vec<EndpointSlice>>,
    /// The pods of the workload.
    pub pods: Read<Vec<Pod>>,
    /// The claims of the template's volumes, by name.
    pub claims: BTreeMap<String, Read<Claim>>,
    /// The autoscaler of the workload.
    pub autoscaler: Read<Autoscaler>,
    /// The probes that were sent.
    pub probes: BTreeMap<ProbeKind, Probed>,
}

/// A workload and its kind.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundWorkload {
    /// Its kind.
    pub kind: WorkloadKind,
    /// The object.
    pub object: Workload,
}

/// An endpoint that is probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProbeKind {
    /// `runtime.health`
    Health,
    /// `runtime.metrics`
    Metrics,
}

/// The result of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probed {
    /// The requested URL.
    pub url: String,
    /// The status of the response.
    pub status: Option<u16>,
    /// The time to the result, in milliseconds.
    pub latency_ms: u64,
    /// The result.
    pub answer: ProbeAnswer,
}

/// The answer to a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeAnswer {
    /// The status is 2xx, or the gRPC health check says SERVING.
    Healthy {
        /// Whether the body is empty.
        empty: bool,
    },
    /// Another status.
    Status,
    /// A redirect that leads to another origin, or is one too many.
    Redirected,
    /// There is no connection.
    ConnectionFailed(String),
    /// There is no answer within the time limit.
    Timeout,
    /// The TLS handshake failed.
    TlsFailed(String),
    /// The gRPC health check says something other than SERVING.
    NotServing(String),
    /// The server does not implement the gRPC health check.
    Unimplemented,
    /// The name of the host could not be resolved.
    Unresolved(String),
}

impl FoundWorkload {
    /// Returns the template of its pods.
    pub fn template(&self) -> &Template {
        match self.kind {
            WorkloadKind::CronJob => &self.object.spec.job_template.spec.template,
            _ => &self.object.spec.template,
        }
    }

    /// Returns the desired number of replicas; `None` for jobs.
    pub fn desired(&self) -> Option<i64> {
        match self.kind {
            WorkloadKind::Deployment | WorkloadKind::StatefulSet => {
                Some(self.object.spec.replicas.unwrap_or(1))
            }
            WorkloadKind::DaemonSet => Some(self.object.status.scheduled),
            WorkloadKind::Job | WorkloadKind::CronJob => None,
        }
    }

    /// Returns the current number of replicas.
    pub fn current(&self) -> i64 {
        let status = &self.object.status;
        if self.kind == WorkloadKind::DaemonSet { status.current_scheduled } else { status.replicas }
    }

    /// Returns the number of replicas that are ready.
    pub fn ready(&self) -> i64 {
        let status = &self.object.status;
        if self.kind == WorkloadKind::DaemonSet { status.number_ready } else { status.ready }
    }

    /// Whether the controller of the workload has not replaced all pods after the last change. It does not apply to
    /// jobs.
    pub fn is_rolling_out(&self) -> bool {
        let status = &self.object.status;
        let updated = match self.kind {
            WorkloadKind::DaemonSet => status.updated_scheduled,
            WorkloadKind::Deployment | WorkloadKind::StatefulSet => status.updated,
            WorkloadKind::Job | WorkloadKind::CronJob => return false,
        };
        status.observed_generation < self.object.metadata.generation
            || updated < self.desired().unwrap_or_default()
    }
}

impl Snapshot {
    /// Returns a snapshot without any object.
    pub fn empty(now: i64) -> Self {
        Self {
            now,
            service: Read::Absent,
            workload: Read::Absent,
            slices: Read::Absent,
            pods: Read::Absent,
            claims: BTreeMap::new(),
            autoscaler: Read::Absent,
            probes: BTreeMap::new(),
        }
    }
}

//! The parts of Kubernetes objects that checks read, decoded from JSON.
//!
//! These types are not complete on purpose: fields that are not read cannot make an object undecodable.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::time;

/// Decodes an object. Members that are null count as absent.
pub(super) fn decode<T: DeserializeOwned>(mut object: Value) -> Result<T, String> {
    drop_nulls(&mut object);
    serde_json::from_value(object).map_err(|error| error.to_string())
}

/// The depth of the recursion is limited by the parser of the JSON.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

macro_rules! parts {
    ($($(#[$meta:meta])* $name:ident { $($field:ident $type:ty = $key:literal),* $(,)? })*) => {
        $(
            $(#[$meta])*
            #[derive(Clone, Debug, Default, PartialEq, Deserialize)]
            #[serde(default)]
            pub struct $name {
                $(
                    #[doc = concat!("`", $key, "`")]
                    #[serde(rename = $key)]
                    pub $field: $type,
                )*
            }
        )*
    };
}

parts! {
    /// `metadata` of any object.
    Meta {
        name String = "name",
        labels BTreeMap<String, String> = "labels",
        annotations BTreeMap<String, String> = "annotations",
        generation i64 = "generation",
        created Option<String> = "creationTimestamp",
        deleted Option<String> = "deletionTimestamp",
    }
    /// A Service.
    Service { metadata Meta = "metadata", spec ServiceSpec = "spec" }
    /// `spec` of a Service.
    ServiceSpec {
        kind String = "type",
        cluster_ip String = "clusterIP",
        ports Vec<ServicePort> = "ports",
    }
    /// A port of a Service.
    ServicePort {
        name String = "name",
        port u16 = "port",
        protocol Option<String> = "protocol",
        target_port Option<PortRef> = "targetPort",
        app_protocol String = "appProtocol",
    }
    /// A Deployment, `StatefulSet`, `DaemonSet`, Job or `CronJob`.
    Workload {
        metadata Meta = "metadata",
        spec WorkloadSpec = "spec",
        status WorkloadStatus = "status",
    }
    /// `spec` of a workload.
    WorkloadSpec {
        replicas Option<i64> = "replicas",
        selector Selector = "selector",
        strategy Strategy = "strategy",
        update_strategy Strategy = "updateStrategy",
        pod_management_policy Option<String> = "podManagementPolicy",
        template Template = "template",
        job_template JobTemplate = "jobTemplate",
        claim_templates Vec<Claim> = "volumeClaimTemplates",
    }
    /// `spec.jobTemplate` of a `CronJob`.
    JobTemplate { spec JobSpec = "spec" }
    /// `spec.jobTemplate.spec` of a `CronJob`.
    JobSpec { template Template = "template" }
    /// `spec.strategy` or `spec.updateStrategy`.
    Strategy { kind Option<String> = "type" }
    /// A label selector.
    Selector {
        labels BTreeMap<String, String> = "matchLabels",
        expressions Vec<Expression> = "matchExpressions",
    }
    /// A requirement of a label selector.
    Expression { key String = "key", operator String = "operator", values Vec<String> = "values" }
    /// `status` of a workload, with the fields of all kinds.
    WorkloadStatus {
        observed_generation i64 = "observedGeneration",
        replicas i64 = "replicas",
        ready i64 = "readyReplicas",
        updated i64 = "updatedReplicas",
        scheduled i64 = "desiredNumberScheduled",
        current_scheduled i64 = "currentNumberScheduled",
        number_ready i64 = "numberReady",
        updated_scheduled i64 = "updatedNumberScheduled",
    }
    /// `spec.template` of a workload.
    Template { metadata Meta = "metadata", spec PodSpec = "spec" }
    /// A Pod.
    Pod { metadata Meta = "metadata", spec PodSpec = "spec", status PodStatus = "status" }
    /// `spec` of a Pod.
    PodSpec {
        containers Vec<Container> = "containers",
        volumes Vec<Volume> = "volumes",
        grace Option<i64> = "terminationGracePeriodSeconds",
    }
    /// A container.
    Container { name String = "name", image String = "image", ports Vec<ContainerPort> = "ports" }
    /// A port of a container.
    ContainerPort { name String = "name", port u16 = "containerPort", protocol Option<String> = "protocol" }
    /// A volume of a Pod.
    Volume {
        claim Option<ClaimRef> = "persistentVolumeClaim",
        empty Option<serde::de::IgnoredAny> = "emptyDir",
        ephemeral Option<serde::de::IgnoredAny> = "ephemeral",
    }
    /// The reference of a volume to a claim.
    ClaimRef { name String = "claimName" }
    /// `status` of a Pod.
    PodStatus { containers Vec<ContainerStatus> = "containerStatuses" }
    /// The status of a container.
    ContainerStatus { name String = "name", image_id String = "imageID" }
    /// A `PersistentVolumeClaim`.
    Claim { metadata Meta = "metadata", spec ClaimSpec = "spec" }
    /// `spec` of a `PersistentVolumeClaim`.
    ClaimSpec { access_modes Vec<String> = "accessModes" }
    /// An `EndpointSlice`.
    EndpointSlice { metadata Meta = "metadata", endpoints Vec<SliceEndpoint> = "endpoints" }
    /// An endpoint of an `EndpointSlice`.
    SliceEndpoint { conditions SliceConditions = "conditions" }
    /// The conditions of an endpoint.
    SliceConditions { ready Option<bool> = "ready" }
    /// A `HorizontalPodAutoscaler`, version 2.
    Autoscaler { metadata Meta = "metadata", spec AutoscalerSpec = "spec" }
    /// `spec` of a `HorizontalPodAutoscaler`.
    AutoscalerSpec {
        target ScaleTarget = "scaleTargetRef",
        min Option<i64> = "minReplicas",
        max i64 = "maxReplicas",
    }
    /// `spec.scaleTargetRef` of a `HorizontalPodAutoscaler`.
    ScaleTarget { kind String = "kind", name String = "name" }
}

/// A port by number or by the name of a container port.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum PortRef {
    /// A number.
    Number(u16),
    /// A name.
    Name(String),
}

impl ServicePort {
    /// Whether its protocol is TCP, which is the default.
    pub fn is_tcp(&self) -> bool {
        is_tcp(self.protocol.as_deref())
    }
}

fn is_tcp(protocol: Option<&str>) -> bool {
    protocol.is_none_or(|protocol| protocol == "TCP")
}

impl PodSpec {
    /// Returns the number of the named TCP port of its containers.
    pub fn named_port(&self, name: &str) -> Option<u16> {
        let mut ports = self.containers.iter().flat_map(|container| &container.ports);
        ports.find(|port| port.name == name && is_tcp(port.protocol.as_deref())).map(|port| port.port)
    }
}

impl Pod {
    /// Whether it is not about to end.
    pub fn stays(&self) -> bool {
        self.metadata.deleted.is_none()
    }

    /// Returns the time of its creation, in seconds since 1970.
    pub fn created(&self) -> Option<i64> {
        self.metadata.created.as_deref().and_then(time::parse)
    }
}

impl Selector {
    /// Returns the text of the selector for a query; `None` if it selects everything.
    pub fn text(&self) -> Option<String> {
        let labels = self.labels.iter().map(|(key, value)| format!("{key}={value}"));
        let expressions = self.expressions.iter().filter_map(|expression| {
            let Expression { key, operator, values } = expression;
            let values = values.join(",");
            match operator.as_str() {
                "In" => Some(format!("{key} in ({values})")),
                "NotIn" => Some(format!("{key} notin ({values})")),
                "Exists" => Some(key.clone()),
                "DoesNotExist" => Some(format!("!{key}")),
                _ => None,
            }
        });
        let parts: Vec<String> = labels.chain(expressions).collect();
        (!parts.is_empty()).then(|| parts.join(","))
    }

    /// Returns whether it selects an object with these labels. An empty selector selects nothing.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let holds = |expression: &Expression| {
            let value = labels.get(&expression.key);
            match expression.operator.as_str() {
                "In" => value.is_some_and(|value| expression.values.contains(value)),
                "NotIn" => value.is_none_or(|value| !expression.values.contains(value)),
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => false,
            }
        };
        self.text().is_some()
            && self.labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.expressions.iter().all(holds)
    }
}

//! The part of `spec.contract` of a managed server that states the contract and the objects to compare.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;

use super::source::{ContractSource, OciSource};
use super::status::{CheckKind, Severity};
use super::target::{ProbeVia, Target, WorkloadKind};
use super::verify::Severities;

/// The pattern of an http or https URL in a custom resource, or of a reference to an environment variable that is one.
pub const HTTP_URL: &str = r"^(https?://[^/?#\s][^\s]*|\$\{[A-Za-z_][A-Za-z0-9_]*\})$";

/// Rule (CEL) of a URL without user information in a custom resource. Errors with its reason do not repeat the value.
pub fn without_credentials() -> Value {
    json!([{
        "rule": "!self.matches('^[^/?#]*://[^/?#]*@')",
        "reason": "FieldValueForbidden",
        "message": "contains credentials; remove them and refer to a Secret",
    }])
}

/// A contract and the objects that it is compared with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContractBinding {
    /// The document pacto.yaml, at most 1 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inline: Option<String>,
    /// URL of the document or of a bundle (tar.gz), http or https. If its origin is that of http.baseURL, http.auth is
    /// sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = HTTP_URL), extend("x-kubernetes-validations" = without_credentials()))]
    pub url: Option<String>,
    /// Bundle in a registry: `registry/repository`, optionally with `:tag`, `@sha256:digest` or
    /// `?version=CONSTRAINT`. Without a tag and a digest, the highest version that satisfies the constraint is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub oci: Option<String>,
    /// Objects in this namespace that are compared with the contract. Without it, the contract is only validated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<ContractTarget>,
    /// Severities of checks, by the names of the checks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub severity: BTreeMap<String, Severity>,
}

/// Objects in this namespace that are compared with a contract.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContractTarget {
    /// Name of the Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub service: Option<String>,
    /// The workload of the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<WorkloadRef>,
}

/// A workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadRef {
    /// Kind of the workload. Without it, the kinds that the contract allows are tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<WorkloadKind>,
    /// Name of the workload; by default that of the Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,
}

impl ContractBinding {
    /// Returns the source; `None` if none is stated, or the stated one is invalid.
    pub fn source(&self) -> Option<ContractSource> {
        match (&self.inline, &self.url, &self.oci) {
            (Some(text), _, _) => Some(ContractSource::Inline(text.clone())),
            (None, Some(url), _) => Url::parse(url).ok().map(ContractSource::Url),
            (None, None, Some(oci)) => OciSource::parse(oci).ok().map(ContractSource::Oci),
            (None, None, None) => None,
        }
    }

    /// Returns the target in a namespace.
    pub fn target(&self, namespace: String, probe: ProbeVia) -> Target {
        let ContractTarget { service, workload } = self.target.clone().unwrap_or_default();
        let WorkloadRef { kind, name } = workload.unwrap_or_default();
        Target { namespace, service, workload: name, kind, probe }
    }

    /// Returns the severities of the known checks.
    pub fn severities(&self) -> Severities {
        let known = |(name, severity): (&String, &Severity)| Some((CheckKind::named(name)?, *severity));
        self.severity.iter().filter_map(known).collect()
    }
}

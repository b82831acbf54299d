//! `spec.contract` of a ManagedServer.

use std::collections::BTreeMap;

use declarest_core::contract::status::{CheckKind, Severity};
use declarest_core::contract::{ContractSource, MAX_DOCUMENT, OciSource, Severities, WorkloadKind};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use super::{FieldErrors, LocalRef, validation};

/// The contract of a service: exactly one of inline, url and oci.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "(has(self.inline) ? 1 : 0) + (has(self.url) ? 1 : 0) + (has(self.oci) ? 1 : 0) == 1",
        "set exactly one of inline, url and oci"
    ),
    validation = ("!has(self.pullSecretRef) || has(self.oci)", "pullSecretRef needs oci")
)]
pub struct ContractSpec {
    /// The document pacto.yaml, at most 1 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inline: Option<String>,
    /// URL of the document or of a bundle (tar.gz), http or https. If its origin is that of http.baseURL, http.auth is
    /// sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = validation::HTTP_URL))]
    pub url: Option<String>,
    /// Bundle in a registry: `registry/repository`, optionally with `:tag`, `@sha256:digest` or
    /// `?version=CONSTRAINT`. Without a tag and a digest, the highest version that satisfies the constraint is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub oci: Option<String>,
    /// Secret of type kubernetes.io/dockerconfigjson with the credentials for the registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_secret_ref: Option<LocalRef>,
    /// Objects in this namespace that are compared with the contract. Without it, the contract is only validated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<ContractTarget>,
    /// Severities of checks, by the names of the checks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub severity: BTreeMap<String, Severity>,
    /// Whether policies of this server wait while the contract is invalid or a check of severity error fails.
    #[serde(default)]
    pub gate_sync: bool,
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

impl ContractSpec {
    pub(super) fn check(&self, errors: &mut FieldErrors) {
        const FIELD: &str = "spec.contract";
        let given = [self.inline.is_some(), self.url.is_some(), self.oci.is_some()];
        if given.into_iter().filter(|given| *given).count() != 1 {
            errors.push(FIELD, "set exactly one of inline, url and oci");
        }
        if self.inline.as_ref().is_some_and(|text| text.len() > MAX_DOCUMENT) {
            errors.push("spec.contract.inline", "must have at most 1 MiB");
        }
        if let Some(url) = &self.url {
            errors.check("spec.contract.url", validation::http_url(url));
        }
        if let Some(oci) = &self.oci {
            let parsed = OciSource::parse(oci).map(drop).map_err(|error| error.to_string());
            errors.check("spec.contract.oci", parsed);
        }
        if self.pull_secret_ref.is_some() && self.oci.is_none() {
            errors.push("spec.contract.pullSecretRef", "needs oci");
        }
        let target = self.target.iter();
        let names = target.flat_map(|target| {
            let workload = target.workload.as_ref().and_then(|workload| workload.name.as_deref());
            [("service", target.service.as_deref()), ("workload.name", workload)]
        });
        for (field, name) in names {
            if name.is_some_and(|name| !is_object_name(name)) {
                errors.push(&format!("spec.contract.target.{field}"), "is not the name of an object");
            }
        }
        for name in self.severity.keys() {
            if check_named(name).is_none() {
                let names = CheckKind::ALL.map(CheckKind::as_str).join(", ");
                errors.push(
                    &format!("spec.contract.severity[{name}]"),
                    format!("is not a check; use one of {names}"),
                );
            }
        }
    }

    /// Returns the source of a valid contract.
    pub fn source(&self) -> Option<ContractSource> {
        match (&self.inline, &self.url, &self.oci) {
            (Some(text), _, _) => Some(ContractSource::Inline(text.clone())),
            (None, Some(url), _) => Url::parse(url).ok().map(ContractSource::Url),
            (None, None, Some(oci)) => OciSource::parse(oci).ok().map(ContractSource::Oci),
            (None, None, None) => None,
        }
    }

    /// Returns the severities of checks.
    pub fn severities(&self) -> Severities {
        self.severity.iter().filter_map(|(name, severity)| Some((check_named(name)?, *severity))).collect()
    }
}

fn check_named(name: &str) -> Option<CheckKind> {
    CheckKind::ALL.into_iter().find(|kind| kind.as_str() == name)
}

/// Whether this is a DNS subdomain (RFC 1123), as names of objects are. It becomes a part of URLs.
fn is_object_name(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    let ends = [name.bytes().next(), name.bytes().next_back()];
    name.len() <= 253
        && name.bytes().all(inner)
        && ends.into_iter().all(|end| end.is_some_and(|byte| byte.is_ascii_alphanumeric()))
}

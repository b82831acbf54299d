//! `spec.contract` of a ManagedServer.

use declarest_core::contract::status::CheckKind;
use declarest_core::contract::{ContractBinding, MAX_DOCUMENT, OciSource};
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

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
    /// The contract, and what it is compared with.
    #[serde(flatten)]
    pub binding: ContractBinding,
    /// Secret of type kubernetes.io/dockerconfigjson with the credentials for the registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_secret_ref: Option<LocalRef>,
    /// Whether policies of this server wait while the contract is invalid or a check of severity error fails.
    #[serde(default)]
    pub gate_sync: bool,
}

impl ContractSpec {
    pub(super) fn check(&self, errors: &mut FieldErrors) {
        const FIELD: &str = "spec.contract";
        let ContractBinding { inline, url, oci, target, severity } = &self.binding;
        let given = [inline.is_some(), url.is_some(), oci.is_some()];
        if given.into_iter().filter(|given| *given).count() != 1 {
            errors.push(FIELD, "set exactly one of inline, url and oci");
        }
        if inline.as_ref().is_some_and(|text| text.len() > MAX_DOCUMENT) {
            errors.push("spec.contract.inline", "must have at most 1 MiB");
        }
        if let Some(url) = url {
            errors.check("spec.contract.url", validation::http_url(url));
        }
        if let Some(oci) = oci {
            let parsed = OciSource::parse(oci).map(drop).map_err(|error| error.to_string());
            errors.check("spec.contract.oci", parsed);
        }
        if self.pull_secret_ref.is_some() && oci.is_none() {
            errors.push("spec.contract.pullSecretRef", "needs oci");
        }
        let target = target.iter();
        let names = target.flat_map(|target| {
            let workload = target.workload.as_ref().and_then(|workload| workload.name.as_deref());
            [("service", target.service.as_deref()), ("workload.name", workload)]
        });
        for (field, name) in names {
            if name.is_some_and(|name| !validation::is_subdomain(name)) {
                errors.push(&format!("spec.contract.target.{field}"), "is not the name of an object");
            }
        }
        for name in severity.keys() {
            if CheckKind::named(name).is_none() {
                let names = CheckKind::ALL.map(CheckKind::as_str).join(", ");
                errors.push(
                    &format!("spec.contract.severity[{name}]"),
                    format!("is not a check; use one of {names}"),
                );
            }
        }
    }
}

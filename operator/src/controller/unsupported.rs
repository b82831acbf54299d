//! Parts of the API that this version accepts in a schema and cannot honour yet. They are refused rather
//! than ignored: an object that seems to work but lacks its proxy or its credentials is worse than one
//! that says so. A part leaves this list when its engine arrives.

use super::error::Failure;
use crate::crd::{ManagedServer, ResourceRepository};

pub fn check_resource_repository(object: &ResourceRepository) -> Result<(), Failure> {
    let webhook = object.spec.git.as_ref().is_some_and(|git| git.webhook.is_some());
    refuse(&[("spec.git.webhook", webhook)])
}

pub fn check_managed_server(object: &ManagedServer) -> Result<(), Failure> {
    let spec = &object.spec;
    let tls = spec.http.tls.as_ref();
    refuse(&[
        ("spec.http.auth.oauth2", spec.http.auth.as_ref().is_some_and(|auth| auth.oauth2.is_some())),
        ("spec.http.tls.clientCertRef", tls.is_some_and(|tls| tls.client_cert_ref.is_some())),
        ("spec.http.proxy", spec.http.proxy.is_some()),
    ])
}

fn refuse(parts: &[(&str, bool)]) -> Result<(), Failure> {
    let used: Vec<&str> = parts.iter().filter(|(_, used)| *used).map(|(field, _)| *field).collect();
    if used.is_empty() {
        return Ok(());
    }
    Err(Failure::spec_invalid(format!("{}: not supported by this version yet; remove it", used.join(", "))))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn server(spec: &Value) -> ManagedServer {
        serde_json::from_value(json!({
            "apiVersion": "declarest.io/v1alpha1", "kind": "ManagedServer",
            "metadata": {"name": "s"}, "spec": spec,
        }))
        .unwrap()
    }

    #[test]
    fn what_works_passes() {
        let spec = json!({
            "http": {
                "baseURL": "https://api.example.test",
                "auth": {"basicAuth": {
                    "usernameRef": {"name": "a", "key": "b"}, "passwordRef": {"name": "a", "key": "c"}
                }},
                "tls": {"caCertRef": {"name": "a", "key": "ca"}},
                "requestThrottling": {"maxConcurrentRequests": 2},
            },
            "openapi": {"url": "https://api.example.test/openapi.json"},
            "metadata": {"bundle": "example-bundle:1.0.0"},
        });
        assert_eq!(check_managed_server(&server(&spec)), Ok(()));
    }

    #[rstest]
    #[case(json!({"http": {"baseURL": "https://h", "proxy": {}}}), "spec.http.proxy")]
    #[case(json!({"http": {"baseURL": "https://h", "auth": {"oauth2": {
        "tokenURL": "https://h/t", "clientIDRef": {"name": "a", "key": "b"},
        "clientSecretRef": {"name": "a", "key": "c"}
    }}}}), "spec.http.auth.oauth2")]
    fn what_would_be_ignored_is_refused_by_name(#[case] spec: Value, #[case] field: &str) {
        let message = format!("{field}: not supported by this version yet; remove it");
        assert_eq!(check_managed_server(&server(&spec)), Err(Failure::spec_invalid(message)));
    }
}

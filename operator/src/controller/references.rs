//! Reads the Secrets that specs refer to.

use std::collections::HashMap;

use declarest_core::secrets::Secret;
use k8s_openapi::api::core::v1::Secret as SecretObject;
use kube::{Api, Client};

use super::error::Failure;
use crate::crd::SecretKeyRef;

/// Reads keys of Secrets of one namespace. Each Secret is read once, so that its keys are of one version. Each round
/// of work needs a new reader.
pub struct SecretReader {
    secrets: Api<SecretObject>,
    namespace: String,
    read: HashMap<String, Option<SecretObject>>,
}

impl SecretReader {
    pub fn new(client: &Client, namespace: &str) -> Self {
        Self {
            secrets: Api::namespaced(client.clone(), namespace),
            namespace: namespace.to_owned(),
            read: HashMap::new(),
        }
    }

    /// Returns the value that `field` of a spec refers to, without trailing line breaks, because tools that create
    /// Secrets from files often add one.
    ///
    /// # Errors
    /// `DependencyInvalid` with field, Secret and key if the Secret or the key is missing, or the value is empty or
    /// not UTF-8.
    pub async fn value(&mut self, field: &str, reference: &SecretKeyRef) -> Result<Secret, Failure> {
        let SecretKeyRef { name, key } = reference;
        let namespace = self.namespace.clone();
        let invalid = |problem: &str| {
            Failure::dependency_invalid(format!("{field}: Secret {namespace}/{name} {problem}"))
        };
        let secret = self.secret(name).await?.ok_or_else(|| invalid("does not exist"))?;
        let value = secret
            .data
            .as_ref()
            .and_then(|data| data.get(key))
            .ok_or_else(|| invalid(&format!("has no key {key}")))?;
        let text = std::str::from_utf8(&value.0)
            .map_err(|_| invalid(&format!("has a value in key {key} that is not UTF-8")))?;
        let text = text.trim_end_matches(['\n', '\r']);
        if text.is_empty() {
            return Err(invalid(&format!("has an empty value in key {key}")));
        }
        Ok(Secret::from(text.to_owned()))
    }

    /// Like [`SecretReader::value`], for an optional reference.
    pub async fn optional(
        &mut self,
        field: &str,
        reference: Option<&SecretKeyRef>,
    ) -> Result<Option<Secret>, Failure> {
        match reference {
            Some(reference) => self.value(field, reference).await.map(Some),
            None => Ok(None),
        }
    }

    async fn secret(&mut self, name: &str) -> Result<Option<&SecretObject>, Failure> {
        if !self.read.contains_key(name) {
            let secret =
                self.secrets.get_opt(name).await.map_err(|error| {
                    Failure::api(&format!("read Secret {}/{name}", self.namespace), &error)
                })?;
            self.read.insert(name.to_owned(), secret);
        }
        Ok(self.read.get(name).and_then(Option::as_ref))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{Request, Response, StatusCode};
    use kube::client::Body;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    /// An API server with the Secret team/login.
    fn client() -> Client {
        let service = tower::service_fn(|request: Request<Body>| async move {
            let known = request.uri().path() == "/api/v1/namespaces/team/secrets/login";
            let (code, body) = if known {
                // "secret\r\n", "\n", 0xff
                let data = json!({"password": "c2VjcmV0DQo=", "blank": "Cg==", "binary": "/w=="});
                (StatusCode::OK, json!({"metadata": {"name": "login", "namespace": "team"}, "data": data}))
            } else {
                let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404,
                                    "reason": "NotFound", "message": "not found"});
                (StatusCode::NOT_FOUND, status)
            };
            let body = Body::from(body.to_string().into_bytes());
            Ok::<_, Infallible>(Response::builder().status(code).body(body).unwrap())
        });
        Client::new(service, "team")
    }

    fn reference(name: &str, key: &str) -> SecretKeyRef {
        SecretKeyRef { name: name.to_owned(), key: key.to_owned() }
    }

    #[tokio::test]
    async fn only_trailing_line_breaks_are_removed() {
        let mut reader = SecretReader::new(&client(), "team");
        let secret = reader.value("spec.f", &reference("login", "password")).await.unwrap();
        assert_eq!(secret.expose(), "secret");
    }

    #[rstest]
    #[case("absent", "password", "spec.f: Secret team/absent does not exist")]
    #[case("login", "user", "spec.f: Secret team/login has no key user")]
    #[case("login", "blank", "spec.f: Secret team/login has an empty value in key blank")]
    #[case("login", "binary", "spec.f: Secret team/login has a value in key binary that is not UTF-8")]
    #[tokio::test]
    async fn errors_name_field_secret_and_key(#[case] name: &str, #[case] key: &str, #[case] message: &str) {
        let mut reader = SecretReader::new(&client(), "team");
        let failure = reader.value("spec.f", &reference(name, key)).await.unwrap_err();
        assert_eq!(failure, Failure::dependency_invalid(message));
    }
}

//! Settings of a spec that expose credentials to attackers on the network.

use std::fmt;

use declarest_core::proxy::is_loopback;
use serde_json::Value;
use url::Url;

/// An insecure setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Insecure {
    /// The path of its field.
    pub field: String,
    pub consequence: &'static str,
}

impl fmt::Display for Insecure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.consequence)
    }
}

/// Returns the settings of `spec` that turn off a check of TLS or SSH, or that send credentials over plain http. A URL of
/// this machine is not one: nothing leaves the machine.
pub fn insecure_settings(spec: &Value) -> Vec<Insecure> {
    let mut found = Vec::new();
    walk("spec", spec, &mut found);
    for (field, credentials) in [("/http/baseURL", "/http/auth"), ("/git/url", "/git/auth/tokenRef")] {
        if spec.pointer(credentials).is_some_and(|credentials| !credentials.is_null()) {
            found.extend(plain(field, spec.pointer(field)));
        }
    }
    for field in ["/http/auth/oauth2/tokenURL", "/vault/address"] {
        found.extend(plain(field, spec.pointer(field)));
    }
    found
}

fn walk(at: &str, value: &Value, found: &mut Vec<Insecure>) {
    let Value::Object(members) = value else { return };
    for (name, member) in members {
        let field = format!("{at}.{name}");
        let consequence = match name.as_str() {
            "insecureSkipVerify" => "any certificate is accepted",
            "insecureIgnoreHostKey" => "any host key is accepted",
            _ => {
                walk(&field, member, found);
                continue;
            }
        };
        if *member == Value::Bool(true) {
            found.push(Insecure { field, consequence });
        }
    }
}

fn plain(pointer: &str, url: Option<&Value>) -> Option<Insecure> {
    let url = Url::parse(url?.as_str()?.trim()).ok().filter(|url| url.scheme() == "http")?;
    let field = format!("spec{}", pointer.replace('/', "."));
    (!is_loopback(&url)).then_some(Insecure { field, consequence: "credentials are sent without encryption" })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!({"http": {"baseURL": "http://a"}}), &[])]
    #[case(json!({"http": {"baseURL": "http://a", "auth": {"basicAuth": {}}}}), &["spec.http.baseURL"])]
    #[case(json!({"http": {"baseURL": "http://127.0.0.1:1", "auth": {"basicAuth": {}}}}), &[])]
    #[case(json!({"http": {"baseURL": "https://a", "tls": {"insecureSkipVerify": true}}}), &["spec.http.tls.insecureSkipVerify"])]
    #[case(json!({"http": {"baseURL": "https://a", "tls": {"insecureSkipVerify": false}}}), &[])]
    #[case(json!({"http": {"auth": {"oauth2": {"tokenURL": "http://a/t"}}}}), &["spec.http.auth.oauth2.tokenURL"])]
    #[case(json!({"git": {"url": "http://a", "auth": {"tokenRef": {}}}}), &["spec.git.url"])]
    #[case(json!({"git": {"url": "a", "auth": {"sshSecretRef": {"insecureIgnoreHostKey": true}}}}), &["spec.git.auth.sshSecretRef.insecureIgnoreHostKey"])]
    #[case(json!({"vault": {"address": "http://v"}}), &["spec.vault.address"])]
    fn insecure_settings_are_found(#[case] spec: Value, #[case] expected: &[&str]) {
        let found: Vec<String> = insecure_settings(&spec).into_iter().map(|found| found.field).collect();
        assert_eq!(found, expected);
    }
}

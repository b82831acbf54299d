//! Warnings about fields that are allowed and risky. `kubectl` shows them.

use serde_json::Value;

/// Returns the warnings about a spec, by the names of its fields.
pub fn of_spec(spec: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    walk("spec", spec, &mut warnings);
    if spec.pointer("/sync/prune") == Some(&Value::Bool(true)) && is_root(spec.pointer("/source/path")) {
        warnings.push(
            "spec.sync.prune: with source.path / every resource that Git no longer declares is deleted"
                .to_owned(),
        );
    }
    let is_lost = |file: &Value| file.get("storage").is_none() && file.get("seedRef").is_none();
    if spec.get("file").is_some_and(is_lost) {
        warnings
            .push("spec.file.storage: without it or seedRef, the secrets are lost with the pod".to_owned());
    }
    warnings
}

fn is_root(path: Option<&Value>) -> bool {
    path.and_then(Value::as_str).is_some_and(|path| path.trim().trim_matches('/').is_empty())
}

fn walk(at: &str, value: &Value, warnings: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let at = format!("{at}.{name}");
                warnings.extend(of_field(name, member).map(|text| format!("{at}: {text}")));
                walk(&at, member, warnings);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                walk(&format!("{at}[{index}]"), item, warnings);
            }
        }
        _ => {}
    }
}

fn of_field(name: &str, value: &Value) -> Option<&'static str> {
    match (name, value) {
        ("insecureSkipVerify", Value::Bool(true)) => {
            Some("any certificate is accepted, so an attacker on the network can read and change all traffic")
        }
        ("insecureIgnoreHostKey", Value::Bool(true)) => {
            Some("any host key is accepted, so an attacker on the network can impersonate the host")
        }
        ("force", Value::Bool(true)) => {
            Some("each full run writes every resource, also those that are equal")
        }
        ("baseURL" | "url" | "address" | "tokenURL", Value::String(url))
            if url.trim().starts_with("http://") =>
        {
            Some("plain http sends credentials and payloads without encryption")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!({"http": {"baseURL": "http://a", "tls": {"insecureSkipVerify": true}}}), &["spec.http.baseURL", "spec.http.tls.insecureSkipVerify"])]
    #[case(json!({"http": {"baseURL": "https://a", "tls": {"insecureSkipVerify": false}}}), &[])]
    #[case(json!({"git": {"url": "http://a", "auth": {"sshSecretRef": {"insecureIgnoreHostKey": true}}}}), &["spec.git.auth.sshSecretRef.insecureIgnoreHostKey", "spec.git.url"])]
    #[case(json!({"vault": {"address": "http://v"}}), &["spec.vault.address"])]
    #[case(json!({"file": {"path": "s"}}), &["spec.file.storage"])]
    #[case(json!({"file": {"path": "s", "storage": {}}}), &[])]
    #[case(json!({"file": {"path": "s", "seedRef": {}}}), &[])]
    #[case(json!({"source": {"path": "/"}, "sync": {"prune": true, "force": true}}), &["spec.sync.force", "spec.sync.prune"])]
    #[case(json!({"source": {"path": "/a"}, "sync": {"prune": true}}), &[])]
    #[case(json!({"source": {"path": "/"}, "sync": {"prune": false}}), &[])]
    fn warnings_name_the_field(#[case] spec: Value, #[case] expected: &[&str]) {
        let mut fields: Vec<String> =
            of_spec(&spec).iter().map(|warning| warning.split_once(": ").unwrap().0.to_owned()).collect();
        fields.sort();
        assert_eq!(fields, expected);
    }
}

//! Warnings about fields that are allowed and risky. `kubectl` shows them.

use serde_json::Value;

use crate::crd::insecure_settings;

/// Returns the warnings about a spec, by the names of its fields.
pub fn of_spec(spec: &Value) -> Vec<String> {
    let mut warnings: Vec<String> = insecure_settings(spec).iter().map(ToString::to_string).collect();
    if spec.pointer("/sync/force") == Some(&Value::Bool(true)) {
        warnings.push(
            "spec.sync.force: each full run writes every resource, also those that are equal".to_owned(),
        );
    }
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

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!({"http": {"baseURL": "http://a", "auth": {"basicAuth": {}}}}), &["spec.http.baseURL"])]
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

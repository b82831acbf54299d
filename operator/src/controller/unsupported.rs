//! Rejects fields that the schema accepts and that are not implemented yet, because an ignored field is worse than an
//! error. Remove a field from this list when it is implemented.

use super::error::Failure;
use crate::crd::ResourceRepository;

pub fn check_resource_repository(object: &ResourceRepository) -> Result<(), Failure> {
    let webhook = object.spec.git.as_ref().is_some_and(|git| git.webhook.is_some());
    refuse(&[("spec.git.webhook", webhook)])
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

    fn repository(git: &Value) -> ResourceRepository {
        serde_json::from_value(json!({
            "apiVersion": "declarest.io/v1alpha1", "kind": "ResourceRepository", "metadata": {"name": "r"},
            "spec": {"type": "git", "git": git},
        }))
        .unwrap()
    }

    #[rstest]
    #[case(json!({"url": "https://git.example.test/r.git"}), None)]
    #[case(
        json!({"url": "https://git.example.test/r.git", "webhook": {
            "provider": "gitea", "secretRef": {"name": "a", "key": "b"}
        }}),
        Some("spec.git.webhook: not supported by this version yet; remove it")
    )]
    fn unsupported_fields_are_rejected_by_name(#[case] git: Value, #[case] message: Option<&str>) {
        let expected = message.map_or(Ok(()), |message| Err(Failure::spec_invalid(message)));
        assert_eq!(check_resource_repository(&repository(&git)), expected);
    }
}

//! The secrets in a catalogue.

use declarest_core::payload::Value;
use declarest_core::secrets::Secret;

/// Keys of secrets, at any place in a catalogue.
const NAMES: [&str; 7] = ["clientSecret", "key", "passphrase", "password", "secretID", "token", "value"];

/// Returns a value with masked secrets.
pub fn masked(value: Value) -> Value {
    match value {
        Value::Object(members) => Value::Object(
            members
                .into_iter()
                .map(|(key, member)| match member {
                    Value::String(_) if NAMES.contains(&key.as_str()) => (key, "<redacted>".into()),
                    member => (key, masked(member)),
                })
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.into_iter().map(masked).collect()),
        other => other,
    }
}

/// Returns the secrets of a value.
pub fn secrets_of(value: Value) -> Vec<Secret> {
    match value {
        Value::Object(members) => members
            .into_iter()
            .flat_map(|(key, member)| match member {
                Value::String(text) if NAMES.contains(&key.as_str()) => vec![Secret::from(text)],
                member => secrets_of(member),
            })
            .collect(),
        Value::Array(items) => items.into_iter().flat_map(secrets_of).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use declarest_core::payload::{PayloadType, decode, encode};

    use super::*;

    fn value() -> Value {
        decode(PayloadType::Yaml, b"a: [{token: t, name: n}]\nkey: {prompt: true}").unwrap()
    }

    #[test]
    fn secrets_are_masked() {
        assert_eq!(
            encode(PayloadType::Yaml, &masked(value())).unwrap(),
            b"a:\n    - name: \"n\"\n      token: <redacted>\nkey:\n    prompt: true\n"
        );
    }

    #[test]
    fn secrets_are_found_by_their_keys() {
        assert_eq!(secrets_of(value()), [Secret::from("t".to_owned())]);
    }
}

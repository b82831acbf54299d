//! The secrets that are written in a catalogue.

use declarest_core::payload::Value;
use declarest_core::secrets::Secret;

/// What holds a secret, wherever in a catalogue it stands.
const NAMES: [&str; 7] = ["clientSecret", "key", "passphrase", "password", "secretID", "token", "value"];

/// A value without its secrets.
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

/// The secrets of a value.
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
    fn a_terminal_sees_no_secrets() {
        assert_eq!(
            encode(PayloadType::Yaml, &masked(value())).unwrap(),
            b"a:\n    - name: \"n\"\n      token: <redacted>\nkey:\n    prompt: true\n"
        );
    }

    #[test]
    fn they_are_found_by_their_names() {
        assert_eq!(secrets_of(value()), [Secret::from("t".to_owned())]);
    }
}

//! How the sections of a catalogue are decoded and encoded, and the rules between their fields.
//!
//! Version 0.3.8 writes empty strings, empty lists and 0 for fields that are not set. So an optional field with such a
//! value is absent. The same applies to an optional reference to a variable that is not set.

use declarest_core::payload::Value;
use declarest_core::payload::fields::{Field, FieldError};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

/// A section, or a list of sections.
pub trait Setting: Sized {
    /// Decodes the value. The error has the fault and its position.
    fn read(field: Field) -> Result<Self, FieldError>;

    /// Encodes the value without absent fields.
    fn write(&self) -> Option<Value>;
}

impl<T: Serialize + for<'de> Deserialize<'de>> Setting for T {
    fn read(field: Field) -> Result<Self, FieldError> {
        field.decode_unless(Field::is_blank, |section, object, known| {
            object.check_keys(known)?;
            rules(section).iter().try_for_each(|rule| rule.check(object))
        })
    }

    fn write(&self) -> Option<Value> {
        let json = serde_json::to_value(self).ok()?;
        Some(Value::from_json(&without_nulls(json)))
    }
}

fn without_nulls(json: Json) -> Json {
    match json {
        Json::Object(members) => {
            let present = members.into_iter().filter(|(_, member)| !member.is_null());
            Json::Object(present.map(|(key, member)| (key, without_nulls(member))).collect())
        }
        Json::Array(items) => Json::Array(items.into_iter().map(without_nulls).collect()),
        scalar => scalar,
    }
}

/// The name of the definition of values that rules treat as absent.
pub const UNSET: &str = "Unset";

/// Returns the schema of these values: those for which [`Field::is_unset`] returns true.
pub fn unset() -> Json {
    json!({
        "description": "A value that counts as absent.",
        "anyOf": [
            {"type": "null"},
            {"type": "string", "pattern": "^\\s*$"},
            {"const": 0},
            {"type": "array", "maxItems": 0},
            {"type": "object", "additionalProperties": {"type": "null"}},
        ],
    })
}

/// A rule about the combination of fields in a section.
pub enum Rule {
    ExactlyOne(&'static [&'static str]),
    AtLeastOne(&'static [&'static str]),
    AtMostOne(&'static [&'static str]),
    /// The first needs the second.
    Needs(&'static str, &'static str),
}

/// The rules of sections, by the names of their types.
const RULES: [(&str, &[Rule]); 10] = [
    ("Context", &[Rule::AtLeastOne(&["repository", "managedServer"])]),
    // An empty one is absent. Version 0.3.8 writes it into contexts without a repository.
    ("Repository", &[Rule::AtMostOne(&["filesystem", "git"])]),
    ("GitAuth", &[Rule::ExactlyOne(&["basic", "accessKey", "ssh"])]),
    (
        "Tls",
        &[Rule::Needs("clientCertFile", "clientKeyFile"), Rule::Needs("clientKeyFile", "clientCertFile")],
    ),
    ("HttpAuth", &[Rule::ExactlyOne(&["oauth2", "basic", "customHeaders"])]),
    (
        "RequestThrottling",
        &[
            Rule::AtLeastOne(&["maxConcurrentRequests", "requestsPerSecond"]),
            Rule::Needs("queueSize", "maxConcurrentRequests"),
            Rule::Needs("burst", "requestsPerSecond"),
        ],
    ),
    ("SecretStore", &[Rule::ExactlyOne(&["file", "vault"])]),
    ("FileStore", &[Rule::ExactlyOne(&["key", "keyFile", "passphrase", "passphraseFile"])]),
    ("VaultAuth", &[Rule::ExactlyOne(&["token", "password", "appRole"])]),
    ("Metadata", &[Rule::AtMostOne(&["baseDir", "bundle", "bundleFile"])]),
];

/// Returns the rules of a section by the name of its type.
pub fn rules(section: &str) -> &'static [Rule] {
    RULES.iter().find(|(name, _)| *name == section).map_or(&[], |(_, rules)| rules)
}

impl Rule {
    fn check(&self, object: &Field) -> Result<(), FieldError> {
        let has = |key: &str| object.member(key).is_some_and(|member| !member.is_unset());
        let present = |keys: &[&'static str]| -> Vec<&'static str> {
            keys.iter().copied().filter(|key| has(key)).collect()
        };
        let reason = match self {
            Self::ExactlyOne(keys) | Self::AtLeastOne(keys) if present(keys).is_empty() => {
                let one = if matches!(self, Self::ExactlyOne(_)) { "exactly" } else { "at least" };
                format!("has none of {}; set {one} one", keys.join(", "))
            }
            Self::ExactlyOne(keys) | Self::AtMostOne(keys) if present(keys).len() > 1 => {
                format!("has {}; keep one of them", present(keys).join(" and "))
            }
            Self::Needs(key, other) if has(key) && !has(other) => {
                format!("{key} needs {other}; set {other}, or remove {key}")
            }
            _ => return Ok(()),
        };
        Err(object.fail(reason))
    }

    /// Returns the rule as a schema, which refers to the definition [`UNSET`].
    pub fn schema(&self) -> Json {
        let set = |key: &&str| {
            let unset = json!({"$ref": format!("#/$defs/{UNSET}")});
            json!({"required": [key], "properties": {*key: {"not": unset}}})
        };
        match self {
            Self::ExactlyOne(keys) => json!({"oneOf": keys.iter().map(set).collect::<Vec<_>>()}),
            Self::AtLeastOne(keys) => json!({"anyOf": keys.iter().map(set).collect::<Vec<_>>()}),
            Self::AtMostOne(keys) => {
                let none = json!({"not": {"anyOf": keys.iter().map(set).collect::<Vec<_>>()}});
                json!({"oneOf": keys.iter().map(set).chain([none]).collect::<Vec<_>>()})
            }
            Self::Needs(key, other) => json!({"if": set(key), "then": set(other)}),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_about_existing_types_and_keys() {
        let schema = super::super::schema();
        for (section, rules) in RULES {
            let keys = schema["$defs"][section]["properties"].as_object().unwrap();
            for rule in rules {
                let named: &[&str] = match rule {
                    Rule::ExactlyOne(keys) | Rule::AtLeastOne(keys) | Rule::AtMostOne(keys) => keys,
                    Rule::Needs(key, other) => &[key, other],
                };
                assert!(named.iter().all(|key| keys.contains_key(*key)), "{section}: {named:?}");
            }
        }
    }
}

//! Extracts the secrets of a payload that does not belong to a resource.

use std::collections::BTreeMap;

use super::detect::{is_key, is_private_key_part};
use super::{KeyError, PLACEHOLDER, Secret, SecretKey, is_placeholder, is_secret_name};
use crate::error::categories;
use crate::payload::Value;
use crate::payload::pointer::Pointer;

/// The reason why secrets cannot be extracted. Messages do not contain values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExtractError {
    /// A value whose name is that of a secret is not a string.
    #[error(
        "the value at \"{at}\" is {kind}, but a secret store holds only strings; make it a string or rename it"
    )]
    Type {
        /// The place of the value.
        at: Pointer,
        /// The type of the value.
        kind: &'static str,
    },
    /// Two secrets have the same name and would be hard to distinguish.
    #[error(
        "\"{name}\" is the name of two secrets, at \"{first}\" and \"{second}\"; give them different names"
    )]
    Twice {
        /// The name.
        name: String,
        /// The first place.
        first: Pointer,
        /// The second place.
        second: Pointer,
    },
    /// The place of the value is not a valid key.
    #[error("the value at \"{at}\": {source}")]
    Key {
        /// The place of the value.
        at: Pointer,
        /// The fault.
        #[source]
        source: KeyError,
    },
}

categories!(ExtractError: Validation);

/// Replaces every string whose name looks like that of a secret, and the private parts of JSON Web Keys, with a
/// placeholder, whatever the string is. Returns
/// the payload and the strings with their keys. Existing placeholders and nulls stay.
pub fn extract(mut payload: Value) -> Result<(Value, Vec<(SecretKey, Secret)>), ExtractError> {
    let mut extraction = Extraction::default();
    extraction.walk(&Pointer::default(), &mut payload)?;
    Ok((payload, extraction.secrets))
}

#[derive(Default)]
struct Extraction {
    secrets: Vec<(SecretKey, Secret)>,
    places: BTreeMap<String, Pointer>,
}

impl Extraction {
    fn walk(&mut self, at: &Pointer, value: &mut Value) -> Result<(), ExtractError> {
        match value {
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.walk(&at.child(&index.to_string()), item)?;
                }
            }
            Value::Object(members) => {
                let is_key = is_key(members);
                for (name, member) in members {
                    let at = at.child(name);
                    if is_secret_name(name) {
                        if self.take(&at, member)? {
                            self.distinguish(name, at)?;
                        }
                    } else if is_key && is_private_key_part(name) && member.as_str().is_some() {
                        // Sets of keys repeat these names.
                        self.take(&at, member)?;
                    } else {
                        self.walk(&at, member)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes a secret out of its place. Returns whether there was one.
    fn take(&mut self, at: &Pointer, member: &mut Value) -> Result<bool, ExtractError> {
        match member {
            Value::Null => Ok(false),
            Value::String(text) if is_placeholder(text) => Ok(false),
            Value::String(text) => {
                let key = SecretKey::of_pointer(at)
                    .map_err(|source| ExtractError::Key { at: at.clone(), source })?;
                self.secrets.push((key, Secret::from(std::mem::replace(text, PLACEHOLDER.to_owned()))));
                Ok(true)
            }
            other => Err(ExtractError::Type { at: at.clone(), kind: other.kind() }),
        }
    }

    /// Fails if another secret has this name.
    fn distinguish(&mut self, name: &str, at: Pointer) -> Result<(), ExtractError> {
        match self.places.insert(name.to_owned(), at.clone()) {
            Some(first) => Err(ExtractError::Twice { name: name.to_owned(), first, second: at }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::error::{Categorized, Category};
    use crate::payload::{PayloadType, decode};

    fn yaml(text: &str) -> Value {
        decode(PayloadType::Yaml, text.as_bytes()).unwrap()
    }

    #[rstest]
    #[case("{id: 1, users: [{password: a}]}", "{id: 1, users: [{password: '{{secret .}}'}]}", &[("users/0/password", "a")])]
    #[case::values_do_not_matter("{token: 'yes', apiKey: '42'}", "{token: '{{secret .}}', apiKey: '{{secret .}}'}", &[("apiKey", "42"), ("token", "yes")])]
    #[case::kept("{token: null, apiKey: '{{secret ci}}', name: x}", "{token: null, apiKey: '{{secret ci}}', name: x}", &[])]
    #[case::keys(
        "[{kty: EC, d: a, x: b}, {kty: oct, k: c}, {k: d}]",
        "[{kty: EC, d: '{{secret .}}', x: b}, {kty: oct, k: '{{secret .}}'}, {k: d}]",
        &[("0/d", "a"), ("1/k", "c")]
    )]
    #[case::scalar("just text", "just text", &[])]
    fn texts(#[case] payload: &str, #[case] expected: &str, #[case] secrets: &[(&str, &str)]) {
        let (masked, extracted) = extract(yaml(payload)).unwrap();
        assert_eq!(masked, yaml(expected));
        let extracted: Vec<_> =
            extracted.iter().map(|(key, secret)| (key.as_str(), secret.expose())).collect();
        assert_eq!(extracted, secrets);
    }

    #[rstest]
    #[case("{token: 1}", "the value at \"/token\" is an integer")]
    #[case("{a: {token: {b: 1}}}", "the value at \"/a/token\" is an object")]
    #[case(
        "{a: {token: x}, b: {token: y}}",
        "\"token\" is the name of two secrets, at \"/a/token\" and \"/b/token\""
    )]
    fn rejected(#[case] payload: &str, #[case] message: &str) {
        let error = extract(yaml(payload)).unwrap_err();
        assert_eq!(error.category(), Category::Validation);
        assert!(error.to_string().starts_with(message), "{error}");
    }
}

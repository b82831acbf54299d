//! Encodes metadata documents as YAML.

use serde::Serialize;
use serde_json::Value as Json;

use super::{DefaultsSource, Document, DocumentError, OperationSection};
use crate::payload::{PayloadType, Value, encode};

impl Document {
    /// Returns the document as `metadata.yaml`: absent fields are omitted, empty lists and maps are kept, and includes
    /// are written as includes. Equal documents have equal bytes, and decoding restores the document. Fails with
    /// [`DocumentError::Encode`] for a body or defaults that YAML cannot represent.
    pub fn encode_yaml(&self) -> Result<Vec<u8>, DocumentError> {
        // The JSON of `to_value` would replace them with other values.
        self.payloads().try_for_each(|payload| encode(PayloadType::Yaml, &payload).map(drop))?;
        Ok(encode(PayloadType::Yaml, &self.to_value())?)
    }

    /// Returns the document as a value, for other encodings.
    pub fn to_value(&self) -> Value {
        written(self)
    }

    /// Returns the bodies and defaults in the document.
    fn payloads(&self) -> impl Iterator<Item = Value> {
        let defaults = self.resource.iter().filter_map(|resource| resource.defaults.as_ref());
        let sources = defaults.flat_map(|section| {
            section.value.iter().chain(section.profiles.iter().flatten().map(|(_, source)| source))
        });
        let inline = sources.filter_map(|source| match source {
            DefaultsSource::Inline(members) => Some(Value::Object(members.clone())),
            DefaultsSource::Include(_) => None,
        });
        let operations = self.operations.iter().flat_map(|section| section.operations.values());
        inline.chain(operations.filter_map(|operation| operation.body.clone()))
    }
}

impl OperationSection {
    /// Returns the section as a value, in the form of documents.
    pub fn to_value(&self) -> Value {
        written(self)
    }
}

/// Returns a section as a value. All of its types can be represented in JSON.
fn written(section: &impl Serialize) -> Value {
    let json = serde_json::to_value(section).unwrap_or_default();
    Value::from_json(&without_absent(json))
}

/// Removes absent fields, which are null. Null has a meaning in payloads.
fn without_absent(json: Json) -> Json {
    match json {
        Json::Object(members) => {
            let present = members.into_iter().filter(|(_, member)| !member.is_null());
            let present = present.map(|(key, member)| match key.as_str() {
                "body" | "value" | "profiles" | "onRemove" => (key, member),
                _ => (key, without_absent(member)),
            });
            Json::Object(present.collect())
        }
        Json::Array(items) => Json::Array(items.into_iter().map(without_absent).collect()),
        scalar => scalar,
    }
}

//! How a resource is found on the server, and what happens if Git no longer declares it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;

use crate::payload::fields::{AnyValue, TextOr};
use crate::payload::{Object, Value};

/// Where a resource is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReadFrom {
    /// At its own address.
    Address,
    /// In the list of its collection.
    List,
}

/// Which answers to a read mean that the resource does not exist, in addition to 404 and 410.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1))]
pub struct AbsentSection {
    /// The status codes of such answers; without it, those of success.
    pub status: Option<Vec<u16>>,
    /// A jq expression that is true for the body of such answers.
    pub jq: Option<String>,
}

/// Which answers with a status of success state a failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FailedSection {
    /// A jq expression that is true for the body of such answers.
    pub jq: String,
}

/// What happens to the resource on the server if Git no longer declares it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "TextOr<AnyValue>")]
pub enum OnRemove {
    /// It is deleted.
    Delete,
    /// It is kept.
    Keep,
    /// It is updated to this payload.
    Reset(Value),
}

impl TryFrom<TextOr<AnyValue>> for OnRemove {
    type Error = String;

    fn try_from(written: TextOr<AnyValue>) -> Result<Self, String> {
        const EXPECTED: &str = "expected delete, keep, or an object with the key reset";
        match written {
            TextOr::Text(text) if text.trim() == "delete" => Ok(Self::Delete),
            TextOr::Text(text) if text.trim() == "keep" => Ok(Self::Keep),
            TextOr::Other(AnyValue(Value::Object(mut members))) if members.len() == 1 => {
                members.remove("reset").map(Self::Reset).ok_or_else(|| EXPECTED.to_owned())
            }
            _ => Err(EXPECTED.to_owned()),
        }
    }
}

impl Serialize for OnRemove {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Delete => serializer.serialize_str("delete"),
            Self::Keep => serializer.serialize_str("keep"),
            Self::Reset(payload) => {
                Object::from([("reset".to_owned(), payload.clone())]).serialize(serializer)
            }
        }
    }
}

/// The JSON Schema of [`OnRemove`].
pub(super) fn on_remove(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let choices = json!([
        {"enum": ["delete", "keep"]},
        {"type": "object", "additionalProperties": {}, "minProperties": 1, "maxProperties": 1},
    ]);
    schemars::json_schema!({"oneOf": choices})
}

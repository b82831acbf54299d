//! How payloads are compared, what an update sends, and what the entries of a list are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::payload::pointer::Pointer;

/// The `mode` of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OperationMode {
    /// Compare: a member that only the server has is a difference.
    Exact,
    /// Compare: only the members that the payload states are compared.
    Declared,
    /// Update: sends the payload.
    Replace,
    /// Update: sends the observed payload with the declared members over it.
    Merge,
    /// Update: sends the difference as a JSON Merge Patch (RFC 7396).
    MergePatch,
    /// Update: sends the difference as a JSON Patch (RFC 6902).
    JsonPatch,
    /// List: the entries are the payloads of the members.
    Payloads,
    /// List: the entries only name the members, as texts or objects. Payloads are read from the members.
    Names,
}

impl OperationMode {
    /// Returns the media type of a patch; `None` if the body is a whole payload.
    pub const fn patch_type(self) -> Option<&'static str> {
        match self {
            Self::MergePatch => Some("application/merge-patch+json"),
            Self::JsonPatch => Some("application/json-patch+json"),
            _ => None,
        }
    }
}

/// How the entries of an array are matched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum ArrayRule {
    /// By their index.
    Ordered,
    /// By their value, in any order.
    Set,
    /// By the value at this pointer in each entry, in any order.
    Keyed(Pointer),
}

impl TryFrom<String> for ArrayRule {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.trim() {
            "ordered" => Ok(Self::Ordered),
            "set" => Ok(Self::Set),
            key => Pointer::try_from(key.to_owned()).map(Self::Keyed).map_err(|_| {
                format!(
                    "\"{key}\" is not supported; use set, ordered, or the pointer of a key in the entries"
                )
            }),
        }
    }
}

impl From<ArrayRule> for String {
    fn from(rule: ArrayRule) -> Self {
        match rule {
            ArrayRule::Ordered => "ordered".to_owned(),
            ArrayRule::Set => "set".to_owned(),
            ArrayRule::Keyed(key) => key.to_string(),
        }
    }
}

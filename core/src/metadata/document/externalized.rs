//! `resource.externalizedAttributes`: attributes that are kept in their own files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::payload::pointer::Pointer;

/// An attribute that is kept in its own file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ExternalizedAttribute {
    /// The attribute.
    pub path: Pointer,
    /// The file, next to the payload.
    pub file: String,
    /// The placeholder in the payload, with exactly one %s for the file.
    pub template: Option<String>,
    /// How the attribute is read.
    pub mode: Option<ExternalizedMode>,
    /// How the attribute is handled on save.
    pub save_behavior: Option<SaveBehavior>,
    /// How the attribute is handled on read.
    pub render_behavior: Option<RenderBehavior>,
    /// Whether the entry is enabled (default: true).
    pub enabled: Option<bool>,
}

impl ExternalizedAttribute {
    /// The default template.
    pub const TEMPLATE: &'static str = "{{include %s}}";

    /// Returns whether the entry is enabled.
    pub fn is_enabled(&self) -> bool {
        self.enabled.unwrap_or(true)
    }

    /// Returns the placeholder for the content of `file` in the payload.
    pub fn placeholder(&self, file: &str) -> String {
        self.template.as_deref().unwrap_or(Self::TEMPLATE).replacen("%s", file, 1)
    }
}

/// How an externalized attribute is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ExternalizedMode {
    /// As one string.
    Text,
}

/// How an externalized attribute is handled on save.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SaveBehavior {
    /// The attribute is written to its file.
    Externalize,
}

/// How an externalized attribute is handled on read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RenderBehavior {
    /// The placeholder is replaced with the content of the file.
    Include,
}

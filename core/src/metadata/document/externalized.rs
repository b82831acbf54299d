//! Attributes kept in files of their own.

use crate::payload::fields::Keyword;
use crate::payload::pointer::Pointer;

/// One entry of `resource.externalizedAttributes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalizedAttribute {
    /// The attribute. The token `*` on an array stands for every element.
    pub path: Pointer,
    /// The file next to the payload, as written; [`sidecar_file`](crate::repository::sidecar_file) cleans it.
    pub file: String,
    /// What stands in the payload instead; has exactly one `%s`, for the file.
    pub template: Option<String>,
    /// How the attribute is read.
    pub mode: Option<ExternalizedMode>,
    /// What saving does.
    pub save_behavior: Option<SaveBehavior>,
    /// What reading does.
    pub render_behavior: Option<RenderBehavior>,
    /// Whether the entry counts; true if absent.
    pub enabled: Option<bool>,
}

impl ExternalizedAttribute {
    /// The template where an entry states none.
    pub const TEMPLATE: &'static str = "{{include %s}}";

    /// Whether the entry counts.
    pub fn is_enabled(&self) -> bool {
        self.enabled.unwrap_or(true)
    }

    /// What stands in the payload instead of the content of `file`.
    pub fn placeholder(&self, file: &str) -> String {
        self.template.as_deref().unwrap_or(Self::TEMPLATE).replacen("%s", file, 1)
    }
}

/// How an externalized attribute is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExternalizedMode {
    /// As one string.
    Text,
}

/// What saving does with an externalized attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveBehavior {
    /// Writes it to its file.
    Externalize,
}

/// What reading does with an externalized attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenderBehavior {
    /// Puts the file's content in place.
    Include,
}

impl Keyword for ExternalizedMode {
    const WORDS: &'static [(&'static str, Self)] = &[("text", Self::Text)];
}

impl Keyword for SaveBehavior {
    const WORDS: &'static [(&'static str, Self)] = &[("externalize", Self::Externalize)];
}

impl Keyword for RenderBehavior {
    const WORDS: &'static [(&'static str, Self)] = &[("include", Self::Include)];
}

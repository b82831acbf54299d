//! Attributes kept in files of their own.

use crate::payload::fields::Keyword;
use crate::payload::pointer::Pointer;

/// One entry of `resource.externalizedAttributes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalizedAttribute {
    /// The attribute. The token `*` on an array stands for every element.
    pub path: Pointer,
    /// The file next to the payload, as written; [`sidecar_file`] cleans it.
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

/// The path of a sidecar file relative to its payload: trimmed, without `.`, `..` and empty segments. `Err`
/// says why the file cannot be one: it leaves the directory, or the layout of the repository gives its name
/// another meaning.
pub fn sidecar_file(file: &str) -> Result<String, &'static str> {
    let file = file.trim();
    if file.is_empty() {
        return Err("is empty");
    }
    if file.starts_with('/') {
        return Err("is absolute; write it relative to the payload");
    }
    let mut segments: Vec<&str> = Vec::new();
    for segment in file.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop().ok_or("leaves the directory of the payload")?;
            }
            "_" => return Err("has the segment \"_\", which is reserved"),
            _ => segments.push(segment),
        }
    }
    let base = segments.last().ok_or("names no file")?.to_ascii_lowercase();
    if base.starts_with("resource.") || base.starts_with("defaults") {
        return Err("is named like a payload or a defaults file");
    }
    if matches!(base.as_str(), "metadata.yaml" | "metadata.json") {
        return Err("is named like a metadata document");
    }
    Ok(segments.join("/"))
}

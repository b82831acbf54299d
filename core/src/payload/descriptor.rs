//! The descriptors of payloads.

use std::borrow::Cow;

use super::registry::{OCTETS, PayloadType, ROWS, Row, row_of_extension};

/// The description of a payload: its type, its media type, and the extension of its file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// The format.
    pub payload_type: PayloadType,
    /// A media type without parameters, in lower case.
    pub media_type: &'static str,
    /// The extension with its dot, in the letter case of the file.
    pub extension: Cow<'static, str>,
}

impl Descriptor {
    /// Returns the canonical descriptor of a type.
    pub fn of(payload_type: PayloadType) -> Self {
        Self::of_row(payload_type.row())
    }

    /// Returns the descriptor of a file with this extension; the leading dot is optional. The search ignores case,
    /// and the result keeps it. An unknown extension is binary and is kept, too.
    pub fn from_extension(extension: &str) -> Self {
        let extension = with_dot(extension);
        let row = row_of_extension(&extension).unwrap_or(&OCTETS);
        Self::of_row(row).with_extension(extension)
    }

    /// Returns the descriptor of a media type; `None` if it is unknown. Parameters and case are ignored. Structured
    /// suffixes (RFC 6839) and short type names are accepted.
    pub fn from_media_type(media_type: &str) -> Option<Self> {
        let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if let Some(row) = ROWS.iter().find(|row| row.media_types.contains(&essence.as_str())) {
            return Some(Self::of_row(row));
        }
        if let Some(payload_type) = PayloadType::parse_name(&essence) {
            return Some(Self::of(payload_type));
        }
        let (kind, subtype) = essence.split_once('/')?;
        let (prefix, suffix) = subtype.rsplit_once('+')?;
        if kind.is_empty() || prefix.is_empty() {
            return None;
        }
        match suffix {
            "json" => Some(Self::of(PayloadType::Json)),
            "xml" => Some(Self::of(PayloadType::Xml)),
            "yaml" => Some(Self::of(PayloadType::Yaml)),
            _ => None,
        }
    }

    fn of_row(row: &'static Row) -> Self {
        Self {
            payload_type: row.payload_type,
            media_type: row.media_types[0],
            extension: Cow::Borrowed(row.extensions[0]),
        }
    }

    fn with_extension(self, extension: String) -> Self {
        if self.extension == extension { self } else { Self { extension: Cow::Owned(extension), ..self } }
    }
}

fn with_dot(extension: &str) -> String {
    let extension = extension.trim();
    if extension.starts_with('.') { extension.to_owned() } else { format!(".{extension}") }
}

#[cfg(test)]
#[path = "descriptor_tests.rs"]
mod tests;

//! The payload types with their names, media types and extensions, and the descriptors of payloads.

use std::borrow::Cow;
use std::fmt;

use super::PayloadError;

/// A payload format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PayloadType {
    /// JSON (RFC 8259).
    Json,
    /// YAML, the core types.
    Yaml,
    /// Sections of `key = value` lines.
    Ini,
    /// Java properties.
    Properties,
    /// XML, carried as text.
    Xml,
    /// HCL, carried as text.
    Hcl,
    /// Any other text.
    Text,
    /// Bytes of an unknown format.
    OctetStream,
}

/// The kind of values that a format holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Decodes into objects, arrays and scalars.
    Structured,
    /// One string.
    Text,
    /// Bytes.
    Binary,
}

impl PayloadType {
    /// All types, in the order of the documentation.
    pub const ALL: [Self; 8] = [
        Self::Json,
        Self::Yaml,
        Self::Ini,
        Self::Properties,
        Self::Xml,
        Self::Hcl,
        Self::Text,
        Self::OctetStream,
    ];

    /// Returns the short name, as in metadata and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Yaml => "yaml",
            Self::Ini => "ini",
            Self::Properties => "properties",
            Self::Xml => "xml",
            Self::Hcl => "hcl",
            Self::Text => "text",
            Self::OctetStream => "octet-stream",
        }
    }

    /// Returns the kind of values that the format holds.
    pub const fn class(self) -> Class {
        match self {
            Self::Json | Self::Yaml | Self::Ini | Self::Properties => Class::Structured,
            Self::Xml | Self::Hcl | Self::Text => Class::Text,
            Self::OctetStream => Class::Binary,
        }
    }

    /// Returns the type with this short name, or the alias `binary` or `txt`. Case and outer white space are ignored.
    pub fn parse_name(name: &str) -> Option<Self> {
        let name = name.trim();
        let is = |known: &str| known.eq_ignore_ascii_case(name);
        if is("binary") {
            return Some(Self::OctetStream);
        }
        if is("txt") {
            return Some(Self::Text);
        }
        Self::ALL.into_iter().find(|payload_type| is(payload_type.name()))
    }

    /// Returns the canonical media type.
    pub fn media_type(self) -> &'static str {
        self.row().media_types[0]
    }

    /// Returns the canonical extension, with its dot.
    pub fn extension(self) -> &'static str {
        self.row().extensions[0]
    }

    /// Returns the canonical row of the type.
    fn row(self) -> &'static Row {
        match self {
            Self::Json => &JSON,
            Self::Yaml => &YAML,
            Self::Ini => &INI,
            Self::Properties => &PROPERTIES,
            Self::Xml => &XML,
            Self::Hcl => &HCL,
            Self::Text => &PLAIN,
            Self::OctetStream => &OCTETS,
        }
    }
}

impl fmt::Display for PayloadType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl serde::Serialize for PayloadType {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Synonymous extensions and media types. The first of each list is canonical.
struct Row {
    payload_type: PayloadType,
    extensions: &'static [&'static str],
    media_types: &'static [&'static str],
}

const fn row(
    payload_type: PayloadType,
    extensions: &'static [&'static str],
    media_types: &'static [&'static str],
) -> Row {
    Row { payload_type, extensions, media_types }
}

static JSON: Row = row(PayloadType::Json, &[".json"], &["application/json"]);
static YAML: Row = row(
    PayloadType::Yaml,
    &[".yaml", ".yml"],
    &["application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml"],
);
static INI: Row = row(PayloadType::Ini, &[".ini"], &["application/ini", "text/ini"]);
static PROPERTIES: Row = row(
    PayloadType::Properties,
    &[".properties", ".props"],
    &["text/x-java-properties", "text/properties", "application/properties"],
);
static XML: Row = row(PayloadType::Xml, &[".xml"], &["application/xml", "text/xml"]);
static HCL: Row = row(PayloadType::Hcl, &[".hcl"], &["application/hcl", "text/hcl"]);
static PLAIN: Row = row(PayloadType::Text, &[".txt", ".text"], &["text/plain"]);
static CSV: Row = row(PayloadType::Text, &[".csv"], &["text/csv"]);
static HTML: Row = row(PayloadType::Text, &[".html", ".htm"], &["text/html"]);
static CSS: Row = row(PayloadType::Text, &[".css"], &["text/css"]);
static JAVASCRIPT: Row = row(
    PayloadType::Text,
    &[".js"],
    &["text/javascript", "application/javascript", "application/x-javascript"],
);
static OCTETS: Row = row(PayloadType::OctetStream, &[".bin"], &["application/octet-stream"]);

static ROWS: [&Row; 12] =
    [&JSON, &YAML, &INI, &PROPERTIES, &XML, &HCL, &PLAIN, &CSV, &HTML, &CSS, &JAVASCRIPT, &OCTETS];

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

    /// Completes a partial description. The first of these that applies decides: a known extension without type and
    /// media type, a known media type, the payload type, an unknown extension, plain bytes. The given extension stays
    /// unless it belongs to another type. Blank texts and unknown media types are ignored.
    pub fn normalise(
        payload_type: Option<&str>,
        media_type: Option<&str>,
        extension: Option<&str>,
    ) -> Result<Self, PayloadError> {
        let given = |text: Option<&'_ str>| text.is_some_and(|text| !text.trim().is_empty());
        let by_media_type = media_type.and_then(Self::from_media_type);
        let base = match (by_media_type, payload_type.filter(|_| given(payload_type))) {
            (Some(descriptor), _) => Some(descriptor),
            (None, Some(name)) => Some(Self::of(
                PayloadType::parse_name(name)
                    .ok_or_else(|| PayloadError::UnsupportedType(name.trim().to_owned()))?,
            )),
            (None, None) => None,
        };
        let extension = extension.filter(|_| given(extension));
        Ok(match (base, extension) {
            (Some(base), None) => base,
            (Some(base), Some(extension)) => base.keeping(with_dot(extension)),
            (None, Some(extension)) => Self::from_extension(extension),
            (None, None) => Self::of(PayloadType::OctetStream),
        })
    }

    fn of_row(row: &'static Row) -> Self {
        Self {
            payload_type: row.payload_type,
            media_type: row.media_types[0],
            extension: Cow::Borrowed(row.extensions[0]),
        }
    }

    fn keeping(self, extension: String) -> Self {
        match row_of_extension(&extension) {
            Some(row) if row.payload_type != self.payload_type => self,
            _ => self.with_extension(extension),
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

fn row_of_extension(extension: &str) -> Option<&'static Row> {
    ROWS.into_iter().find(|row| row.extensions.iter().any(|known| known.eq_ignore_ascii_case(extension)))
}

#[cfg(test)]
mod tests;

//! The payload types with their names, media types and extensions.

use serde::Serialize;
use strum::{Display, IntoStaticStr};

/// A payload format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Display, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
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
    pub fn name(self) -> &'static str {
        self.into()
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
    pub(super) fn row(self) -> &'static Row {
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

/// Synonymous extensions and media types. The first of each list is canonical.
pub(super) struct Row {
    pub payload_type: PayloadType,
    pub extensions: &'static [&'static str],
    pub media_types: &'static [&'static str],
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
pub(super) static OCTETS: Row = row(PayloadType::OctetStream, &[".bin"], &["application/octet-stream"]);

pub(super) static ROWS: [&Row; 12] =
    [&JSON, &YAML, &INI, &PROPERTIES, &XML, &HCL, &PLAIN, &CSV, &HTML, &CSS, &JAVASCRIPT, &OCTETS];

pub(super) fn row_of_extension(extension: &str) -> Option<&'static Row> {
    ROWS.into_iter().find(|row| row.extensions.iter().any(|known| known.eq_ignore_ascii_case(extension)))
}

//! `bundle.yaml`, the manifest of a bundle.

use semver::Version;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use url::Url;

use super::Constraint;
use crate::metadata::document::DocumentError;
use crate::payload::PayloadType;
use crate::payload::fields::{Field, FieldError, parsed, read_document};

/// The only `apiVersion` of manifests.
pub const API_VERSION: &str = "declarest.io/v1alpha1";
/// The only `kind` of manifests.
pub const KIND: &str = "MetadataBundle";

/// A manifest. Keys that only describe the bundle to users are accepted and ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The bundle's name: one path segment.
    pub name: String,
    /// The bundle's version.
    pub version: Version,
    /// The purpose of the bundle.
    pub description: String,
    /// Whether its authors deprecated it.
    pub deprecated: bool,
    /// The directory of the metadata tree, relative to the bundle, separated by `/`; never the bundle itself.
    pub metadata_root: String,
    /// The location of the server's `OpenAPI` document.
    pub openapi: Option<OpenApiSource>,
    /// The versions of `DeclaREST` that support the bundle.
    pub compatible_declarest: Option<Constraint>,
    /// The server that the bundle describes.
    pub compatible_managed_server: Option<ManagedServerVersions>,
}

/// `declarest.openapi`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenApiSource {
    /// A file relative to the bundle, separated by `/`.
    File(String),
    /// An http or https URL.
    Url(Url),
}

/// `declarest.compatibleManagedServer`. It is not checked against a server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManagedServerVersions {
    /// The product, in lower case with digits and dashes.
    #[serde(deserialize_with = "product")]
    pub product: String,
    /// Its versions.
    pub versions: Constraint,
}

impl Manifest {
    /// Reads a manifest from YAML. Unknown keys, duplicate keys and malformed values are errors that name their
    /// location.
    pub fn decode(bytes: &[u8]) -> Result<Self, DocumentError> {
        let root = read_document(PayloadType::Yaml, bytes)?.ok_or_else(|| {
            DocumentError::invalid(
                "the document",
                "is empty; a manifest requires apiVersion, kind, name, version and description",
            )
        })?;
        Ok(root.decode::<ManifestFields>(rules)?.into())
    }
}

/// A manifest as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[expect(dead_code, reason = "some keys are only checked, and others only describe the bundle to users")]
struct ManifestFields {
    #[serde(deserialize_with = "api_version")]
    api_version: (),
    #[serde(deserialize_with = "kind")]
    kind: (),
    #[serde(deserialize_with = "bare_name")]
    name: String,
    #[serde(deserialize_with = "semantic_version")]
    version: Version,
    #[serde(deserialize_with = "filled_text")]
    description: String,
    #[serde(default)]
    deprecated: bool,
    maintainers: Option<Vec<Maintainer>>,
    distribution: Option<Distribution>,
    declarest: DeclarestSection,
    home: Option<IgnoredAny>,
    sources: Option<IgnoredAny>,
    keywords: Option<IgnoredAny>,
    license: Option<IgnoredAny>,
    icon: Option<IgnoredAny>,
    annotations: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[expect(dead_code, reason = "some keys are only checked")]
struct DeclarestSection {
    #[serde(deserialize_with = "directory")]
    metadata_root: String,
    openapi: Option<OpenApiSource>,
    compatible_declarest: Option<Constraint>,
    compatible_managed_server: Option<ManagedServerVersions>,
    compatible_managed_service: Option<ManagedServerVersions>,
    shorthand: Option<String>,
    #[serde(default, deserialize_with = "bare_name")]
    metadata_file_name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[expect(dead_code, reason = "one key is checked, and others only describe the bundle to users")]
struct Distribution {
    artifact_template: Option<String>,
    repo: Option<IgnoredAny>,
    tag_template: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "all keys only describe the bundle to users")]
struct Maintainer {
    name: Option<IgnoredAny>,
    email: Option<IgnoredAny>,
    url: Option<IgnoredAny>,
}

impl From<ManifestFields> for Manifest {
    fn from(written: ManifestFields) -> Self {
        let declarest = written.declarest;
        Self {
            name: written.name,
            version: written.version,
            description: written.description,
            deprecated: written.deprecated,
            metadata_root: declarest.metadata_root,
            openapi: declarest.openapi,
            compatible_declarest: declarest.compatible_declarest,
            compatible_managed_server: declarest
                .compatible_managed_server
                .or(declarest.compatible_managed_service),
        }
    }
}

/// Checks keys, and the rules that concern several of them.
fn rules(section: &str, object: &Field, known: &'static [&'static str]) -> Result<(), FieldError> {
    object.check_keys(known)?;
    match section {
        "ManifestFields" => {
            // A file of another kind is recognised by this key.
            if object.member("apiVersion").is_none() {
                return Err(object.fail("\"apiVersion\" is missing"));
            }
            let name = object.member_text("name").unwrap_or_default().trim();
            matches(object, "declarest", "shorthand", name)?;
            matches(object, "distribution", "artifactTemplate", &format!("{name}-{{version}}.tar.gz"))
        }
        "DeclarestSection" => {
            let names = ["compatibleManagedServer", "compatibleManagedService"];
            if names.iter().all(|key| object.member(key).is_some()) {
                return Err(object.fail(
                    "compatibleManagedService is another name for compatibleManagedServer; keep one of them",
                ));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Checks that the text of a member of `section` is `wanted`, if it is stated.
fn matches(object: &Field, section: &str, key: &str, wanted: &str) -> Result<(), FieldError> {
    let Some(field) = object.member(section).and_then(|section| section.member(key)) else { return Ok(()) };
    let text = field.scalar_text().unwrap_or(wanted);
    exactly(text, wanted).map_err(|reason| field.fail(reason))
}

fn api_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    parsed(deserializer, |text| exactly(text, API_VERSION))
}

fn kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    parsed(deserializer, |text| exactly(text, KIND))
}

fn bare_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    parsed(deserializer, name)
}

fn semantic_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Version, D::Error> {
    parsed(deserializer, version)
}

fn filled_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    parsed(deserializer, not_blank)
}

fn directory<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    parsed(deserializer, |text| match relative(text)? {
        root if root.is_empty() => Err("must be a directory below the bundle, not the bundle".to_owned()),
        root => Ok(root),
    })
}

fn product<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    parsed(deserializer, |text| match text.trim() {
        product if is_product(product) => Ok(product.to_owned()),
        _ => Err(format!(
            "\"{text}\" is not a product name; use lower case letters, digits and \"-\", but not \"-\" first"
        )),
    })
}

impl<'de> Deserialize<'de> for Constraint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(deserializer, Self::parse)
    }
}

impl<'de> Deserialize<'de> for OpenApiSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(deserializer, openapi)
    }
}

/// Parses a version; a leading `v` is ignored.
pub(super) fn version(text: &str) -> Result<Version, String> {
    let plain = text.trim();
    let plain = plain.strip_prefix('v').unwrap_or(plain);
    Version::parse(plain)
        .map_err(|_| format!("\"{text}\" is not a semantic version; write major.minor.patch, such as 1.2.0"))
}

/// Returns whether the text is a product name: `^[a-z0-9][a-z0-9-]*$`.
pub(super) fn is_product(text: &str) -> bool {
    !text.starts_with('-')
        && !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

fn openapi(text: &str) -> Result<OpenApiSource, String> {
    if let Some((scheme, _)) = text.split_once("://") {
        return match Url::parse(text.trim()) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(OpenApiSource::Url(url)),
            _ => Err(format!(
                "a URL of the scheme \"{scheme}\" is not supported; use a file or an http(s) URL"
            )),
        };
    }
    match relative(text)? {
        file if file.is_empty() => Err("must be a file inside of the bundle".to_owned()),
        file => Ok(OpenApiSource::File(file)),
    }
}

/// Returns a path inside of the bundle without empty and `.` segments; it is empty for the bundle itself.
fn relative(text: &str) -> Result<String, String> {
    let text = text.trim();
    let segments: Vec<&str> = text.split('/').filter(|segment| !matches!(*segment, "" | ".")).collect();
    if text.starts_with('/') || text.contains(['\\', '\0']) || segments.contains(&"..") {
        return Err(format!("\"{text}\" must be a relative path inside of the bundle"));
    }
    Ok(segments.join("/"))
}

/// Parses one path segment.
fn name(text: &str) -> Result<String, String> {
    let name = not_blank(text)?;
    if matches!(name.as_str(), "." | "..") || name.contains(['/', '\\']) || name.contains(char::is_control) {
        return Err(format!("\"{text}\" must be a bare name, without directories"));
    }
    Ok(name)
}

fn not_blank(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() { Err("must not be blank".to_owned()) } else { Ok(text.to_owned()) }
}

fn exactly(text: &str, wanted: &str) -> Result<(), String> {
    if text.trim() == wanted { Ok(()) } else { Err(format!("\"{text}\" must be \"{wanted}\"")) }
}

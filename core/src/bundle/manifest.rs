//! `bundle.yaml`, the manifest of a bundle.

use semver::Version;
use url::Url;

use super::Constraint;
use crate::metadata::document::DocumentError;
use crate::payload::PayloadType;
use crate::payload::fields::{Field, FieldError, Fields, read_document};

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedServerVersions {
    /// The product, in lower case with digits and dashes.
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
        Ok(Self::read(root)?)
    }

    fn read(root: Field) -> Result<Self, FieldError> {
        let mut fields = root.fields(&[
            "apiVersion",
            "kind",
            "name",
            "version",
            "description",
            "deprecated",
            "declarest",
            "distribution",
            "home",
            "sources",
            "keywords",
            "maintainers",
            "license",
            "icon",
            "annotations",
        ])?;
        fields.require("apiVersion", |field| field.parsed(|text| exactly(text, API_VERSION)))?;
        fields.require("kind", |field| field.parsed(|text| exactly(text, KIND)))?;
        let name = fields.require("name", |field| field.parsed(name))?;
        let version = fields.require("version", |field| field.parsed(version))?;
        let description = fields.require("description", |field| field.parsed(not_blank))?;
        let deprecated = fields.read("deprecated", Field::boolean)?.unwrap_or_default();
        fields.read("maintainers", maintainers)?;
        fields.read("distribution", |field| distribution(field, &name))?;
        let (metadata_root, openapi, compatible_declarest, compatible_managed_server) =
            fields.require("declarest", |field| declarest(field, &name))?;
        Ok(Self {
            name,
            version,
            description,
            deprecated,
            metadata_root,
            openapi,
            compatible_declarest,
            compatible_managed_server,
        })
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

/// The values of `declarest`: metadataRoot, openapi, compatibleDeclarest, compatibleManagedServer.
type Declarest = (String, Option<OpenApiSource>, Option<Constraint>, Option<ManagedServerVersions>);

fn declarest(field: Field, bundle: &str) -> Result<Declarest, FieldError> {
    let mut fields = field.fields(&[
        "metadataRoot",
        "openapi",
        "compatibleDeclarest",
        "compatibleManagedServer",
        "compatibleManagedService",
        "shorthand",
        "metadataFileName",
    ])?;
    let metadata_root = fields.require("metadataRoot", |field| {
        field.parsed(|text| {
            let root = relative(text)?;
            if root.is_empty() {
                Err("must be a directory below the bundle, not the bundle".to_owned())
            } else {
                Ok(root)
            }
        })
    })?;
    fields.read("shorthand", |field| field.parsed(|text| exactly(text, bundle)))?;
    fields.read("metadataFileName", |field| field.parsed(name))?;
    let openapi = fields.read("openapi", |field| field.parsed(openapi))?;
    let constraint = fields.read("compatibleDeclarest", |field| field.parsed(Constraint::parse))?;
    Ok((metadata_root, openapi, constraint, compatible_managed_server(&mut fields)?))
}

fn compatible_managed_server(fields: &mut Fields) -> Result<Option<ManagedServerVersions>, FieldError> {
    let server = fields.read("compatibleManagedServer", managed_server_versions)?;
    let service = fields.read("compatibleManagedService", managed_server_versions)?;
    if server.is_some() && service.is_some() {
        return Err(fields
            .fail("compatibleManagedService is another name for compatibleManagedServer; keep one of them"));
    }
    Ok(server.or(service))
}

fn managed_server_versions(field: Field) -> Result<ManagedServerVersions, FieldError> {
    let mut fields = field.fields(&["product", "versions"])?;
    Ok(ManagedServerVersions {
        product: fields.require("product", |field| {
            field.parsed(|text| {
                let product = text.trim();
                if is_product(product) {
                    return Ok(product.to_owned());
                }
                Err(format!(
                    "\"{text}\" is not a product name; use lower case letters, digits and \"-\", but not \"-\" first"
                ))
            })
        })?,
        versions: fields.require("versions", |field| field.parsed(Constraint::parse))?,
    })
}

fn distribution(field: Field, bundle: &str) -> Result<(), FieldError> {
    let mut fields = field.fields(&["artifactTemplate", "repo", "tagTemplate"])?;
    let template = format!("{bundle}-{{version}}.tar.gz");
    fields.read("artifactTemplate", |field| field.parsed(|text| exactly(text, &template)))?;
    Ok(())
}

fn maintainers(field: Field) -> Result<(), FieldError> {
    for item in field.items()? {
        item.fields(&["name", "email", "url"])?;
    }
    Ok(())
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

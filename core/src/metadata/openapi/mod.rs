//! The `OpenAPI` document of a managed server: its paths, media types and schemas.
//!
//! Versions 3.0 and 3.1 are supported, and Swagger 2.0 is converted to 3. A document is parsed once; lookups do not
//! parse. Documents are not trusted: reads and lookups are bounded and never panic. Errors in parts that are not used
//! have no effect.
//!
//! ```
//! use declarest_core::metadata::document::OperationName;
//! use declarest_core::metadata::openapi::OpenApi;
//!
//! let document = OpenApi::parse(br#"{"openapi": "3.0.3", "paths": {
//!     "/shops/{shopId}": {"get": {}, "patch": {"requestBody": {"content": {"application/json": {}}}}}
//! }}"#)?;
//! let shop = document.path("/shops/rio", "/").ok_or("no such path")?;
//! let method = shop.default_method(OperationName::Update).ok_or("no such operation")?;
//! assert_eq!(method, "PATCH");
//! assert_eq!(shop.require(method)?.request_media_type(None), Some("application/json"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod attributes;
mod convert;
mod error;
mod operation;
mod parameters;
mod paths;
mod read;
mod reference;
pub mod schema;
mod segment;
mod servers;

use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::digest::sha256;
use crate::memory::Share;
use crate::payload::pointer::Pointer;
use crate::payload::{MAX_WEIGHT, Object, PayloadType, Value};

pub(in crate::metadata) use attributes::only;
pub use error::OpenApiError;
pub use operation::{ApiOperation, Media};
pub use paths::PathItem;
pub use reference::ReferenceError;
pub use segment::Segment;

use paths::Paths;

/// An indexed document.
#[derive(Clone, Debug)]
pub struct OpenApi {
    root: Arc<Value>,
    paths: Paths,
    prefixes: Vec<String>,
    /// Whether keywords next to a `$ref` apply. They do since 3.1, which uses JSON Schema 2020-12.
    siblings_count: bool,
    digest: String,
    #[expect(dead_code, reason = "held until the document is dropped")]
    held: Share,
}

impl OpenApi {
    /// Parses a document as JSON, otherwise as YAML. Fails with [`OpenApiError::Syntax`], [`OpenApiError::NotAnObject`] or
    /// [`OpenApiError::Unknown`].
    pub fn parse(bytes: &[u8]) -> Result<Self, OpenApiError> {
        Self::parse_within(bytes, MAX_WEIGHT)
    }

    /// Like [`OpenApi::parse`], but fails with [`OpenApiError::TooHeavy`] if the document needs more than `limit` bytes of
    /// memory.
    pub(crate) fn parse_within(bytes: &[u8], limit: usize) -> Result<Self, OpenApiError> {
        let mut root = read::document(bytes, limit)?;
        // Some servers answer each unknown path with other JSON, such as that of a login page.
        if !["openapi", "swagger", "paths"].iter().any(|member| root.contains_key(*member)) {
            return Err(OpenApiError::Unknown);
        }
        let version_2 = convert::is_version_2(&root);
        if version_2 {
            root = convert::upgrade(root);
        }
        let siblings_count = !version_2 && !is_version_3_0(&root);
        let root = Arc::new(Value::Object(root));
        let digest = sha256(Sha256::new_with_prefix(bytes));
        let (paths, prefixes) = (Paths::read(&root), servers::prefixes(&root));
        Ok(Self { root, paths, prefixes, siblings_count, digest, held: Share::default() })
    }

    /// Returns the approximate memory of the document in bytes.
    pub(crate) fn weight(&self) -> usize {
        self.root.weight()
    }

    /// Returns the document, which holds a share of memory.
    pub(crate) fn holding(self, held: Share) -> Self {
        Self { held, ..self }
    }

    /// Returns the document with paths relative to `base`, the path of the server's base URL. They are already if `servers`
    /// or `basePath` states this path, or if a path does not begin with it.
    pub fn below(self: Arc<Self>, base: &str) -> Arc<Self> {
        let base = base.trim_end_matches('/');
        if self.prefixes.iter().any(|prefix| prefix == base) {
            return self;
        }
        let stated = self.prefixes.iter().map(String::as_str).chain([""]);
        let mut repeated = stated.filter_map(|prefix| base.strip_prefix(prefix));
        let relative = repeated.find_map(|repeated| self.paths.without(repeated));
        relative.map_or_else(|| Arc::clone(&self), |paths| Arc::new(Self { paths, ..Self::clone(&self) }))
    }

    /// `sha256:` and the digest of the bytes of the document.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Returns the path item for a request. `request` is its unencoded path below the base URL, `base` the path of that
    /// URL.
    ///
    /// Documents have paths with or without the base path, so these are tried in order: the path of the request, the
    /// path with that of the base URL in front, and both without the prefix of `basePath` or `servers`. Each is looked
    /// up literally, then by segments: the template with the fewest variables applies, then the first by text.
    pub fn path(&self, request: &str, base: &str) -> Option<&PathItem> {
        let full = format!("{}{request}", base.trim_end_matches('/'));
        let stripped = self.prefixes.iter().flat_map(|prefix| {
            [servers::strip(&full, prefix), servers::strip(request, prefix)].into_iter().flatten()
        });
        [request, &full].into_iter().chain(stripped).find_map(|path| self.paths.find(path))
    }

    /// Returns the path item with exactly this template.
    pub fn exact_path(&self, template: &str) -> Option<&PathItem> {
        self.paths.exact(template)
    }

    /// All paths, sorted by the number of variables, then by text.
    pub fn paths(&self) -> impl Iterator<Item = &PathItem> {
        self.paths.iter()
    }

    /// Returns the paths with this number of segments, in the order of [`Self::paths`].
    pub fn paths_with_length(&self, segments: usize) -> impl Iterator<Item = &PathItem> {
        self.paths.with_length(segments)
    }

    /// Returns whether a schema is a string with `format: binary`.
    pub fn is_binary(&self, schema: &Pointer) -> bool {
        let Ok(part) = reference::follow(&self.root, schema.clone()) else { return false };
        let keyword = |name| part.value.get(name).and_then(Value::as_str);
        keyword("type") == Some("string") && keyword("format") == Some("binary")
    }

    /// Returns the payload type of a media type of the document, if it is known.
    pub fn payload_type(&self, media: &Media) -> Option<PayloadType> {
        let binary = media.schema.as_ref().is_some_and(|schema| self.is_binary(schema));
        if binary { Some(PayloadType::OctetStream) } else { media.payload_type }
    }
}

fn is_version_3_0(root: &Object) -> bool {
    match root.get("openapi") {
        Some(Value::String(version)) => version == "3" || version == "3.0" || version.starts_with("3.0."),
        Some(Value::Int(3)) => true,
        Some(Value::Float(version)) => version.to_bits() == 3.0_f64.to_bits(),
        _ => false,
    }
}

#[cfg(test)]
mod tests;

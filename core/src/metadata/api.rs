//! The `OpenAPI` document of a server as rules use it.

use std::sync::Arc;

use super::openapi::{OpenApi, PathItem};

/// A document, and where in it the base URL of the server stands.
#[derive(Debug)]
pub struct Api {
    pub(super) document: Arc<OpenApi>,
    base: String,
}

impl Api {
    /// The document of the server whose base URL has the path `base`.
    pub fn new(document: Arc<OpenApi>, base: impl Into<String>) -> Self {
        Self { document, base: base.into() }
    }

    /// The document.
    pub fn document(&self) -> &OpenApi {
        &self.document
    }

    /// What the document says about a path below the base URL.
    pub(super) fn path(&self, request: &str) -> Option<&PathItem> {
        self.document.path(request, &self.base)
    }
}

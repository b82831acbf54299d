//! The `OpenAPI` document of a server, looked up by paths below the server's base URL.

use std::sync::Arc;

use super::openapi::{OpenApi, PathItem};

/// An `OpenAPI` document, and the path of the server's base URL.
#[derive(Debug)]
pub struct Api {
    pub(super) document: Arc<OpenApi>,
    base: String,
}

impl Api {
    /// Returns the document of the server whose base URL has the path `base`. Its paths become relative to this URL.
    pub fn new(document: Arc<OpenApi>, base: impl Into<String>) -> Self {
        let base = base.into();
        Self { document: document.below(&base), base }
    }

    /// The document.
    pub fn document(&self) -> &OpenApi {
        &self.document
    }

    /// Returns the path item for a path below the base URL.
    pub(super) fn path(&self, request: &str) -> Option<&PathItem> {
        self.document.path(request, &self.base)
    }
}

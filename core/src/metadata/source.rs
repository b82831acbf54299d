//! Sources of metadata documents. A source reads and checks each document once.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::MetadataError;
use super::document::{self, Document, DocumentError, IncludeError};
use crate::path::{LogicalPath, Selector};
use crate::payload::{Descriptor, Value, decode};
use crate::repository::{MetadataDocument, MetadataFiles, RepositoryError, Tree};

/// One tree of metadata documents: the repository itself, or a shared one such as a bundle.
pub struct Source {
    tree: Arc<dyn Tree>,
    label: Option<String>,
    files: MetadataFiles,
    read: Mutex<HashMap<Arc<str>, Parsed>>,
}

/// The result of reading a document. All resources that it governs share its error.
type Parsed = Result<Arc<Document>, Arc<DocumentError>>;

impl Source {
    /// Returns a source of the documents in the repository that declares the resources.
    pub fn repository(tree: Arc<dyn Tree>) -> Self {
        Self { tree, label: None, files: MetadataFiles::default(), read: Mutex::default() }
    }

    /// Returns a source that several repositories share, such as a bundle. Messages call it `label`.
    pub fn shared(tree: Arc<dyn Tree>, label: impl Into<String>) -> Self {
        Self { label: Some(label.into()), ..Self::repository(tree) }
    }

    /// Returns whether several repositories share these documents.
    pub(super) fn is_shared(&self) -> bool {
        self.label.is_some()
    }

    /// Returns the documents that may govern `path`, in merge order.
    pub(super) fn documents(&self, path: &LogicalPath) -> Result<Vec<MetadataDocument>, MetadataError> {
        self.files
            .documents(self.tree.as_ref(), path)
            .map_err(|source| MetadataError::Lookup { path: path.clone(), source })
    }

    /// Reads and checks a document, and caches the result.
    pub(super) fn document(&self, file: &Arc<str>) -> Result<Arc<Document>, MetadataError> {
        let known = self.read.lock().get(file).cloned();
        let parsed = if let Some(known) = known {
            known
        } else {
            let parsed = self.parse(file)?;
            let mut read = self.read.lock();
            read.insert(Arc::clone(file), parsed.clone());
            parsed
        };
        parsed.map_err(|source| MetadataError::Document { file: self.shown(file), source })
    }

    fn parse(&self, file: &str) -> Result<Parsed, MetadataError> {
        // An empty document would apply the conventions to all resources that this one governs.
        let read = self.tree.read(file).and_then(|content| content.ok_or_else(|| vanished(file)));
        let content = read.map_err(|source| MetadataError::Read { file: self.shown(file), source })?;
        let format = Descriptor::from_extension(extension(file)).payload_type;
        let document = document::read(format, &content, is_of_collection(file));
        Ok(document.map(Arc::new).map_err(Arc::new))
    }

    /// Returns an error in the document `file`, with its location in the file.
    pub(super) fn fault(&self, file: &str, error: DocumentError) -> MetadataError {
        let content = self.tree.read(file).ok().flatten().unwrap_or_default();
        let format = Descriptor::from_extension(extension(file)).payload_type;
        MetadataError::Document { file: self.shown(file), source: Arc::new(error.located(format, &content)) }
    }

    /// Returns the document of exactly this selector, if there is one.
    pub(super) fn stored(&self, selector: &Selector) -> Result<Option<Arc<Document>>, MetadataError> {
        let stem = selector.document_stem();
        for extension in ["yaml", "json"] {
            let file: Arc<str> = format!("{stem}.{extension}").into();
            let read = self.tree.read(&file);
            let content = read.map_err(|source| MetadataError::Read { file: self.shown(&file), source })?;
            if content.is_some() {
                return self.document(&file).map(Some);
            }
        }
        Ok(None)
    }

    /// Returns the content of the defaults file `name` next to the document `file`.
    pub(super) fn include(&self, file: &str, name: &str) -> Result<Value, IncludeError> {
        let included = match file.rsplit_once('/') {
            Some((directory, _)) => format!("{directory}/{name}"),
            None => name.to_owned(),
        };
        let content = self.tree.read(&included)?.ok_or_else(|| format!("{included} does not exist"))?;
        Ok(decode(Descriptor::from_extension(extension(name)).payload_type, &content)?)
    }

    /// Returns the literal names of collections below `path`.
    pub(super) fn child_collections(&self, path: &LogicalPath) -> Result<Vec<String>, RepositoryError> {
        self.files.child_collections(self.tree.as_ref(), path)
    }

    /// Returns the literal names of directories below `path` itself.
    pub(super) fn own_child_collections(&self, path: &LogicalPath) -> Result<Vec<String>, RepositoryError> {
        self.files.own_child_collections(self.tree.as_ref(), path)
    }

    /// Returns whether a directory `_` exists for the children of `path`.
    pub(super) fn has_wildcard_child(&self, path: &LogicalPath) -> Result<bool, RepositoryError> {
        self.files.has_wildcard_child(self.tree.as_ref(), path)
    }

    /// Returns the name of `file` in messages.
    pub(super) fn shown(&self, file: &str) -> String {
        self.label.as_ref().map_or_else(|| file.to_owned(), |label| format!("{label}: {file}"))
    }
}

fn vanished(file: &str) -> RepositoryError {
    RepositoryError::Vanished(file.to_owned())
}

fn extension(file: &str) -> &str {
    file.rsplit_once('.').map_or("", |(_, extension)| extension)
}

/// Returns whether `file` is the document of a collection, which also governs its members.
pub(super) fn is_of_collection(file: &str) -> bool {
    file.rsplit('/').nth(1) == Some("_")
}

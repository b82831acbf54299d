//! Finds and compiles the rules that govern a path.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;

use super::document::{Document, DocumentError, Layers};
use super::{Api, MetadataError, Rules, Source, source};
use crate::language::jq::ProgramCache;
use crate::path::{LogicalPath, Selector};
use crate::payload::{Object, Value};
use crate::repository::{MetadataReach, RepositoryError, Tree};

/// The rules of one revision. They are compiled once for each set of documents, and shared by all paths that the set
/// governs. The returned `Arc`s stay valid after this value is dropped.
pub struct Metadata {
    sources: Vec<Arc<Source>>,
    compiled: Mutex<HashMap<Vec<Applied>, Arc<Rules>>>,
    programs: Arc<ProgramCache>,
    api: Option<Arc<Api>>,
    overrides: Document,
}

/// A document that applies to a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Applied {
    /// The index of its source.
    source: usize,
    file: Arc<str>,
    /// The number of segments of the collection that the document matched, if the document also applies to
    /// descendants.
    descendants: Option<usize>,
}

impl Metadata {
    /// Returns the metadata of the documents in `tree`.
    pub fn new(tree: Arc<dyn Tree>) -> Self {
        Self::layered(vec![Arc::new(Source::repository(tree))])
    }

    /// Returns the metadata of `sources`; later ones take precedence. A source that is independent of the revision can
    /// be shared by several values.
    pub fn layered(sources: Vec<Arc<Source>>) -> Self {
        Self {
            sources,
            compiled: Mutex::default(),
            programs: Arc::default(),
            api: None,
            overrides: Document::default(),
        }
    }

    /// Adds the `OpenAPI` document of the server. Methods, media types and schemas that metadata does not state come
    /// from `api`.
    #[must_use]
    pub fn with_api(self, api: Arc<Api>) -> Self {
        Self { api: Some(api), compiled: Mutex::default(), ..self }
    }

    /// Sets `overrides`, which take precedence over all documents for every path. They cannot include files.
    #[must_use]
    pub fn with_overrides(self, overrides: Document) -> Self {
        Self { overrides, compiled: Mutex::default(), ..self }
    }

    /// Returns the same metadata with the documents of `tree` instead of those of the repository, to find the rules of
    /// another revision.
    #[must_use]
    pub fn of(&self, tree: Arc<dyn Tree>) -> Self {
        let shared = self.sources.iter().filter(|source| source.is_shared()).cloned();
        Self {
            sources: shared.chain([Arc::new(Source::repository(tree))]).collect(),
            compiled: Mutex::default(),
            programs: Arc::clone(&self.programs),
            api: self.api.clone(),
            overrides: self.overrides.clone(),
        }
    }

    /// The `OpenAPI` document of the server, if there is one.
    pub fn api(&self) -> Option<&Api> {
        self.api.as_deref()
    }

    /// Returns the rules that govern `path`, a resource or a collection. An invalid document fails all paths that it
    /// governs. Blocks while it looks for documents.
    pub fn rules(&self, path: &LogicalPath) -> Result<Arc<Rules>, MetadataError> {
        let applied = self.applied(path)?;
        let known = self.compiled.lock().get(&applied).cloned();
        if let Some(rules) = known {
            return Ok(rules);
        }
        // Compile without the lock: two threads may compile the same rules, and the first result is kept.
        let rules = Arc::new(self.compile(path, &applied)?);
        let mut compiled = self.compiled.lock();
        Ok(Arc::clone(compiled.entry(applied).or_insert(rules)))
    }

    /// Returns the documents of exactly this selector, from low to high precedence. Blocks.
    pub fn stored(&self, selector: &Selector) -> Result<Vec<Arc<Document>>, MetadataError> {
        let found = self.sources.iter().map(|source| source.stored(selector));
        found.filter_map(Result::transpose).collect()
    }

    /// Checks that documents define the profiles of defaults that `path` selects, if `document` replaces that of
    /// `selector`. Blocks.
    pub fn check_profiles(
        &self,
        path: &LogicalPath,
        selector: &Selector,
        document: &Document,
    ) -> Result<(), MetadataError> {
        let applied = self.applied(path)?;
        let stem = selector.document_stem();
        let is_replaced = |found: &Applied| found.file.rsplit_once('.').is_some_and(|(name, _)| name == stem);
        let replaced = applied.iter().rposition(is_replaced);
        // The values of profiles have no effect on the selection, so included files are not read.
        let without_values = |_: &str| Ok(Value::Object(Object::new()));
        let conflict = |source| MetadataError::Layers { path: path.clone(), source: Arc::new(source) };
        let mut layers = Layers::default();
        for (place, found) in applied.iter().enumerate() {
            let stored = self.sources[found.source].document(&found.file)?;
            let layer = if Some(place) == replaced { document } else { &*stored };
            layers.push(layer, &without_values).map_err(conflict)?;
        }
        if replaced.is_none() && selector.matches(path) {
            layers.push(document, &without_values).map_err(conflict)?;
        }
        layers.resolve().map(drop).map_err(conflict)
    }

    /// Returns the literal names of collections below `path` for which metadata exists, sorted.
    pub fn child_collections(&self, path: &LogicalPath) -> Result<Vec<String>, MetadataError> {
        self.names(path, Source::child_collections)
    }

    /// Like [`Self::child_collections`], but without metadata whose directories match `path` by a wildcard.
    pub fn own_child_collections(&self, path: &LogicalPath) -> Result<Vec<String>, MetadataError> {
        self.names(path, Source::own_child_collections)
    }

    fn names(
        &self,
        path: &LogicalPath,
        of: fn(&Source, &LogicalPath) -> Result<Vec<String>, RepositoryError>,
    ) -> Result<Vec<String>, MetadataError> {
        let mut names = BTreeSet::new();
        for source in &self.sources {
            let found = of(source, path);
            names.extend(found.map_err(|source| MetadataError::Lookup { path: path.clone(), source })?);
        }
        Ok(names.into_iter().collect())
    }

    /// Returns whether metadata exists for children of `path` of any name.
    pub fn has_wildcard_child(&self, path: &LogicalPath) -> Result<bool, MetadataError> {
        for source in &self.sources {
            let found = source.has_wildcard_child(path);
            if found.map_err(|source| MetadataError::Lookup { path: path.clone(), source })? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns whether a document of the collection at `path` exists. Blocks.
    pub fn has_document(&self, path: &LogicalPath) -> Result<bool, MetadataError> {
        let depth = path.segments().count();
        for source in &self.sources {
            let mut documents = source.documents(path)?.into_iter();
            if documents.any(|found| found.depth == depth && source::is_of_collection(&found.file)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns whether `path` is a member of a collection: a document that states `id` or `alias` matches its last
    /// segment with `_`, and no such document matches the path as a collection. The document of the root does not
    /// count, because it applies to all paths. Blocks.
    pub fn binds(&self, path: &LogicalPath) -> Result<bool, MetadataError> {
        let depth = path.segments().count();
        let mut binds = false;
        for source in &self.sources {
            for found in source.documents(path)? {
                let of_collection = source::is_of_collection(&found.file) && found.depth > 0;
                if !of_collection || found.reach != MetadataReach::Direct {
                    continue;
                }
                let document = source.document(&found.file)?;
                let resource = document.resource.as_ref();
                if resource.is_none_or(|resource| resource.id.is_none() && resource.alias.is_none()) {
                    continue;
                }
                if found.depth == depth {
                    return Ok(false);
                }
                binds |= found.depth + 1 == depth;
            }
        }
        Ok(binds)
    }

    /// Returns the documents that apply to `path`, from low to high precedence.
    fn applied(&self, path: &LogicalPath) -> Result<Vec<Applied>, MetadataError> {
        let mut applied = Vec::new();
        for (place, source) in self.sources.iter().enumerate() {
            for found in source.documents(path)? {
                let document = source.document(&found.file)?;
                let reaches = document.reaches_descendants();
                if found.reach == MetadataReach::Direct || reaches {
                    let descendants = reaches.then_some(found.depth);
                    applied.push(Applied { source: place, file: found.file, descendants });
                }
            }
        }
        Ok(applied)
    }

    fn compile(&self, path: &LogicalPath, applied: &[Applied]) -> Result<Rules, MetadataError> {
        // Merge the documents, then the overrides.
        let mut layers = Layers::default();
        for document in applied {
            let source = &self.sources[document.source];
            let parsed = source.document(&document.file)?;
            layers
                .push(&parsed, &|name| source.include(&document.file, name))
                .map_err(|error| source.fault(&document.file, error))?;
        }
        let pushed = layers.push(&self.overrides, &|file| Err(format!("cannot include {file} here").into()));
        let resolved =
            pushed.and_then(|()| layers.resolve()).map_err(|error| self.unresolved(path, applied, error))?;
        // Compile the result, with the documents for messages.
        let documents = applied.iter().map(|document| {
            let source = &self.sources[document.source];
            Ok((source.shown(&document.file), source.document(&document.file)?))
        });
        let documents = documents.collect::<Result<Vec<_>, MetadataError>>()?;
        let descendants = applied.iter().filter_map(|document| document.descendants).max();
        Rules::compile(resolved, documents, descendants, Arc::clone(&self.programs), self.api.clone())
    }
}

impl Metadata {
    /// Returns the error for a conflict between the documents that apply to `path`. If the cause is an unknown
    /// profile, it names the last document that selects the profile.
    fn unresolved(&self, path: &LogicalPath, applied: &[Applied], error: DocumentError) -> MetadataError {
        let selects = |document: &&Applied| {
            let DocumentError::UnknownProfile { profile, .. } = &error else { return false };
            let parsed = self.sources[document.source].document(&document.file).ok();
            let defaults = parsed.as_ref().and_then(|parsed| parsed.resource.as_ref()?.defaults.as_ref());
            defaults
                .is_some_and(|defaults| defaults.use_profiles.iter().flatten().any(|name| name == profile))
        };
        match applied.iter().rev().find(selects) {
            Some(document) => self.sources[document.source].fault(&document.file, error),
            None => MetadataError::Layers { path: path.clone(), source: Arc::new(error) },
        }
    }
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
pub(super) mod tests;

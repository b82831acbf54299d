//! Finding and compiling the rules that govern a path.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use super::document::{Document, DocumentError, Layers};
use super::transform::ProgramCache;
use super::{Api, MetadataError, Rules, Source, source};
use crate::path::{LogicalPath, Selector};
use crate::repository::{MetadataReach, Tree};

/// The rules of one revision. They are compiled once for each set of documents that govern paths together,
/// and shared by all these paths; clones of the `Arc`s it hands out stay valid after it is gone.
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
    /// Which source it is from.
    source: usize,
    file: Arc<str>,
    /// Set if the document asks for descendants, and stands above or at the collection of the path: how
    /// many segments the collection has that it matched.
    descendants: Option<usize>,
}

impl Metadata {
    /// The metadata that `tree` holds.
    pub fn new(tree: Arc<dyn Tree>) -> Self {
        Self::layered(vec![Arc::new(Source::repository(tree))])
    }

    /// The metadata of `sources`, the later ones over the earlier ones. A source that outlives a revision can
    /// be shared by several of these.
    pub fn layered(sources: Vec<Arc<Source>>) -> Self {
        Self {
            sources,
            compiled: Mutex::default(),
            programs: Arc::default(),
            api: None,
            overrides: Document::default(),
        }
    }

    /// The same metadata for a server that describes itself: methods, media types and schemas that no
    /// document states come from `api`.
    #[must_use]
    pub fn with_api(self, api: Arc<Api>) -> Self {
        Self { api: Some(api), compiled: Mutex::default(), ..self }
    }

    /// The same metadata with `overrides` over all documents, whatever path they are for. It includes no
    /// files.
    #[must_use]
    pub fn with_overrides(self, overrides: Document) -> Self {
        Self { overrides, compiled: Mutex::default(), ..self }
    }

    /// The same metadata with the documents of `tree` in the place of those of this repository: what governed
    /// resources at another revision.
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

    /// What the server says about itself, if it does.
    pub fn api(&self) -> Option<&Api> {
        self.api.as_deref()
    }

    /// The rules where no document exists.
    pub fn conventions() -> Arc<Rules> {
        Arc::new(Rules::conventions())
    }

    /// The rules that govern `path`, a resource or a collection. Blocks while it looks for documents. An
    /// invalid document that applies fails all that it governs.
    pub fn rules(&self, path: &LogicalPath) -> Result<Arc<Rules>, MetadataError> {
        let applied = self.applied(path)?;
        let known = self.compiled.lock().unwrap_or_else(PoisonError::into_inner).get(&applied).cloned();
        if let Some(rules) = known {
            return Ok(rules);
        }
        // Not under the lock: two threads that compile the same rules do no harm.
        let rules = Arc::new(self.compile(path, &applied)?);
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Arc::clone(compiled.entry(applied).or_insert(rules)))
    }

    /// The documents of exactly this selector, from low to high precedence. Blocks.
    pub fn stored(&self, selector: &Selector) -> Result<Vec<Arc<Document>>, MetadataError> {
        let found = self.sources.iter().map(|source| source.stored(selector));
        found.filter_map(Result::transpose).collect()
    }

    /// The literal names of collections that metadata knows below `path`, sorted.
    pub fn child_collections(&self, path: &LogicalPath) -> Result<Vec<String>, MetadataError> {
        let mut names = BTreeSet::new();
        for source in &self.sources {
            let found = source.child_collections(path);
            names.extend(found.map_err(|source| MetadataError::Lookup { path: path.clone(), source })?);
        }
        Ok(names.into_iter().collect())
    }

    /// Whether metadata speaks about children of `path` whatever their names are.
    pub fn has_wildcard_child(&self, path: &LogicalPath) -> Result<bool, MetadataError> {
        for source in &self.sources {
            let found = source.has_wildcard_child(path);
            if found.map_err(|source| MetadataError::Lookup { path: path.clone(), source })? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether `path` is a member of a collection: the `_` of a document that states id or alias stands for its last
    /// segment, and that segment is not itself such a collection. The document of the root speaks about everything,
    /// so it does not count. Blocks.
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

    /// The documents that apply to `path`, from low to high precedence.
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
        let mut layers = Layers::default();
        for document in applied {
            let source = &self.sources[document.source];
            let parsed = source.document(&document.file)?;
            layers
                .push(&parsed, &|name| source.include(&document.file, name))
                .map_err(|error| source.fault(&document.file, error))?;
        }
        let pushed = layers.push(&self.overrides, &|file| Err(format!("{file} is not here").into()));
        let resolved =
            pushed.and_then(|()| layers.resolve()).map_err(|error| self.unresolved(path, applied, error))?;
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
    /// Why the documents that apply to `path` do not fit together; in the last one that selects the profile,
    /// if an unknown one is the reason.
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

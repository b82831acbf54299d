//! Declares secrets in metadata documents.

use std::collections::{BTreeMap, BTreeSet};

use super::AuthoringError;
use crate::metadata::Metadata;
use crate::metadata::document::Document;
use crate::path::{LogicalPath, Selector};
use crate::payload::pointer::Pointer;
use crate::repository::{DefaultsEdit, RepositoryError, Store};

/// A declaration of secrets that one metadata document has to contain.
#[derive(Debug)]
pub struct Declaration {
    selector: Selector,
    what: What,
}

#[derive(Debug)]
enum What {
    /// The whole resource is a secret.
    Whole,
    /// These attributes are secrets, in addition to those that the document already lists.
    Attributes(BTreeSet<Pointer>),
}

impl Declaration {
    /// Declares the resource at `path` as a secret as a whole.
    pub(super) fn whole(path: &LogicalPath) -> Result<Self, AuthoringError> {
        Ok(Self { selector: selector(path.as_str())?, what: What::Whole })
    }

    /// Declares these attributes of the resource at `path` as secret. It includes those that `metadata` already
    /// declares for the resource, because the list of a resource replaces the inherited list.
    pub fn attributes(
        metadata: &Metadata,
        path: &LogicalPath,
        mut attributes: BTreeSet<Pointer>,
    ) -> Result<Self, AuthoringError> {
        attributes.extend(metadata.rules(path)?.resolved().secret_attributes.iter().cloned());
        Ok(Self { selector: selector(path.as_str())?, what: What::Attributes(attributes) })
    }

    /// Writes the declaration to its document in `store`, the metadata directory. A document that already contains
    /// it is not written. Blocks.
    pub fn write(&self, store: &Store) -> Result<(), AuthoringError> {
        let before = stored(store, &self.selector)?;
        let mut document = before.clone();
        let resource = document.resource.get_or_insert_default();
        match &self.what {
            What::Whole => {
                resource.secret = Some(true);
                resource.secret_attributes = None;
            }
            What::Attributes(attributes) => {
                let stated = resource.secret_attributes.take().into_iter().flatten();
                let all: BTreeSet<Pointer> = stated.chain(attributes.iter().cloned()).collect();
                resource.secret_attributes = Some(all.into_iter().collect());
            }
        }
        if document == before {
            return Ok(());
        }
        document.validate(self.selector.is_collection()).map_err(|error| self.failed(&error))?;
        let yaml = document.encode_yaml().map_err(|error| self.failed(&error))?;
        store.write_metadata(&self.selector, &yaml, &DefaultsEdit::default())?;
        Ok(())
    }

    fn failed(&self, error: &dyn std::error::Error) -> AuthoringError {
        undeclarable(&self.selector, error)
    }
}

/// Returns the document of a selector in `store`, which is empty if there is no file.
pub(super) fn stored(store: &Store, selector: &Selector) -> Result<Document, AuthoringError> {
    match store.read_metadata(selector) {
        Ok(file) => Document::decode(file.format, &file.content)
            .map_err(|error| undeclarable(selector, &error.located(file.format, &file.content))),
        Err(RepositoryError::MetadataMissing(_)) => Ok(Document::default()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the error of metadata that cannot be added to the document of `selector`.
pub(super) fn undeclarable(selector: &Selector, error: &dyn std::error::Error) -> AuthoringError {
    AuthoringError::Declare { stem: selector.document_stem(), reason: error.to_string() }
}

/// Returns the declarations of the attributes that were `handled` in the resources of a batch. Without a
/// `collection`, each resource has its own. With one, the document of the collection declares them, and so does each
/// resource whose own list replaces that of the collection.
pub(super) fn attributes(
    metadata: &Metadata,
    collection: Option<&LogicalPath>,
    handled: BTreeMap<LogicalPath, BTreeSet<Pointer>>,
) -> Result<Vec<Declaration>, AuthoringError> {
    let handled = handled.into_iter().filter(|(_, attributes)| !attributes.is_empty());
    let Some(collection) = collection else {
        let own = handled.map(|(path, attributes)| Declaration::attributes(metadata, &path, attributes));
        return own.collect();
    };
    // A resource whose own document has a list needs its own declaration.
    let (mut all, mut declarations) = (BTreeSet::new(), Vec::new());
    for (path, attributes) in handled {
        let own = metadata.stored(&selector(path.as_str())?)?;
        let states = |document: &Document| {
            document.resource.as_ref().is_some_and(|resource| resource.secret_attributes.is_some())
        };
        if own.iter().any(|document| states(document)) {
            declarations.push(Declaration::attributes(metadata, &path, attributes.clone())?);
        }
        all.extend(attributes);
    }
    if all.is_empty() {
        return Ok(declarations);
    }
    // The document of the collection declares the attributes of all items.
    all.extend(metadata.rules(collection)?.resolved().secret_attributes.iter().cloned());
    let selector = of_collection(metadata, collection)?;
    declarations.push(Declaration { selector, what: What::Attributes(all) });
    Ok(declarations)
}

/// Returns the selector of the document that governs the items of a collection: the most specific one that exists,
/// with or without wildcards. If none exists, it is that of the collection itself, with a wildcard instead of the
/// name of a realm, because all realms have the same structure.
fn of_collection(metadata: &Metadata, collection: &LogicalPath) -> Result<Selector, AuthoringError> {
    /// The number of last segments that are tried as wildcards; each one doubles the number of candidates.
    const MOST: usize = 8;

    let names: Vec<&str> = collection.segments().collect();
    let free = names.len().min(MOST);
    let mut patterns: Vec<u32> = (0..1 << free).collect();
    patterns.sort_by_key(|pattern| (pattern.count_ones(), *pattern));
    let with = |wild: &dyn Fn(usize) -> bool| {
        let segments = names.iter().enumerate().map(|(at, name)| if wild(at) { "_" } else { *name });
        let text: Vec<&str> = segments.collect();
        selector(&format!("/{}/_", text.join("/")).replace("//", "/"))
    };
    for pattern in patterns {
        let first = names.len() - free;
        let candidate = with(&|at| at >= first && pattern >> (at - first) & 1 == 1)?;
        if !metadata.stored(&candidate)?.is_empty() {
            return Ok(candidate);
        }
    }
    let realm = names.iter().position(|name| *name == "realms").filter(|at| at + 1 < names.len());
    with(&|at| realm.is_some_and(|realms| at == realms + 1))
}

fn selector(text: &str) -> Result<Selector, AuthoringError> {
    Selector::parse(text).map_err(AuthoringError::Path)
}

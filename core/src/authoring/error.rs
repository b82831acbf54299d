//! Why a payload cannot be kept.

use crate::error::{Categorized, Category, with_causes};
use crate::metadata::MetadataError;
use crate::path::{LogicalPath, PathError};
use crate::payload::PayloadError;
use crate::payload::pointer::Pointer;
use crate::repository::RepositoryError;
use crate::secrets::KeyError;

/// Why a payload cannot become files of the repository. Values are never shown.
#[derive(Debug, thiserror::Error)]
pub enum AuthoringError {
    /// The repository cannot hold it, or cannot be read.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// There are no rules, or they do not fit the payload.
    #[error("{}", with_causes(.0))]
    Metadata(#[from] MetadataError),
    /// There is a resource already.
    #[error("resource {path} already exists; rerun with --force to overwrite it")]
    Exists {
        /// The resource.
        path: LogicalPath,
    },
    /// What should be taken apart is no list.
    #[error("the payload for {path} is no list; give an array or an object with an array called \"items\"")]
    NotAList {
        /// The collection.
        path: LogicalPath,
    },
    /// Nothing says where an item goes.
    #[error(
        "item {index} for {collection} has no name: it has no {names}; set resource.alias in the metadata of the collection"
    )]
    Nameless {
        /// The collection.
        collection: LogicalPath,
        /// The place of the item, from 0.
        index: usize,
        /// What was looked for.
        names: String,
    },
    /// An item whose name or path cannot be used.
    #[error("item {index} for {collection}: {reason}")]
    ItemPath {
        /// The collection.
        collection: LogicalPath,
        /// The place of the item, from 0.
        index: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// Two items would overwrite each other.
    #[error("several items go to {path}; give each a name of its own")]
    SeveralItems {
        /// The resource.
        path: LogicalPath,
    },
    /// Secrets that nobody declared would become readable.
    #[error(
        "potential plaintext secrets detected in {}; --secret-attributes keeps them in the secret store, \
         --allow-plaintext saves them readably", .found.join(", ")
    )]
    Plaintext {
        /// Each resource with its attributes, sorted.
        found: Vec<String>,
    },
    /// Declared secrets have no place to go.
    #[error(
        "secret provider is not configured: {path} has the secret {what}, which belongs in a secret store; set secretStore in the context"
    )]
    SecretStoreMissing {
        /// The resource.
        path: LogicalPath,
        /// Its attribute, or all of it.
        what: String,
    },
    /// Attributes are to be secrets of what has none.
    #[error(
        "the payload for {path} is no object, so that --secret-attributes finds nothing in it; --secret keeps it in \
         the secret store as a whole"
    )]
    NoAttributes {
        /// The resource.
        path: LogicalPath,
    },
    /// What is to be kept in the store does not look like a secret.
    #[error(
        "{path}: --secret-attributes names {at}, which neither looks like a secret nor is declared as one; declare \
         it in resource.secretAttributes of the metadata"
    )]
    NotASecret {
        /// The resource or collection.
        path: LogicalPath,
        /// The attribute.
        at: Pointer,
    },
    /// What was asked for looks like a secret nowhere.
    #[error("--secret-attribute {at} was not detected: no value there looks like a secret")]
    NeverDetected {
        /// The attribute.
        at: Pointer,
    },
    /// Metadata says already that all of it is a secret.
    #[error("{path} is a secret as a whole, as its metadata says; leave out --secret-attributes")]
    WholeAndAttributes {
        /// The resource.
        path: LogicalPath,
    },
    /// An attribute that no secret can be named after.
    #[error("{path}: {source}")]
    SecretKey {
        /// The resource.
        path: LogicalPath,
        /// What is wrong.
        #[source]
        source: KeyError,
    },
    /// The payload does not fit the format that it would be stored in.
    #[error("{path}: {source}")]
    Encode {
        /// The resource.
        path: LogicalPath,
        /// What does not fit.
        #[source]
        source: PayloadError,
    },
    /// The metadata that should name a secret cannot.
    #[error("cannot declare secrets in {stem}: {reason}")]
    Declare {
        /// The document, without its extension.
        stem: String,
        /// Why not.
        reason: String,
    },
    /// A path that no metadata can be about.
    #[error(transparent)]
    Path {
        /// What is wrong with it.
        source: PathError,
    },
    /// A declared secret that would change its type in a store of texts.
    #[error(
        "{path}: the secret {at} is {kind}, and a secret store holds texts only; make it a string, or save it \
         readably with --allow-plaintext"
    )]
    SecretType {
        /// The resource.
        path: LogicalPath,
        /// The attribute.
        at: Pointer,
        /// What it is.
        kind: &'static str,
    },
}

impl Categorized for AuthoringError {
    fn category(&self) -> Category {
        match self {
            Self::Repository(error) => error.category(),
            Self::Metadata(error) => error.category(),
            Self::Exists { .. }
            | Self::NotAList { .. }
            | Self::Nameless { .. }
            | Self::ItemPath { .. }
            | Self::SeveralItems { .. }
            | Self::Plaintext { .. }
            | Self::SecretStoreMissing { .. }
            | Self::NoAttributes { .. }
            | Self::NotASecret { .. }
            | Self::NeverDetected { .. }
            | Self::WholeAndAttributes { .. }
            | Self::SecretKey { .. }
            | Self::Encode { .. }
            | Self::Declare { .. }
            | Self::Path { .. }
            | Self::SecretType { .. } => Category::Validation,
        }
    }
}

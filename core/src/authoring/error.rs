//! Errors of storing payloads in the repository.

use crate::error::{categories, with_causes};
use crate::metadata::MetadataError;
use crate::path::{LogicalPath, PathError};
use crate::payload::PayloadError;
use crate::payload::pointer::Pointer;
use crate::repository::{RepositoryError, metadata_place};
use crate::secrets::KeyError;

/// An error of storing a payload in the repository. Messages never contain values.
#[derive(Debug, thiserror::Error)]
pub enum AuthoringError {
    /// The repository cannot hold the payload, or cannot be read.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// The rules cannot be read, or do not fit the payload.
    #[error("{}", with_causes(.0))]
    Metadata(#[from] MetadataError),
    /// The resource already exists.
    #[error("resource {0} already exists; rerun with --force to overwrite it")]
    Exists(LogicalPath),
    /// Another file, that of the second path, declares the resource.
    #[error("{0} not saved: {1} declares this resource; save that path, or remove it first")]
    DeclaredElsewhere(LogicalPath, LogicalPath),
    /// The server shows nothing of the resource, so that saving it would remove its file.
    #[error("the answer of the server for {0} has no content, so there is nothing to save")]
    NoContent(LogicalPath),
    /// The given payload is null, so that saving it would remove the file.
    #[error(
        "the payload for {0} has no content, so there is nothing to save; \"declarest resource delete {0} --source \
         repository\" removes the file"
    )]
    Nothing(LogicalPath),
    /// The content of the resource has another id and another alias.
    #[error(
        "by resource.id and resource.alias, the content of {0} has the names of another resource, which the file would declare; correct both in {file}",
        file = metadata_place(&.0.collection())
    )]
    OtherNames(LogicalPath),
    /// A text of the server has the form of a placeholder or a reference.
    #[error(
        "{path}: the text of the server at \"{at}\" has the form of a placeholder or a reference, so the next run would \
         replace it by a secret or by another value; change it on the server, or leave the resource out with --exclude \
         of \"import\" or \"resource save\""
    )]
    Template {
        /// The resource.
        path: LogicalPath,
        /// The place of the text.
        at: Pointer,
    },
    /// The entries of an array with placeholders cannot be matched with those of the server.
    #[error(
        "{path}: the file has placeholders or references in the array at \"{at}\", and it is unknown which entries of the \
         server are theirs; change the file by hand"
    )]
    Entries {
        /// The resource.
        path: LogicalPath,
        /// The place of the array.
        at: Pointer,
    },
    /// The payload to split into items is not a list.
    #[error("the payload for {0} is not a list; give an array or an object with an array called \"items\"")]
    NotAList(LogicalPath),
    /// An item has no name, so its path is unknown.
    #[error(
        "item {index} for {collection} has no name: it has none of {names}; set resource.alias in {file}",
        file = metadata_place(.collection)
    )]
    Nameless {
        /// The collection.
        collection: LogicalPath,
        /// The index of the item, from 0.
        index: usize,
        /// The members that were tried.
        names: String,
    },
    /// The name or path of an item cannot be used.
    #[error("item {index} for {collection}: {reason}")]
    ItemPath {
        /// The collection.
        collection: LogicalPath,
        /// The index of the item, from 0.
        index: usize,
        /// The fault of the name or path.
        reason: String,
    },
    /// Two items have the same path.
    #[error("several items have the path {0}; give each item a unique name")]
    SeveralItems(LogicalPath),
    /// Undeclared secrets would be written in plain text.
    #[error(
        "potential plaintext secrets detected in {}; --secret-attributes keeps them in the secret store, \
         --allow-plaintext saves them in plain text", .0.join(", ")
    )]
    Plaintext(Vec<String>),
    /// No secret store is configured for declared secrets.
    #[error("secret provider is not configured: {path} {what}; set secretStore in the context")]
    SecretStoreMissing {
        /// The resource.
        path: LogicalPath,
        /// The secret: "has the secret /attribute" or "is a secret as a whole".
        what: String,
    },
    /// A list that would become one resource has items with declared secrets.
    #[error(
        "{0} is a list, and metadata declares secrets in its items; save each item as a resource (--mode items), or the \
         whole list as one secret (--secret)"
    )]
    SecretInList(LogicalPath),
    /// Secret attributes were requested of a payload that has no attributes.
    #[error(
        "the payload for {0} is not an object, so it has no attributes for --secret-attributes; --secret keeps it \
         in the secret store as a whole"
    )]
    NoAttributes(LogicalPath),
    /// A listed attribute neither looks like a secret nor is declared as one.
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
    /// The requested attribute does not look like a secret in any resource.
    #[error("--secret-attribute {0} was not detected: no value there looks like a secret")]
    NeverDetected(Pointer),
    /// Metadata declares the whole resource as a secret.
    #[error("the metadata of {0} declares it as a secret as a whole; remove --secret-attributes")]
    WholeAndAttributes(LogicalPath),
    /// An attribute whose pointer cannot be part of a secret key.
    #[error("{path}: {source}")]
    SecretKey {
        /// The resource.
        path: LogicalPath,
        /// The fault of the key.
        #[source]
        source: KeyError,
    },
    /// The payload does not fit the format that it would be stored in.
    #[error("{path}: {source}")]
    Encode {
        /// The resource.
        path: LogicalPath,
        /// The value that does not fit.
        #[source]
        source: PayloadError,
    },
    /// A secret cannot be declared in a metadata document.
    #[error("cannot declare secrets in {stem}: {reason}")]
    Declare {
        /// The document, without its extension.
        stem: String,
        /// The cause.
        reason: String,
    },
    /// A path that metadata cannot select.
    #[error(transparent)]
    Path(PathError),
    /// A declared secret is not a string, and would change its type in the secret store.
    #[error(
        "{path}: the secret {at} is {kind}, but a secret store holds strings only; declare the strings in it, or the whole \
         resource with resource.secret: true; --allow-plaintext saves it in plain text"
    )]
    SecretType {
        /// The resource.
        path: LogicalPath,
        /// The attribute.
        at: Pointer,
        /// The type of its value.
        kind: &'static str,
    },
}

categories!(AuthoringError {
    .0: Repository, Metadata;
    Validation: Exists, DeclaredElsewhere, NoContent, Nothing, OtherNames, Template, Entries, NotAList, Nameless, ItemPath,
        SeveralItems, Plaintext,
        SecretStoreMissing, SecretInList, NoAttributes, NotASecret, NeverDetected, WholeAndAttributes, SecretKey, Encode,
        Declare, Path, SecretType;
});

//! Errors of externalized attributes.

use crate::error::categories;
use crate::payload::pointer::Pointer;
use crate::repository::RepositoryError;

/// An externalized attribute cannot be read from its file, or written to it.
///
/// Messages name attributes and files, never their content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IncludeError {
    /// The path of an entry continues below a value that is neither an object nor an array.
    #[error("externalized attribute {attribute}: {} is {kind}, which has no members", place(.at))]
    NoMembers {
        /// The path of the entry.
        attribute: Pointer,
        /// The pointer of the value.
        at: Pointer,
        /// The type of the value.
        kind: &'static str,
    },
    /// The path of an entry has the name of a member where the payload has an array.
    #[error("externalized attribute {attribute}: {} is an array, and \"{token}\" is neither an index nor \"*\"", place(.at))]
    NotAnIndex {
        /// The path of the entry.
        attribute: Pointer,
        /// The pointer of the array.
        at: Pointer,
        /// The token.
        token: String,
    },
    /// Two entries refer to the same attribute.
    #[error("externalized attributes {first} and {second}both refer to {at}; keep one of them")]
    SamePlace {
        /// The path of one entry.
        first: Pointer,
        /// The path of the other entry.
        second: Pointer,
        /// The attribute.
        at: Pointer,
    },
    /// Two attributes have the same file.
    #[error("{first} and {second} are both stored in {file}; give them different files")]
    SameFile {
        /// One attribute.
        first: Pointer,
        /// The other attribute.
        second: Pointer,
        /// The file relative to the payload.
        file: String,
    },
    /// The file of an entry is not valid for a sidecar.
    #[error("externalized attribute {attribute}: file \"{file}\" {reason}")]
    FileName {
        /// The path of the entry.
        attribute: Pointer,
        /// The file as written.
        file: String,
        /// The fault.
        reason: &'static str,
    },
    /// An attribute to be kept in a file is not a string.
    #[error("{at} is stored in {file}, so it must be a string or null, not {kind}")]
    NotText {
        /// The attribute.
        at: Pointer,
        /// The file relative to the payload.
        file: String,
        /// The type of its value.
        kind: &'static str,
    },
    /// A payload includes a file that does not exist.
    #[error("{at} includes {file}, which does not exist next to the payload")]
    Missing {
        /// The attribute.
        at: Pointer,
        /// The file relative to the payload.
        file: String,
    },
    /// An included file is not UTF-8.
    #[error("{at} includes {file}, which is not UTF-8 text")]
    NotUtf8 {
        /// The attribute.
        at: Pointer,
        /// The file relative to the payload.
        file: String,
    },
    /// An included file cannot be read.
    #[error("{at}: cannot include {file}: {source}")]
    Read {
        /// The attribute.
        at: Pointer,
        /// The file relative to the payload.
        file: String,
        /// The cause.
        source: Box<RepositoryError>,
    },
}

categories!(IncludeError {
    .source: Read;
    Validation: NoMembers, NotAnIndex, SamePlace, SameFile, FileName, NotText, Missing, NotUtf8;
});

fn place(at: &Pointer) -> String {
    if at.is_root() { "the payload".to_owned() } else { at.to_string() }
}

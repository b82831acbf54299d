use crate::error::{Categorized, Category};
use crate::payload::pointer::Pointer;
use crate::repository::RepositoryError;

/// Why attributes could not be read from files of their own, or written to them.
///
/// Errors name attributes and files, never their content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IncludeError {
    /// The path of an entry goes on where the payload has nothing that could have members.
    #[error("externalized attribute {attribute}: {} is {kind}, which has no members", place(.at))]
    NoMembers {
        /// The path of the entry.
        attribute: Pointer,
        /// Where it cannot go on.
        at: Pointer,
        /// What is there.
        kind: &'static str,
    },
    /// The path of an entry has a member's name for an array.
    #[error("externalized attribute {attribute}: {} is an array, and \"{token}\" is neither an index nor \"*\"", place(.at))]
    NotAnIndex {
        /// The path of the entry.
        attribute: Pointer,
        /// Where the array is.
        at: Pointer,
        /// The token.
        token: String,
    },
    /// Two entries mean one attribute.
    #[error("externalized attributes {first} and {second} both mean {at}; keep one of them")]
    SamePlace {
        /// The path of one entry.
        first: Pointer,
        /// The path of the other entry.
        second: Pointer,
        /// The attribute.
        at: Pointer,
    },
    /// Two attributes would be in one file.
    #[error("{first} and {second} are both kept in {file}; give them different files")]
    SameFile {
        /// One attribute.
        first: Pointer,
        /// The other attribute.
        second: Pointer,
        /// The file relative to the payload.
        file: String,
    },
    /// An entry names a file that no sidecar can be.
    #[error("externalized attribute {attribute}: file \"{file}\" {reason}")]
    FileName {
        /// The path of the entry.
        attribute: Pointer,
        /// The file as written.
        file: String,
        /// Why not.
        reason: &'static str,
    },
    /// An attribute to be kept in a file is not text.
    #[error("{at} is kept in {file} and must be a string or null, not {kind}")]
    NotText {
        /// The attribute.
        at: Pointer,
        /// The file relative to the payload.
        file: String,
        /// What it is.
        kind: &'static str,
    },
    /// A payload includes a file that is not there.
    #[error("{at} includes {file}, which does not exist beside the payload")]
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
        /// What failed.
        source: Box<RepositoryError>,
    },
}

impl Categorized for IncludeError {
    fn category(&self) -> Category {
        match self {
            Self::NoMembers { .. }
            | Self::NotAnIndex { .. }
            | Self::SamePlace { .. }
            | Self::SameFile { .. }
            | Self::FileName { .. }
            | Self::NotText { .. }
            | Self::Missing { .. }
            | Self::NotUtf8 { .. } => Category::Validation,
            Self::Read { source, .. } => source.category(),
        }
    }
}

fn place(at: &Pointer) -> String {
    if at.is_root() { "the payload".to_owned() } else { at.to_string() }
}

//! What can be wrong with an encrypted file of secrets.

use std::io;
use std::path::PathBuf;

use crate::error::{Categorized, Category};
use crate::secrets::SecretKey;

/// Why an encrypted file of secrets could not be used. Neither values nor keys to decrypt them are ever shown.
#[derive(Debug, thiserror::Error)]
pub enum FileStoreError {
    /// There is no such secret.
    #[error("secret {key} not found in {}", file.display())]
    NotFound {
        /// The secret.
        key: SecretKey,
        /// The file.
        file: PathBuf,
    },
    /// The key or passphrase is empty.
    #[error("the {0} of the secret file is empty")]
    EmptyKey(&'static str),
    /// The key is no key of AES-256.
    #[error(
        "the key of the secret file must be 32 bytes: 64 hexadecimal digits, base64, or the bytes themselves"
    )]
    KeyLength,
    /// The file with the key or passphrase cannot be read.
    #[error("cannot read {what} {}: {reason}", file.display())]
    KeyFile {
        /// Whether it holds a key or a passphrase.
        what: &'static str,
        /// The file.
        file: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// Argon2id cannot be asked for with these parameters.
    #[error("Argon2id parameter {parameter} is {value}; it must be {rule}")]
    Kdf {
        /// The parameter.
        parameter: &'static str,
        /// Its value.
        value: i64,
        /// What is allowed.
        rule: String,
    },
    /// The passphrase cannot be turned into a key.
    #[error("cannot derive the key of {}: {reason}", file.display())]
    Derive {
        /// The file.
        file: PathBuf,
        /// What Argon2id says.
        reason: String,
    },
    /// The system refuses to read or write.
    #[error("cannot {action} {}: {source}", file.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        file: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// Another process holds the lock.
    #[error("secret file {} is locked by another process; try again when it is done", file.display())]
    Locked {
        /// The file.
        file: PathBuf,
    },
    /// The file, or what is encrypted in it, is no JSON of the expected form.
    #[error("{part} of {} is not what a secret file holds, line {line}, column {column}", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// Which part of it.
        part: &'static str,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// A version that is not ours.
    #[error("secret file {} has version {version}; this program reads version 1", file.display())]
    Version {
        /// The file.
        file: PathBuf,
        /// Its version.
        version: i64,
    },
    /// A field of the file that cannot be right.
    #[error("secret file {}: {field} {reason}", file.display())]
    Field {
        /// The file.
        file: PathBuf,
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The key is the wrong one, or the file was changed.
    #[error("cannot decrypt secret file {}: the key or passphrase is wrong, or the file is damaged", file.display())]
    Decrypt {
        /// The file.
        file: PathBuf,
    },
    /// The system gives no random bytes, or the cipher refuses.
    #[error("cannot encrypt secret file {}", file.display())]
    Encrypt {
        /// The file.
        file: PathBuf,
    },
    /// The thread that worked on the file ended early.
    #[error("work on secret file {} was cut off: {reason}", file.display())]
    Task {
        /// The file.
        file: PathBuf,
        /// Why.
        reason: String,
    },
}

impl Categorized for FileStoreError {
    fn category(&self) -> Category {
        match self {
            Self::NotFound { .. } => Category::NotFound,
            Self::EmptyKey(_)
            | Self::KeyLength
            | Self::KeyFile { .. }
            | Self::Kdf { .. }
            | Self::Version { .. }
            | Self::Field { .. } => Category::Validation,
            Self::Decrypt { .. } => Category::Auth,
            Self::Locked { .. } => Category::Conflict,
            Self::Derive { .. }
            | Self::Io { .. }
            | Self::Malformed { .. }
            | Self::Encrypt { .. }
            | Self::Task { .. } => Category::Internal,
        }
    }
}

//! The errors of an encrypted secret file.

use std::io;
use std::path::PathBuf;

use crate::error::categories;
use crate::secrets::SecretKey;

/// A failed operation on a secret file. Messages contain neither values nor keys.
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
    /// The key is not a key of AES-256.
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
        /// The error of the system.
        reason: String,
    },
    /// A parameter of Argon2id is invalid.
    #[error("Argon2id parameter {parameter} is {value}; it must be {rule}")]
    Kdf {
        /// The parameter.
        parameter: &'static str,
        /// Its value.
        value: i64,
        /// The allowed values.
        rule: String,
    },
    /// No key can be derived from the passphrase.
    #[error("cannot derive the key of {}: {reason}", file.display())]
    Derive {
        /// The file.
        file: PathBuf,
        /// The error of Argon2id.
        reason: String,
    },
    /// The file cannot be read or written.
    #[error("cannot {action} {}: {source}", file.display())]
    Io {
        /// The failed action.
        action: &'static str,
        /// The file.
        file: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// Another process holds the lock.
    #[error("secret file {} is locked by another process; try again when it is done", .0.display())]
    Locked(PathBuf),
    /// The file, or its decrypted content, is not JSON of the expected form.
    #[error("secret file {}: {part} is not valid, line {line}, column {column}", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// The invalid part.
        part: &'static str,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// The version is not supported.
    #[error("secret file {} has version {version}; this program reads version 1", file.display())]
    Version {
        /// The file.
        file: PathBuf,
        /// Its version.
        version: i64,
    },
    /// A field is invalid.
    #[error("secret file {}: {field} {reason}", file.display())]
    Field {
        /// The file.
        file: PathBuf,
        /// The field.
        field: &'static str,
        /// The fault.
        reason: String,
    },
    /// The key is wrong, or the file was changed.
    #[error("cannot decrypt secret file {}: the key or passphrase is wrong, or the file is damaged", .0.display())]
    Decrypt(PathBuf),
    /// The system provides no random bytes, or the cipher failed.
    #[error("cannot encrypt secret file {}", .0.display())]
    Encrypt(PathBuf),
    /// The thread that worked on the file ended early.
    #[error("work on secret file {} was interrupted: {reason}", file.display())]
    Task {
        /// The file.
        file: PathBuf,
        /// The cause.
        reason: String,
    },
}

categories!(FileStoreError {
    Validation: EmptyKey, KeyLength, KeyFile, Kdf, Version, Field;
    NotFound: NotFound;
    Auth: Decrypt;
    Conflict: Locked;
    Internal: Derive, Io, Malformed, Encrypt, Task;
});

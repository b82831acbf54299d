//! The secret store of a context.

use std::path::Path;

use declarest_core::secrets::SecretStore;
use declarest_core::secrets::file::{
    FileStore as EncryptedFile, FileStoreError, FileStoreSettings, Kdf as Argon2, KeyMaterial,
};

use super::error::CatalogueError;
use super::model::{FileStore, Kdf};
use super::resolve::ResolvedContext;
use super::value::Count;
use crate::error::Failure;
use crate::output::Messages;

impl ResolvedContext {
    /// The secret store. Nothing is read from it yet.
    pub fn open_secret_store(&self, messages: &Messages) -> Result<SecretStore, Failure> {
        let settings = self.secret_store()?;
        let Some(file) = &settings.file else {
            let (context, field) = (self.name.clone(), "secretStore.vault".to_owned());
            let reason = "is not supported by this version yet; use secretStore.file".to_owned();
            return Err(CatalogueError::Setting { context, field, reason }.into());
        };
        warn_if_open(Path::new(&file.path.0), messages);
        let settings = FileStoreSettings {
            path: (&*file.path.0).into(),
            key: key_material(file)?,
            kdf: argon2(file.kdf.as_ref())?,
        };
        Ok(EncryptedFile::new(settings).into())
    }
}

/// The catalogue has exactly one of the four.
fn key_material(file: &FileStore) -> Result<KeyMaterial, FileStoreError> {
    match (&file.key, &file.key_file, &file.passphrase, &file.passphrase_file) {
        (Some(key), _, _, _) => KeyMaterial::key(&key.0),
        (_, Some(file), _, _) => KeyMaterial::key_file(Path::new(&file.0)),
        (_, _, Some(passphrase), _) => KeyMaterial::passphrase(&passphrase.0),
        (_, _, _, Some(file)) => KeyMaterial::passphrase_file(Path::new(&file.0)),
        (None, None, None, None) => Err(FileStoreError::EmptyKey("key")),
    }
}

fn argon2(kdf: Option<&Kdf>) -> Result<Argon2, FileStoreError> {
    let count = |of: fn(&Kdf) -> Option<Count>| kdf.and_then(of).map_or(0, |count| i64::from(count.0));
    Argon2::new(count(|kdf| kdf.time), count(|kdf| kdf.memory), count(|kdf| kdf.threads))
}

/// Tells of a file that others may read; it is closed to them when it is used.
#[cfg(unix)]
fn warn_if_open(file: &Path, messages: &Messages) {
    use std::os::unix::fs::PermissionsExt as _;
    let Ok(metadata) = std::fs::metadata(file) else { return };
    let mode = metadata.permissions().mode() & 0o777;
    if mode & !0o600 != 0 {
        messages.warn(&format!("{} has mode {mode:04o}; it is changed to 0600", file.display()));
    }
}

#[cfg(not(unix))]
fn warn_if_open(_file: &Path, _messages: &Messages) {}

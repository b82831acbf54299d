//! The files of encrypted secret stores: their places, and their creation from seeds.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use declarest_core::digest::hex;
use declarest_core::secrets::Secret;
use declarest_core::secrets::file::{FileStore, FileStoreError, FileStoreSettings, Kdf, KeyMaterial};
use sha2::{Digest as _, Sha256};

use super::context::Context;
use super::error::Failure;
use super::kind::{Key, Kind as _};
use super::outcome::Reason;
use super::references::SecretReader;
use super::volumes::{self, Naming, Place};
use crate::crd::{SecretStore, secret_store};
use crate::directories;

/// The names of the claims of stores.
pub const CLAIMS: Naming = Naming { suffix: "secrets", label: "declarest.io/secret-store" };

/// The file of a store and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedFile {
    pub path: PathBuf,
    /// A note for the user about the place.
    pub note: Option<String>,
}

/// Returns the directory of a store's file that is not on a claim.
pub fn state_directory(context: &Context, key: &Key) -> PathBuf {
    context.directories.secrets().join(&key.namespace).join(&key.name)
}

/// Finds the file of a store, replaces it if its seed changed, and opens the store.
pub async fn open(
    context: &Context,
    object: &SecretStore,
    spec: &secret_store::FileStore,
    secrets: &mut SecretReader,
) -> Result<(FileStore, PlacedFile), Failure> {
    // Find the file.
    let state = state_directory(context, &object.key());
    let place = volumes::settle(context, object, spec.storage.as_ref(), CLAIMS, state).await?;
    let relative = spec
        .relative_path(&context.settings.limits)
        .map_err(|reason| Failure::spec_invalid(format!("spec.file.path: {reason}")))?;
    let directory = directory_of(&place, &relative).await;
    let file = PlacedFile { path: directory.join(relative), note: place.note };
    // Read the key and the seed.
    let key = key(secrets, &spec.encryption).await?;
    let seed = secrets.optional("spec.file.seedRef", spec.seed_ref.as_ref()).await?;
    // Create the directory, and replace the file if the seed is new.
    let path = file.path.clone();
    blocking(move || prepare(&path, &directory)).await?;
    if let Some(seed) = seed {
        plant(&file.path, seed, &key).await?;
    }
    Ok((FileStore::new(settings(file.path.clone(), key)), file))
}

/// Returns the directory of a store. A file that an earlier version stored on the claim is not moved, because it may
/// be the only copy.
async fn directory_of(place: &Place, relative: &Path) -> PathBuf {
    let exists =
        async |directory: &Path| tokio::fs::try_exists(directory.join(relative)).await.unwrap_or_default();
    match &place.earlier {
        Some(earlier) if exists(earlier).await && !exists(&place.directory).await => earlier.clone(),
        _ => place.directory.clone(),
    }
}

type Parse = fn(&Secret) -> Result<KeyMaterial, FileStoreError>;

async fn key(
    secrets: &mut SecretReader,
    encryption: &secret_store::FileEncryption,
) -> Result<KeyMaterial, Failure> {
    let read = async |secrets: &mut SecretReader, name, reference, parse: Parse| {
        let field = format!("spec.file.encryption.{name}");
        let text = secrets.value(&field, reference).await?;
        parse(&text).map_err(|error: FileStoreError| Failure::dependency_invalid(format!("{field}: {error}")))
    };
    match (&encryption.key_ref, &encryption.passphrase_ref) {
        (Some(reference), None) => read(secrets, "keyRef", reference, KeyMaterial::key).await,
        (None, Some(reference)) => read(secrets, "passphraseRef", reference, KeyMaterial::passphrase).await,
        _ => Err(Failure::spec_invalid("spec.file.encryption: set exactly one of keyRef and passphraseRef")),
    }
}

fn settings(path: PathBuf, key: KeyMaterial) -> FileStoreSettings {
    FileStoreSettings { path, key, kdf: Kdf::default() }
}

/// Creates the directory of the file. Rejects a symbolic link to the outside of the store's directory.
fn prepare(file: &Path, directory: &Path) -> Result<(), Failure> {
    let unavailable = |message: String| Failure::new(Reason::StoreUnavailable, message);
    let parent = file.parent().unwrap_or(directory);
    directories::ensure_private(directory).map_err(|error| unavailable(error.to_string()))?;
    directories::ensure_private(parent).map_err(|error| unavailable(error.to_string()))?;
    let real = |path: &Path| {
        path.canonicalize()
            .map_err(|error| unavailable(format!("cannot resolve {}: {error}", path.display())))
    };
    if real(parent)?.starts_with(real(directory)?) {
        return Ok(());
    }
    Err(Failure::spec_invalid(format!(
        "spec.file.path: {} is outside of the store's directory because of a symbolic link; remove the link",
        parent.display()
    )))
}

/// Replaces the file with `seed`, unless the same seed was already used: later changes of the file are then kept. A
/// seed that cannot be decrypted changes nothing.
async fn plant(file: &Path, seed: Secret, key: &KeyMaterial) -> Result<(), Failure> {
    let [candidate, marker] = ["seeding", "seed"].map(|suffix| sibling(file, suffix));
    let digest = hex(&Sha256::digest(seed.expose()));
    let planted = file.exists() && fs::read_to_string(&marker).is_ok_and(|planted| planted == digest);
    if planted {
        return Ok(());
    }
    let at = candidate.clone();
    blocking(move || write(&at, seed.expose().as_bytes())).await?;
    let proven = FileStore::new(settings(candidate.clone(), key.clone())).list().await;
    if let Err(error) = proven {
        let _ = fs::remove_file(&candidate);
        let Failure { reason, message, .. } = failure(&error);
        return Err(Failure::new(reason, format!("spec.file.seedRef: {message}")));
    }
    let file = file.to_owned();
    blocking(move || {
        let failed = |error| unwritten(&file, &error);
        fs::rename(&candidate, &file).map_err(failed)?;
        write(&marker, digest.as_bytes())?;
        file.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all()).map_err(failed)
    })
    .await
}

fn sibling(file: &Path, suffix: &str) -> PathBuf {
    let mut path = file.to_owned().into_os_string();
    path.push(format!(".{suffix}"));
    path.into()
}

fn write(file: &Path, content: &[u8]) -> Result<(), Failure> {
    let written = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(file).and_then(
        |mut opened| {
            opened.write_all(content)?;
            opened.sync_all()
        },
    );
    written.map_err(|error| unwritten(file, &error))
}

fn unwritten(file: &Path, error: &io::Error) -> Failure {
    Failure::new(Reason::StoreUnavailable, format!("cannot write {}: {error}", file.display()))
}

/// Returns the failure of a file that cannot be used.
pub fn failure(error: &FileStoreError) -> Failure {
    let reason = match error {
        FileStoreError::Decrypt { .. }
        | FileStoreError::Malformed { .. }
        | FileStoreError::Version { .. }
        | FileStoreError::Field { .. } => Reason::DecryptFailed,
        FileStoreError::Io { .. } | FileStoreError::Locked { .. } => Reason::StoreUnavailable,
        _ => Reason::ReconcileFailed,
    };
    Failure::new(reason, error.to_string())
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| {
        Err(Failure::new(Reason::ReconcileFailed, format!("work on a store's file was cut off: {error}")))
    })
}

//! The files of encrypted secret stores: their places, and their creation from seeds.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use declarest_core::confined;
use declarest_core::digest::hex;
use declarest_core::secrets::Secret;
use declarest_core::secrets::file::{FileStore, FileStoreError, FileStoreSettings, Kdf, KeyMaterial};
use rustix::fs::OFlags;
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use super::context::Context;
use super::error::{Failure, blocking};
use super::kind::{Key, Kind as _};
use super::outcome::Reason;
use super::references::SecretReader;
use super::volumes;
use crate::crd::{SecretStore, secret_store};

/// The length of a SHA-256 digest in hexadecimal digits.
const DIGEST: u64 = 64;

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
    let place = volumes::settle(context, object, state).await?;
    let relative = spec
        .relative_path(&context.settings.limits)
        .map_err(|reason| Failure::spec_invalid(format!("spec.file.path: {reason}")))?;
    // Read the key and the seed.
    let key = key(secrets, &spec.encryption).await?;
    let seed = secrets.optional("spec.file.seedRef", spec.seed_ref.as_ref()).await?;
    // Create the directory, move the file of an earlier version there, and replace it if the seed is new.
    let directories = Directories::of(context, &object.key(), place.mounted);
    let file = directories.file(&relative);
    let placed = PlacedFile { path: file.path(), note: place.note };
    let target = file.clone();
    blocking(move || prepare(&target, &directories, &relative)).await?;
    if let Some(seed) = seed {
        plant(&file, seed, &key).await?;
    }
    Ok((FileStore::new(settings(&file, key)), placed))
}

/// A file below a directory that other users may write to. Symbolic links below it are not followed.
#[derive(Clone)]
struct Confined {
    root: PathBuf,
    relative: PathBuf,
}

impl Confined {
    fn path(&self) -> PathBuf {
        self.root.join(&self.relative)
    }

    fn sibling(&self, suffix: &str) -> Self {
        let mut relative = self.relative.clone().into_os_string();
        relative.push(format!(".{suffix}"));
        Self { root: self.root.clone(), relative: relative.into() }
    }

    fn open(&self, flags: OFlags) -> io::Result<File> {
        confined::open(&self.root, &self.relative, flags)
    }

    fn exists(&self) -> bool {
        self.open(OFlags::PATH).is_ok()
    }

    fn failed(&self, action: &str) -> impl Fn(io::Error) -> Failure {
        let path = self.path();
        let action = action.to_owned();
        move |error| {
            let link = match error.raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::LOOP | Errno::NOTDIR | Errno::XDEV) => "; symbolic links are not followed here",
                _ => "",
            };
            let message = format!("cannot {action} {}: {error}{link}", path.display());
            Failure::new(Reason::StoreUnavailable, message)
        }
    }
}

/// The directories of a store: `<namespace>/<name>` on its claim or in the state directory, and those of earlier
/// versions.
struct Directories {
    root: PathBuf,
    current: PathBuf,
    earlier: Vec<PathBuf>,
}

impl Directories {
    fn of(context: &Context, key: &Key, mounted: Option<PathBuf>) -> Self {
        let current = Path::new(&key.namespace).join(&key.name);
        let (root, earlier) = match mounted {
            Some(mounted) => {
                let by_kind = SecretStore::owner(key).below(Path::new(""));
                (mounted, vec![by_kind, PathBuf::from(&key.name)])
            }
            None => (context.directories.secrets().to_owned(), Vec::new()),
        };
        Self { root, current, earlier }
    }

    fn file(&self, relative: &Path) -> Confined {
        Confined { root: self.root.clone(), relative: self.current.join(relative) }
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

fn settings(file: &Confined, key: KeyMaterial) -> FileStoreSettings {
    FileStoreSettings { path: file.path(), key, kdf: Kdf::default(), beneath: Some(file.root.clone()) }
}

/// Creates the directory of the file. If there is no file, moves that of an earlier version here, with the digest of its
/// seed.
fn prepare(file: &Confined, directories: &Directories, relative: &Path) -> Result<(), Failure> {
    let parent = file.relative.parent().unwrap_or(Path::new(""));
    confined::create_directories(&file.root, parent).map_err(file.failed("create the directory of"))?;
    if file.exists() {
        return Ok(());
    }
    let earlier = directories.earlier.iter().map(|directory| directory.join(relative));
    for old in earlier.map(|relative| Confined { root: file.root.clone(), relative }) {
        if !old.exists() {
            continue;
        }
        // The digest is moved first: without it, the seed would replace the file.
        for (from, to) in [(old.sibling("seed"), file.sibling("seed")), (old, file.clone())] {
            if from.exists() {
                confined::rename(&file.root, &from.relative, &to.relative).map_err(from.failed("move"))?;
            }
        }
        tracing::info!(file = %file.path().display(), "moved the file of an earlier version");
        return Ok(());
    }
    Ok(())
}

/// Replaces the file with `seed`, unless the same seed was already used: later changes of the file are then kept. A
/// seed that cannot be decrypted changes nothing.
async fn plant(file: &Confined, seed: Secret, key: &KeyMaterial) -> Result<(), Failure> {
    let [candidate, marker] = ["seeding", "seed"].map(|suffix| file.sibling(suffix));
    let digest = hex(&Sha256::digest(seed.expose()));
    let (seeded, planted) = (file.clone(), marker.clone());
    let earlier =
        blocking(move || Ok(if seeded.exists() { read_digest(&planted).ok() } else { None })).await?;
    if earlier.as_ref() == Some(&digest) {
        return Ok(());
    }
    let at = candidate.clone();
    blocking(move || write(&at, seed.expose().as_bytes())).await?;
    let proven = FileStore::new(settings(&candidate, key.clone())).list().await;
    if let Err(error) = proven {
        let _ = confined::remove(&candidate.root, &candidate.relative);
        let Failure { reason, message, .. } = failure(&error);
        return Err(Failure::new(reason, format!("spec.file.seedRef: {message}")));
    }
    let file = file.clone();
    blocking(move || {
        let replaced = confined::rename(&file.root, &candidate.relative, &file.relative);
        replaced.map_err(file.failed("write"))?;
        write(&marker, digest.as_bytes())
    })
    .await
}

/// Reads the digest of a seed. Other users may write to the directory, so the file may be a pipe, or large.
fn read_digest(marker: &Confined) -> io::Result<String> {
    let mut digest = String::new();
    marker.open(OFlags::RDONLY | OFlags::NONBLOCK)?.take(DIGEST).read_to_string(&mut digest)?;
    Ok(digest)
}

fn write(file: &Confined, content: &[u8]) -> Result<(), Failure> {
    let opened = file.open(OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NONBLOCK);
    let written = opened.and_then(|mut opened| {
        opened.write_all(content)?;
        opened.sync_all()
    });
    written.map_err(file.failed("write"))
}

/// Returns the failure of a file that cannot be used.
pub fn failure(error: &FileStoreError) -> Failure {
    let reason = match error {
        FileStoreError::Decrypt(_)
        | FileStoreError::Malformed { .. }
        | FileStoreError::Version { .. }
        | FileStoreError::Field { .. } => Reason::DecryptFailed,
        FileStoreError::Io { .. } | FileStoreError::Locked(_) => Reason::StoreUnavailable,
        _ => Reason::ReconcileFailed,
    };
    Failure::new(reason, error.to_string())
}

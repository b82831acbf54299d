//! Opens bundles from the cache or, if it has no valid entry, from their source.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::StatusCode;
use semver::Version;
use url::Url;

use super::cache::{ArchiveState, Lock, Provenance, Ready, Slot, digest_of, remove};
use super::content::{Content, Expected};
use super::fetch::{self, Artifact, BUNDLE_LAYER, Downloaded, Limits, Registry};
use super::login::RegistryLogin;
use super::reference::{OciReference, OciVersion, absolute};
use super::{Build, Bundle, BundleError, BundleWarning, MAX_TOTAL, RELEASES, Reference};
use crate::error::with_causes;
use crate::proxy::Proxy;
use crate::transport::{Access, TlsConfig, client_builder};

/// Options for opening bundles.
#[derive(Clone, Debug)]
pub struct Options {
    /// The directory of the cache; it is created if necessary.
    pub cache: PathBuf,
    /// The build that uses the bundles.
    pub build: Build,
    /// The proxies for downloads, `metadata.proxy`. Proxies of the environment are ignored.
    pub proxy: Proxy,
    /// The credentials for registries.
    pub login: RegistryLogin,
    /// The base URL of the releases of named bundles: [`RELEASES`], or a mirror of it.
    pub releases: String,
    /// The credentials of one server, for archives at its origin. Requests to other origins are anonymous.
    pub access: Option<Access>,
    /// Whether each opening of an archive by URL requests it again, for URLs whose archive may be replaced. The
    /// request is conditional, so an unchanged archive is not sent again.
    pub revalidates: bool,
}

impl Options {
    /// Returns options for this build, with direct connections and without credentials.
    pub fn new(cache: impl Into<PathBuf>) -> Self {
        Self {
            cache: cache.into(),
            build: Build::current(),
            proxy: Proxy::default(),
            login: RegistryLogin::Anonymous,
            releases: RELEASES.to_owned(),
            access: None,
            revalidates: false,
        }
    }

    /// Sets `proxy` for downloads from the targets that it applies to.
    #[must_use]
    pub fn through(self, proxy: Proxy) -> Self {
        Self { proxy, ..self }
    }
}

/// Opens bundles.
#[derive(Clone, Debug)]
pub struct BundleSource {
    options: Options,
    limits: Limits,
}

impl BundleSource {
    /// Creates a source of bundles without any I/O.
    pub fn new(options: Options) -> Self {
        Self::with_limits(options, Limits::default())
    }

    pub(super) fn with_limits(options: Options, limits: Limits) -> Self {
        Self { options, limits }
    }

    /// Finds the bundle that `reference` names, fetches it to this machine if necessary, and validates it.
    ///
    /// A directory is used in place, and is validated each time. All other bundles are unpacked into the cache, and
    /// validated once. A release, an archive on a web server and a digest are then not requested again (but see
    /// [`Options::revalidates`]). A local archive is read again if its size or modification time changed. A tag is
    /// resolved each time. If a repeated request fails, the cached copy is used, with a warning.
    ///
    /// If several processes open the same reference at the same time, only one of them downloads it.
    pub async fn open(&self, reference: &Reference) -> Result<Bundle, BundleError> {
        match reference {
            Reference::Path(path) => self.open_path(path).await,
            Reference::Url(url) => self.open_archive(reference, url, None).await,
            Reference::Release { name, version } => {
                let url = Url::parse(&self.options.releases);
                let url = url.and_then(|base| Reference::release_url(&base, name, version));
                let url = url.map_err(|error| BundleError::Reference {
                    reference: reference.to_string(),
                    reason: format!("has no URL below \"{}\": {error}", self.options.releases),
                })?;
                self.open_archive(reference, &url, Some((name.clone(), version.clone()))).await
            }
            Reference::Oci(oci) => self.open_artifact(reference, oci).await,
        }
    }

    /// Returns the cached copy of the bundle that `reference` names without sending requests, with a warning that it
    /// could not be refreshed because of `reason`. Returns `None` if there is no copy, or if `reference` is a local
    /// path.
    pub async fn kept(&self, reference: &Reference, reason: &str) -> Result<Option<Bundle>, BundleError> {
        let identity = match reference {
            Reference::Path(_) => return Ok(None),
            Reference::Release { name, version } => Some((name.clone(), version.clone())),
            Reference::Url(_) | Reference::Oci(_) => None,
        };
        let text = reference.to_string();
        let expected = self.expected(text.clone(), identity);
        let (_, kept) = locked(&Slot::new(&self.options.cache, reference), &expected).await?;
        let stale = BundleWarning::Stale { reference: text, reason: reason.to_owned() };
        Ok(kept.map(|ready| bundle(ready.content, ready.provenance.digest, Some(stale))))
    }

    async fn open_path(&self, path: &Path) -> Result<Bundle, BundleError> {
        let path = absolute(path)?;
        let expected = self.expected(path.display().to_string(), None);
        let cache = self.options.cache.clone();
        blocking(move || {
            let metadata = std::fs::metadata(&path).map_err(|error| missing(&path, error))?;
            if metadata.is_dir() {
                let content = Content::read(&path, &expected)?;
                content.validate(&expected)?;
                let digest = content.digest(&expected)?;
                return Ok(bundle(content, digest, None));
            }
            if !metadata.is_file() || metadata.len() > MAX_TOTAL {
                let reason = format!("it is not a regular file of at most {} MiB", MAX_TOTAL >> 20);
                return Err(BundleError::Archive { bundle: expected.bundle, reason });
            }
            let file = File::open(&path).map_err(|error| missing(&path, error))?;
            let slot = Slot::new(&cache, &Reference::Path(path.clone()));
            let _lock = slot.lock()?;
            let state = Some(ArchiveState::of(&file).map_err(BundleError::io("inspect", &path))?);
            let kept = slot.ready(&expected).filter(|ready| ready.provenance.archive == state);
            let ready = if let Some(ready) = kept {
                ready
            } else {
                let digest = digest_of(&file).map_err(BundleError::io("read", &path))?;
                slot.install(&file, Provenance { archive: state, ..slot.made_of(digest) }, &expected)?
            };
            Ok(bundle(ready.content, ready.provenance.digest, None))
        })
        .await
    }

    async fn open_archive(
        &self,
        reference: &Reference,
        url: &Url,
        identity: Option<(String, Version)>,
    ) -> Result<Bundle, BundleError> {
        let text = reference.to_string();
        // The content of a release never changes.
        let is_final = identity.is_some() || !self.options.revalidates;
        let expected = self.expected(text.clone(), identity);
        // Use the cached copy if it cannot change.
        let slot = Slot::new(&self.options.cache, reference);
        let (lock, kept) = locked(&slot, &expected).await?;
        let kept = match kept {
            Some(ready) if is_final => return Ok(bundle(ready.content, ready.provenance.digest, None)),
            kept => kept,
        };
        // Otherwise download the archive. If this fails, use the cached copy with a warning.
        match (self.download(url, &slot, &lock, &expected, kept.as_ref()).await, kept) {
            (Ok(Some(ready)), _) | (Ok(None), Some(ready)) => {
                Ok(bundle(ready.content, ready.provenance.digest, None))
            }
            (Ok(None), None) => Err(BundleError::Status { url: text, status: StatusCode::NOT_MODIFIED }),
            (Err(error), Some(ready)) => {
                let warning = BundleWarning::Stale { reference: text, reason: with_causes(&error) };
                Ok(bundle(ready.content, ready.provenance.digest, Some(warning)))
            }
            (Err(error), None) => Err(error),
        }
    }

    /// Creates the entry from the archive at `url`; `None` if the archive has not changed since the `kept` one.
    async fn download(
        &self,
        url: &Url,
        slot: &Slot,
        lock: &Arc<Lock>,
        expected: &Expected,
        kept: Option<&Ready>,
    ) -> Result<Option<Ready>, BundleError> {
        let (place, options) = (slot.download(), &self.options);
        let condition = kept.and_then(|ready| ready.provenance.condition.as_ref());
        let (client, access) = (self.client()?, options.access.as_ref());
        let limits = &self.limits;
        let made_of = match fetch::archive(&client, access, url, condition, &place, limits).await {
            Ok(None) => return Ok(None),
            Ok(Some(downloaded)) => {
                let Downloaded { digest, condition } = downloaded;
                Ok(Provenance { condition, ..slot.made_of(digest) })
            }
            Err(error) => Err(error),
        };
        install(slot, Arc::clone(lock), made_of, expected.clone()).await.map(Some)
    }

    async fn open_artifact(&self, reference: &Reference, oci: &OciReference) -> Result<Bundle, BundleError> {
        let text = reference.to_string();
        let expected = self.expected(text.clone(), None);
        // Use the cached copy if it cannot change.
        let slot = Slot::new(&self.options.cache, reference);
        let (lock, kept) = locked(&slot, &expected).await?;
        let is_final = matches!(oci.version, OciVersion::Digest(_));
        if let Some(ready) = kept.filter(|_| is_final) {
            return Ok(bundle(ready.content, ready.provenance.digest, None));
        }
        // Otherwise request the artifact from the registry. The cached copy is only replaced by a complete and valid
        // one, so it still exists after an error.
        let (ready, warning) = match self.refresh(oci, &slot, &lock, &expected).await {
            Ok(ready) => (ready, None),
            Err(error) => match ready(&slot, &expected).await? {
                Some(ready) => {
                    let reason = with_causes(&error);
                    (ready, Some(BundleWarning::Stale { reference: text, reason }))
                }
                None => return Err(error),
            },
        };
        Ok(bundle(ready.content, ready.provenance.digest, warning))
    }

    /// Updates the entry to the current artifact of the registry.
    async fn refresh(
        &self,
        oci: &OciReference,
        slot: &Slot,
        lock: &Arc<Lock>,
        expected: &Expected,
    ) -> Result<Ready, BundleError> {
        let client = self.client()?;
        let credentials = self.options.login.credentials(oci).await?;
        let mut registry = Registry::new(&client, oci, credentials, &self.limits, BUNDLE_LAYER)?;
        let artifact: Artifact = registry.resolve().await?;
        if let Some(ready) =
            ready(slot, expected).await?.filter(|ready| ready.provenance.digest == artifact.digest)
        {
            return Ok(ready);
        }
        let downloaded = registry.download(&artifact, &slot.download()).await;
        let made_of = downloaded.map(|()| slot.made_of(artifact.digest));
        install(slot, Arc::clone(lock), made_of, expected.clone()).await
    }

    fn expected(&self, bundle: String, identity: Option<(String, Version)>) -> Expected {
        Expected { bundle, identity, build: self.options.build.clone() }
    }

    fn client(&self) -> Result<reqwest::Client, BundleError> {
        fetch::client(client_builder(&TlsConfig::default(), &self.options.proxy))
    }
}

/// Locks an entry, and returns it if it is valid.
async fn locked(slot: &Slot, expected: &Expected) -> Result<(Arc<Lock>, Option<Ready>), BundleError> {
    let (slot, expected) = (slot.clone(), expected.clone());
    blocking(move || {
        let lock = Arc::new(slot.lock()?);
        Ok((lock, slot.ready(&expected)))
    })
    .await
}

async fn ready(slot: &Slot, expected: &Expected) -> Result<Option<Ready>, BundleError> {
    let (slot, expected) = (slot.clone(), expected.clone());
    blocking(move || Ok(slot.ready(&expected))).await
}

/// Creates an entry from its download, and removes the download. The lock is held to the end, even if the caller is
/// cancelled.
async fn install(
    slot: &Slot,
    lock: Arc<Lock>,
    made_of: Result<Provenance, BundleError>,
    expected: Expected,
) -> Result<Ready, BundleError> {
    let slot = slot.clone();
    blocking(move || {
        let place = slot.download();
        let installed = made_of.and_then(|made_of| {
            let file = File::open(&place).map_err(BundleError::io("open", &place))?;
            slot.install(&file, made_of, &expected)
        });
        let removed = remove(&place);
        drop(lock);
        installed.and_then(|ready| removed.map(|()| ready))
    })
    .await
}

fn bundle(content: Content, digest: String, stale: Option<BundleWarning>) -> Bundle {
    let Content { manifest, root, metadata_root, openapi, .. } = content;
    let deprecated = manifest.deprecated.then(|| BundleWarning::Deprecated {
        name: manifest.name.clone(),
        version: manifest.version.clone(),
    });
    let warnings = stale.into_iter().chain(deprecated).collect();
    Bundle { manifest, root, metadata_root, openapi, digest, warnings }
}

fn missing(path: &Path, error: std::io::Error) -> BundleError {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let hint = if name.contains(':') { "; the form of a release is name:1.2.3" } else { "" };
            BundleError::Missing { place: path.display().to_string(), hint }
        }
        _ => BundleError::io("open", path)(error),
    }
}

/// Runs blocking work on a thread for blocking work.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BundleError> + Send + 'static,
) -> Result<T, BundleError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|stopped| Err(BundleError::Client(stopped.to_string())))
}

//! HTTP clients that are renewed when the files of their TLS settings are replaced.

use std::fmt;
#[cfg(unix)]
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::OnceLock;
use std::time::SystemTime;

use parking_lot::Mutex;

use super::{TlsConfig, TlsFiles, TransportError, client_builder};
use crate::error::with_causes;
use crate::proxy::Proxy;

/// The source of TLS settings.
#[derive(Clone, Debug)]
pub enum TlsSettings {
    /// Settings that do not change.
    Given(TlsConfig),
    /// Settings from files, which may be replaced at any time.
    Files(TlsFiles),
}

impl TlsSettings {
    /// Whether there is a client certificate.
    pub(crate) fn presents(&self) -> bool {
        match self {
            Self::Given(config) => config.presents(),
            Self::Files(files) => files.client_cert_file.is_some(),
        }
    }
}

impl TlsSettings {
    /// Returns the current settings.
    pub(crate) fn read(&self) -> Result<TlsConfig, TransportError> {
        match self {
            Self::Given(config) => Ok(config.clone()),
            Self::Files(files) => Ok(TlsConfig::from_files(files)?),
        }
    }

    /// Returns a description of the source.
    pub(crate) fn origin(&self) -> String {
        const SYSTEM: &str = "the system's authorities";
        let files = match self {
            Self::Files(files) => files,
            Self::Given(config) if config.is_set() => return "given".to_owned(),
            Self::Given(_) => return SYSTEM.to_owned(),
        };
        let named = [
            ("caCertFile", &files.ca_cert_file),
            ("clientCertFile", &files.client_cert_file),
            ("clientKeyFile", &files.client_key_file),
        ];
        let named = named.into_iter().filter_map(|(name, file)| Some((name, file.as_ref()?)));
        let mut words: Vec<_> = named.map(|(name, file)| format!("{name} {}", file.display())).collect();
        if files.insecure_skip_verify {
            words.push("insecureSkipVerify".to_owned());
        }
        if words.is_empty() { SYSTEM.to_owned() } else { words.join(", ") }
    }
}

impl Default for TlsSettings {
    /// Returns settings with the CAs of the system and without a client certificate.
    fn default() -> Self {
        Self::Given(TlsConfig::default())
    }
}

impl From<TlsConfig> for TlsSettings {
    fn from(config: TlsConfig) -> Self {
        Self::Given(config)
    }
}

impl From<TlsFiles> for TlsSettings {
    fn from(files: TlsFiles) -> Self {
        Self::Files(files)
    }
}

type Configure = dyn Fn(reqwest::ClientBuilder) -> reqwest::ClientBuilder + Send + Sync;

/// Creates and caches the HTTP client for one purpose.
///
/// TLS settings from files are checked for changes (modification time, size or inode). After a change the next
/// [`Connector::client`] has connections with the new settings, and idle connections with the old ones are closed.
/// While new settings are not usable, for example because only the certificate and not yet its key was replaced, the
/// old ones stay in use and a warning is logged.
pub struct Connector {
    proxy: Proxy,
    configure: Box<Configure>,
    files: Option<TlsFiles>,
    current: Mutex<Current>,
    stranger: OnceLock<reqwest::Client>,
}

struct Current {
    client: reqwest::Client,
    /// The state of the files when they were last read, usable or not.
    seen: Seen,
}

/// The state of files, to detect changes; `None` for a file that cannot be read.
type Seen = Vec<Option<Stamp>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    modified: SystemTime,
    size: u64,
    inode: u64,
}

impl Connector {
    /// Reads `tls` and creates the first client without connecting. `configure` sets further properties of a client
    /// (redirects, pool, protocol), and is called for every new one.
    pub fn new(
        tls: impl Into<TlsSettings>,
        proxy: Proxy,
        configure: impl Fn(reqwest::ClientBuilder) -> reqwest::ClientBuilder + Send + Sync + 'static,
    ) -> Result<Self, TransportError> {
        let (files, given) = match tls.into() {
            TlsSettings::Given(config) => (None, Some(config)),
            TlsSettings::Files(files) => (Some(files), None),
        };
        // Checked before the files are read, so that a change in between is detected.
        let seen = files.as_ref().map(look).unwrap_or_default();
        let config = match (&files, given) {
            (Some(files), _) => TlsConfig::from_files(files)?,
            (None, given) => given.unwrap_or_default(),
        };
        let client = build(&config, &proxy, &configure)?;
        Ok(Self {
            proxy,
            configure: Box::new(configure),
            files,
            current: Mutex::new(Current { client, seen }),
            stranger: OnceLock::new(),
        })
    }

    /// Returns the client for the next request. It shares connections with earlier ones, unless a file of the TLS
    /// settings was replaced. Call it for each request; it only checks the files.
    pub fn client(&self) -> reqwest::Client {
        // No thread panics while it holds the lock.
        let mut current = self.current.lock();
        if let Some(files) = &self.files {
            let seen = look(files);
            if seen != current.seen {
                self.renew(&mut current, files);
                current.seen = seen;
            }
        }
        current.client.clone()
    }

    /// Returns the client for other servers than the one of the TLS settings. It trusts the CAs of the system, and
    /// presents no certificate.
    pub fn stranger(&self) -> Result<reqwest::Client, TransportError> {
        if let Some(client) = self.stranger.get() {
            return Ok(client.clone());
        }
        let client = build(&TlsConfig::default(), &self.proxy, &*self.configure)?;
        Ok(self.stranger.get_or_init(|| client).clone())
    }

    /// Returns the proxy settings of the connections.
    pub fn proxy(&self) -> &Proxy {
        &self.proxy
    }

    fn renew(&self, current: &mut Current, files: &TlsFiles) {
        let renewed = TlsConfig::from_files(files)
            .map_err(TransportError::from)
            .and_then(|config| build(&config, &self.proxy, &*self.configure));
        match renewed {
            Ok(client) => {
                tracing::debug!("TLS files were replaced; new connections use them");
                current.client = client;
            }
            Err(error) => {
                tracing::warn!(%error, "replaced TLS files cannot be used; the ones read before stay in use");
            }
        }
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").field("files", &self.files).finish_non_exhaustive()
    }
}

fn build(
    config: &TlsConfig,
    proxy: &Proxy,
    configure: &dyn Fn(reqwest::ClientBuilder) -> reqwest::ClientBuilder,
) -> Result<reqwest::Client, TransportError> {
    let client = configure(client_builder(config, proxy)).build();
    client.map_err(|error| TransportError::Client(with_causes(&error)))
}

fn look(files: &TlsFiles) -> Seen {
    let named = [&files.ca_cert_file, &files.client_cert_file, &files.client_key_file];
    named.into_iter().flatten().map(|file| Stamp::of(file)).collect()
}

impl Stamp {
    /// Returns the stamp of the target of `file`, because a symbolic link may be replaced.
    fn of(file: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(file).ok()?;
        Some(Self { modified: metadata.modified().ok()?, size: metadata.len(), inode: inode(&metadata) })
    }
}
#[cfg(unix)]
fn inode(metadata: &std::fs::Metadata) -> u64 {
    metadata.ino()
}

/// Files of Windows have no inode.
#[cfg(not(unix))]
fn inode(_metadata: &std::fs::Metadata) -> u64 {
    0
}

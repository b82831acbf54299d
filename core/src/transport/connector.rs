//! Clients that notice when the files behind their TLS settings are replaced.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use super::{TlsConfig, TlsFiles, TransportError, client_builder};
use crate::error::with_causes;
use crate::proxy::Proxy;

/// Where TLS settings come from.
#[derive(Clone, Debug)]
pub enum TlsSettings {
    /// They stay as they are.
    Given(TlsConfig),
    /// From files, which may be replaced at any time.
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
    /// They as they are now.
    pub(crate) fn read(&self) -> Result<TlsConfig, TransportError> {
        match self {
            Self::Given(config) => Ok(config.clone()),
            Self::Files(files) => Ok(TlsConfig::from_files(files)?),
        }
    }

    /// Where they come from, in words.
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
    /// The system's authorities and no client certificate.
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

/// Makes the HTTP client of one purpose and keeps it.
///
/// TLS settings from files are watched: when one of them changed (by modification time, size or inode), the next
/// [`Connector::client`] has connections with the new ones, and idle connections made with the old ones are closed.
/// While a new set cannot be used, for example because only the certificate and not yet its key was replaced, the
/// old one serves on and a warning is logged.
pub struct Connector {
    proxy: Proxy,
    configure: Box<Configure>,
    files: Option<TlsFiles>,
    current: Mutex<Current>,
    stranger: OnceLock<reqwest::Client>,
}

struct Current {
    client: reqwest::Client,
    /// What the files looked like when they were read last, whether or not they could be used.
    seen: Seen,
}

/// What tells whether files were replaced; `None` for one that cannot be seen.
type Seen = Vec<Option<Stamp>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    modified: SystemTime,
    size: u64,
    inode: u64,
}

impl Connector {
    /// Reads `tls` and makes the first client; nothing is contacted. `configure` says what else a client needs
    /// (redirects, pool, protocol), and is asked again whenever there is a new one.
    pub fn new(
        tls: impl Into<TlsSettings>,
        proxy: Proxy,
        configure: impl Fn(reqwest::ClientBuilder) -> reqwest::ClientBuilder + Send + Sync + 'static,
    ) -> Result<Self, TransportError> {
        let (files, given) = match tls.into() {
            TlsSettings::Given(config) => (None, Some(config)),
            TlsSettings::Files(files) => (Some(files), None),
        };
        // Before they are read: what is replaced in between is read again.
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

    /// The client for the next request. It shares its connections with those given before, unless a file behind
    /// the TLS settings was replaced meanwhile. To be asked for each request; that costs a look at the files.
    pub fn client(&self) -> reqwest::Client {
        // Nobody panics while holding the lock.
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(files) = &self.files {
            let seen = look(files);
            if seen != current.seen {
                self.renew(&mut current, files);
                current.seen = seen;
            }
        }
        current.client.clone()
    }

    /// The client for anybody but those whom the TLS settings are for: it trusts the system's authorities, and
    /// presents no certificate.
    pub fn stranger(&self) -> Result<reqwest::Client, TransportError> {
        if let Some(client) = self.stranger.get() {
            return Ok(client.clone());
        }
        let client = build(&TlsConfig::default(), &self.proxy, &*self.configure)?;
        Ok(self.stranger.get_or_init(|| client).clone())
    }

    /// The proxy that connections go through where it serves their target.
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
    client.map_err(|error| TransportError::Client { reason: with_causes(&error) })
}

fn look(files: &TlsFiles) -> Seen {
    let named = [&files.ca_cert_file, &files.client_cert_file, &files.client_key_file];
    named.into_iter().flatten().map(|file| Stamp::of(file)).collect()
}

impl Stamp {
    /// Of what the path leads to: a symbolic link may be what is replaced.
    fn of(file: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(file).ok()?;
        Some(Self { modified: metadata.modified().ok()?, size: metadata.len(), inode: metadata.ino() })
    }
}

//! TLS settings: trusted certificates and the client certificate.

use std::fmt;
use std::path::{Path, PathBuf};
#[cfg(target_os = "linux")]
use std::sync::LazyLock;

use reqwest::{Certificate, Identity};
use rustls::RootCertStore;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use crate::error::categories;
use crate::secret::Secret;

const CA_FIELD: &str = "tls.caCertFile";
const CERT_FIELD: &str = "tls.clientCertFile";
const KEY_FIELD: &str = "tls.clientKeyFile";

/// The trusted certificates, and the client certificate. The minimum version is TLS 1.2.
///
/// By default the CAs of the system are trusted, and there is no client certificate.
#[derive(Clone, Debug, Default)]
pub struct TlsConfig {
    trust: Trust,
    identity: Option<Identity>,
}

#[derive(Clone, Default)]
enum Trust {
    #[default]
    System,
    Authorities {
        certificates: Vec<Certificate>,
        /// The encoded certificates, to compare them.
        encoded: Vec<CertificateDer<'static>>,
    },
    All,
}

impl PartialEq for Trust {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::System, Self::System) | (Self::All, Self::All) => true,
            (Self::Authorities { encoded, .. }, Self::Authorities { encoded: others, .. }) => {
                encoded == others
            }
            _ => false,
        }
    }
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::System => "System",
            Self::Authorities { .. } => "Authorities",
            Self::All => "All",
        })
    }
}

/// TLS settings that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// CA certificates cannot be used.
    #[error("{origin}: {reason}")]
    Authorities {
        /// Their source.
        origin: String,
        /// The fault.
        reason: String,
    },
    /// A client certificate or its key cannot be used.
    #[error("{origin}: {reason}")]
    ClientCertificate {
        /// Its source.
        origin: String,
        /// The fault.
        reason: String,
    },
}

categories!(TlsError: Validation);

/// A PEM text and its source, for errors.
#[derive(Clone, Copy)]
pub struct Pem<'a> {
    /// The source, such as a setting with its file, or a key of a Secret.
    pub origin: &'a str,
    /// The text.
    pub text: &'a [u8],
}

/// TLS settings in files.
#[derive(Clone, Debug, Default)]
pub struct TlsFiles {
    /// PEM certificates that replace the CAs of the system.
    pub ca_cert_file: Option<PathBuf>,
    /// A client certificate in PEM format, with its intermediate certificates. It needs its key.
    pub client_cert_file: Option<PathBuf>,
    /// The unencrypted key of the client certificate, in PEM format.
    pub client_key_file: Option<PathBuf>,
    /// Accepts any certificate: an attacker on the path can read and change everything.
    pub insecure_skip_verify: bool,
}

impl TlsConfig {
    /// Returns settings that accept any certificate: an attacker on the path can read and change everything.
    pub fn insecure() -> Self {
        Self { trust: Trust::All, identity: None }
    }

    /// Returns settings that trust only the chains of these CAs, one or more PEM certificates.
    pub fn trusting(pem: Pem<'_>) -> Result<Self, TlsError> {
        let authorities = authorities(pem.text)
            .map_err(|reason| TlsError::Authorities { origin: pem.origin.to_owned(), reason })?;
        Ok(Self { trust: authorities, identity: None })
    }

    /// Adds a client certificate: its chain, itself first, and its unencrypted key.
    pub fn presenting(mut self, certificate: Pem<'_>, key: Pem<'_>) -> Result<Self, TlsError> {
        let refused = |pem: &Pem<'_>, reason: String| TlsError::ClientCertificate {
            origin: pem.origin.to_owned(),
            reason,
        };
        let chain = certificates(certificate.text).map_err(|reason| refused(&certificate, reason))?;
        // The parser's error is dropped, because it may quote the key.
        let unreadable = |_| refused(&key, "it does not contain an unencrypted PEM private key".to_owned());
        let parsed = PrivateKeyDer::from_pem_slice(key.text).map_err(unreadable)?;
        let provider = ring::default_provider();
        let signing = provider.key_provider.load_private_key(parsed.clone_key());
        signing.map_err(|error| refused(&key, format!("the private key cannot be used: {error}")))?;
        CertifiedKey::from_der(chain.clone(), parsed, &provider).map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                refused(&key, "it is not the key of the certificate".to_owned())
            }
            error => refused(&certificate, format!("the certificate cannot be used: {error}")),
        })?;
        let both = [key.text, b"\n", certificate.text].concat();
        let identity = Identity::from_pem(&both);
        let identity = identity.map_err(|error| refused(&certificate, crate::error::with_causes(&error)))?;
        self.identity = Some(identity);
        Ok(self)
    }

    /// Reads the settings from files. Client certificate and key must be set together.
    pub fn from_files(files: &TlsFiles) -> Result<Self, TlsError> {
        let authorities = files.ca_cert_file.as_deref().map(Self::from_ca_file).transpose()?;
        let tls = if files.insecure_skip_verify { Self::insecure() } else { authorities.unwrap_or_default() };
        let half = |field: &str, other: &str| TlsError::ClientCertificate {
            origin: field.to_owned(),
            reason: format!("it needs {other}; set both or neither"),
        };
        match (&files.client_cert_file, &files.client_key_file) {
            (None, None) => Ok(tls),
            (Some(_), None) => Err(half(CERT_FIELD, KEY_FIELD)),
            (None, Some(_)) => Err(half(KEY_FIELD, CERT_FIELD)),
            (Some(certificate), Some(key)) => tls.with_client_files(certificate, key),
        }
    }

    fn from_ca_file(file: &Path) -> Result<Self, TlsError> {
        let origin = format!("{CA_FIELD} {}", file.display());
        match std::fs::read(file) {
            Ok(pem) => Self::trusting(Pem { origin: &origin, text: &pem }),
            Err(error) => Err(TlsError::Authorities { origin, reason: error.to_string() }),
        }
    }

    fn with_client_files(self, certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let read = |field: &str, file: &Path| {
            let origin = format!("{field} {}", file.display());
            match std::fs::read_to_string(file) {
                Ok(text) => Ok((origin, Secret::from(text))),
                Err(error) => Err(TlsError::ClientCertificate { origin, reason: error.to_string() }),
            }
        };
        let (cert_origin, certificate) = read(CERT_FIELD, certificate)?;
        let (key_origin, key) = read(KEY_FIELD, key)?;
        let certificate = Pem { origin: &cert_origin, text: certificate.expose().as_bytes() };
        self.presenting(certificate, Pem { origin: &key_origin, text: key.expose().as_bytes() })
    }

    /// Returns the same settings without a client certificate.
    #[must_use]
    pub(crate) fn without_identity(&self) -> Self {
        Self { trust: self.trust.clone(), identity: None }
    }

    /// Whether both settings trust the same certificates.
    pub(crate) fn trusts_like(&self, other: &Self) -> bool {
        self.trust == other.trust
    }

    /// Whether any setting differs from the default.
    pub(crate) fn is_set(&self) -> bool {
        self.identity.is_some() || !matches!(self.trust, Trust::System)
    }

    pub(crate) fn trusts_all(&self) -> bool {
        matches!(self.trust, Trust::All)
    }

    /// Whether there is a client certificate.
    pub(crate) fn presents(&self) -> bool {
        self.identity.is_some()
    }

    /// Applies these settings to a client.
    pub(super) fn apply(&self, builder: reqwest::ClientBuilder) -> reqwest::ClientBuilder {
        let builder = builder.tls_danger_accept_invalid_certs(self.trusts_all());
        let builder = match &self.trust {
            Trust::Authorities { certificates, .. } => builder.tls_certs_only(certificates.iter().cloned()),
            Trust::System => with_system_authorities(builder),
            Trust::All => builder,
        };
        match &self.identity {
            Some(identity) => builder.identity(identity.clone()),
            None => builder,
        }
    }
}

/// Reads the CAs of the system once per process. Otherwise each client would read and parse their files, which takes
/// several milliseconds. Without any CA, the builder reports that there is none.
#[cfg(target_os = "linux")]
fn with_system_authorities(builder: reqwest::ClientBuilder) -> reqwest::ClientBuilder {
    static AUTHORITIES: LazyLock<Vec<Certificate>> = LazyLock::new(|| {
        let found = rustls_native_certs::load_native_certs().certs.into_iter();
        let usable = found.filter(|certificate| RootCertStore::empty().add(certificate.clone()).is_ok());
        usable.filter_map(|certificate| Certificate::from_der(&certificate).ok()).collect()
    });
    if AUTHORITIES.is_empty() { builder } else { builder.tls_certs_only(AUTHORITIES.iter().cloned()) }
}

/// Other systems verify certificates by themselves.
#[cfg(not(target_os = "linux"))]
fn with_system_authorities(builder: reqwest::ClientBuilder) -> reqwest::ClientBuilder {
    builder
}

/// Parses one or more PEM certificates.
fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = certificates.map_err(|error| format!("it is not PEM: {error}"))?;
    if certificates.is_empty() {
        return Err("it does not contain a PEM certificate".to_owned());
    }
    Ok(certificates)
}

/// Parses PEM certificates as CAs.
fn authorities(pem: &[u8]) -> Result<Trust, String> {
    let unusable = |error: &dyn fmt::Display| format!("a certificate cannot be parsed: {error}");
    let mut roots = RootCertStore::empty();
    let encoded = certificates(pem)?;
    let parsed = encoded.iter().map(|certificate| {
        roots.add(certificate.clone()).map_err(|error| unusable(&error))?;
        Certificate::from_der(certificate).map_err(|error| unusable(&error))
    });
    let certificates = parsed.collect::<Result<_, _>>()?;
    Ok(Trust::Authorities { certificates, encoded })
}

#[cfg(test)]
#[path = "tls_tests.rs"]
mod tests;

//! Which certificates of an https remote are trusted.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use git2::CertificateCheckStatus;
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};

use super::RepositoryError;

const CA_FIELD: &str = "tls.caCertFile";

/// Whose word about the identity of an https remote counts. By default that of the system's authorities.
#[derive(Clone, Debug, Default)]
pub struct RemoteTls {
    trust: Trust,
}

#[derive(Clone, Default)]
enum Trust {
    #[default]
    System,
    Authorities(Arc<WebPkiServerVerifier>),
    Anybody,
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::System => "System",
            Self::Authorities(_) => "Authorities",
            Self::Anybody => "Anybody",
        })
    }
}

/// TLS settings in files, as a user of a terminal has them.
#[derive(Clone, Debug, Default)]
pub struct TlsFiles {
    /// PEM certificates that replace the system's authorities.
    pub ca_cert_file: Option<PathBuf>,
    /// A client certificate; always refused, see [`RemoteTls::from_files`].
    pub client_cert_file: Option<PathBuf>,
    /// The key of the client certificate.
    pub client_key_file: Option<PathBuf>,
    /// Accepts any certificate: whoever sits in between can read and change everything.
    pub insecure_skip_verify: bool,
}

impl RemoteTls {
    /// Accepts any certificate: whoever sits in between can read and change everything.
    pub fn insecure() -> Self {
        Self { trust: Trust::Anybody }
    }

    /// Trusts only these authorities, one or more PEM certificates.
    ///
    /// libgit2 shows only the server's own certificate, so the one that signed it must be among them. Where
    /// a server presents intermediate certificates, the bundle has to hold the last of these as well.
    ///
    /// `origin` is where the text comes from, for errors.
    pub fn trusting(origin: &str, pem: &[u8]) -> Result<Self, RepositoryError> {
        let trust = authorities(pem)
            .map_err(|reason| RepositoryError::Authorities { origin: origin.to_owned(), reason })?;
        Ok(Self { trust })
    }

    /// Reads the settings from their files.
    ///
    /// Client certificates are refused: libgit2 has no way to present one over OpenSSL.
    pub fn from_files(files: &TlsFiles) -> Result<Self, RepositoryError> {
        let client =
            [("tls.clientCertFile", &files.client_cert_file), ("tls.clientKeyFile", &files.client_key_file)];
        if let Some((field, _)) = client.into_iter().find(|(_, file)| file.is_some()) {
            return Err(RepositoryError::ClientCertificate { field });
        }
        let authorities = files.ca_cert_file.as_deref().map(Self::from_ca_file).transpose()?;
        Ok(if files.insecure_skip_verify { Self::insecure() } else { authorities.unwrap_or_default() })
    }

    fn from_ca_file(file: &Path) -> Result<Self, RepositoryError> {
        let origin = format!("{CA_FIELD} {}", file.display());
        match std::fs::read(file) {
            Ok(pem) => Self::trusting(&origin, &pem),
            Err(error) => Err(RepositoryError::Authorities { origin, reason: error.to_string() }),
        }
    }

    /// Whether anything differs from the default.
    pub(super) fn is_set(&self) -> bool {
        !matches!(self.trust, Trust::System)
    }

    /// Judges the certificate (DER) that `host` presented, or leaves it to libgit2.
    pub(super) fn check(&self, certificate: &[u8], host: &str) -> Result<CertificateCheckStatus, String> {
        let verifier = match &self.trust {
            Trust::System => return Ok(CertificateCheckStatus::CertificatePassthrough),
            Trust::Anybody => return Ok(CertificateCheckStatus::CertificateOk),
            Trust::Authorities(verifier) => verifier,
        };
        let name = ServerName::try_from(host).map_err(|error| error.to_string())?;
        let certificate = CertificateDer::from(certificate);
        match verifier.verify_server_cert(&certificate, &[], &name, &[], UnixTime::now()) {
            Ok(_) => Ok(CertificateCheckStatus::CertificateOk),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Reads PEM certificates as authorities.
fn authorities(pem: &[u8]) -> Result<Trust, String> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = certificates.map_err(|error| format!("it is not PEM: {error}"))?;
    if certificates.is_empty() {
        return Err("it holds no PEM certificate".to_owned());
    }
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate).map_err(|error| format!("a certificate does not parse: {error}"))?;
    }
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
    let verifier = verifier.map_err(|error| error.to_string())?;
    Ok(Trust::Authorities(verifier))
}

#[cfg(test)]
#[path = "tls_tests.rs"]
mod tests;

//! The certificate of the server, reloaded when its files change.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio_rustls::TlsAcceptor;

use crate::tls::{self, TlsError};

/// The interval at which the files are read. Volumes of Secrets change by renaming links, so watches miss changes.
const INTERVAL: Duration = Duration::from_secs(5);

/// The certificate that is presented now, if there is one.
#[derive(Debug, Default)]
pub struct Certificates {
    current: RwLock<Option<Arc<CertifiedKey>>>,
    loaded: Arc<AtomicBool>,
}

/// The files cannot be used.
#[derive(Debug, thiserror::Error)]
enum CertificateError {
    #[error("cannot read {}: {source}", file.display())]
    Read { file: PathBuf, source: std::io::Error },
    #[error("{} is not a PEM file with certificates: {source}", file.display())]
    Certificate { file: PathBuf, source: rustls::pki_types::pem::Error },
    #[error("{} is not a PEM file with a private key: {source}", file.display())]
    Key { file: PathBuf, source: rustls::pki_types::pem::Error },
    #[error("certificate and key cannot be used: {0}")]
    Pair(#[from] rustls::Error),
}

impl Certificates {
    /// Returns an acceptor that presents the current certificate. Without one, handshakes fail.
    pub fn acceptor(self: &Arc<Self>) -> Result<TlsAcceptor, TlsError> {
        tls::resolving(Arc::clone(self) as Arc<dyn ResolvesServerCert>)
    }

    /// Returns a flag that is set when the first certificate is loaded.
    pub fn loaded(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.loaded)
    }

    /// Reads `tls.crt` and `tls.key` in `directory` again and again. After an error, the last certificate is kept.
    pub async fn follow(self: Arc<Self>, directory: PathBuf) {
        let (mut loaded, mut reported) = (None, String::new());
        loop {
            match files(&directory).await {
                Ok(files) if loaded.as_ref() == Some(&files) => {}
                files => match files.and_then(|files| Ok((pair(&directory, &files)?, files))) {
                    Ok((pair, files)) => {
                        *self.current.write() = Some(Arc::new(pair));
                        self.loaded.store(true, Ordering::Relaxed);
                        tracing::info!(directory = %directory.display(), "loaded the certificate for admission");
                        (loaded, reported) = (Some(files), String::new());
                    }
                    Err(error) => {
                        let error = error.to_string();
                        if error != reported {
                            tracing::warn!(
                                error,
                                "cannot load the certificate for admission; waiting for it"
                            );
                            reported = error;
                        }
                    }
                },
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current.read().clone()
    }
}

/// The contents of certificate and key.
type Files = (Vec<u8>, Vec<u8>);

async fn files(directory: &Path) -> Result<Files, CertificateError> {
    let read = async |file: PathBuf| {
        tokio::fs::read(&file).await.map_err(|source| CertificateError::Read { file, source })
    };
    Ok((read(directory.join("tls.crt")).await?, read(directory.join("tls.key")).await?))
}

fn pair(directory: &Path, (certificate, key): &Files) -> Result<CertifiedKey, CertificateError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
    let chain =
        chain.map_err(|source| CertificateError::Certificate { file: directory.join("tls.crt"), source })?;
    if chain.is_empty() {
        let source = rustls::pki_types::pem::Error::NoItemsFound;
        return Err(CertificateError::Certificate { file: directory.join("tls.crt"), source });
    }
    let key = PrivateKeyDer::from_pem_slice(key)
        .map_err(|source| CertificateError::Key { file: directory.join("tls.key"), source })?;
    Ok(CertifiedKey::from_der(chain, key, &rustls::crypto::ring::default_provider())?)
}

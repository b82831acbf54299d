//! The TLS settings of the listeners of this process.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring::default_provider as provider;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::server::ResolvesServerCert;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio_rustls::TlsAcceptor;

/// A certificate could not be created or used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot create a certificate: {0}")]
    Create(#[from] rcgen::Error),
    #[error("cannot use the certificate: {0}")]
    Use(#[from] rustls::Error),
}

/// A certificate that this process created for one listener.
pub struct SelfSigned {
    pub acceptor: TlsAcceptor,
    /// The certificate as PEM.
    pub certificate: String,
}

impl SelfSigned {
    /// Creates a certificate and its key for `names`, which are host names or IP addresses. Only the memory of the
    /// process contains the key.
    pub fn new(names: &[&str]) -> Result<Self, TlsError> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let signed = rcgen::generate_simple_self_signed(names)?;
        let key = PrivatePkcs8KeyDer::from(signed.signing_key.serialize_der());
        let pair = CertifiedKey::from_der(vec![signed.cert.der().clone()], key.into(), &provider())?;
        let acceptor = resolving(Arc::new(SingleCertAndKey::from(pair)))?;
        Ok(Self { acceptor, certificate: signed.cert.pem() })
    }
}

/// Returns an acceptor that presents the certificates of `resolver`. Without one, handshakes fail.
pub fn resolving(resolver: Arc<dyn ResolvesServerCert>) -> Result<TlsAcceptor, TlsError> {
    let config = ServerConfig::builder_with_provider(Arc::new(provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(resolver);
    Ok(TlsAcceptor::from(Arc::new(config)))
}

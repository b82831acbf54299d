//! Access to the in-process API over the network. Its Secrets are as readable as those of a cluster, so other users of the
//! machine have no access: only the owner of the state directory can read the kubeconfig with the token.

use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use declarest_core::secrets::Secret;
use http::HeaderMap;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::{Value, json};
use tokio_rustls::TlsAcceptor;

use crate::http_server::{bearer_token, is_same};
use crate::tls::{SelfSigned, TlsError};

/// The names that a client may use for the address of the API.
const NAMES: [&str; 3] = ["127.0.0.1", "::1", "localhost"];

/// The credentials of one process: a certificate, and the token that clients send. Both are new at each start.
pub struct Access {
    tls: TlsAcceptor,
    /// The certificate as PEM.
    certificate: String,
    token: Secret,
}

/// The credentials could not be created.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    #[error("cannot generate random numbers")]
    Random,
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl From<ring::error::Unspecified> for AccessError {
    fn from(_: ring::error::Unspecified) -> Self {
        Self::Random
    }
}

impl Access {
    /// Creates credentials.
    pub fn new() -> Result<Self, AccessError> {
        let SelfSigned { acceptor, certificate } = SelfSigned::new(&NAMES)?;
        let mut token = [0; 32];
        SystemRandom::new().fill(&mut token)?;
        Ok(Self { tls: acceptor, certificate, token: Secret::from(STANDARD.encode(token)) })
    }

    /// Returns a kubeconfig for the API at `address`. It contains the token, so write it only to a file that its owner alone can read.
    pub fn kubeconfig(&self, address: SocketAddr) -> Value {
        let authority = STANDARD.encode(&self.certificate);
        let cluster =
            json!({"server": format!("https://{address}"), "certificate-authority-data": authority});
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "declarest",
            "contexts": [{"name": "declarest", "context": {"cluster": "declarest", "user": "declarest"}}],
            "clusters": [{"name": "declarest", "cluster": cluster}],
            "users": [{"name": "declarest", "user": {"token": self.token.expose()}}],
        })
    }

    pub(super) fn tls(&self) -> TlsAcceptor {
        self.tls.clone()
    }

    /// Returns whether the headers of a request contain the token.
    pub(super) fn admits(&self, headers: &HeaderMap) -> bool {
        bearer_token(headers).is_some_and(|token| is_same(token, &self.token))
    }
}

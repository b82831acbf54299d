//! Why a request could not be forwarded.

use std::sync::{Mutex, PoisonError};

use rustls::AlertDescription;

use super::super::RepositoryError;
use crate::http_failure::{causes, tls_error};

/// What hyper-util says, in a type that it does not export, when a proxy refuses a tunnel with status 407.
const TUNNEL_REFUSED: &str = "proxy authorization required";

/// The first failure of a relay.
#[derive(Default)]
pub(super) struct FirstFailure(Mutex<Option<RepositoryError>>);

impl FirstFailure {
    /// Later failures follow from the first.
    pub fn keep(&self, error: RepositoryError) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    pub fn take(&self) -> Option<RepositoryError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Which way a request took, for what its failure means.
pub(super) struct Way {
    /// The remote, as it may be shown.
    pub url: String,
    /// The proxy, as it may be shown.
    pub proxy: Option<String>,
    /// Whether a client certificate is presented.
    pub certified: bool,
}

impl Way {
    /// What it means that no answer came.
    pub fn explain(&self, error: &reqwest::Error) -> RepositoryError {
        let url = self.url.clone();
        let reason = causes(error);
        if self.proxy.is_some() && reason.contains(TUNNEL_REFUSED) {
            return RepositoryError::ProxyCredentials { url };
        }
        match tls_error(error) {
            Some(rustls::Error::InvalidCertificate(why)) => {
                RepositoryError::Network { url, reason: format!("its certificate: {why}") }
            }
            Some(rustls::Error::AlertReceived(alert)) if concerns_client(*alert) => {
                let alert = format!("{alert:?}");
                if self.certified {
                    RepositoryError::ClientCertificateRejected { url, alert }
                } else {
                    RepositoryError::ClientCertificateMissing { url, alert }
                }
            }
            _ => self.network(&reason),
        }
    }

    /// What it means that an answer ended too early.
    pub fn broken_off(&self, error: &reqwest::Error) -> RepositoryError {
        self.network(&format!("its answer broke off: {}", causes(error)))
    }

    pub fn network(&self, reason: &str) -> RepositoryError {
        let reason = match &self.proxy {
            Some(proxy) => format!("through the proxy {proxy}: {reason}"),
            None => reason.to_owned(),
        };
        RepositoryError::Network { url: self.url.clone(), reason }
    }
}

/// Whether a server sends this alert because of a client's certificate or the lack of one (RFC 8446 section
/// 6.2; our own refusals of its certificate are no alerts that we receive).
fn concerns_client(alert: AlertDescription) -> bool {
    matches!(
        alert,
        AlertDescription::CertificateRequired
            | AlertDescription::NoCertificate
            | AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied
    )
}

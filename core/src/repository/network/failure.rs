//! The errors of HTTP requests to a remote.

use super::super::RepositoryError;
use crate::transport::{Refusal, causes, denial, is_proxy_refusal, refusal, untrusted};

/// The connection of a request, for its errors.
pub(super) struct Way {
    /// The remote, without credentials.
    pub url: String,
    /// The proxy, without credentials.
    pub proxy: Option<String>,
    /// Whether a client certificate is configured.
    pub certified: bool,
}

impl Way {
    /// Returns the error of a request without an answer.
    pub fn explain(&self, error: &reqwest::Error) -> RepositoryError {
        let url = self.url.clone();
        if let Some(denied) = denial(error) {
            return RepositoryError::Destination { url, source: denied.clone() };
        }
        if self.proxy.is_some() && is_proxy_refusal(error) {
            return RepositoryError::ProxyCredentials(url);
        }
        match refusal(error) {
            Some(Refusal::Theirs(why)) => RepositoryError::Network { url, reason: untrusted(why) },
            Some(Refusal::Ours(alert)) => {
                let alert = format!("{alert:?}");
                if self.certified {
                    RepositoryError::ClientCertificateRejected { url, alert }
                } else {
                    RepositoryError::ClientCertificateMissing { url, alert }
                }
            }
            None => self.network(&causes(error)),
        }
    }

    /// Returns the error of an incomplete answer.
    pub fn broken_off(&self, error: &reqwest::Error) -> RepositoryError {
        self.network(&format!("its answer is incomplete: {}", causes(error)))
    }

    pub fn network(&self, reason: &str) -> RepositoryError {
        let reason = match &self.proxy {
            Some(proxy) => format!("through the proxy {proxy}: {reason}"),
            None => reason.to_owned(),
        };
        RepositoryError::Network { url: self.url.clone(), reason }
    }
}

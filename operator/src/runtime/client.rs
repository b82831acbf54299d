//! The Kubernetes client.

use std::time::Duration;

use kube::Client;
use kube::client::ClientBuilder;
use tower::limit::RateLimitLayer;

use super::RuntimeError;

/// Requests per second to the API server, watches counted once.
const QUERIES_PER_SECOND: u64 = 50;

/// Longer than a watch is idle, because the API server ends every watch within this time.
const READ_TIMEOUT: Duration = Duration::from_mins(5);

/// Sets the cryptography provider of all TLS connections of this process. A second call has no effect.
pub fn install_crypto_provider() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Connects to the cluster of KUBECONFIG or of the service account.
pub async fn connect() -> Result<Client, RuntimeError> {
    install_crypto_provider();
    let mut config = kube::Config::infer().await.map_err(RuntimeError::Configuration)?;
    config.connect_timeout = Some(Duration::from_secs(10));
    config.write_timeout = Some(Duration::from_secs(30));
    config.read_timeout = Some(READ_TIMEOUT);
    // Otherwise, the idle time of a pooled connection would count towards the timeout.
    config.reset_reader_on_write = true;
    let builder = ClientBuilder::try_from(config).map_err(RuntimeError::Client)?;
    Ok(builder.with_layer(&RateLimitLayer::new(QUERIES_PER_SECOND, Duration::from_secs(1))).build())
}

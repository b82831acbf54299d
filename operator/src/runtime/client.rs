//! The Kubernetes clients. Each purpose has its own connections and limit, so that none waits for another.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use kube::client::ClientBuilder;
use kube::{Client, Config};
use tower::util::MapFutureLayer;

use super::RuntimeError;

/// Longer than a watch is idle, because the API server ends every watch within this time.
const READ_TIMEOUT: Duration = Duration::from_mins(5);

/// Requests to the API server, watches counted once.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// The average number per second.
    pub per_second: NonZeroU32,
    /// The number that may be sent at once.
    pub burst: NonZeroU32,
}

/// Sets the cryptography provider of all TLS connections of this process. A second call has no effect.
pub fn install_crypto_provider() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Connects to the cluster of KUBECONFIG or of the service account.
pub async fn connect(limit: Limit) -> Result<Client, RuntimeError> {
    let builder = ClientBuilder::try_from(config().await?).map_err(RuntimeError::Client)?;
    let quota = Quota::per_second(limit.per_second).allow_burst(limit.burst);
    let limiter: Arc<DefaultDirectRateLimiter> = Arc::new(RateLimiter::direct(quota));
    let limited = MapFutureLayer::new(move |request| {
        let limiter = Arc::clone(&limiter);
        async move {
            limiter.until_ready().await;
            request.await
        }
    });
    Ok(builder.with_layer(&limited).build())
}

/// Connects for the Lease. The candidate limits its requests, in number and time, and repeats them itself.
pub async fn connect_for_lease() -> Result<Client, RuntimeError> {
    let mut config = config().await?;
    config.default_retry = false;
    Client::try_from(config).map_err(RuntimeError::Client)
}

async fn config() -> Result<Config, RuntimeError> {
    install_crypto_provider();
    let mut config = Config::infer().await.map_err(RuntimeError::Configuration)?;
    config.connect_timeout = Some(Duration::from_secs(10));
    config.write_timeout = Some(Duration::from_secs(30));
    config.read_timeout = Some(READ_TIMEOUT);
    // Otherwise, the idle time of a pooled connection would count towards the timeout.
    config.reset_reader_on_write = true;
    Ok(config)
}

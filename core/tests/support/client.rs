//! A client without credentials, for tests.

use std::sync::Arc;

use declarest_core::server::{BaseUrl, Client, Gate, Settings, Throttling};

/// The client of the server at `base_url`; nothing is contacted yet.
pub fn client(base_url: &str) -> Client {
    throttled(base_url, &Throttling::default())
}

/// The same, with a gate of these settings.
#[expect(clippy::allow_attributes, reason = "not every test crate throttles")]
#[allow(dead_code, reason = "see above")]
pub fn throttled(base_url: &str, throttling: &Throttling) -> Client {
    // Another test of this process may have been first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let settings = Settings::new(BaseUrl::parse(base_url).unwrap());
    let gate = Arc::new(Gate::new(throttling).unwrap());
    Client::new(settings, gate, None).unwrap()
}

//! A client without credentials, for tests.

use std::sync::Arc;

use declarest_core::server::{BaseUrl, Client, Gate, Settings, Throttling};

/// The client of the server at `base_url`; nothing is contacted yet.
pub fn client(base_url: &str) -> Client {
    // Another test of this process may have been first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let settings = Settings::new(BaseUrl::parse(base_url).unwrap());
    let gate = Arc::new(Gate::new(&Throttling::default()).unwrap());
    Client::new(settings, gate, None).unwrap()
}

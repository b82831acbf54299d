//! A session on a directory, for tests of what users read and write. Nothing is contacted before a request is sent.

use std::path::Path;
use std::sync::Arc;

use declarest_core::metadata::openapi::OpenApi;
use declarest_core::metadata::{Api, Metadata};
use declarest_core::repository::{DirTree, Tree};
use declarest_core::server::{Auth, BaseUrl, Client, Gate, Settings, Throttling, TlsSettings};
use declarest_core::sync::Session;

/// The session of `root` with the server at `base_url`. If there is a file `openapi.yaml`, it describes the
/// server.
pub fn session(root: &Path, base_url: &str) -> Session {
    // Another test of this process may have been first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let tree: Arc<dyn Tree> = Arc::new(DirTree::open(root).unwrap());
    let mut metadata = Metadata::new(Arc::clone(&tree));
    if let Ok(described) = std::fs::read(root.join("openapi.yaml")) {
        metadata = metadata.with_api(Arc::new(Api::new(Arc::new(OpenApi::parse(&described).unwrap()), "")));
    }
    let settings = Settings {
        base_url: BaseUrl::parse(base_url).unwrap(),
        auth: Auth::None,
        tls: TlsSettings::default(),
        default_headers: Vec::new(),
        health_check: None,
    };
    let gate = Arc::new(Gate::new(&Throttling::default()).unwrap());
    Session::new(tree, Arc::new(metadata), Client::new(settings, gate, None).unwrap())
}

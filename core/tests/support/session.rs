//! A session on a directory, for tests of what users read and write. Nothing is contacted before a request is sent.

#[path = "client.rs"]
mod client;

use std::path::Path;
use std::sync::Arc;

use declarest_core::metadata::openapi::OpenApi;
use declarest_core::metadata::{Api, Metadata};
use declarest_core::repository::{DirTree, Tree};
use declarest_core::sync::Session;

/// The session of `root` with the server at `base_url`. If there is a file `openapi.yaml`, it describes the
/// server.
pub fn session(root: &Path, base_url: &str) -> Session {
    let tree: Arc<dyn Tree> = Arc::new(DirTree::open(root).unwrap());
    let mut metadata = Metadata::new(Arc::clone(&tree));
    if let Ok(described) = std::fs::read(root.join("openapi.yaml")) {
        metadata = metadata.with_api(Arc::new(Api::new(Arc::new(OpenApi::parse(&described).unwrap()), "")));
    }
    Session::new(tree, Arc::new(metadata), client::client(base_url))
}

//! What one run works with.

use std::sync::Arc;

use super::{Answers, Knowledge};
use crate::metadata::Metadata;
use crate::repository::Tree;
use crate::secrets::SecretReader;
use crate::server::Client;

/// Everything one run works with: one revision, one server, one set of compiled rules.
#[derive(Clone)]
pub struct Session {
    /// The desired state.
    pub tree: Arc<dyn Tree>,
    /// The rules of that revision.
    pub metadata: Arc<Metadata>,
    /// The managed server.
    pub client: Client,
    /// What earlier runs learned about it, and where this one adds what it learns.
    pub knowledge: Arc<Knowledge>,
    /// What the server answered just before.
    pub answers: Arc<Answers>,
    /// Where the values of placeholders come from; without a store a placeholder fails its resource.
    pub secrets: SecretReader,
}

impl Session {
    /// A session that knows nothing of earlier ones, and has no secret store.
    pub fn new(tree: Arc<dyn Tree>, metadata: Arc<Metadata>, client: Client) -> Self {
        let (knowledge, answers) = Default::default();
        Self { tree, metadata, client, knowledge, answers, secrets: SecretReader::new(None) }
    }
}

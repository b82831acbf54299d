//! The input of a run.

use std::sync::Arc;

use super::{Answers, Knowledge, Stop, WrittenValues};
use crate::metadata::Metadata;
use crate::repository::Tree;
use crate::secrets::SecretReader;
use crate::server::Client;

/// The input of a run: one revision, one server, one set of compiled rules.
#[derive(Clone)]
pub struct Session {
    /// The desired state.
    pub tree: Arc<dyn Tree>,
    /// The rules of that revision.
    pub metadata: Arc<Metadata>,
    /// The managed server.
    pub client: Client,
    /// The knowledge of earlier runs about the server. This run adds to it.
    pub knowledge: Arc<Knowledge>,
    /// Answers of the server to a recheck just before.
    pub answers: Arc<Answers>,
    /// The record of write-only attributes. Without it, they are written only together with other differences.
    pub written: Option<Arc<WrittenValues>>,
    /// The source of the values of placeholders. Without a store, a placeholder fails its resource.
    pub secrets: SecretReader,
}

impl Session {
    /// Returns a session without knowledge of earlier runs and without a secret store.
    pub fn new(tree: Arc<dyn Tree>, metadata: Arc<Metadata>, client: Client) -> Self {
        let (knowledge, answers) = Default::default();
        Self { tree, metadata, client, knowledge, answers, written: None, secrets: SecretReader::new(None) }
    }

    /// Returns the session with a client that sends no further requests after the run is asked to end.
    pub(crate) fn until(&self, stop: &Stop) -> Self {
        Self { client: stop.bounding(&self.client), ..self.clone() }
    }
}

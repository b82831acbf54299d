//! The input of a run.

use std::sync::Arc;
use std::time::Duration;

use super::{Answers, Knowledge, Stop, WrittenValues};
use crate::metadata::{Metadata, Rules};
use crate::payload::Value;
use crate::repository::Tree;
use crate::secrets::{Secret, SecretReader, is_placeholder};
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
    /// How long lists may not show a created resource; by default as long as a request may take.
    pub list_delay: Duration,
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
        let (knowledge, answers, written) = Default::default();
        let (list_delay, secrets) = (client.attempt_timeout(), SecretReader::new(None));
        Self { tree, metadata, client, knowledge, list_delay, answers, written, secrets }
    }

    /// Removes the names of the resource with this payload from messages, if `rules` take them from secrets.
    pub(crate) fn hide_names(&self, rules: &Rules, payload: &Value) {
        let (identity, hides) = (rules.identity(), [rules.has_secret_id(), rules.has_secret_alias()]);
        for (name, hides) in [identity.id(), identity.alias()].into_iter().zip(hides) {
            if hides
                && let Ok(name) = name.evaluate(payload)
                && !is_placeholder(&name)
            {
                self.secrets.add_shown(Secret::from(name));
            }
        }
    }

    /// Returns the session with a client that sends no further requests after the run is asked to end.
    pub(crate) fn until(&self, stop: &Stop) -> Self {
        Self { client: stop.bounding(&self.client), ..self.clone() }
    }
}

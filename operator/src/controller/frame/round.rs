//! One round of one object, and how it writes the status.

use std::sync::Arc;

use jiff::Timestamp;
use kube::Api;
use kube::api::{ApiResource, DynamicObject};
use serde_json::Value;

use crate::controller::conditions::{self, Verdict};
use crate::controller::context::Context;
use crate::controller::error::Failure;
use crate::controller::kind::{Key, Kind};
use crate::controller::outcome::{Fact, Outcome};
use crate::controller::status::{self, Judged};
use crate::telemetry;

/// One round of one object.
pub struct Round<'a, K: Kind> {
    pub context: &'a Arc<Context>,
    /// The object with expanded placeholders. It must never be written back or shown.
    pub object: K,
    /// The values that the validation of the object parsed.
    pub parsed: K::Parsed,
    /// The status of the object, which the round changes.
    pub status: K::Status,
    pub(super) stored: Option<Value>,
    /// The version of the object that the last write of its status returned.
    pub(super) written: Option<String>,
}

impl<K: Kind> Round<'_, K> {
    pub fn key(&self) -> Key {
        self.object.key()
    }

    pub fn generation(&self) -> i64 {
        self.object.meta().generation.unwrap_or_default()
    }

    /// Writes the status with the conditions of `outcome` after `failures` consecutive failures. This is done at
    /// the end of each round; long work may also do it in between.
    pub async fn publish(&mut self, outcome: &Outcome, failures: u32) -> Result<(), kube::Error> {
        // A process that was suspended may still run rounds while another replica leads and writes newer statuses.
        if !self.context.leadership.is_held() {
            return Ok(());
        }
        // Values of placeholders are not shown.
        let namespace = self.key().namespace;
        let shown = |text: &str| telemetry::conceal(&namespace, text).into_owned();
        let message = shown(&outcome.message);
        let facts: Vec<Fact> = outcome
            .conditions
            .iter()
            .map(|fact| Fact { message: shown(&fact.message), ..fact.clone() })
            .collect();
        let verdict = Verdict {
            reason: outcome.reason,
            message: &message,
            failures,
            facts: &facts,
            generation: self.generation(),
        };
        let previous = K::conditions_of(&self.status);
        let conditions = conditions::compute(previous, &verdict, Timestamp::now());
        self.context.metrics.conditions(K::NAME, self.key().subject(), previous, &conditions);
        K::observe(&mut self.status, verdict.generation, conditions);
        let mut status = serde_json::to_value(&self.status).map_err(kube::Error::SerdeError)?;
        status::conceal(&mut status, &shown);
        let resource = ApiResource::erase::<K>(&());
        let written = self.write(&resource, status).await;
        if let Some(failure) = written.as_ref().err().and_then(status::old_definition) {
            let reported = self.report(&resource, &failure).await;
            reported.unwrap_or_else(|error| tracing::debug!(%error, "cannot report the old definition"));
        }
        written
    }

    async fn write(&mut self, resource: &ApiResource, status: Value) -> Result<(), kube::Error> {
        let (client, object) = (&self.context.client, self.object.meta());
        let written = status::apply(client, resource, object, self.stored.as_ref(), &status).await?;
        self.stored = Some(status);
        self.written = written.or(self.written.take());
        Ok(())
    }

    /// Reports in the conditions that the status cannot be written: they would show the last success. All other fields stay
    /// as the API server has them.
    async fn report(&mut self, resource: &ApiResource, failure: &Failure) -> Result<(), kube::Error> {
        let (failures, generation) = (u32::MAX, self.generation());
        let (reason, message) = (failure.reason, &*failure.message);
        let verdict = Verdict { reason, message, failures, facts: &[], generation };
        // The cache has the object as it was before the definition was replaced.
        let Key { namespace, name } = self.key();
        let api: Api<DynamicObject> = Api::namespaced_with(self.context.client.clone(), &namespace, resource);
        self.stored = api.get(&name).await?.data.get("status").cloned();
        let Judged { previous, conditions, status } = Judged::new(self.stored.as_ref(), &verdict)?;
        self.context.metrics.conditions(K::NAME, self.key().subject(), &previous, &conditions);
        self.write(resource, status).await
    }
}

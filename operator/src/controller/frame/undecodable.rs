//! Objects that cannot be decoded.

use std::time::Duration;

use kube::api::{ApiResource, DynamicObject};
use kube::core::error_boundary::InvalidObject;
use kube::{Api, Resource as _};

use super::{Frame, Reconciler};
use crate::controller::conditions::{self, Verdict};
use crate::controller::kind::{Key, Kind as _};
use crate::controller::outcome::{Outcome, Reason};
use crate::controller::status::{self, Judged};

impl<R: Reconciler> Frame<R> {
    /// Reports an object that cannot be decoded, for example from before a schema change, in its status, its metrics and
    /// an event.
    pub(super) async fn report_undecodable(
        &self,
        key: &Key,
        invalid: &InvalidObject,
    ) -> Result<Option<Duration>, kube::Error> {
        let message =
            format!("the object cannot be decoded: {}; apply it again in the current schema", invalid.error);
        let outcome = Outcome::new(Reason::SpecInvalid, message);
        let message = &outcome.message;
        tracing::warn!(reason = outcome.reason.into_str(), detail = message, "reconcile failed");
        // A process that was suspended may still run rounds while another replica leads.
        if !self.context.leadership.is_held() {
            return Ok(None);
        }
        let resource = ApiResource::erase::<R::Kind>(&());
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.context.client.clone(), &key.namespace, &resource);
        let Some(object) = api.get_opt(&key.name).await? else { return Ok(None) };
        let generation = object.metadata.generation.unwrap_or_default();
        let current = object.data.get("status");
        let verdict = Verdict { reason: outcome.reason, message, failures: 1, facts: &[], generation };
        // Keep all other fields, because they are still valid when the object can be decoded again.
        let Judged { previous, conditions, status } = Judged::new(current, &verdict)?;
        self.context.metrics.conditions(R::Kind::NAME, key.subject(), &previous, &conditions);
        let written =
            status::apply(&self.context.client, &resource, &object.metadata, current, &status).await?;
        let reason_before = conditions::find(&previous, "Ready").map(|ready| ready.reason.as_str());
        self.announce(&object.object_ref(&resource), &outcome, reason_before).await;
        self.knows(key, written.or(object.metadata.resource_version));
        Ok(None)
    }
}

//! The end of a round: its status, events, and the time of the next round.

use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource as _;

use super::{Frame, Reconciler, Round};
use crate::controller::backoff;
use crate::controller::kind::{Key, Kind};
use crate::controller::outcome::{Notice, Outcome, Reason, Retry, Standing};
use crate::controller::status;
use crate::crd::insecure_settings;
use crate::telemetry;

impl<R: Reconciler> Frame<R> {
    pub(super) async fn conclude(
        &self,
        key: &Key,
        mut round: Round<'_, R::Kind>,
        outcome: Outcome,
        reason_before: Option<&str>,
    ) -> Result<Option<Duration>, kube::Error> {
        if outcome.quiet {
            self.knows(key, round.written);
            return Ok(next_look(&outcome, 0, round.object.interval()));
        }
        let counted = self.count(key, round.generation(), outcome.reason);
        let failures = outcome.failures.unwrap_or(counted);
        let reason = outcome.reason.into_str();
        if matches!(outcome.reason.retry(), Retry::After(_)) {
            tracing::info!(reason, detail = outcome.message, "waiting");
        } else if outcome.reason.is_failure() && !outcome.recalled {
            tracing::warn!(reason, failures, detail = outcome.message, "reconcile failed");
        } else {
            tracing::debug!(reason, detail = outcome.message, "reconciled");
        }
        telemetry::conclude_span(reason, outcome.reason.is_failure());
        let written = round.publish(&outcome, failures).await;
        self.knows(key, round.written.take());
        let reported = written.as_ref().err().and_then(status::old_definition).map(Outcome::from);
        let announced = reported.as_ref().unwrap_or(&outcome);
        self.announce(&round.object.object_ref(&()), announced, reason_before).await;
        written?;
        Ok(next_look(&outcome, failures, round.object.interval()))
    }

    /// Returns the number of consecutive failures, including this round. Waiting for another object is not a failure.
    fn count(&self, key: &Key, generation: i64, reason: Reason) -> u32 {
        match (reason.standing(), reason.retry()) {
            (_, Retry::Backoff) => self.failures.failed(key, generation),
            (Standing::Usable | Standing::Idle, _) => {
                self.failures.reset(key);
                0
            }
            _ => 0,
        }
    }

    pub(super) async fn announce(
        &self,
        object: &ObjectReference,
        outcome: &Outcome,
        reason_before: Option<&str>,
    ) {
        if !self.context.leadership.is_held() {
            return;
        }
        for notice in &outcome.notices {
            self.context.events.publish(object, notice).await;
        }
        let reason = outcome.reason.into_str();
        let warning = outcome.reason.is_failure();
        // The event of a success states more than the event of its reason.
        let is_announced = !warning && outcome.notices.iter().any(|notice| !notice.warning);
        if outcome.reason != Reason::Reconciling && reason_before != Some(reason) && !is_announced {
            for reason in [Some(reason), outcome.event].into_iter().flatten() {
                let notice = Notice { warning, reason, note: outcome.message.clone() };
                self.context.events.publish(object, &notice).await;
            }
        }
    }
}

/// Returns the wait before the next round if nothing changes; `None` means no further round.
pub(super) fn next_look(outcome: &Outcome, failures: u32, interval: Option<Duration>) -> Option<Duration> {
    outcome.requeue.or_else(|| match outcome.reason.retry() {
        Retry::Interval => interval.map(backoff::jitter),
        Retry::Backoff => Some(backoff::jitter(backoff::delay(failures, interval))),
        Retry::After(wait) => Some(backoff::jitter(wait)),
        Retry::OnChange => None,
    })
}

/// Returns a note about the insecure settings of the spec, if there are any.
pub(super) fn insecure_note<K: Kind>(object: &K) -> Result<Option<String>, kube::Error> {
    let spec = serde_json::to_value(object.spec()).map_err(kube::Error::SerdeError)?;
    let settings: Vec<String> = insecure_settings(&spec).iter().map(ToString::to_string).collect();
    Ok((!settings.is_empty()).then(|| format!("insecure: {}", settings.join(", "))))
}

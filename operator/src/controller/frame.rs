//! The reconcile loop of every controller: read the current object, finish a deletion, add the finalizer, expand
//! and validate the spec, do the work of the kind, write the status. A [`Reconciler`] is the part that differs
//! between kinds.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{FutureExt as _, Stream, StreamExt as _};
use jiff::Timestamp;
use kube::api::{ApiResource, DynamicObject, ObjectMeta, Patch, PatchParams};
use kube::core::error_boundary::InvalidObject;
use kube::core::object::HasStatus as _;
use kube::runtime::Controller;
use kube::runtime::controller::{self, Action};
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Resource as _};
use serde_json::{Value, json};
use tracing::Instrument as _;

use super::backoff::{self, Backoff};
use super::cache::{self, Cache, Change};
use super::conditions::{self, Verdict};
use super::context::{Context, Guarded};
use super::dependencies::Dependency;
use super::error::Failure;
use super::kind::{Key, Kind};
use super::outcome::{Notice, Outcome, Reason, Retry, Standing};
use super::status;

/// The finalizer that keeps an object until its files and pins are removed.
pub const FINALIZER: &str = "declarest.io/cleanup";

/// After this number of failed cleanups, the finalizer is removed anyway, so that the object can be deleted.
const CLEANUP_TRIES: u32 = 5;

/// The part of a controller that differs between kinds.
pub trait Reconciler: Send + Sync + 'static {
    type Kind: Kind;

    /// Annotations whose change triggers a round of work.
    const ANNOTATIONS: &'static [&'static str] = &[];

    /// Returns the Secrets and claims whose change triggers a round of work on `object`, which is expanded.
    fn dependencies(&self, context: &Context, object: &Self::Kind) -> BTreeSet<Dependency> {
        let _ = context;
        object.secret_refs().into_iter().map(|(_, secret)| Dependency::Secret(secret.name.clone())).collect()
    }

    /// Does one round of work on a validated object. Must be idempotent: it may be repeated at any time.
    fn reconcile(&self, round: &mut Round<'_, Self::Kind>) -> impl Future<Output = Outcome> + Send;

    /// Removes the files and pins of an object that is being deleted. Must be idempotent.
    fn cleanup(
        &self,
        context: &Context,
        object: &Guarded<Self::Kind>,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Removes a deleted object from memory.
    fn forget(&self, context: &Context, key: &Key);

    /// Called after each round.
    fn concluded(&self, round: &Round<'_, Self::Kind>, outcome: &Outcome, took: Duration) {
        let _ = (round, outcome, took);
    }
}

/// One round of work on one object.
pub struct Round<'a, K: Kind> {
    pub context: &'a Arc<Context>,
    /// The object with expanded placeholders. It must never be written back or shown.
    pub object: K,
    /// The values that the validation of the object parsed.
    pub parsed: K::Parsed,
    /// The status of the object, which the round changes.
    pub status: K::Status,
    stored: Option<Value>,
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
    pub async fn publish(&mut self, outcome: &Outcome, failures: u32) -> Result<bool, kube::Error> {
        let verdict = Verdict {
            reason: outcome.reason,
            message: &outcome.message,
            failures,
            facts: &outcome.conditions,
            generation: self.generation(),
        };
        let conditions = conditions::compute(K::conditions_of(&self.status), &verdict, Timestamp::now());
        let key = self.key();
        for condition in &conditions {
            self.context.metrics.condition(K::NAME, key.subject(), &condition.type_, &condition.status);
        }
        K::observe(&mut self.status, verdict.generation, conditions);
        let status = serde_json::to_value(&self.status).map_err(kube::Error::SerdeError)?;
        let resource = ApiResource::erase::<K>(&());
        let written =
            status::apply(&self.context.client, &resource, self.object.meta(), self.stored.as_ref(), &status)
                .await?;
        self.stored = Some(status);
        Ok(written)
    }
}

/// Runs one controller until `context.stop` is cancelled and the rounds in flight have ended. `wakeups` yields
/// objects to reconcile although they did not change themselves.
pub async fn run<R: Reconciler>(
    reconciler: R,
    context: Arc<Context>,
    objects: &Cache<Guarded<R::Kind>>,
    wakeups: impl Stream<Item = Key> + Send + 'static,
) {
    let frame = Arc::new(Frame {
        reconciler,
        context: Arc::clone(&context),
        failures: Backoff::default(),
        unanswered: Backoff::default(),
    });
    let metrics = Arc::clone(&context.metrics);
    metrics.open_queue(R::Kind::NAME);
    let changes = frame.changes(objects);
    let config = controller::Config::default().concurrency(context.settings.concurrency);
    Controller::for_stream(changes, objects.store())
        .with_config(config)
        .reconcile_on(wakeups.map({
            let metrics = Arc::clone(&metrics);
            move |key| {
                metrics.queued(R::Kind::NAME, key.subject(), Duration::ZERO);
                ObjectRef::new(&key.name).within(&key.namespace)
            }
        }))
        .graceful_shutdown_on(context.stop.clone().cancelled_owned())
        .run(Frame::round, |_, error: &Infallible, _| match *error {}, frame)
        .for_each(|result| {
            // Failures are handled in the round. This error is an object that was deleted while it was queued.
            if let Err(error) = result {
                tracing::debug!(controller = R::Kind::NAME, %error, "nothing to reconcile");
                if let controller::Error::ObjectNotFound(object) = error {
                    let key = Key::new(object.namespace.unwrap_or_default(), object.name);
                    metrics.dequeued(R::Kind::NAME, key.subject());
                }
            }
            futures::future::ready(())
        })
        .await;
}

struct Frame<R> {
    reconciler: R,
    context: Arc<Context>,
    /// Failed rounds and failed cleanups.
    failures: Backoff<Key>,
    /// Failed requests to the Kubernetes API.
    unanswered: Backoff<Key>,
}

impl<R: Reconciler> Frame<R> {
    /// Returns the changes that trigger a round. Removes deleted objects from memory.
    fn changes(
        self: &Arc<Self>,
        objects: &Cache<Guarded<R::Kind>>,
    ) -> impl Stream<Item = Result<Guarded<R::Kind>, kube::runtime::watcher::Error>> + Send + use<R> {
        let frame = Arc::clone(self);
        let mut relevant = cache::relevant(R::ANNOTATIONS);
        objects.subscribe().filter_map(move |change| {
            let wakes = relevant(&change);
            futures::future::ready(match change {
                Change::Present(object) if wakes => {
                    let key = Key::of(object.meta());
                    frame.context.metrics.queued(R::Kind::NAME, key.subject(), Duration::ZERO);
                    Some(Ok(object.as_ref().clone()))
                }
                Change::Present(_) => None,
                Change::Gone(object) => {
                    frame.forget(&Key::new(object.namespace.unwrap_or_default(), object.name));
                    None
                }
            })
        })
    }

    async fn round(seen: Arc<Guarded<R::Kind>>, frame: Arc<Self>) -> Result<Action, Infallible> {
        if frame.context.stop.is_cancelled() {
            return Ok(Action::await_change());
        }
        let key = Key::of(seen.meta());
        let span = tracing::info_span!(
            "reconcile",
            controller = R::Kind::NAME,
            namespace = key.namespace,
            name = key.name,
            reconcile_id = format!("{:08x}", fastrand::u32(..)),
        );
        let metrics = &frame.context.metrics;
        metrics.dequeued(R::Kind::NAME, key.subject());
        let next = frame.answered(&key).instrument(span).await;
        if let Some(wait) = next {
            metrics.queued(R::Kind::NAME, key.subject(), wait);
        }
        Ok(next.map_or_else(Action::await_change, Action::requeue))
    }

    /// Runs a round. If a request to the Kubernetes API fails, the round is repeated later. Returns the wait before the
    /// next round; `None` means no further round.
    async fn answered(&self, key: &Key) -> Option<Duration> {
        match self.advance(key).await {
            Ok(next) => {
                self.unanswered.reset(key);
                next
            }
            Err(error) => {
                let failures = self.unanswered.failed(key, 0);
                // Another client wrote first, or the object was deleted. The next round reads the object again.
                let race = matches!(&error, kube::Error::Api(status) if matches!(status.code, 404 | 409));
                if race && failures == 1 {
                    tracing::debug!(%error, "another client changed or deleted the object at the same time");
                    return Some(Duration::from_secs(1));
                }
                tracing::warn!(%error, failures, "a request to the Kubernetes API failed");
                Some(backoff::jitter(backoff::delay(failures, None)))
            }
        }
    }

    async fn advance(&self, key: &Key) -> Result<Option<Duration>, kube::Error> {
        let api: Api<Guarded<R::Kind>> = Api::namespaced(self.context.client.clone(), &key.namespace);
        // Read the current object, because the cache may not contain the operator's last write yet.
        let Some(current) = api.get_opt(&key.name).await? else {
            self.forget(key);
            return Ok(None);
        };
        if current.meta().deletion_timestamp.is_some() {
            return self.finish_deletion(key, &current).await;
        }
        // Add the finalizer before anything is created that it protects.
        match current.0 {
            Ok(mut object) => {
                if let Some(finalizers) = with_finalizer(object.meta()) {
                    let stored = self.set_finalizers(object.meta(), &finalizers).await?;
                    *object.meta_mut() = stored;
                }
                self.work(key, object).await
            }
            Err(invalid) => self.report_undecodable(key, &invalid).await,
        }
    }

    async fn work(&self, key: &Key, object: R::Kind) -> Result<Option<Duration>, kube::Error> {
        let started = Instant::now();
        let before = conditions::find(object.conditions(), "Ready").map(|ready| ready.reason.clone());
        let status = object.status().cloned();
        let stored =
            status.as_ref().map(serde_json::to_value).transpose().map_err(kube::Error::SerdeError)?;
        let status = status.unwrap_or_default();
        // Expand and validate the spec, then do the work of the kind.
        let expanded = self.context.settings.parsed(&object);
        let parsed = <R::Kind as Kind>::Parsed::default();
        let mut round = Round { context: &self.context, object, parsed, status, stored };
        let outcome = match expanded {
            Ok((expanded, parsed)) => {
                let uses = self.reconciler.dependencies(&self.context, &expanded);
                self.context.dependencies.set(R::Kind::NAME, key, uses);
                (round.object, round.parsed) = (expanded, parsed);
                self.reconcile(&mut round).await
            }
            Err(failure) => failure.into(),
        };
        // Record the outcome: metrics, status, events, and the time of the next round.
        self.reconciler.concluded(&round, &outcome, started.elapsed());
        self.conclude(key, round, outcome, before.as_deref()).await
    }

    /// Does the work of the kind and catches panics, because a bug that one object triggers must not stop the
    /// reconciliation of others.
    async fn reconcile(&self, round: &mut Round<'_, R::Kind>) -> Outcome {
        let status = round.status.clone();
        let work = AssertUnwindSafe(self.reconciler.reconcile(round)).catch_unwind().await;
        work.unwrap_or_else(|_| {
            // The work may have changed a part of the status only.
            round.status = status;
            Outcome::new(Reason::ReconcileFailed, "internal error; see the operator's log")
        })
    }

    async fn conclude(
        &self,
        key: &Key,
        mut round: Round<'_, R::Kind>,
        outcome: Outcome,
        reason_before: Option<&str>,
    ) -> Result<Option<Duration>, kube::Error> {
        let counted = self.count(key, round.generation(), outcome.reason);
        let failures = outcome.failures.unwrap_or(counted);
        let reason = outcome.reason.as_str();
        if matches!(outcome.reason.retry(), Retry::After(_)) {
            tracing::info!(reason, detail = outcome.message, "waiting");
        } else if outcome.reason.is_failure() {
            tracing::warn!(reason, failures, detail = outcome.message, "reconcile failed");
        } else {
            tracing::debug!(reason, detail = outcome.message, "reconciled");
        }
        let written = round.publish(&outcome, failures).await;
        self.announce(&round.object, &outcome, reason_before).await;
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

    async fn announce(&self, object: &R::Kind, outcome: &Outcome, reason_before: Option<&str>) {
        let reference = object.object_ref(&());
        for notice in &outcome.notices {
            self.context.events.publish(&reference, notice).await;
        }
        let reason = outcome.reason.as_str();
        if outcome.reason != Reason::Reconciling && reason_before != Some(reason) {
            let warning = outcome.reason.is_failure();
            for reason in [Some(reason), outcome.event].into_iter().flatten() {
                let notice = Notice { warning, reason, note: outcome.message.clone() };
                self.context.events.publish(&reference, &notice).await;
            }
        }
    }

    /// Reports an object that cannot be decoded, for example from before a schema change, in its status.
    async fn report_undecodable(
        &self,
        key: &Key,
        invalid: &InvalidObject,
    ) -> Result<Option<Duration>, kube::Error> {
        let message =
            format!("the object cannot be decoded: {}; apply it again in the current schema", invalid.error);
        tracing::warn!(reason = Reason::SpecInvalid.as_str(), detail = message, "reconcile failed");
        let resource = ApiResource::erase::<R::Kind>(&());
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.context.client.clone(), &key.namespace, &resource);
        let Some(object) = api.get_opt(&key.name).await? else { return Ok(None) };
        let generation = object.metadata.generation.unwrap_or_default();
        let current = object.data.get("status");
        let previous = current
            .and_then(|status| status.get("conditions"))
            .and_then(|conditions| serde_json::from_value(conditions.clone()).ok())
            .unwrap_or_else(Vec::new);
        let verdict =
            Verdict { reason: Reason::SpecInvalid, message: &message, failures: 1, facts: &[], generation };
        let conditions = conditions::compute(&previous, &verdict, Timestamp::now());
        // Keep all other fields, because they are still valid when the object can be decoded again.
        let mut status = current.cloned().unwrap_or_else(|| json!({}));
        status["observedGeneration"] = json!(generation);
        status["conditions"] = serde_json::to_value(conditions).map_err(kube::Error::SerdeError)?;
        status::apply(&self.context.client, &resource, &object.metadata, current, &status).await?;
        Ok(None)
    }

    async fn finish_deletion(
        &self,
        key: &Key,
        object: &Guarded<R::Kind>,
    ) -> Result<Option<Duration>, kube::Error> {
        // Without the finalizer, the operator has nothing to clean up, or has done it.
        let Some(remaining) = without_finalizer(object.meta()) else {
            self.forget(key);
            return Ok(None);
        };
        // Clean up. After several failures, release the object nevertheless.
        if let Err(failure) = self.reconciler.cleanup(&self.context, object).await {
            let tries = self.failures.failed(key, i64::MIN);
            let released = tries >= CLEANUP_TRIES;
            tracing::warn!(%failure, tries, released, "cleanup failed");
            let after = if released { "; giving up" } else { "" };
            let note = format!("try {tries} of {CLEANUP_TRIES}: {failure}{after}");
            let notice = Notice::warning("CleanupFailed", note);
            self.context.events.publish(&object.object_ref(&()), &notice).await;
            if !released {
                return Ok(Some(backoff::jitter(backoff::delay(tries, None))));
            }
        }
        // Release the object.
        self.set_finalizers(object.meta(), &remaining).await?;
        self.forget(key);
        Ok(None)
    }

    /// Replaces the finalizers of the version that was read, so that no concurrent change is lost.
    async fn set_finalizers(
        &self,
        object: &ObjectMeta,
        finalizers: &[String],
    ) -> Result<ObjectMeta, kube::Error> {
        let key = Key::of(object);
        let resource = ApiResource::erase::<R::Kind>(&());
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.context.client.clone(), &key.namespace, &resource);
        let patch = json!({
            "metadata": {
                "uid": object.uid,
                "resourceVersion": object.resource_version,
                "finalizers": finalizers,
            }
        });
        Ok(api.patch(&key.name, &PatchParams::default(), &Patch::Merge(patch)).await?.metadata)
    }

    fn forget(&self, key: &Key) {
        self.failures.reset(key);
        self.unanswered.reset(key);
        self.context.dependencies.set(R::Kind::NAME, key, BTreeSet::new());
        self.context.metrics.forget(R::Kind::NAME, key.subject());
        self.reconciler.forget(&self.context, key);
    }
}

/// Returns the wait before the next round if nothing changes; `None` means no further round.
fn next_look(outcome: &Outcome, failures: u32, interval: Option<Duration>) -> Option<Duration> {
    outcome.requeue.or_else(|| match outcome.reason.retry() {
        Retry::Interval => interval.map(backoff::jitter),
        Retry::Backoff => Some(backoff::jitter(backoff::delay(failures, interval))),
        Retry::After(wait) => Some(backoff::jitter(wait)),
        Retry::OnChange => None,
    })
}

/// Returns the finalizers with the operator's, or `None` if it is already there.
fn with_finalizer(object: &ObjectMeta) -> Option<Vec<String>> {
    let present = object.finalizers.clone().unwrap_or_default();
    (!present.iter().any(|finalizer| finalizer == FINALIZER))
        .then(|| present.into_iter().chain([FINALIZER.to_owned()]).collect())
}

/// Returns the finalizers without the operator's, or `None` if it is not there.
fn without_finalizer(object: &ObjectMeta) -> Option<Vec<String>> {
    let present = object.finalizers.as_deref().unwrap_or_default();
    present
        .iter()
        .any(|finalizer| finalizer == FINALIZER)
        .then(|| present.iter().filter(|finalizer| *finalizer != FINALIZER).cloned().collect())
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;

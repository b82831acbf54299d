//! The reconcile loop of every controller: read the current object, expand and validate the spec, do the work of the
//! kind, write the status, and clean up after a deleted object. A [`Reconciler`] is the part that differs between kinds.
//!
//! Objects have no finalizer: a deleted object leaves only files in the operator's own directories, and the operator
//! removes these also at its next start. So objects can be deleted while the operator does not run.
//!
//! ```text
//! round          one round of one object, and how it writes the status
//! finalizer      the finalizer of earlier versions
//! conclude       the end of a round
//! undecodable    objects that cannot be decoded
//! ```

mod conclude;
mod finalizer;
mod round;
#[cfg(test)]
mod tests;
mod undecodable;

use std::collections::{BTreeSet, HashMap};
use std::convert::Infallible;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{FutureExt as _, Stream, StreamExt as _, stream};
use kube::core::object::HasStatus as _;
use kube::runtime::Controller;
use kube::runtime::controller::{self, Action};
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Resource as _};
use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;

use super::backoff::{self, Backoff};
use super::cache::{self, Cache, Change};
use super::conditions;
use super::context::{Context, Guarded};
use super::dependencies::Dependency;
use super::error::Failure;
use super::identity::Turns;
use super::kind::{Key, Kind};
use super::outcome::{Notice, Outcome, Reason};
use super::volumes;
use super::workers::{Demand, Workers};
use conclude::insecure_note;
use finalizer::without_former_finalizer;
pub use round::Round;

/// The part of a controller that differs between kinds.
pub trait Reconciler: Send + Sync + 'static {
    type Kind: Kind;

    /// Annotations whose change triggers a round.
    const ANNOTATIONS: &'static [&'static str] = &[];

    /// Returns the Secrets and claims whose change triggers a round of `object`, which is expanded.
    fn dependencies(&self, context: &Context, object: &Self::Kind) -> BTreeSet<Dependency> {
        let _ = context;
        let secrets = object.secret_refs().into_iter().map(|(_, secret)| Dependency::Secret(secret.name));
        secrets.chain(volumes::claim_name(object).map(Dependency::Claim)).collect()
    }

    /// Returns whether a round of `object` needs a worker, and whose share it uses. The object is not expanded.
    fn demand(&self, context: &Context, object: &Self::Kind) -> Demand {
        let _ = (context, object);
        Demand::Worker
    }

    /// Does the work of one round on a validated object. Must be idempotent: it may be repeated at any time.
    fn reconcile(&self, round: &mut Round<'_, Self::Kind>) -> impl Future<Output = Outcome> + Send;

    /// Removes the files and pins of a deleted object. No round of the object runs meanwhile.
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
        workers: Workers::new(context.settings.workers),
        objects: objects.clone(),
        versions: Mutex::default(),
        context: Arc::clone(&context),
        turns: Turns::default(),
        deleted: Mutex::default(),
        failures: Backoff::default(),
        unanswered: Backoff::default(),
    });
    let metrics = Arc::clone(&context.metrics);
    metrics.open_queue(R::Kind::NAME);
    let changes = frame.changes(objects);
    let wakeups = stream::select(wakeups, frame.moved());
    // Every round starts at once, and waits for a worker. It is a task, because all of them would be polled at each
    // wake-up of one of them.
    Controller::for_stream(changes, objects.store())
        .with_config(controller::Config::default().concurrency(0))
        .reconcile_on(wakeups.map({
            let metrics = Arc::clone(&metrics);
            move |key| {
                metrics.queued(R::Kind::NAME, key.subject(), Duration::ZERO);
                ObjectRef::new(&key.name).within(&key.namespace)
            }
        }))
        .graceful_shutdown_on(context.stop.clone().cancelled_owned())
        .run(
            |object, frame| {
                let round = tokio::spawn(Frame::round(object, frame).in_current_span());
                AbortOnDropHandle::new(round).map(|ended| {
                    Ok(ended.unwrap_or_else(|error| {
                        tracing::error!(controller = R::Kind::NAME, %error, "a round failed");
                        Action::requeue(backoff::delay(u32::MAX, None))
                    }))
                })
            },
            |_, error: &Infallible, _| match *error {},
            frame,
        )
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

/// Objects by name: several of one name if it was used again.
type Deleted<K> = HashMap<Key, Vec<Arc<Guarded<K>>>>;

struct Frame<R: Reconciler> {
    reconciler: R,
    context: Arc<Context>,
    workers: Arc<Workers>,
    objects: Cache<Guarded<R::Kind>>,
    /// The version of each object that this process wrote or read last.
    versions: Mutex<HashMap<Key, String>>,
    /// A round and a cleanup of the same object exclude each other.
    turns: Turns,
    /// Deleted objects that are not cleaned up yet.
    deleted: Mutex<Deleted<R::Kind>>,
    /// Failed rounds.
    failures: Backoff,
    /// Failed requests to the Kubernetes API.
    unanswered: Backoff,
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
                    frame.workers.revise(&key, &frame.demand(&object));
                    Some(Ok(object.as_ref().clone()))
                }
                Change::Present(_) => None,
                Change::Gone(object) => {
                    let key = Key::of(object.meta());
                    frame.deleted.lock().entry(key.clone()).or_default().push(object);
                    let frame = Arc::clone(&frame);
                    tokio::spawn(async move {
                        drop(frame.turn(&key).await);
                        frame.turns.forget(&key);
                    });
                    None
                }
            })
        })
    }

    /// Returns the objects of namespaces that this process gains or has left, and forgets them: they may change while
    /// another process has them, and it shows their metrics. The round of an object that is not of this process is empty.
    fn moved(self: &Arc<Self>) -> impl Stream<Item = Key> + Send + use<R> {
        let frame = Arc::clone(self);
        self.context.namespaces.moved().flat_map(move |namespace| {
            let names = frame.objects.names(&namespace);
            let keys: Vec<Key> = names.into_iter().map(|name| Key::new(namespace.clone(), name)).collect();
            for key in &keys {
                frame.forget(key);
            }
            stream::iter(keys)
        })
    }

    fn demand(&self, object: &Guarded<R::Kind>) -> Demand {
        match &object.0 {
            Ok(object) if object.meta().deletion_timestamp.is_none() => {
                self.reconciler.demand(&self.context, object)
            }
            _ => Demand::Nothing,
        }
    }

    async fn round(seen: Arc<Guarded<R::Kind>>, frame: Arc<Self>) -> Action {
        let key = Key::of(seen.meta());
        let metrics = &frame.context.metrics;
        if frame.context.namespaces.left(&key.namespace).is_cancelled() {
            metrics.dequeued(R::Kind::NAME, key.subject());
            return Action::await_change();
        }
        let _worker = tokio::select! {
            biased;
            () = frame.context.stop.cancelled() => return Action::await_change(),
            worker = frame.workers.enter(&key, frame.demand(&seen)) => worker,
        };
        metrics.dequeued(R::Kind::NAME, key.subject());
        // Another shard may have the namespace, or get it. Then this round ends before the other shard begins.
        let Some(_stay) = frame.context.namespaces.enter(&key.namespace) else {
            return Action::await_change();
        };
        let span = tracing::info_span!(
            "reconcile",
            controller = R::Kind::NAME,
            namespace = key.namespace,
            name = key.name,
            reconcile_id = format!("{:08x}", fastrand::u32(..)),
        );
        let next = async {
            let _turn = frame.turn(&key).await;
            frame.answered(&key).await
        };
        let next = next.instrument(span).await;
        if let Some(wait) = next {
            metrics.queued(R::Kind::NAME, key.subject(), wait);
        }
        next.map_or_else(Action::await_change, Action::requeue)
    }

    /// Waits until no other round or cleanup of the object runs, and cleans up after deleted objects of this name. If
    /// this fails, an event reports it, and the next start of the operator repeats it.
    async fn turn(&self, key: &Key) -> OwnedMutexGuard<()> {
        let turn = self.turns.wait(key).await;
        let deleted = self.deleted.lock().remove(key).unwrap_or_default();
        for object in &deleted {
            if let Err(failure) = self.reconciler.cleanup(&self.context, object).await {
                tracing::warn!(controller = R::Kind::NAME, object = %key, %failure, "cleanup failed");
                let notice = Notice::warning("CleanupFailed", failure.message);
                self.context.events.publish(&object.object_ref(&()), &notice).await;
            }
        }
        if !deleted.is_empty() {
            self.forget(key);
        }
        turn
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
        let Some(current) = self.current(key).await? else {
            self.forget(key);
            return Ok(None);
        };
        if let Some(finalizers) = without_former_finalizer(current.meta()) {
            self.set_finalizers(current.meta(), &finalizers).await?;
        }
        // Another finalizer holds the object.
        if current.meta().deletion_timestamp.is_some() {
            return Ok(None);
        }
        match current.0 {
            Ok(object) => self.work(key, object).await,
            Err(invalid) => self.report_undecodable(key, &invalid).await,
        }
    }

    /// Returns the current object; `None` if it does not exist. The cache is used if it contains the last write of this
    /// process.
    async fn current(&self, key: &Key) -> Result<Option<Guarded<R::Kind>>, kube::Error> {
        let Some(cached) = self.objects.object(&key.namespace, &key.name) else { return Ok(None) };
        let known = self.versions.lock().get(key).cloned();
        if known.is_none() || known == cached.meta().resource_version {
            return Ok(Some(cached.as_ref().clone()));
        }
        let api: Api<Guarded<R::Kind>> = Api::namespaced(self.context.client.clone(), &key.namespace);
        let read = api.get_opt(&key.name).await?;
        self.knows(key, read.as_ref().and_then(|object| object.meta().resource_version.clone()));
        Ok(read)
    }

    /// Records the version of an object that this process wrote or read.
    fn knows(&self, key: &Key, version: Option<String>) {
        if let Some(version) = version {
            self.versions.lock().insert(key.clone(), version);
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
        let insecure = insecure_note(&object)?;
        let before_message =
            conditions::find(object.conditions(), "Ready").map(|ready| ready.message.clone());
        let expanded = self.context.parsed(&object);
        let parsed = <R::Kind as Kind>::Parsed::default();
        let mut round = Round { context: &self.context, object, parsed, status, stored, written: None };
        let mut outcome = match expanded {
            Ok((expanded, parsed)) => {
                let uses = self.reconciler.dependencies(&self.context, &expanded);
                self.context.dependencies.set(R::Kind::NAME, key, uses);
                (round.object, round.parsed) = (expanded, parsed);
                self.reconcile(&mut round).await
            }
            Err(failure) => failure.into(),
        };
        if let Some(note) = insecure.filter(|_| outcome.reason == Reason::Ready) {
            if !before_message.is_some_and(|message| message.ends_with(&note)) {
                outcome.notices.push(Notice::warning("Insecure", note.clone()));
            }
            outcome.message = format!("{}; {note}", outcome.message);
        }
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

    fn forget(&self, key: &Key) {
        self.versions.lock().remove(key);
        self.failures.reset(key);
        self.unanswered.reset(key);
        self.context.dependencies.set(R::Kind::NAME, key, BTreeSet::new());
        self.context.metrics.forget(R::Kind::NAME, key.subject());
        self.reconciler.forget(&self.context, key);
    }
}

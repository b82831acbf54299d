//! Executing plans: parents before children, then deletions, children before parents.
//!
//! ```text
//! given    ids that the server gave to what was created
//! order    which actions wait for which
//! write    one action
//! ```

mod given;
mod order;
mod write;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, Semaphore};

use super::plan::Plan;
use crate::path::LogicalPath;
use crate::sync::model::{
    Action, Call, Done, Failure, Kept, PRUNE, PruneRefused, Reason, Recurrences, Report, Sending, Session,
    Stats, Step, Stop, SyncError, Tally, hide,
};
use order::{Order, execute};
use write::Writer;

/// How many requests are made ready while others are sent: reading the payload and its secrets takes time.
const AHEAD: usize = 32;

/// What was done so far of the plans of one run.
pub struct Execution {
    session: Session,
    sender: Arc<Sender>,
    watched: bool,
    tally: Tally,
    stats: Stats,
    failures: Vec<Failure>,
    kept: Vec<Kept>,
    prune_refused: Option<PruneRefused>,
    /// Creates that failed.
    missing: Vec<LogicalPath>,
    stop: Stop,
}

impl Execution {
    pub fn new(
        session: &Session,
        recurrences: Option<Arc<Recurrences>>,
        whole_scope: bool,
        stop: &Stop,
    ) -> Self {
        let tally = Tally::new(recurrences.as_deref().cloned().unwrap_or_default(), whole_scope);
        let watched = recurrences.is_some();
        let slots = Semaphore::new(session.client.max_concurrency());
        let writer = Writer::new(session, recurrences);
        let sender = Arc::new(Sender { writer, slots, addresses: Mutex::default(), stop: stop.clone() });
        Self {
            session: session.clone(),
            sender,
            watched,
            tally,
            stats: Stats::default(),
            failures: Vec::new(),
            kept: Vec::new(),
            prune_refused: None,
            missing: Vec::new(),
            stop: stop.clone(),
        }
    }

    /// Sends everything that `plan` holds.
    pub async fn apply(&mut self, plan: Plan) {
        let Plan { actions, unchanged, targeted, failures, kept, prune_refused, given, .. } = plan;
        for failure in &failures {
            self.tally.skipped(&failure.path);
        }
        self.failures.extend(failures);
        self.kept.extend(kept);
        self.prune_refused = self.prune_refused.take().or(prune_refused);
        self.stats.targeted += targeted;
        self.stats.unchanged += unchanged;
        self.sender.writer.give(given);
        let (mut writes, mut deletions) = (Vec::new(), Vec::new());
        for action in actions {
            match action.step {
                Step::Skip if self.tally.done(&action, Done { step: Step::Skip, in_vain: None }) => {
                    self.stats.failed += 1;
                }
                Step::Skip => self.stats.unchanged += 1,
                Step::Create | Step::Update => writes.push(Arc::new(action)),
                Step::Delete => deletions.push(Arc::new(action)),
            }
        }
        self.write(writes).await;
        self.delete(deletions).await;
    }

    async fn write(&mut self, writes: Vec<Arc<Action>>) {
        let order = Order::parents_first(&writes, &self.missing);
        let sender = &self.sender;
        let work = |action, failed_parent| Arc::clone(sender).write(action, failed_parent);
        let note = |action: &Action, outcome| match outcome {
            Ok(done) if self.tally.done(action, done) => self.stats.failed += 1,
            Ok(Done { step: Step::Create, .. }) => self.stats.created += 1,
            Ok(Done { step: Step::Update, .. }) => self.stats.updated += 1,
            Ok(_) => self.stats.unchanged += 1,
            Err(error) => {
                self.tally.skipped(&action.path);
                if action.step == Step::Create {
                    self.missing.push(action.path.clone());
                }
                // The plan said already why its request cannot be made.
                if !action.is_impossible() {
                    self.failures.push(failure(action, &error));
                }
            }
        };
        execute(writes, order, sender.slots.available_permits().max(1) + AHEAD, work, note).await;
    }

    async fn delete(&mut self, mut deletions: Vec<Arc<Action>>) {
        deletions.retain(|action| match moved_to(&action.path, &self.missing) {
            None => true,
            Some(created) => {
                let reason = format!(
                    "{}: {created}, which may be the same resource below a renamed parent, could not be created",
                    action.path
                );
                self.failures.push(failure(action, &SyncError::NotDeleted(reason)));
                false
            }
        });
        let order = Order::children_first(&deletions);
        let sender = &self.sender;
        let work = |action, _| Arc::clone(sender).delete(action);
        let note = |action: &Action, outcome| match outcome {
            Ok(done) => {
                self.tally.done(action, done);
                self.stats.pruned += 1;
            }
            Err(error) => self.failures.push(failure(action, &error)),
        };
        execute(deletions, order, sender.slots.available_permits().max(1), work, note).await;
    }

    /// The report on all of it.
    pub fn finish(self) -> Report {
        let Self { session, watched, tally, mut stats, failures, kept, prune_refused, stop, .. } = self;
        stats.applied = stats.created + stats.updated + stats.unchanged;
        let recurrences = watched.then_some(tally.seen);
        let mut report = Report { kept, ..Report::new(stats, failures, prune_refused, recurrences, &stop) };
        hide(report.failures.iter_mut().chain(&mut report.unsettled), &session.secrets);
        report
    }
}

/// The create that failed and may have been to replace the resource at `path` below a renamed parent: it differs from
/// it in names above the last one.
fn moved_to<'m>(path: &LogicalPath, missing: &'m [LogicalPath]) -> Option<&'m LogicalPath> {
    let is_moved = |created: &&LogicalPath| {
        created.name() == path.name()
            && *created != path
            && created.segments().count() == path.segments().count()
            && created.segments().next() == path.segments().next()
    };
    missing.iter().find(is_moved)
}

/// What the tasks of one run share.
struct Sender {
    writer: Writer,
    /// One for each request that the gate may ever let through at once. What waits here can still be stopped.
    slots: Semaphore,
    /// Addresses that are written to: several resources may share one.
    addresses: Mutex<HashMap<String, Arc<RwLock<()>>>>,
    stop: Stop,
}

impl Sender {
    async fn write(
        self: Arc<Self>,
        action: Arc<Action>,
        failed_parent: Option<LogicalPath>,
    ) -> Result<Done, SyncError> {
        match failed_parent {
            Some(parent) => Err(SyncError::ParentFailed(action.path.clone(), parent)),
            None => self.send(&action).await,
        }
    }

    async fn delete(self: Arc<Self>, action: Arc<Action>) -> Result<Done, SyncError> {
        self.send(&action).await
    }

    async fn send(&self, action: &Action) -> Result<Done, SyncError> {
        self.stop.check(&action.path)?;
        if let Sending::Impossible = action.sending {
            let reason = "its request cannot be made".to_owned();
            return Err(SyncError::NotAttempted(action.path.clone(), reason));
        }
        let outcome = match self.writer.prepare(action).await {
            Ok(call) => {
                let call_of = call.as_deref().or(action.call());
                let _turn = match call_of {
                    Some(call) => Some(self.turn(call).await),
                    None => None,
                };
                // It is never closed.
                let _slot = self.slots.acquire().await.ok();
                self.stop.check(&action.path)?;
                self.writer.write(action, call.as_deref()).await
            }
            Err(error) => Err(error),
        };
        let outcome = self.stop.outcome(&action.path, outcome);
        self.stop.note(outcome.as_ref().err());
        tracing::debug!(path = %action.path, step = ?action.step, ok = outcome.is_ok(), "resource written");
        outcome
    }

    /// Waits for the turn of `call` at its address. POST adds to a collection, where several may go on at once, but none
    /// beside another write.
    async fn turn(&self, call: &Call) -> Turn {
        let address = {
            let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
            // Those that no action waits for are of no further use.
            if addresses.len() > 1024 {
                addresses.retain(|_, address| Arc::strong_count(address) > 1);
            }
            Arc::clone(addresses.entry(call.request.path.clone()).or_default())
        };
        if call.request.method == http::Method::POST {
            Turn::Shared(address.read_owned().await)
        } else {
            Turn::Alone(address.write_owned().await)
        }
    }
}

/// The right to write to an address, held until it is dropped.
enum Turn {
    Shared(#[expect(dead_code, reason = "it is held")] OwnedRwLockReadGuard<()>),
    Alone(#[expect(dead_code, reason = "it is held")] OwnedRwLockWriteGuard<()>),
}

fn failure(action: &Action, error: &SyncError) -> Failure {
    let operation = match action.step {
        Step::Create => "create",
        Step::Update => "update",
        Step::Delete if action.reason == Reason::Requested => "delete",
        Step::Delete => PRUNE,
        Step::Skip => "read",
    };
    Failure::new(action.path.clone(), operation, error)
}

//! Executing a plan: parents before children, then deletions, children before parents.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::plan::{Action, Plan, Reason, Step};
use super::recurrence::{After, Done, Tally};
use super::report::{Failure, PRUNE, Stats};
use super::write::Writer;
use super::{Report, Session, Stop, SyncError, joined};
use crate::path::LogicalPath;

/// Sends everything that `plan` holds and reports on all of it. `stop` is looked at before each request.
pub async fn apply(session: &Session, plan: Plan, stop: &Stop) -> Report {
    let session = &stop.bounding(session);
    let Plan { actions, unchanged, targeted, mut failures, prune_refused, .. } = plan;
    let Plan { given, recurrences, whole_scope, .. } = plan;
    let mut tally = Tally::new(recurrences.as_deref().cloned().unwrap_or_default(), whole_scope);
    for failure in &failures {
        tally.skipped(&failure.path);
    }
    let watched = recurrences.is_some();
    let concurrency = session.client.max_concurrency();
    let sender = Arc::new(Sender {
        writer: Writer::new(session, given, recurrences),
        slots: Semaphore::new(concurrency),
        stop: stop.clone(),
    });
    let mut stats = Stats { targeted, unchanged, ..Stats::default() };
    let (mut writes, mut deletions) = (Vec::new(), Vec::new());
    for action in actions {
        match action.step {
            Step::Skip if tally.done(&action, Done { step: Step::Skip, after: After::Unknown }) => {
                stats.failed += 1;
            }
            Step::Skip => stats.unchanged += 1,
            Step::Create | Step::Update => writes.push(action),
            Step::Delete => deletions.push(action),
        }
    }

    let (writes, deletions) = (shared(writes), shared(deletions));
    let order = Order::parents_first(&writes);
    let work = |action, failed_parent| Arc::clone(&sender).write(action, failed_parent);
    let note = |action: &Action, outcome| match outcome {
        Ok(done) if tally.done(action, done) => stats.failed += 1,
        Ok(Done { step: Step::Create, .. }) => stats.created += 1,
        Ok(Done { step: Step::Update, .. }) => stats.updated += 1,
        Ok(_) => stats.unchanged += 1,
        Err(error) => {
            tally.skipped(&action.path);
            failures.push(failure(action, &error));
        }
    };
    execute(writes, order, concurrency + AHEAD, work, note).await;
    stats.applied = stats.created + stats.updated + stats.unchanged;

    let order = Order::children_first(&deletions);
    let work = |action, _| Arc::clone(&sender).delete(action);
    let note = |action: &Action, outcome| match outcome {
        Ok(done) => {
            tally.done(action, done);
            stats.pruned += 1;
        }
        Err(error) => failures.push(failure(action, &error)),
    };
    execute(deletions, order, concurrency, work, note).await;
    Report::new(stats, failures, prune_refused, watched.then(|| tally.finish()), stop)
}

/// Each goes to the task that sends it.
fn shared(actions: Vec<Action>) -> Vec<Arc<Action>> {
    actions.into_iter().map(Arc::new).collect()
}

/// How many requests are made ready while others are sent: reading the payload and its secrets takes time.
const AHEAD: usize = 32;

/// What the tasks of one run share.
struct Sender {
    writer: Writer,
    /// One for each request that the gate may ever let through at once. Who waits here can still be stopped.
    slots: Semaphore,
    stop: Stop,
}

impl Sender {
    async fn write(
        self: Arc<Self>,
        action: Arc<Action>,
        failed_parent: Option<LogicalPath>,
    ) -> Result<Done, SyncError> {
        match failed_parent {
            Some(parent) => Err(SyncError::ParentFailed { path: action.path.clone(), parent }),
            None => self.send(&action).await,
        }
    }

    async fn delete(self: Arc<Self>, action: Arc<Action>) -> Result<Done, SyncError> {
        match self.send(&action).await {
            Err(error) if error.is_gone() => Ok(Done { step: Step::Delete, after: After::Unknown }),
            outcome => outcome,
        }
    }

    async fn send(&self, action: &Action) -> Result<Done, SyncError> {
        self.stop.check(&action.path)?;
        let outcome = match self.writer.prepare(action).await {
            Ok(call) => {
                // It is never closed.
                let _slot = self.slots.acquire().await.ok();
                self.stop.check(&action.path)?;
                self.writer.write(action, call.as_deref()).await
            }
            Err(error) => Err(error),
        };
        let outcome = self.stop.told(&action.path, outcome);
        self.stop.note(outcome.as_ref().err());
        tracing::debug!(path = %action.path, step = ?action.step, ok = outcome.is_ok(), "resource written");
        outcome
    }
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

/// Which actions wait for which: a graph over indices, not levels, so that nobody waits without need.
struct Order {
    /// How many actions each one waits for.
    waits_for: Vec<usize>,
    /// Who waits for each one.
    releases: Vec<Vec<usize>>,
    /// Whether a failed creation condemns those who wait for it.
    condemns: bool,
}

impl Order {
    /// Each action waits for its nearest ancestor among the actions.
    fn parents_first(actions: &[Arc<Action>]) -> Self {
        let mut order = Self::unordered(actions.len(), true);
        for (child, parent) in nearest_ancestors(actions) {
            order.waits_for[child] = 1;
            order.releases[parent].push(child);
        }
        order
    }

    /// Each action waits for its descendants among the actions.
    fn children_first(actions: &[Arc<Action>]) -> Self {
        let mut order = Self::unordered(actions.len(), false);
        for (child, parent) in nearest_ancestors(actions) {
            order.waits_for[parent] += 1;
            order.releases[child].push(parent);
        }
        order
    }

    fn unordered(len: usize, condemns: bool) -> Self {
        Self { waits_for: vec![0; len], releases: vec![Vec::new(); len], condemns }
    }
}

/// Pairs of (descendant, nearest ancestor) by index.
fn nearest_ancestors(actions: &[Arc<Action>]) -> Vec<(usize, usize)> {
    let places: HashMap<&LogicalPath, usize> =
        actions.iter().enumerate().map(|(place, action)| (&action.path, place)).collect();
    let nearest = |path: &LogicalPath| path.ancestors().find_map(|ancestor| places.get(&ancestor).copied());
    actions.iter().enumerate().filter_map(|(place, action)| Some((place, nearest(&action.path)?))).collect()
}

/// Runs `work` over `actions` in `order`, each in a task of its own and at most `concurrency` at once, and tells
/// `note` what came of each. `work` is told the ancestor whose creation failed, if one did.
async fn execute<F>(
    actions: Vec<Arc<Action>>,
    order: Order,
    concurrency: usize,
    work: impl Fn(Arc<Action>, Option<LogicalPath>) -> F,
    mut note: impl FnMut(&Action, Result<Done, SyncError>),
) where
    F: Future<Output = Result<Done, SyncError>> + Send + 'static,
{
    let Order { mut waits_for, releases, condemns } = order;
    let mut failed_parents: HashMap<usize, LogicalPath> = HashMap::new();
    let mut ready: VecDeque<usize> = (0..actions.len()).filter(|place| waits_for[*place] == 0).collect();
    let mut running = JoinSet::new();
    loop {
        while running.len() < concurrency
            && let Some(place) = ready.pop_front()
        {
            let future = work(Arc::clone(&actions[place]), failed_parents.remove(&place));
            running.spawn(async move { (place, future.await) });
        }
        let Some((place, outcome)) = running.join_next().await.and_then(joined) else { break };
        let action = &actions[place];
        let lost = condemns && outcome.is_err() && action.step == Step::Create;
        for &next in &releases[place] {
            waits_for[next] -= 1;
            if lost {
                failed_parents.insert(next, action.path.clone());
            }
            if waits_for[next] == 0 {
                ready.push_back(next);
            }
        }
        note(action, outcome);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    fn actions(paths: &[&str], step: Step) -> Vec<Arc<Action>> {
        let action =
            |path: &&str| Arc::new(Action::new(LogicalPath::parse(path).unwrap(), step, Reason::Missing));
        paths.iter().map(action).collect()
    }

    async fn sequence(actions: Vec<Arc<Action>>, order: Order, failing: &str) -> Vec<String> {
        let seen = Mutex::new(Vec::new());
        let work = |action: Arc<Action>, failed_parent: Option<LogicalPath>| {
            let mark = if failed_parent.is_some() { "!" } else { "" };
            seen.lock().unwrap().push(format!("{mark}{}", action.path));
            let path = action.path.clone();
            let outcome = match failed_parent {
                Some(parent) => Err(SyncError::ParentFailed { path, parent }),
                None if path.as_str() == failing => {
                    Err(SyncError::NotAttempted { path, reason: String::new() })
                }
                None => Ok(Done { step: action.step, after: After::Unknown }),
            };
            async move { outcome }
        };
        // One at a time: of two tasks, either may end first.
        execute(actions, order, 1, work, |_, _| ()).await;
        seen.into_inner().unwrap()
    }

    #[tokio::test]
    async fn parents_before_children_whatever_the_gap() {
        let actions = actions(&["/a", "/a/x/y", "/b", "/a/x/y/z"], Step::Create);
        let order = Order::parents_first(&actions);
        let seen = sequence(actions, order, "").await;
        assert_eq!(seen, ["/a", "/b", "/a/x/y", "/a/x/y/z"]);
    }

    #[tokio::test]
    async fn a_failed_creation_condemns_all_its_descendants() {
        let actions = actions(&["/a", "/a/b", "/a/b/c", "/d"], Step::Create);
        let order = Order::parents_first(&actions);
        let seen = sequence(actions, order, "/a").await;
        assert_eq!(seen, ["/a", "/d", "!/a/b", "!/a/b/c"]);
    }

    #[tokio::test]
    async fn a_failed_update_condemns_nobody() {
        let actions = actions(&["/a", "/a/b"], Step::Update);
        let order = Order::parents_first(&actions);
        let seen = sequence(actions, order, "/a").await;
        assert_eq!(seen, ["/a", "/a/b"]);
    }

    #[tokio::test]
    async fn deletions_go_children_first_and_on_after_a_failure() {
        let actions = actions(&["/a", "/a/b", "/a/c/d"], Step::Delete);
        let order = Order::children_first(&actions);
        let seen = sequence(actions, order, "/a/b").await;
        assert_eq!(seen, ["/a/b", "/a/c/d", "/a"]);
    }
}

//! Reads the selection, and decides on each resource immediately after its read, so that a run holds only the payloads
//! of changes, not of all resources.

use std::collections::HashSet;
use std::future::ready;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::{Stream, StreamExt as _};
use parking_lot::Mutex;
use tokio::sync::OnceCell;
use tokio::task::JoinSet;
use tracing::{Instrument as _, Span};

use super::Plan;
use super::names::Names;
use super::saved;
use super::undeclared::{Candidates, Fate, Pruning};
use crate::error::Category;
use crate::path::LogicalPath;
use crate::spans;
use crate::sync::model::{
    Action, Candidate, Doubt, Failure, FailureReason, Intent, Options, PRUNE, Reason, Resource, Scope,
    Selection, Session, Step, Stop, SyncError, Transcript, hide,
};
use crate::sync::observe::{Bulk, Expected, Former, Remote, loaded, refers};
use crate::sync::tasks;

/// A part of a survey ends after this time. Its actions are applied before the next part is read. So a run that is
/// stopped has done a part of its work, even in a large scope.
pub const PART_TIME: Duration = Duration::from_millis(500);
/// A part also ends with this number of actions, which limits their memory.
const PART_ACTIONS: usize = 2_000;
/// Without an earlier revision, each of more resources than this is not compared with all declared ones.
const FEW: usize = 100;
/// The number of tasks until the server has accepted the credentials: a run ends after as many rejections.
const FIRST_TASKS: usize = 3;

/// A desired resource, or a candidate for deletion.
pub enum Item {
    Desired(LogicalPath, Result<Resource, SyncError>),
    Undeclared(Candidate),
}

impl Item {
    /// Returns its path, and the operation that a failure reports.
    fn subject(&self) -> (&LogicalPath, &'static str) {
        match self {
            Self::Desired(path, _) => (path, "read"),
            Self::Undeclared(candidate) => (&candidate.path, PRUNE),
        }
    }
}

/// The items of a survey, in order.
pub type Items = dyn Stream<Item = Item> + Send;

/// The decision for one item, or its failure.
type Looked = Result<Fate, Failure>;

/// Reads and decides the resources of one run.
#[derive(Clone)]
pub struct Surveyor {
    pub(super) session: Session,
    pub(super) bulk: Arc<Bulk>,
    pub(super) candidates: Arc<Candidates>,
    pub(super) options: Options,
    /// The scope, if the run reads all of it.
    pub(super) scope: Option<Scope>,
    /// Whether the create request of a resource that is proven absent is made when it is sent. Until then its payload
    /// and secrets are not needed, which saves most of the time and memory of a first sync.
    pub(super) defers: bool,
    /// Whether the check for copies of other declared resources is left out, because the run has too many resources, or an
    /// earlier pass made it.
    pub(super) skips_copies: bool,
    pub(super) names: Arc<Mutex<Names>>,
    /// The failure of the health check, if it rejects the credentials.
    rejected: Arc<OnceCell<Option<Arc<SyncError>>>>,
    /// Whether equal resources are only counted, because most of a large scope is equal.
    counts_equal: bool,
    stop: Stop,
}

impl Surveyor {
    /// Returns a surveyor for a run over `selection`. Records all reads in `transcript`.
    pub fn new(
        session: &Session,
        selection: &Selection,
        options: &Options,
        stop: &Stop,
        transcript: Arc<Transcript>,
    ) -> Self {
        let payloads = selection.prune.iter().map(|candidate| candidate.payload.clone()).collect();
        let former = Arc::new(Former { tree: selection.former.clone(), payloads });
        let remote = Remote::following(session, transcript, former);
        Self::running(remote.running(selection, Arc::default()), selection, options, stop)
    }

    /// Returns a surveyor for a further pass of the run that `writes` with a server of its own. It reads resources that
    /// others refer to again, and shares their contents with the writes that follow.
    pub fn again(
        session: &Session,
        selection: &Selection,
        options: &Options,
        stop: &Stop,
        writes: &Remote,
    ) -> Self {
        let references = writes.references();
        references.clear();
        let remote = Remote::following(session, Transcript::new(false), writes.former());
        let surveyor = Self::running(remote.running(selection, references), selection, options, stop);
        Self { skips_copies: true, ..surveyor }
    }

    fn running(remote: Remote, selection: &Selection, options: &Options, stop: &Stop) -> Self {
        let session = remote.session.clone();
        let remote = Arc::new(remote);
        let is_whole = selection.is_whole_scope();
        Self {
            session,
            candidates: Arc::new(Candidates::new(&remote)),
            bulk: Arc::new(Bulk::new(remote, selection, options)),
            options: options.clone(),
            scope: selection.scope.clone(),
            defers: false,
            skips_copies: !is_whole && selection.former.is_none() && selection.targeted() > FEW,
            names: Arc::default(),
            rejected: Arc::default(),
            counts_equal: is_whole && !options.keep_compared && !options.sealable,
            stop: stop.clone(),
        }
    }

    /// Returns a surveyor that defers create requests. This requires a plan that is not shown, and a tree that is a
    /// commit.
    pub fn deferring(self, defers: bool) -> Self {
        let defers = defers && !self.options.needs_payloads();
        Self { defers, ..self }
    }

    /// Returns the plan for `selection`. Reads concurrently within the budget of the server.
    pub async fn survey(&self, mut selection: Selection) -> Plan {
        let mut plan = self.begin(&mut selection).await;
        self.look_at_all(self.items(selection).as_mut(), None, &mut plan).await;
        plan.finished(&self.options)
    }

    /// Returns a plan that contains the candidates for deletion in `selection` that still exist. Most of the resources
    /// that were declared once were deleted long ago.
    pub async fn begin(&self, selection: &mut Selection) -> Plan {
        let given = selection.given.iter().map(|resource| (resource.path.clone(), resource.clone()));
        let mut plan = Plan {
            revision: self.session.tree.revision().cloned(),
            targeted: selection.targeted(),
            scope: selection.scope.clone(),
            declared: selection.declared.unwrap_or_else(|| selection.targeted()),
            sent: selection.sent,
            failures: std::mem::take(&mut selection.broken),
            given: given.collect(),
            references: self.bulk.remote.references(),
            former: self.bulk.remote.former(),
            options: self.options.clone(),
            ..Plan::default()
        };
        if self.counts_equal && self.options.intent == Intent::Converge {
            plan.unchanged = self.bulk.take_equal(selection, &self.options).await;
        }
        let candidates = std::mem::take(&mut selection.prune);
        let items = candidates.clone().into_iter().map(Item::Undeclared);
        self.look_at_all(pin!(futures::stream::iter(items)), None, &mut plan).await;
        let doomed: HashSet<&LogicalPath> = plan.actions.iter().map(|action| &action.path).collect();
        let candidates = candidates.into_iter().filter(|candidate| doomed.contains(&candidate.path));
        let candidates = candidates.map(|candidate| (candidate.path.clone(), candidate)).collect();
        plan.pruning = Pruning { candidates, ..self.candidates.take_found() };
        plan
    }

    /// Returns the resources that Git declares, read ahead of the requests.
    pub fn items(&self, selection: Selection) -> Pin<Box<Items>> {
        let loaded = loaded(&self.session, selection.resources);
        let loaded = loaded.map(|(path, desired)| Item::Desired(path, desired));
        let given = selection.given.into_iter();
        let given = given.map(|resource| Item::Desired(resource.path.clone(), Ok(resource)));
        // Resources that refer to others come last, so that the others are read only once.
        let referring = Arc::new(Mutex::new(Vec::new()));
        let (later, last) = (Arc::clone(&referring), referring);
        let plain = loaded.chain(futures::stream::iter(given)).filter_map(move |item| {
            let waits = matches!(&item, Item::Desired(_, Ok(desired)) if refers(desired));
            if waits {
                later.lock().push(item);
                return ready(None);
            }
            ready(Some(item))
        });
        let last =
            futures::stream::once(async move { futures::stream::iter(std::mem::take(&mut *last.lock())) });
        Box::pin(plain.chain(last.flatten()).fuse())
    }

    /// Processes each item in its own task, so that all cores decode and compare, and adds the decisions to `plan`.
    /// Runs at most as many tasks as the budget allows requests, so that a stop takes effect soon, and fewer while the
    /// server answers 401. With an `end`, starts no task after it, or after [`PART_ACTIONS`] actions. Returns the first
    /// path, or `None` if no item was left.
    pub async fn look_at_all(
        &self,
        mut items: Pin<&mut Items>,
        end: Option<Instant>,
        plan: &mut Plan,
    ) -> Option<LogicalPath> {
        let most = self.session.client.max_concurrency();
        let mut at_once = most.min(FIRST_TASKS);
        let shared = Arc::new(self.clone());
        let (mut running, mut first, mut at_end) = (JoinSet::new(), None, false);
        let mut span: Option<Span> = None;
        loop {
            let is_full =
                |end| plan.actions.len() >= PART_ACTIONS || first.is_some() && Instant::now() >= end;
            let is_over = self.stop.reason().is_none() && end.is_some_and(is_full);
            tokio::select! {
                item = items.next(), if !at_end && running.len() < at_once && !is_over => {
                    let Some(item) = item else {
                        at_end = true;
                        continue;
                    };
                    first = first.or_else(|| Some(item.subject().0.clone()));
                    let (surveyor, item) = (Arc::clone(&shared), self.named_once(item));
                    let expected = self.expected(&item);
                    let span = span.get_or_insert_with(spans::plan).clone();
                    let looked = async move { surveyor.look(item, expected).await };
                    // Boxed, because the runtime moves a future several times, and this one is large.
                    running.spawn(Box::pin(looked).instrument(span));
                }
                Some(looked) = tasks::next(&mut running) => {
                    let is_rejected = looked.as_ref().is_err_and(|failure| failure.http_status == Some(401));
                    at_once = if is_rejected { at_once.saturating_sub(1).max(1) } else { most };
                    self.add(looked, plan);
                }
                // The next item may wait for memory that the actions of this part hold.
                () = until(end), if !at_end && running.is_empty() && first.is_some() && !is_over => {}
                else => {
                    self.refuse_twins(plan);
                    refuse_hidden(plan);
                    hide(&mut plan.failures, &self.session.secrets);
                    return first;
                }
            }
        }
    }

    fn add(&self, looked: Looked, plan: &mut Plan) {
        match looked {
            Ok(Fate::Needs(action)) => {
                plan.failures.extend(action.impossible().map(|error| action.failed(error)));
                if self.counts_equal && action.reason == Reason::Equal {
                    plan.unchanged += 1;
                } else {
                    plan.actions.push(*action);
                }
            }
            Ok(Fate::Gone) => {}
            Ok(Fate::Kept(kept)) => plan.kept.push(kept),
            Err(failure) => plan.failures.push(failure),
        }
    }

    /// Fails resources whose name or place another resource also has, instead of their actions. Users have to decide which
    /// one is correct.
    fn refuse_twins(&self, plan: &mut Plan) {
        let (mut twins, mut found) = {
            let mut names = self.names.lock();
            (names.end_part(), names.take_found())
        };
        if self.options.intent == Intent::Delete {
            return;
        }
        plan.failures.iter().for_each(|failure| _ = twins.remove(&failure.path));
        let total = plan.actions.len();
        plan.actions.retain(|action| !twins.contains_key(&action.path));
        // The others are equal to those of the server.
        let equal = twins.len().saturating_sub(total - plan.actions.len());
        plan.unchanged = plan.unchanged.saturating_sub(equal);
        let refused = twins.into_iter().map(|(path, error)| Failure::new(path, "read", &error));
        plan.failures.extend(refused);
        let overwrites = |action: &mut Action| action.step != Step::Skip && found.contains_key(&action.path);
        let refused: Vec<Action> = plan.actions.extract_if(.., overwrites).collect();
        let refused =
            refused.into_iter().filter_map(|action| Some((found.remove(&action.path)?, action.path)));
        plan.failures.extend(refused.map(|(error, path)| Failure::new(path, "read", &error)));
    }

    /// Fails a resource if another declared resource is the same one: each run would overwrite one of them with the
    /// other.
    fn named_once(&self, item: Item) -> Item {
        let Item::Desired(path, Ok(desired)) = item else { return item };
        let added = self.names.lock().add(&desired);
        Item::Desired(path, added.map(|()| desired))
    }

    /// Announces a resource that others may refer to.
    fn expected(&self, item: &Item) -> Option<Expected> {
        let Item::Desired(path, Ok(desired)) = item else { return None };
        let is_plain = self.options.intent != Intent::Delete && !refers(desired);
        is_plain.then(|| self.bulk.remote.references().expect(path)).flatten()
    }

    async fn look(&self, item: Item, expected: Option<Expected>) -> Looked {
        let (path, operation) = (item.subject().0.clone(), item.subject().1);
        let looked = async {
            self.stop.check_read(&path)?;
            let fate = match item {
                Item::Desired(_, desired) => Fate::Needs(Box::new(self.decide(desired?, expected).await?)),
                Item::Undeclared(candidate) => self.sealed(self.candidates.decide(candidate).await?),
            };
            if fate.is_absent() {
                // Boxed, because most resources exist.
                Box::pin(self.check_credentials(&path)).await?;
            }
            Ok(fate)
        };
        let outcome = self.stop.read(&path, looked.await);
        if operation != PRUNE {
            self.bulk.looked_at(&path);
        }
        if let Some(progress) = &self.options.progress {
            progress.compared(&path);
        }
        outcome.map_err(|error| Failure::new(path, operation, &error))
    }

    /// Fails if the server may hide the resource at `path`, because its health check rejects the credentials.
    async fn check_credentials(&self, path: &LogicalPath) -> Result<(), SyncError> {
        let check = || async {
            self.session.client.check_credentials().await.err().map(|error| Arc::new(error.into()))
        };
        match self.rejected.get_or_init(check).await {
            Some(error) => Err(SyncError::Undecided(path.clone(), Doubt::Hidden(Arc::clone(error)))),
            None => Ok(()),
        }
    }

    /// Adds the digest of a deletion, if the plan may be saved.
    fn sealed(&self, mut fate: Fate) -> Fate {
        if let Fate::Needs(action) = &mut fate
            && self.options.sealable
        {
            action.content = Some(Box::new(saved::content(action)));
        }
        fate
    }
}

/// Removes the creates if the server rejected the credentials (401) for another resource. It may treat this client like
/// one without credentials, and hide the resources that seem to be absent.
fn refuse_hidden(plan: &mut Plan) {
    let rejected = plan.failures.iter().find(|failure| failure.http_status == Some(401));
    let Some(rejected) = rejected.map(|failure| failure.path.clone()) else { return };
    for action in plan.actions.extract_if(.., |action| action.is_missing()) {
        let message = format!(
            "cannot determine whether {} exists: the server rejects the credentials for {rejected}, so it may hide resources",
            action.path
        );
        let reason = FailureReason::Category(Category::Auth);
        plan.failures.push(Failure::local(action.path, "read", reason, message));
    }
}

/// Waits until `end`, or forever.
async fn until(end: Option<Instant>) {
    match end {
        Some(end) => tokio::time::sleep_until(end.into()).await,
        None => std::future::pending().await,
    }
}

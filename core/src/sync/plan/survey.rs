//! Looking at all that is selected and deciding resource by resource, so that a run holds the payloads of what changes
//! and not of what exists.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::{Stream, StreamExt as _};
use tokio::task::JoinSet;

use super::Plan;
use super::decide::decide_for;
use super::undeclared::{Candidates, Fate};
use crate::error::{Categorized, Category};
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::sync::model::{
    Action, Candidate, Doubt, Failure, Intent, Observed, Options, PRUNE, Reason, Resource, Selection,
    Sending, Session, Step, Stop, SyncError, Transcript, Wanted, hide,
};
use crate::sync::observe::{Bulk, Former, Remote, loaded};
use crate::sync::tasks::{self, evaluated};

/// A part of a survey ends after this time, so that what was decided is written before the next part is looked at.
/// A run that is stopped has then done a part of its work, whatever the size of its scope.
pub const PART_TIME: Duration = Duration::from_millis(500);
/// And once so many actions wait to be applied, which bounds their memory.
const PART_ACTIONS: usize = 2_000;

/// One thing to look at.
pub enum Item {
    Desired(LogicalPath, Result<Resource, SyncError>),
    Undeclared(Candidate),
}

impl Item {
    /// Its path, and what is done to it first.
    fn subject(&self) -> (&LogicalPath, &'static str) {
        match self {
            Self::Desired(path, _) => (path, "read"),
            Self::Undeclared(candidate) => (&candidate.path, PRUNE),
        }
    }
}

/// Things to look at, in order.
pub type Items = dyn Stream<Item = Item> + Send;

/// What one thing needs, or why that is unknown.
type Looked = Result<Fate, Failure>;

/// The names of declared resources, which no two of one collection may share.
#[derive(Default)]
struct Names {
    /// The hashes of all of them.
    seen: HashSet<u64>,
    /// Those of the part that is looked at, and where each of them was seen first.
    part: HashMap<u64, LogicalPath>,
    /// Resources of this part whose name another one has, too.
    twins: HashSet<LogicalPath>,
}

/// Looks at resources for one run.
#[derive(Clone)]
pub struct Surveyor {
    session: Session,
    bulk: Arc<Bulk>,
    candidates: Arc<Candidates>,
    options: Options,
    names: Arc<Mutex<Names>>,
    /// Whether equal resources are only counted: they are most of a large scope.
    counts_equal: bool,
    /// Whether the request of what is surely missing is made when it is sent. Until then neither its payload is
    /// needed nor its secrets: most of the time and memory of a first sync.
    defers: bool,
    stop: Stop,
}

impl Surveyor {
    /// For a run over `selection`. All that is read is noted in `transcript`.
    pub fn new(
        session: &Session,
        selection: &Selection,
        options: &Options,
        stop: &Stop,
        transcript: Arc<Transcript>,
    ) -> Self {
        let payloads = selection.prune.iter().map(|candidate| candidate.payload.clone()).collect();
        let former = Former { tree: selection.former.clone(), payloads };
        let remote = Arc::new(Remote::following(session, transcript, former));
        let Options { keep_compared, sealable, .. } = *options;
        Self {
            session: session.clone(),
            candidates: Arc::new(Candidates::new(&remote)),
            bulk: Arc::new(Bulk::new(remote, selection, options)),
            options: options.clone(),
            names: Arc::default(),
            counts_equal: selection.whole_scope && !keep_compared && !sealable,
            defers: false,
            stop: stop.clone(),
        }
    }

    /// The same, where the plan is not shown and a commit still holds what creates send when their turn comes.
    pub fn deferring(self, defers: bool) -> Self {
        Self { defers: defers && !self.options.needs_payloads(), ..self }
    }

    /// Looks at everything in `selection`, concurrently up to the server's gate.
    pub async fn survey(&self, mut selection: Selection) -> Plan {
        let mut plan = self.begin(&mut selection).await;
        self.look_at_all(self.declared(selection).as_mut(), None, &mut plan).await;
        plan.finished(&self.options)
    }

    /// A plan for what `selection` is about, as far as its candidates for deletion need something: of what was declared
    /// once, most is gone for long.
    pub async fn begin(&self, selection: &mut Selection) -> Plan {
        let given = selection.given.iter().map(|resource| (resource.path.clone(), resource.clone()));
        let mut plan = Plan {
            revision: self.session.tree.revision().cloned(),
            targeted: selection.targeted(),
            whole_scope: selection.whole_scope,
            declared: selection.declared.unwrap_or_else(|| selection.targeted()),
            failures: std::mem::take(&mut selection.broken),
            given: given.collect(),
            recurrences: self.options.recurrences.clone(),
            ..Plan::default()
        };
        let candidates = std::mem::take(&mut selection.prune).into_iter().map(Item::Undeclared);
        self.look_at_all(pin!(futures::stream::iter(candidates)), None, &mut plan).await;
        plan
    }

    /// What Git declares, read ahead of the requests about it.
    pub fn declared(&self, selection: Selection) -> Pin<Box<Items>> {
        let loaded = loaded(&self.session, selection.resources);
        let loaded = loaded.map(|(path, desired)| Item::Desired(path, desired));
        let given = selection.given.into_iter();
        let given = given.map(|resource| Item::Desired(resource.path.clone(), Ok(resource)));
        Box::pin(loaded.chain(futures::stream::iter(given)).fuse())
    }

    /// Looks at each item in a task of its own, so that all cores decode and compare, and adds what came of it to
    /// `plan`. No more are begun at once than the gate may ever let through, so that a stop reaches the others in
    /// time. With an `end`, none is begun after it, nor once [`PART_ACTIONS`] wait. Returns the path that it began
    /// with; `None` if nothing was left.
    pub async fn look_at_all(
        &self,
        mut items: Pin<&mut Items>,
        end: Option<Instant>,
        plan: &mut Plan,
    ) -> Option<LogicalPath> {
        let at_once = self.session.client.max_concurrency();
        let shared = Arc::new(self.clone());
        let (mut running, mut first) = (JoinSet::new(), None);
        loop {
            let is_full =
                |end| plan.actions.len() >= PART_ACTIONS || first.is_some() && Instant::now() >= end;
            let is_over = self.stop.reason().is_none() && end.is_some_and(is_full);
            tokio::select! {
                Some(item) = items.next(), if running.len() < at_once && !is_over => {
                    first = first.or_else(|| Some(item.subject().0.clone()));
                    let (surveyor, item) = (Arc::clone(&shared), self.named_once(item));
                    running.spawn(async move { surveyor.look(item).await });
                }
                Some(looked) = tasks::next(&mut running) => self.add(looked, plan),
                else => {
                    self.refuse_twins(plan);
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

    /// Takes back what was decided for a resource before another one with its name came: which of them is right is for
    /// people to decide.
    fn refuse_twins(&self, plan: &mut Plan) {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.part.clear();
        let twins = std::mem::take(&mut names.twins);
        plan.actions.retain(|action| {
            let refused = action.step != Step::Delete && twins.contains(&action.path);
            if refused {
                let other = "another resource with its id or alias".to_owned();
                let error = SyncError::Claimed(action.path.clone(), other);
                plan.failures.push(Failure::new(action.path.clone(), "read", &error));
            }
            !refused
        });
    }

    /// Fails a resource whose id or alias another declared resource of its collection has: each run would overwrite
    /// the one with the other.
    fn named_once(&self, item: Item) -> Item {
        let Item::Desired(path, Ok(desired)) = item else { return item };
        let wanted = Wanted::of(&desired);
        let id = ("id", wanted.id.unwrap_or(wanted.name));
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        for (kind, name) in [Some(id), wanted.alias.map(|alias| ("alias", alias))].into_iter().flatten() {
            let mut hash = DefaultHasher::new();
            (path.parent(), kind, name).hash(&mut hash);
            let hash = hash.finish();
            if !names.seen.insert(hash) {
                let twin = names.part.get(&hash).cloned();
                let other = twin.as_ref().map(ToString::to_string);
                let other = other.unwrap_or_else(|| format!("another resource with this {kind}"));
                names.twins.extend(twin);
                return Item::Desired(path.clone(), Err(SyncError::Claimed(path, other)));
            }
            names.part.insert(hash, path.clone());
        }
        drop(names);
        Item::Desired(path, Ok(desired))
    }

    async fn look(&self, item: Item) -> Looked {
        let (path, operation) = (item.subject().0.clone(), item.subject().1);
        let looked = async {
            self.stop.check(&path)?;
            match item {
                Item::Desired(_, desired) => Ok(Fate::Needs(Box::new(self.look_at(desired?).await?))),
                Item::Undeclared(candidate) => self.candidates.decide(candidate).await,
            }
        };
        let outcome = self.stop.outcome(&path, looked.await);
        if operation != PRUNE {
            self.bulk.looked_at(&path);
        }
        outcome.map_err(|error| Failure::new(path, operation, &error))
    }

    async fn look_at(&self, desired: Resource) -> Result<Action, SyncError> {
        let under_way = self.session.knowledge.expected(&desired.path);
        if self.defers && under_way.is_none() && self.bulk.is_known_absent(&desired) {
            let create = Action::new(desired.path, Step::Create, Reason::Missing);
            return Ok(Action { sending: Sending::WhenSent, ..create });
        }
        let converges = self.options.intent == Intent::Converge;
        let (desired, observed) = if self.options.intent == Intent::Delete {
            self.look_for_deletion(desired).await?
        } else {
            let desired = self.session.resolved(desired).await?;
            let observed = match self.bulk.look(&desired).await {
                Ok(None) => return Ok(Action::new(desired.path, Step::Skip, Reason::Equal)),
                Ok(Some(observed)) => observed,
                // What cannot be read can still be written; whether it has to be is not asked.
                Err(error) if !converges && is_about_reading(&error) => Observed::new(desired.clone(), None),
                Err(error) => return Err(error),
            };
            (desired, observed)
        };
        if converges && observed.other_alias(&Wanted::of(&desired)).is_some() {
            self.candidates.check_sole(&desired, &observed, false).await?;
        }
        if let Some(left) = under_way.filter(|_| converges && observed.payload.is_none()) {
            return Err(SyncError::UnderWay(desired.path, left.as_secs() + 1));
        }
        let options = self.options.clone();
        evaluated(desired, move |desired| decide_for(desired, &observed, &options)).await
    }

    /// Reads what a caller asked to delete: what its path names, else what its payload does, unless another declared
    /// resource is the same one. Returns the resource by the names that it was found by, too.
    async fn look_for_deletion(&self, desired: Resource) -> Result<(Resource, Observed), SyncError> {
        let remote = &self.bulk.remote;
        let by_path = Resource::by_path(desired.path.clone(), Arc::clone(&desired.rules)).ok();
        let first = by_path.unwrap_or_else(|| desired.clone());
        let unreadable = Observed::new(desired.clone(), Some(Value::Null));
        let observed = match remote.read_doomed(&first).await {
            // A deletion needs no proof that there is nothing to delete.
            Err(error) if error.is_lack_of_proof() => Observed::new(first.clone(), None),
            Err(error) if is_about_reading(&error) => return Ok((desired, unreadable)),
            observed => observed?,
        };
        if desired.seeded || first.identity == desired.identity {
            return Ok((first, observed));
        }
        if observed.payload.is_some() {
            let wanted = Wanted::of(&desired);
            let found = observed.addressed().identity.remote_id;
            let Some(id) = wanted.id.filter(|id| !wanted.one_name && *id != found) else {
                return Ok((first, observed));
            };
            let doubt = Doubt::Several(vec![id.to_owned(), found]);
            return Err(SyncError::Undecided(desired.path.clone(), doubt));
        }
        let observed = match remote.read_doomed(&desired).await {
            Err(error) if is_about_reading(&error) => return Ok((desired, unreadable)),
            observed => observed?,
        };
        if observed.payload.is_some() {
            self.candidates.check_sole(&desired, &observed, true).await?;
        }
        Ok((desired, observed))
    }
}

/// Whether a resource cannot be read, which says nothing about writing it.
fn is_about_reading(error: &SyncError) -> bool {
    error.is_unreadable() || error.category() == Category::Validation
}

//! Looking at all that is selected and deciding resource by resource, so that a run holds the payloads of what changes
//! and not of what exists.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::{Stream, StreamExt as _};
use tokio::task::JoinSet;

use super::decide::{Decision, decide_for};
use super::undeclared::{Candidates, Fate};
use crate::error::{Categorized, Category};
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::sync::model::{
    Action, Candidate, Doubt, Failure, Intent, Kept, Observed, Options, PRUNE, Reason, Resource, Selection,
    Sending, Session, Step, Stop, SyncError, Transcript, Wanted,
};
use crate::sync::observe::{Bulk, Former, Remote, loaded};
use crate::sync::tasks::{evaluated, joined};

/// What a selection needs, before the brakes of the plan.
#[derive(Default)]
pub struct Survey {
    pub actions: Vec<Action>,
    /// Equal resources that `actions` does not name.
    pub unchanged: usize,
    pub targeted: usize,
    pub failures: Vec<Failure>,
    pub kept: Vec<Kept>,
    /// Candidates whose resource Git declares under another path.
    pub occupied: Vec<LogicalPath>,
    pub whole_scope: bool,
    pub declared: usize,
}

/// A part of a survey ends after this time, so that what was decided is written before the next part is looked at.
/// A run that is stopped has then done a part of its work, whatever the size of its scope.
const PART_TIME: Duration = Duration::from_millis(500);
/// And once so many actions wait to be applied, which bounds their memory.
const PART_ACTIONS: usize = 2_000;

/// One thing to look at.
pub enum Item {
    Desired(LogicalPath, Result<Resource, SyncError>),
    Undeclared(Candidate),
}

impl Item {
    fn path(&self) -> &LogicalPath {
        match self {
            Self::Desired(path, _) => path,
            Self::Undeclared(candidate) => &candidate.path,
        }
    }
}

/// Things to look at, in order.
pub type Items = dyn Stream<Item = Item> + Send;

/// What came of it.
enum Looked {
    Decided(Decision),
    Fate(LogicalPath, Fate),
}

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
    /// For a run over `selection`. All that is read is noted in `transcript`, if there is one.
    pub fn new(
        session: &Session,
        selection: &Selection,
        options: &Options,
        stop: &Stop,
        transcript: Option<Arc<Transcript>>,
    ) -> Self {
        let payloads = selection.prune.iter().map(|candidate| candidate.payload.clone()).collect();
        let former = Former { tree: selection.former.clone(), payloads };
        let transcript = transcript.unwrap_or_else(|| Arc::new(Transcript::closed()));
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
    pub async fn survey(&self, mut selection: Selection) -> Survey {
        let mut survey = self.begin(&mut selection).await;
        let mut declared = self.declared(selection);
        self.look_at_all(declared.as_mut(), None, &mut survey).await;
        survey
    }

    /// Counts what `selection` is about, and looks at its candidates for deletion: of what was declared once, most is
    /// gone for long.
    pub async fn begin(&self, selection: &mut Selection) -> Survey {
        let mut survey = Survey {
            targeted: selection.targeted(),
            whole_scope: selection.whole_scope,
            declared: selection.declared.unwrap_or_else(|| selection.targeted()),
            failures: std::mem::take(&mut selection.broken),
            ..Survey::default()
        };
        let candidates = std::mem::take(&mut selection.prune).into_iter().map(Item::Undeclared);
        self.look_at_all(pin!(futures::stream::iter(candidates)), None, &mut survey).await;
        survey
    }

    /// What Git declares, read ahead of the requests about it.
    pub fn declared(&self, selection: Selection) -> Pin<Box<Items>> {
        let loaded = loaded(&self.session, selection.resources);
        let loaded = loaded.map(|(path, desired)| Item::Desired(path, desired));
        let given = selection.given.into_iter();
        let given = given.map(|resource| Item::Desired(resource.path.clone(), Ok(resource)));
        Box::pin(loaded.chain(futures::stream::iter(given)).fuse())
    }

    /// Looks at a part of what Git declares, and adds it to `survey`. The path that it began with; `None` at the end.
    pub async fn part(&self, declared: Pin<&mut Items>, survey: &mut Survey) -> Option<LogicalPath> {
        self.look_at_all(declared, Some(Instant::now() + PART_TIME), survey).await
    }

    /// Looks at each item in a task of its own, so that all cores decode and compare, and adds what came of it to
    /// `survey`. No more are begun at once than the gate may ever let through, so that a stop reaches the others in
    /// time. None is begun after `end`.
    async fn look_at_all(
        &self,
        mut items: Pin<&mut Items>,
        end: Option<Instant>,
        survey: &mut Survey,
    ) -> Option<LogicalPath> {
        let at_once = self.session.client.max_concurrency();
        let shared = Arc::new(self.clone());
        let (mut running, mut first) = (JoinSet::new(), None);
        loop {
            let is_over = self.stop.reason().is_none()
                && (end.is_some_and(|end| Instant::now() >= end) && first.is_some()
                    || end.is_some() && survey.actions.len() >= PART_ACTIONS);
            tokio::select! {
                Some(item) = items.next(), if running.len() < at_once && !is_over => {
                    first = first.or_else(|| Some(item.path().clone()));
                    let item = self.named_once(item);
                    if let Some(action) = self.deferred(&item) {
                        survey.add(Ok(Looked::Decided(action.into())), self.counts_equal);
                        continue;
                    }
                    let surveyor = Arc::clone(&shared);
                    running.spawn(async move { surveyor.look(item).await });
                }
                Some(looked) = running.join_next() => {
                    if let Some(looked) = joined(looked) {
                        survey.add(looked, self.counts_equal);
                    }
                }
                else => {
                    self.refuse_twins(survey);
                    return first;
                }
            }
        }
    }

    /// Takes back what was decided for a resource before another one with its name came: which of them is right is for
    /// people to decide.
    fn refuse_twins(&self, survey: &mut Survey) {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.part.clear();
        let twins = std::mem::take(&mut names.twins);
        drop(names);
        if twins.is_empty() {
            return;
        }
        let (refused, kept) = std::mem::take(&mut survey.actions)
            .into_iter()
            .partition(|action| action.step != Step::Delete && twins.contains(&action.path));
        survey.actions = kept;
        let refused: Vec<Action> = refused;
        survey.failures.extend(refused.into_iter().map(|Action { path, .. }| {
            let other = "another resource with its id or alias".to_owned();
            Failure::new(path.clone(), "read", &SyncError::Claimed { path, other })
        }));
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
                let other = twin
                    .as_ref()
                    .map_or_else(|| format!("another resource with this {kind}"), ToString::to_string);
                names.twins.extend(twin);
                return Item::Desired(path.clone(), Err(SyncError::Claimed { path, other }));
            }
            names.part.insert(hash, path.clone());
        }
        drop(names);
        Item::Desired(path, Ok(desired))
    }

    /// The creation of what is known to be missing, where its request can wait.
    fn deferred(&self, item: &Item) -> Option<Action> {
        let Item::Desired(path, Ok(desired)) = item else { return None };
        let absent = self.defers
            && self.stop.reason().is_none()
            && self.bulk.is_known_absent(desired)
            && self.session.knowledge.expected(path).is_none();
        let action = || Action::new(path.clone(), Step::Create, Reason::Missing);
        absent.then(|| Action { sending: Sending::WhenSent, ..action() })
    }

    async fn look(&self, item: Item) -> Result<Looked, (Failure, Option<Action>)> {
        let (path, operation) = match &item {
            Item::Desired(path, _) => (path.clone(), "read"),
            Item::Undeclared(candidate) => (candidate.path.clone(), PRUNE),
        };
        let failure = |error: &SyncError| Failure::new(path.clone(), operation, error);
        if let Err(error) = self.stop.check(&path) {
            return Err((failure(&error), None));
        }
        let outcome = match item {
            Item::Desired(_, Ok(desired)) => self.look_at(desired).await.map(Looked::Decided),
            Item::Desired(_, Err(error)) => Err(error),
            Item::Undeclared(candidate) => {
                self.candidates.decide(candidate).await.map(|fate| Looked::Fate(path.clone(), fate))
            }
        };
        let outcome = self.stop.outcome(&path, outcome);
        self.stop.note(outcome.as_ref().err());
        match outcome {
            Ok(Looked::Decided(Decision { action, impossible: Some(error) })) => {
                let operation = if action.step == Step::Create { "create" } else { "update" };
                Err((Failure::new(path, operation, &error), Some(action)))
            }
            Ok(looked) => Ok(looked),
            Err(error) => Err((failure(&error), None)),
        }
    }

    async fn look_at(&self, desired: Resource) -> Result<Decision, SyncError> {
        let observed = match self.options.intent {
            Intent::Delete => self.look_for_deletion(&desired).await,
            Intent::Converge | Intent::Create | Intent::Update => {
                let desired = self.session.resolved(desired.clone()).await?;
                match self.bulk.look(&desired).await {
                    Ok(None) => {
                        return Ok(Action::new(desired.path, Step::Skip, Reason::Equal).into());
                    }
                    Ok(Some(observed)) => Ok((desired, observed)),
                    Err(error) => Err((desired, error)),
                }
            }
        };
        let (desired, observed) = match observed {
            Ok(found) => found,
            // What cannot be read can still be written; whether it has to be is not asked.
            Err((desired, error))
                if self.options.intent != Intent::Converge
                    && (error.is_unreadable() || error.category() == Category::Validation) =>
            {
                let unknown = (self.options.intent == Intent::Delete).then_some(Value::Null);
                let observed = Observed::new(desired.clone(), unknown);
                (desired, observed)
            }
            Err((_, error)) => return Err(error),
        };
        if self.options.intent == Intent::Converge && observed.other_alias(&Wanted::of(&desired)).is_some() {
            self.candidates.check_sole(&desired, &observed, false).await?;
        }
        if observed.payload.is_none()
            && self.options.intent == Intent::Converge
            && let Some(left) = self.session.knowledge.expected(&desired.path)
        {
            return Err(SyncError::UnderWay { path: desired.path, seconds: left.as_secs() + 1 });
        }
        let options = self.options.clone();
        evaluated(desired, move |desired| decide_for(desired, &observed, &options)).await
    }

    /// Reads what a caller asked to delete: what its path names, else what its payload does, unless another declared
    /// resource is the same one.
    async fn look_for_deletion(
        &self,
        desired: &Resource,
    ) -> Result<(Resource, Observed), (Resource, SyncError)> {
        let failed = |error| (desired.clone(), error);
        let remote = &self.bulk.remote;
        let by_path = Resource::by_path(desired.path.clone(), Arc::clone(&desired.rules)).ok();
        let first = by_path.unwrap_or_else(|| desired.clone());
        let observed = remote.read_doomed(&first).await;
        // A deletion needs no proof that there is nothing to delete.
        let observed = match observed {
            Err(error) if error.is_lack_of_proof() => Ok(Observed::new(first.clone(), None)),
            observed => observed,
        };
        if desired.seeded || first.identity == desired.identity {
            return Ok((first, observed.map_err(failed)?));
        }
        match observed {
            Ok(observed) if observed.payload.is_some() => {
                let wanted = Wanted::of(desired);
                let found = observed.addressed().identity.remote_id;
                if !wanted.one_name && wanted.id.is_some_and(|id| id != found) {
                    let ids = wanted.id.into_iter().map(str::to_owned).chain([found]).collect();
                    let doubt = Box::new(Doubt::Several(ids));
                    return Err(failed(SyncError::Undecided { path: desired.path.clone(), doubt }));
                }
                Ok((first, observed))
            }
            Ok(_) => {
                let observed = remote.read_doomed(desired).await.map_err(failed)?;
                if observed.payload.is_some() {
                    self.candidates.check_sole(desired, &observed, true).await.map_err(failed)?;
                }
                Ok((desired.clone(), observed))
            }
            Err(error) => Err(failed(error)),
        }
    }
}

impl Survey {
    fn add(&mut self, outcome: Result<Looked, (Failure, Option<Action>)>, counts_equal: bool) {
        match outcome {
            Ok(Looked::Decided(Decision { action, .. })) => {
                if counts_equal && action.reason == Reason::Equal {
                    self.unchanged += 1;
                } else {
                    self.actions.push(action);
                }
            }
            Ok(Looked::Fate(_, Fate::Gone)) => {}
            Ok(Looked::Fate(_, Fate::Doomed(action))) => self.actions.push(*action),
            Ok(Looked::Fate(path, Fate::Kept { kept, occupied })) => {
                self.kept.push(kept);
                self.occupied.extend(occupied.then_some(path));
            }
            Err((failure, action)) => {
                self.failures.push(failure);
                self.actions.extend(action);
            }
        }
    }
}

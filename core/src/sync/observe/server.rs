//! The managed server in one run: sends one request and decodes its answer.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use parking_lot::Mutex;

use super::asked::Asked;
use super::contents::References;
use super::listed::Listed;
use super::once::Once;
use crate::memory::{self, LIGHT, Pool, Reservation, Shortage};
use crate::metadata::{Entry, OperationName, Rules};
use crate::path::LogicalPath;
use crate::payload::{Class, MAX_WEIGHT, PayloadType, Value};
use crate::repository::Tree;
use crate::server::{Request, Response, ServerError};
use crate::sync::model::{
    Address, Doubt, Observed, Question, Resource, Selection, Session, SyncError, Transcript, Verdict,
    Version, Wanted, judge, request,
};
use crate::sync::tasks::{blocking, evaluated};

/// The place of a path on the server.
#[derive(Clone)]
pub(super) struct Place {
    /// The path with the ids of its members.
    pub path: LogicalPath,
    /// The reason why the parents may have other ids.
    pub doubt: Option<Doubt>,
    /// Whether a list proves that one of its members is absent. Its name is in the place of its id.
    pub is_absent: bool,
    /// Set if Git declares one of its members twice.
    pub claimed: Option<Arc<SyncError>>,
}

/// Declared resources that share a name with another member of their collection, each with the other one.
pub(super) type Namesakes = Arc<HashMap<LogicalPath, LogicalPath>>;

/// A read that waits for the values of other resources.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Waiting {
    List(LogicalPath),
    /// A resource or a collection to which `resource()` or a reference refers.
    Reference(LogicalPath),
}

/// Reads the resources of one run, and keeps shared results such as lists.
#[derive(Clone)]
pub struct Remote {
    pub(crate) session: Session,
    /// The record of the answers, for a recheck.
    pub(super) transcript: Arc<Transcript>,
    pub(super) lists: Once<Listed>,
    /// The lists of the reads that wait for these reads. Only those that are complete are used.
    pub(super) outer: Vec<Once<Listed>>,
    /// What waits for these reads.
    pub(super) within: Vec<Waiting>,
    pub(super) places: Once<Result<Place, Arc<SyncError>>>,
    pub(super) namesakes: Once<Result<Namesakes, Arc<SyncError>>>,
    /// The paths in the repository, by the paths with the ids of parents.
    pub(super) declared: Arc<Mutex<HashMap<LogicalPath, LogicalPath>>>,
    /// Whether parents are proven absent.
    pub(super) absent: Once<bool>,
    /// The paths that have resources of the run below them.
    pub(super) parents: Arc<Parents>,
    pub(super) former: Arc<Former>,
    /// The values of resources that others refer to.
    pub(super) references: Arc<References>,
    /// The answers that all reads of the run share; `None` if these reads follow a write.
    pub(super) asked: Option<Arc<Asked>>,
    /// Whether answers are kept until the next write, because other reads of the run will probably ask the same.
    pub(super) keeps: bool,
    /// Whether lists are kept, because candidates for deletion need them, too.
    pub(super) keeps_lists: bool,
    /// The server with the rules of the run, if this one has the rules of an earlier revision.
    pub(super) current: Option<Arc<Self>>,
}

/// The hashes of the paths that have selected resources below them. Two paths with one hash only share a result that
/// they could have determined on their own.
#[derive(Debug, Default)]
pub(super) struct Parents {
    hashes: HashSet<u64>,
    hasher: RandomState,
}

impl Parents {
    pub fn of(selection: &Selection) -> Self {
        let mut parents = Self::default();
        let declared = selection.resources.iter().map(|file| &file.path);
        for path in declared.chain(selection.prune.iter().map(|candidate| &candidate.path)) {
            for ancestor in path.ancestors() {
                // The ancestors of a known path are known.
                if !parents.hashes.insert(parents.hasher.hash_one(&ancestor)) {
                    break;
                }
            }
        }
        parents
    }

    pub fn contains(&self, path: &LogicalPath) -> bool {
        self.hashes.contains(&self.hasher.hash_one(path))
    }
}

/// The resources that earlier runs applied.
#[derive(Default)]
pub struct Former {
    /// The revision that was last applied without a failure.
    pub tree: Option<Arc<dyn Tree>>,
    /// The payloads of resources that were declared before and are not declared now.
    pub payloads: Vec<Value>,
}

impl fmt::Debug for Former {
    /// Shows no payloads, because they may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Former")
    }
}

impl Remote {
    /// Returns the server of `session` without any knowledge.
    pub fn new(session: &Session) -> Arc<Self> {
        Arc::new(Self::following(session, Transcript::new(false), Arc::default()))
    }

    /// Returns the server of `session` without any knowledge but the values of references and what was applied.
    pub(crate) fn referring(
        session: &Session,
        references: Arc<References>,
        former: Arc<Former>,
    ) -> Arc<Self> {
        Arc::new(Self { references, ..Self::following(session, Transcript::new(false), former) })
    }

    /// Returns the same server without any knowledge but the values of references and what was applied.
    pub(crate) fn fresh(&self) -> Arc<Self> {
        let other = Self::following(&self.session, Transcript::new(false), self.former());
        let (references, namesakes) = (self.references(), Arc::clone(&self.namesakes));
        Arc::new(Self { namesakes, references, ..other })
    }

    /// The contents of resources that others refer to.
    pub(crate) fn references(&self) -> Arc<References> {
        Arc::clone(&self.references)
    }

    /// What earlier runs applied.
    pub(crate) fn former(&self) -> Arc<Former> {
        Arc::clone(&self.former)
    }

    /// Returns the server for a run after earlier ones. Records all reads in `transcript`.
    pub(crate) fn following(session: &Session, transcript: Arc<Transcript>, former: Arc<Former>) -> Self {
        let (session, within) = (session.clone(), Vec::new());
        let (lists, places, namesakes, declared, absent, parents, references) = Default::default();
        let (current, outer, asked, keeps, keeps_lists) = (None, Vec::new(), None, false, false);
        Self {
            session,
            transcript,
            lists,
            outer,
            within,
            places,
            namesakes,
            declared,
            absent,
            parents,
            former,
            references,
            asked,
            keeps,
            keeps_lists,
            current,
        }
    }

    /// Returns the server for a run over `selection`, which shares the values of references with others.
    pub(crate) fn running(self, selection: &Selection, references: Arc<References>) -> Self {
        let (parents, asked) = (Arc::new(Parents::of(selection)), Some(Arc::clone(&references.asked)));
        let keeps_lists = !selection.prune.is_empty();
        Self { parents, references, asked, keeps_lists, ..self }
    }

    /// Returns the same server with the rules of another revision.
    pub(crate) fn at_revision(self: &Arc<Self>, tree: &Arc<dyn Tree>) -> Arc<Self> {
        let session = self.session.clone();
        let metadata = Arc::new(session.metadata.of(Arc::clone(tree)));
        let session = Session { tree: Arc::clone(tree), metadata, ..session };
        let other = Self::following(&session, Transcript::new(false), Arc::default());
        let (parents, asked, current) =
            (Arc::clone(&self.parents), self.asked.clone(), Some(Arc::clone(self)));
        Arc::new(Self { parents, asked, keeps: true, current, ..other })
    }

    /// Returns the server for reads that `waiting` needs. These reads share no cells with the reads of the run, so they
    /// cannot wait for what waits for them. They use lists and answers that the run has read.
    pub(super) fn nested(&self, waiting: Waiting) -> Self {
        let within = self.within.iter().cloned().chain([waiting]).collect();
        let outer = [&self.lists].into_iter().chain(&self.outer).map(Arc::clone).collect();
        let other = Self::following(&self.session, Arc::clone(&self.transcript), Arc::default());
        let (former, namesakes) = (Arc::clone(&self.former), Arc::clone(&self.namesakes));
        Self { outer, within, asked: self.asked.clone(), former, namesakes, keeps: true, ..other }
    }

    /// Records the path in the repository of a path with the ids of parents.
    pub(super) fn note_declared(&self, located: LogicalPath, declared: LogicalPath) {
        self.declared.lock().insert(located, declared);
    }

    /// Records the path in the repository of the collection of a resource.
    pub(super) fn note_place(&self, at: &Resource) {
        if let (Some(declared), Some(collection)) =
            (at.declared.as_ref().and_then(LogicalPath::parent), at.path.parent())
        {
            self.note_declared(collection, declared);
        }
    }

    /// Returns the path in the repository of a path with the ids of parents.
    pub(super) fn declared_at(&self, located: &LogicalPath) -> Option<LogicalPath> {
        self.declared.lock().get(located).cloned()
    }

    /// Sends a read, unless its answer is already known.
    pub(super) async fn ask(&self, request: &Request, is_list: bool) -> Result<Response, ServerError> {
        let keep = self.keeps || is_list && self.keeps_lists;
        let answer = match self.session.answers.take(request) {
            Some(response) => Ok(response),
            None => match &self.asked {
                Some(asked) => asked.answer(request, keep, &self.session.client).await,
                None => self.session.client.send(request).await,
            },
        };
        self.transcript.note(request, &answer);
        answer
    }

    /// Returns the rules of `path`, which may have the ids of parents: documents of metadata are below their names.
    /// Reading documents blocks, so this happens on the blocking pool.
    pub(crate) async fn rules(&self, path: &LogicalPath) -> Result<Arc<Rules>, SyncError> {
        let declared =
            || self.declared_at(path).or_else(|| self.declared_at(&path.parent()?)?.child(path.name()).ok());
        let (metadata, path) =
            (Arc::clone(&self.session.metadata), declared().unwrap_or_else(|| path.clone()));
        blocking(path.clone(), move || Ok(metadata.rules(&path)?)).await
    }

    /// Reads the resource at the address that its rules state.
    pub(crate) async fn read_at(&self, at: &Resource) -> Result<Observed, SyncError> {
        let (at, lacking) = self.with_template_values(self.with_reader(at)).await?;
        if let Some(lacking) = lacking {
            return Err(lacking);
        }
        let at = &at;
        self.note_place(at);
        if at.rules.reads_from_list() {
            return Box::pin(self.read_entry(at)).await;
        }
        let evaluation = at.evaluation()?;
        let request = at.guarding(request(&evaluation, OperationName::Get, &Value::Null)?);
        let request = Request { answers: at.rules.absent_statuses(OperationName::Get).into(), ..request };
        let mut response = self.ask(&request, false).await?;
        let version = Version::of(&request, &response);
        let stored = at.descriptor.as_ref().map(|descriptor| descriptor.payload_type);
        // Of a resource that is no longer declared, only the payload is known.
        let text = || at.payload.as_str().map(|_| PayloadType::Text);
        let status = response.status;
        let expected = stored.or(at.rules.payload_type()).or_else(text);
        let mut held = Reservation::new(Pool::Answers);
        let answer = match decoded(&at.path, &mut response, expected, &mut held).await {
            Err(SyncError::Server(_)) if status.is_client_error() => Value::Null,
            Ok(Value::Null) if status == StatusCode::OK => empty(expected),
            answer => answer?,
        };
        let was_null = answer.is_null();
        let transform = move |at: &Resource| {
            if at.rules.means_absent(OperationName::Get, status, &answer) {
                return Err(SyncError::Absent(at.path.clone()));
            }
            if status.is_client_error() {
                return Ok(None);
            }
            Ok(Some(at.evaluation()?.transform(OperationName::Get, answer)?))
        };
        let Some(payload) = evaluated(at.clone(), transform).await? else {
            return Err(self.session.client.rejection(&request, &response).into());
        };
        // If the transforms select nothing from an answer about several resources, the resource does not exist.
        if payload.is_null() && !was_null {
            return Err(SyncError::Absent(at.path.clone()));
        }
        if !at.seeded && matches!(*at.payload, Value::Object(_) | Value::Array(_)) {
            response.check_structured(&payload)?;
        }
        self.session.hide_names(&at.rules, &payload);
        self.check_names(at, &payload, &response).await?;
        let read_at = Some(request.path.into_boxed_str());
        let descriptor = match at.rules.payload_type() {
            Some(_) => None,
            None => response.descriptor_of(&payload),
        };
        Ok(Observed {
            at: at.clone(),
            payload: Some(payload),
            descriptor,
            held: held.share(),
            version,
            read_at,
        })
    }

    /// Reads a resource that only the list of its collection shows.
    async fn read_entry(&self, at: &Resource) -> Result<Observed, SyncError> {
        let Some(collection) = at.path.parent() else { return Err(SyncError::Absent(at.path.clone())) };
        let list = self.list_for(at, &collection).await;
        let (wanted, post_creates) = (Wanted::of(at), at.gets_its_id_by_post());
        match judge(&Question { wanted, post_creates, ..Question::default() }, Address::NotAsked, &list) {
            Verdict::Present(entry) => self.of_entry(at, entry).await,
            // The address of its parents may be wrong.
            Verdict::Unknown(Doubt::NoList) | Verdict::Absent(_) => Err(SyncError::Absent(at.path.clone())),
            Verdict::Unknown(doubt) => Err(at.undecided(doubt)),
            Verdict::Here => Err(at.undecided(Doubt::NotListed)),
        }
    }

    /// Returns the resource that `entry` of the list shows, after the transforms of `get`. If they select nothing, the
    /// resource does not exist.
    pub(super) async fn of_entry(&self, at: &Resource, entry: &Entry) -> Result<Observed, SyncError> {
        let (found, payload) = (at.with_remote_id(&entry.remote_id), entry.payload.clone());
        let transform = move |at: &Resource| Ok(at.evaluation()?.transform_entry(payload)?);
        let payload = evaluated(found.clone(), transform).await?;
        if payload.is_null() {
            return Err(SyncError::Absent(at.path.clone()));
        }
        Ok(Observed::new(found, Some(payload)))
    }
}

/// Returns the content of an answer without a body.
fn empty(expected: Option<PayloadType>) -> Value {
    match expected.map(PayloadType::class) {
        Some(Class::Text) => Value::String(String::new()),
        Some(Class::Binary) => Value::Bytes(Vec::new()),
        Some(Class::Structured) | None => Value::Null,
    }
}

/// Decodes the body of an answer about `path` and drops it. A value that needs much memory waits for its part of `held`,
/// which has that of the former pages.
pub(super) async fn decoded(
    path: &LogicalPath,
    response: &mut Response,
    expected: Option<PayloadType>,
    held: &mut Reservation,
) -> Result<Value, SyncError> {
    let Some(capacity) = memory::capacity(Pool::Answers) else {
        return Ok(response.decode(expected)?);
    };
    let shortage = |shortage| SyncError::Memory(path.clone(), shortage);
    match response.decode_within(expected, LIGHT) {
        Err(ServerError::TooHeavy { .. }) => {}
        light => {
            let value = light?;
            held.add(value.weight()).await.map_err(shortage)?;
            return Ok(value);
        }
    }
    let _turn = memory::turn().await;
    let value = match response.decode_within(expected, capacity) {
        Err(ServerError::TooHeavy { .. }) if capacity < MAX_WEIGHT => {
            return Err(shortage(Shortage::TooLarge { pool: Pool::Answers, capacity }));
        }
        decoded => decoded?,
    };
    // The body has a share of the same pool.
    response.body = Bytes::new();
    held.add(value.weight()).await.map_err(shortage)?;
    Ok(value)
}

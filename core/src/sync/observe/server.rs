//! The managed server, as one run sees it: one request, and one answer decoded.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OnceCell;

use crate::metadata::transform::Context;
use crate::metadata::{OperationName, Rules};
use crate::path::LogicalPath;
use crate::payload::{PayloadType, Value};
use crate::repository::Tree;
use crate::server::{Request, Response, ServerError};
use crate::sync::model::{
    Doubt, ListAnswer, Observed, Resource, Session, SyncError, Transcript, Version, request,
};
use crate::sync::tasks::{blocking, evaluated};

/// What is found out once per run, by path.
pub(super) type Once<T> = Arc<Mutex<HashMap<LogicalPath, Arc<OnceCell<T>>>>>;

/// What is known of `path`, or will be: the first caller finds it out, and the others wait for that.
pub(super) fn cell<T>(known: &Once<T>, path: &LogicalPath) -> Arc<OnceCell<T>> {
    Arc::clone(known.lock().unwrap_or_else(PoisonError::into_inner).entry(path.clone()).or_default())
}

/// Where a path is on the server, and why the ids of its parents may be other ones after all.
pub(super) type Place = (LogicalPath, Option<Doubt>);

/// Reads resources of one run, and keeps what many of them need.
#[derive(Clone)]
pub struct Remote {
    pub(crate) session: Session,
    /// Where answers are noted, for a run that may be repeated.
    pub(super) transcript: Arc<Transcript>,
    pub(super) lists: Once<Arc<ListAnswer>>,
    /// The collections whose lists wait for what is read here.
    pub(super) within: Vec<LogicalPath>,
    pub(super) places: Once<Result<Place, Arc<SyncError>>>,
    /// Whether parents surely do not exist.
    pub(super) absent: Once<bool>,
    pub(super) former: Arc<Former>,
}

/// What earlier runs applied.
#[derive(Default)]
pub struct Former {
    /// The revision that was last applied without a failure.
    pub tree: Option<Arc<dyn Tree>>,
    /// What was declared before and is not declared now.
    pub payloads: Vec<Value>,
}

impl Remote {
    /// The server of `session`, of which nothing is known yet.
    pub fn new(session: &Session) -> Arc<Self> {
        Arc::new(Self::following(session, Transcript::new(false), Former::default()))
    }

    /// The same for a run that follows others. All that is read is noted in `transcript`.
    pub(crate) fn following(session: &Session, transcript: Arc<Transcript>, former: Former) -> Self {
        let (session, within, former) = (session.clone(), Vec::new(), Arc::new(former));
        let (lists, places, absent) = Default::default();
        Self { session, transcript, lists, within, places, absent, former }
    }

    /// The same for reads that the list of `collection` waits for. They wait for nothing that waits for that list.
    pub(super) fn nested(&self, collection: &LogicalPath) -> Self {
        let within = self.within.iter().cloned().chain([collection.clone()]).collect();
        Self { within, ..Self::following(&self.session, Arc::clone(&self.transcript), Former::default()) }
    }

    /// Sends a read, unless its answer is at hand.
    pub(super) async fn ask(&self, request: &Request) -> Result<Response, ServerError> {
        let answer = match self.session.answers.take(request) {
            Some(response) => Ok(response),
            None => self.session.client.send(request).await,
        };
        self.transcript.note(request, &answer);
        answer
    }

    /// The rules of `path`. Looking for documents blocks, so this happens on the blocking pool.
    pub(crate) async fn rules(&self, path: &LogicalPath) -> Result<Arc<Rules>, SyncError> {
        let (metadata, path) = (Arc::clone(&self.session.metadata), path.clone());
        blocking(path.clone(), move || Ok(metadata.rules(&path)?)).await
    }

    /// Reads the resource at exactly the address that its rules give.
    pub(crate) async fn read_at(&self, at: &Resource) -> Result<Observed, SyncError> {
        let evaluation = at.evaluation()?;
        let request = at.guarding(request(&evaluation, OperationName::Get, &Value::Null)?);
        let response = self.ask(&request).await?;
        let version = Version::of(&request, &response);
        let stored = at.descriptor.as_ref().map(|descriptor| descriptor.payload_type);
        // What was declared once is known by its payload alone.
        let text = || at.payload.as_str().map(|_| PayloadType::Text);
        let answer = response.decode(stored.or(at.rules.payload_type()).or_else(text))?;
        let was_null = answer.is_null();
        let transform = move |at: &Resource| {
            Ok(at.evaluation()?.transform(OperationName::Get, answer, Context::default())?)
        };
        let payload = evaluated(at.clone(), transform).await?;
        // Transforms that find nothing in an answer about more than this resource say that it is not there.
        if payload.is_null() && !was_null {
            return Err(SyncError::Absent(at.path.clone()));
        }
        let read_at = Some(request.path.into_boxed_str());
        Ok(Observed { at: at.clone(), payload: Some(payload), version, read_at })
    }
}

//! The managed server in one run: one request and its decoded answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OnceCell;

use crate::language::jq::Context;
use crate::metadata::{OperationName, Rules};
use crate::path::LogicalPath;
use crate::payload::{PayloadType, Value};
use crate::repository::Tree;
use crate::server::{Request, Response, ServerError};
use crate::sync::model::{
    Doubt, ListAnswer, Observed, Resource, Session, SyncError, Transcript, Version, request,
};
use crate::sync::tasks::{blocking, evaluated};

/// Values that are determined once per run, by path.
pub(super) type Once<T> = Arc<Mutex<HashMap<LogicalPath, Arc<OnceCell<T>>>>>;

/// Returns the cell of `path`. The first caller determines its value, and the others wait.
pub(super) fn cell<T>(known: &Once<T>, path: &LogicalPath) -> Arc<OnceCell<T>> {
    Arc::clone(known.lock().unwrap_or_else(PoisonError::into_inner).entry(path.clone()).or_default())
}

/// The path on the server, and the doubt if its parents may have other ids.
pub(super) type Place = (LogicalPath, Option<Doubt>);

/// Reads the resources of one run, and keeps shared results such as lists.
#[derive(Clone)]
pub struct Remote {
    pub(crate) session: Session,
    /// The record of the answers, for a recheck.
    pub(super) transcript: Arc<Transcript>,
    pub(super) lists: Once<Arc<ListAnswer>>,
    /// The collections whose lists wait for these reads.
    pub(super) within: Vec<LogicalPath>,
    pub(super) places: Once<Result<Place, Arc<SyncError>>>,
    /// Whether parents are proven absent.
    pub(super) absent: Once<bool>,
    pub(super) former: Arc<Former>,
}

/// The resources that earlier runs applied.
#[derive(Default)]
pub struct Former {
    /// The revision that was last applied without a failure.
    pub tree: Option<Arc<dyn Tree>>,
    /// The payloads of resources that were declared before and are not declared now.
    pub payloads: Vec<Value>,
}

impl Remote {
    /// Returns the server of `session` without any knowledge.
    pub fn new(session: &Session) -> Arc<Self> {
        Arc::new(Self::following(session, Transcript::new(false), Former::default()))
    }

    /// Returns the server for a run after earlier ones. Records all reads in `transcript`.
    pub(crate) fn following(session: &Session, transcript: Arc<Transcript>, former: Former) -> Self {
        let (session, within, former) = (session.clone(), Vec::new(), Arc::new(former));
        let (lists, places, absent) = Default::default();
        Self { session, transcript, lists, within, places, absent, former }
    }

    /// Returns the server for reads that the list of `collection` waits for. These reads share no cells with the reads
    /// of the run, so they cannot wait for that list.
    pub(super) fn nested(&self, collection: &LogicalPath) -> Self {
        let within = self.within.iter().cloned().chain([collection.clone()]).collect();
        Self { within, ..Self::following(&self.session, Arc::clone(&self.transcript), Former::default()) }
    }

    /// Sends a read, unless its answer is already known.
    pub(super) async fn ask(&self, request: &Request) -> Result<Response, ServerError> {
        let answer = match self.session.answers.take(request) {
            Some(response) => Ok(response),
            None => self.session.client.send(request).await,
        };
        self.transcript.note(request, &answer);
        answer
    }

    /// Returns the rules of `path`. Reading documents blocks, so this happens on the blocking pool.
    pub(crate) async fn rules(&self, path: &LogicalPath) -> Result<Arc<Rules>, SyncError> {
        let (metadata, path) = (Arc::clone(&self.session.metadata), path.clone());
        blocking(path.clone(), move || Ok(metadata.rules(&path)?)).await
    }

    /// Reads the resource at the address that its rules state.
    pub(crate) async fn read_at(&self, at: &Resource) -> Result<Observed, SyncError> {
        let evaluation = at.evaluation()?;
        let request = at.guarding(request(&evaluation, OperationName::Get, &Value::Null)?);
        let response = self.ask(&request).await?;
        let version = Version::of(&request, &response);
        let stored = at.descriptor.as_ref().map(|descriptor| descriptor.payload_type);
        // Of a resource that is no longer declared, only the payload is known.
        let text = || at.payload.as_str().map(|_| PayloadType::Text);
        let answer = response.decode(stored.or(at.rules.payload_type()).or_else(text))?;
        let was_null = answer.is_null();
        let transform = move |at: &Resource| {
            Ok(at.evaluation()?.transform(OperationName::Get, answer, Context::default())?)
        };
        let payload = evaluated(at.clone(), transform).await?;
        // If the transforms select nothing from an answer about several resources, the resource does not exist.
        if payload.is_null() && !was_null {
            return Err(SyncError::Absent(at.path.clone()));
        }
        let read_at = Some(request.path.into_boxed_str());
        Ok(Observed { at: at.clone(), payload: Some(payload), version, read_at })
    }
}

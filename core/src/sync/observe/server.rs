//! The managed server: one request, and one answer decoded.

use std::sync::Arc;

use crate::metadata::transform::Context;
use crate::metadata::{OperationName, Rules};
use crate::path::LogicalPath;
use crate::payload::{PayloadType, Value};
use crate::server::{Request, Response, ServerError};
use crate::sync::model::{
    Observed, Resource, Session, SyncError, Transcript, Version, confidential, request,
};
use crate::sync::tasks::{blocking, evaluated};

/// The server of a session, and where its answers are noted.
#[derive(Clone)]
pub struct Server {
    pub session: Session,
    /// Where answers are noted, if the run may be repeated.
    pub transcript: Option<Arc<Transcript>>,
}

impl Server {
    /// Sends a read, unless its answer is at hand.
    pub async fn ask(&self, request: &Request) -> Result<Response, ServerError> {
        self.ask_guarded(request, request).await
    }

    /// [`Self::ask`], where `guarded` is the same request with what its answer may echo.
    async fn ask_guarded(&self, request: &Request, guarded: &Request) -> Result<Response, ServerError> {
        let answer = match self.session.answers.take(request) {
            Some(response) => Ok(response),
            None => self.session.client.send(guarded).await,
        };
        if let Some(transcript) = &self.transcript {
            transcript.note(request, &answer);
        }
        answer
    }

    /// The rules of `path`. Looking for documents blocks, so this happens on the blocking pool.
    pub async fn rules(&self, path: &LogicalPath) -> Result<Arc<Rules>, SyncError> {
        let (metadata, path) = (Arc::clone(&self.session.metadata), path.clone());
        blocking(path.clone(), move || Ok(metadata.rules(&path)?)).await
    }

    /// Reads the resource at exactly the address that its rules give.
    pub async fn read_at(&self, at: &Resource) -> Result<Observed, SyncError> {
        let evaluation = at.evaluation()?;
        let confidential = confidential(at.rules.resolved(), &at.secrets);
        let request = Request { confidential, ..request(&evaluation, OperationName::Get, &Value::Null)? };
        let secrets = at.secret_texts();
        let response = if secrets.is_empty() {
            self.ask(&request).await?
        } else {
            // What is noted of a read must hold no secret.
            self.ask_guarded(&request, &Request { secrets: secrets.into(), ..request.clone() }).await?
        };
        let version = Version::of(&request, &response);
        let read_at = request.path.into_boxed_str();
        let stored = at.descriptor.as_ref().map(|descriptor| descriptor.payload_type);
        // What was declared once is known by its payload alone.
        let text = || at.payload.as_str().map(|_| PayloadType::Text);
        let answer = response.decode(stored.or(at.rules.payload_type()).or_else(text))?;
        let was_null = answer.is_null();
        let payload = if at.rules.runs_jq() {
            drop(evaluation);
            let transform = move |at: &Resource| {
                Ok(at.evaluation()?.transform(OperationName::Get, answer, Context::default())?)
            };
            evaluated(at.clone(), transform).await?
        } else {
            evaluation.transform(OperationName::Get, answer, Context::default())?
        };
        // Transforms that find nothing in an answer about more than this resource say that it is not there.
        if payload.is_null() && !was_null {
            return Err(SyncError::Absent(at.path.clone()));
        }
        Ok(Observed { at: at.clone(), payload: Some(payload), version, read_at: Some(read_at) })
    }
}

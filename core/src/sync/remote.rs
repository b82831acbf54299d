//! The managed server as the engine sees it: resources to read, requests to send.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::{Arc, PoisonError};

use http::StatusCode;
use tokio::sync::OnceCell;

use super::plan::{Call, Observed, bare};
use super::{Session, SyncError};
use crate::error::{Categorized, Category};
use crate::metadata::{Entry, Listing, MetadataError, Operation, Rules, Scope};
use crate::path::LogicalPath;
use crate::payload::{Descriptor, Value};
use crate::server::{Response, ServerError};

/// Reads and writes resources of one run. Lists are asked for once per collection and run, by whoever
/// needs one first.
pub(super) struct Remote<'a> {
    session: &'a Session,
    lists: Mutex<HashMap<LogicalPath, Arc<OnceCell<ListOutcome>>>>,
}

/// What the list of a collection said.
enum ListOutcome {
    Listed(Listing),
    /// A part of the list: who is on it exists, who is not may exist.
    Part(Listing),
    /// There is no such list: no collection, or an answer that is not one.
    NoList,
    Failed {
        category: Category,
        unauthorized: bool,
        message: String,
    },
}

/// What to read, and with which names.
pub(super) struct Wanted<'a> {
    pub path: &'a LogicalPath,
    pub rules: &'a Rules,
    pub remote_id: &'a str,
    /// Whether the payload itself states the id, so that a 404 for it is an answer.
    pub states_id: bool,
    pub descriptor: Option<&'a Descriptor>,
}

impl<'a> Remote<'a> {
    pub(super) fn new(session: &'a Session) -> Self {
        Self { session, lists: Mutex::default() }
    }

    /// Reads one resource. A server that does not know it by its id is asked for the list of the
    /// collection: ids given by the server are found there by name, and servers without single reads
    /// are understood.
    pub(super) async fn read(&self, wanted: &Wanted<'_>) -> Result<Observed, SyncError> {
        let error = match self.get(wanted, wanted.remote_id).await {
            Ok(payload) => return Ok(present(wanted.remote_id, payload)),
            Err(error) => error,
        };
        let found = match error.category() {
            Category::NotFound => self.find_listed(wanted).await?,
            // Some servers answer 400 or 405 where they cannot read a single resource. If the list does
            // not help either, what they said first is what the user should see.
            Category::Validation => match self.find_listed(wanted).await {
                Ok(Some(found)) => Some(found),
                Ok(None) | Err(_) => return Err(error),
            },
            _ => return Err(error),
        };
        let Some(entry) = found else { return Ok(Observed::Absent) };
        if entry.remote_id == wanted.remote_id {
            return Ok(present(&entry.remote_id, entry.payload));
        }
        match self.get(wanted, &entry.remote_id).await {
            Ok(payload) => Ok(present(&entry.remote_id, payload)),
            Err(error) if matches!(error.category(), Category::NotFound | Category::Validation) => {
                Ok(present(&entry.remote_id, entry.payload))
            }
            Err(error) => Err(error),
        }
    }

    /// Sends a planned request.
    pub(super) async fn send(&self, call: &Call) -> Result<Response, SyncError> {
        let sent = self.session.client.send(&call.request).await;
        match (&call.on_conflict, sent) {
            (Some(update), Err(error)) if error.is_already_exists() => {
                Ok(self.session.client.send(update).await?)
            }
            (_, sent) => Ok(sent?),
        }
    }

    async fn get(&self, wanted: &Wanted<'_>, remote_id: &str) -> Result<Value, SyncError> {
        let scope = Scope { path: wanted.path, remote_id, descriptor: wanted.descriptor };
        let request = bare(wanted.rules.render(Operation::Get, scope));
        Ok(self.session.client.send(&request).await?.decode()?)
    }

    async fn find_listed(&self, wanted: &Wanted<'_>) -> Result<Option<Entry>, SyncError> {
        let Some(collection) = wanted.path.parent() else { return Ok(None) };
        let cell = {
            let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(lists.entry(collection.clone()).or_default())
        };
        match cell.get_or_init(|| self.list(&collection, wanted.rules)).await {
            ListOutcome::Listed(listing) => Ok(listing.find(wanted.path, wanted.remote_id)?.cloned()),
            ListOutcome::Part(listing) => match listing.find(wanted.path, wanted.remote_id)? {
                Some(entry) => Ok(Some(entry.clone())),
                None if wanted.states_id => Ok(None),
                None => Err(SyncError::PartialList { path: wanted.path.clone(), collection }),
            },
            ListOutcome::NoList => Ok(None),
            ListOutcome::Failed { category, unauthorized, message } => Err(SyncError::List {
                path: wanted.path.clone(),
                category: *category,
                unauthorized: *unauthorized,
                message: message.clone(),
            }),
        }
    }

    async fn list(&self, collection: &LogicalPath, rules: &Rules) -> ListOutcome {
        let scope = Scope { path: collection, remote_id: "", descriptor: None };
        let request = bare(rules.render(Operation::List, scope));
        let listed = async {
            let response = self.session.client.send(&request).await?;
            let answer = response.decode()?;
            let partial = response.has_next_page || rules.is_partial(&answer);
            Ok::<_, SyncError>((rules.entries(collection, answer)?, partial))
        };
        match listed.await {
            Ok((entries, false)) => ListOutcome::Listed(Listing::new(entries)),
            Ok((entries, true)) => ListOutcome::Part(Listing::new(entries)),
            Err(SyncError::Metadata(MetadataError::ListShape { .. })) => ListOutcome::NoList,
            Err(error) if error.category() == Category::NotFound => ListOutcome::NoList,
            Err(error) => ListOutcome::Failed {
                category: error.category(),
                unauthorized: error.is_unauthorized(),
                message: error.to_string(),
            },
        }
    }
}

impl SyncError {
    /// Whether the server said that there is nothing to delete.
    pub(super) fn is_gone(&self) -> bool {
        match self {
            Self::Server(ServerError::Status { status, .. }) => {
                matches!(*status, StatusCode::NOT_FOUND | StatusCode::GONE)
            }
            _ => false,
        }
    }
}

fn present(remote_id: &str, payload: Value) -> Observed {
    Observed::Present { remote_id: remote_id.to_owned(), payload }
}

//! Lists of collections, asked for once per run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use http::StatusCode;
use tokio::runtime::Handle;
use tokio::sync::OnceCell;

use super::pages::{Bounds, Listed, Pages};
use super::server::Server;
use crate::error::{Categorized, Category};
use crate::metadata::transform::{Context, ResourceError, ResourceReader};
use crate::metadata::{Listing, MetadataError, NextPage, OperationName, Rules, Shape, replace_parameters};
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::server::{Request, Response, ServerError};
use crate::sync::model::{Doubt, ListAnswer, SyncError, confidential, request};
use crate::sync::tasks::blocking;

/// How deep lists may need each other through `resource()`.
const MAX_NESTING: usize = 8;

/// Reads the resource at a path for the jq of the list of a collection; the path of that collection comes first.
pub type NestedReads =
    Arc<dyn Fn(Lists, LogicalPath) -> BoxFuture<'static, Result<Value, SyncError>> + Send + Sync>;

/// The lists of one run, by collection.
#[derive(Clone)]
pub struct Lists {
    pub server: Server,
    answers: Arc<Mutex<HashMap<LogicalPath, Arc<OnceCell<ListAnswer>>>>>,
    /// The collections whose lists wait for what is read here.
    within: Vec<LogicalPath>,
    reads: NestedReads,
}

impl Lists {
    pub fn new(server: Server, reads: NestedReads) -> Self {
        Self { server, answers: Arc::default(), within: Vec::new(), reads }
    }

    /// The same lists, whose answers are noted by `server`.
    pub fn noted_by(&self, server: Server) -> Self {
        Self { server, ..self.clone() }
    }

    /// For reads that the list of `collection` waits for.
    fn nested(&self, collection: &LogicalPath) -> Self {
        let within = self.within.iter().cloned().chain([collection.clone()]).collect();
        Self { within, answers: Arc::default(), ..self.clone() }
    }

    /// What is known of the list of `collection`, where it was asked for or will be.
    pub fn cell(&self, collection: &LogicalPath) -> Arc<OnceCell<ListAnswer>> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(answers.entry(collection.clone()).or_default())
    }

    /// The list of `collection`, asked for by the first caller, and what `read` makes of it.
    pub async fn with<T>(&self, collection: &LogicalPath, read: impl FnOnce(&ListAnswer) -> T) -> T {
        let cell = self.cell(collection);
        read(cell.get_or_init(|| Box::pin(self.answer(collection))).await)
    }

    async fn answer(&self, collection: &LogicalPath) -> ListAnswer {
        let doubt = match self.read(collection).await {
            Ok(Listed { shape: Shape::Guessed, .. }) => {
                Doubt::NotAList("it is an object with one array among other members".to_owned())
            }
            Ok(Listed { entries, doubt, .. }) => {
                return ListAnswer::Listed { listing: Listing::new(entries), doubt };
            }
            Err(
                SyncError::Metadata(MetadataError::ListShape { reason, .. })
                | SyncError::Server(ServerError::Decode { reason, .. }),
            ) => Doubt::NotAList(reason),
            Err(error) if error.category() == Category::NotFound => Doubt::NoList,
            Err(SyncError::Server(ServerError::Status {
                status: status @ (StatusCode::FORBIDDEN | StatusCode::METHOD_NOT_ALLOWED),
                ..
            })) => Doubt::Unlistable(status),
            Err(SyncError::Server(ServerError::Status { status, .. })) if status.is_redirection() => {
                Doubt::NotAList(format!("HTTP {}", status.as_u16()))
            }
            Err(error) => Doubt::Failed(Arc::new(error)),
        };
        ListAnswer::Unknown(doubt)
    }

    /// Asks for the list of `collection`, all pages of it.
    pub async fn read(&self, collection: &LogicalPath) -> Result<Listed, SyncError> {
        if self.within.contains(collection) || self.within.len() >= MAX_NESTING {
            return Err(SyncError::ListCycle(collection.clone()));
        }
        let rules = self.server.rules(collection).await?;
        let request = request(&rules.on_collection(collection)?, OperationName::List, &Value::Null)?;
        let mut request = Request { confidential: confidential(rules.resolved(), &[]), ..request };
        let transforms = ListTransforms::new(self, collection, &rules);
        let mut pages = Pages::new(&rules, collection, Bounds::LIST);
        let mut answered = self.server.ask(&request).await.map_err(SyncError::from);
        loop {
            let number = pages.number();
            let on_page = |source: SyncError| match (number, source) {
                (1, source) | (_, source @ SyncError::UnboundedList(..)) => source,
                (page, source) => {
                    SyncError::Page { collection: collection.clone(), page, source: source.into() }
                }
            };
            let response = answered.map_err(on_page)?;
            let next = transforms.add(&mut pages, &response).await.map_err(on_page)?;
            let following = match next {
                NextPage::End => return Ok(pages.finish(false)),
                NextPage::Unknown => return Ok(pages.finish(true)),
                NextPage::At(reference) => request.following(&response.url, &reference),
                NextPage::With(parameters) => {
                    replace_parameters(&mut request.query, parameters);
                    Ok(request.clone())
                }
            };
            answered = match following {
                Ok(following) => self.server.ask(&following).await,
                Err(error) => Err(error),
            }
            .map_err(SyncError::from);
        }
    }
}

/// The transforms of one list, which run on each of its pages by itself.
struct ListTransforms {
    collection: LogicalPath,
    rules: Arc<Rules>,
    /// For jq, which may read other resources, and so wait.
    reader: Option<Arc<Reader>>,
}

impl ListTransforms {
    fn new(lists: &Lists, collection: &LogicalPath, rules: &Arc<Rules>) -> Self {
        let reader = rules.runs_jq().then(|| {
            Arc::new(Reader {
                lists: lists.nested(collection),
                runtime: Handle::current(),
                known: Mutex::default(),
            })
        });
        Self { collection: collection.clone(), rules: Arc::clone(rules), reader }
    }

    /// Adds the page that `response` is, and says what comes after it.
    async fn add(&self, pages: &mut Pages<'_>, response: &Response) -> Result<NextPage, SyncError> {
        let answer = response.decode(self.rules.payload_type())?;
        let next = pages.next(response, &answer);
        // An answer that is not a list cannot be counted either; the former is the cause.
        let entries = self.rules.entries(&self.collection, self.run(answer).await?)?;
        let next = next?;
        pages.add(entries, &next)?;
        Ok(next)
    }

    async fn run(&self, answer: Value) -> Result<Value, SyncError> {
        let (path, rules) = (self.collection.clone(), Arc::clone(&self.rules));
        let Some(reader) = self.reader.clone() else {
            return Ok(rules.on_collection(&path)?.transform(
                OperationName::List,
                answer,
                Context::default(),
            )?);
        };
        blocking(self.collection.clone(), move || {
            let context = Context { resources: Some(reader.as_ref()) };
            Ok(rules.on_collection(&path)?.transform(OperationName::List, answer, context)?)
        })
        .await
    }
}

/// Reads resources for the jq of one list. Each is read once.
struct Reader {
    lists: Lists,
    runtime: Handle,
    known: Mutex<HashMap<LogicalPath, Result<Value, ResourceError>>>,
}

impl ResourceReader for Reader {
    fn read(&self, path: &LogicalPath) -> Result<Value, ResourceError> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned();
        if let Some(known) = known {
            return known;
        }
        let read = (self.lists.reads)(self.lists.clone(), path.clone());
        let found = self.runtime.block_on(read).map_err(|error| Arc::new(error) as ResourceError);
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(path.clone(), found.clone());
        found
    }
}

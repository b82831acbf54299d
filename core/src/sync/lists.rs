//! Lists of collections, asked for once per run.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::OnceCell;

use super::pages::{Bounds, Pages};
use super::remote::Remote;
use super::resource::{confidential, request};
use super::{SyncError, blocking};
use crate::error::{Categorized, Category};
use crate::metadata::transform::{Context, ResourceError, ResourceReader};
use crate::metadata::{Entry, Listing, MetadataError, NextPage, OperationName, Rules, replace_parameters};
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::server::{Request, Response};

/// How deep lists may need each other through `resource()`.
const MAX_NESTING: usize = 8;

/// What the list of a collection said.
pub(super) enum ListOutcome {
    Listed(Listing),
    /// A part of the list: who is on it exists, who is not may exist.
    Part(Listing),
    /// There is no such list: no collection, or an answer that is not one.
    NoList,
    Failed {
        category: Category,
        unauthorized: bool,
        /// Whether the server refuses such a request as such, and so will refuse the next one, too.
        refused: bool,
        message: String,
    },
}

/// The members of a collection.
#[derive(Clone, Debug)]
pub struct Members {
    /// What the list shows, by the path of each member.
    pub entries: BTreeMap<LogicalPath, Entry>,
    /// Whether the server says that there are more, and nothing says how to ask for them.
    pub partial: bool,
}

/// The lists of one run, by collection.
#[derive(Default)]
pub(super) struct Lists(Mutex<HashMap<LogicalPath, Arc<OnceCell<ListOutcome>>>>);

impl Lists {
    pub fn cell(&self, collection: &LogicalPath) -> Arc<OnceCell<ListOutcome>> {
        let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(lists.entry(collection.clone()).or_default())
    }
}

impl Remote {
    /// The list of `collection`, asked for by whoever needs it first, and what `answer` makes of it.
    pub(super) async fn with_list<T>(
        self: &Arc<Self>,
        collection: &LogicalPath,
        answer: impl FnOnce(&ListOutcome) -> T,
    ) -> T {
        let cell = self.lists.cell(collection);
        answer(cell.get_or_init(|| Box::pin(self.outcome(collection))).await)
    }

    async fn outcome(self: &Arc<Self>, collection: &LogicalPath) -> ListOutcome {
        match self.list_answer(collection).await {
            Ok((entries, false)) => ListOutcome::Listed(Listing::new(entries)),
            Ok((entries, true)) => ListOutcome::Part(Listing::new(entries)),
            Err(SyncError::Metadata(MetadataError::ListShape { .. })) => ListOutcome::NoList,
            Err(error) if error.category() == Category::NotFound => ListOutcome::NoList,
            Err(error) => ListOutcome::Failed {
                category: error.category(),
                unauthorized: error.is_unauthorized(),
                refused: error.is_unreadable(),
                message: error.to_string(),
            },
        }
    }

    /// Lists the collection at `path`: its members by their paths. Two members of one path are a conflict.
    pub async fn list(self: &Arc<Self>, path: &LogicalPath) -> Result<Members, SyncError> {
        let (entries, partial) = self.list_answer(path).await?;
        let mut members = BTreeMap::new();
        for entry in entries {
            let alias = entry.alias.clone();
            if members.insert(entry.path(path)?, entry).is_some() {
                return Err(MetadataError::DuplicateAlias { collection: path.clone(), alias }.into());
            }
        }
        Ok(Members { entries: members, partial })
    }

    /// Asks for the list of `collection`, all pages of it: its entries, and whether they are only a part.
    pub(super) async fn list_answer(
        self: &Arc<Self>,
        collection: &LogicalPath,
    ) -> Result<(Vec<Entry>, bool), SyncError> {
        if self.within.contains(collection) || self.within.len() >= MAX_NESTING {
            return Err(SyncError::ListCycle { path: collection.clone() });
        }
        let rules = self.rules(collection).await?;
        let request = request(&rules.on_collection(collection)?, OperationName::List, &Value::Null)?;
        let mut request = Request { confidential: confidential(rules.resolved(), &[]), ..request };
        let transforms = ListTransforms::new(self, collection, &rules);
        let mut pages = Pages::new(&rules, collection, Bounds::LIST);
        let mut answered = self.ask(&request).await.map_err(SyncError::from);
        loop {
            let number = pages.number();
            let on_page = |source: SyncError| match (number, source) {
                (1, source)
                | (_, source @ (SyncError::EndlessList { .. } | SyncError::ListTooLong { .. })) => source,
                (page, source) => {
                    SyncError::Page { collection: collection.clone(), page, source: source.into() }
                }
            };
            let response = answered.map_err(on_page)?;
            let next = transforms.add(&mut pages, &response).await.map_err(on_page)?;
            let following = match next {
                NextPage::End => return Ok((pages.into_entries(), false)),
                NextPage::Unknown => return Ok((pages.into_entries(), true)),
                NextPage::At(reference) => request.following(&response.url, &reference),
                NextPage::With(parameters) => {
                    replace_parameters(&mut request.query, parameters);
                    Ok(request.clone())
                }
            };
            answered = match following {
                Ok(following) => self.ask(&following).await,
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
    fn new(remote: &Arc<Remote>, collection: &LogicalPath, rules: &Arc<Rules>) -> Self {
        let reader = rules.runs_jq().then(|| {
            Arc::new(Reader {
                remote: Arc::new(remote.nested(collection)),
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
        // An answer that is no list at all is one that cannot be counted, too; it is the former that counts.
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
    remote: Arc<Remote>,
    runtime: Handle,
    known: Mutex<HashMap<LogicalPath, Result<Value, ResourceError>>>,
}

impl ResourceReader for Reader {
    fn read(&self, path: &LogicalPath) -> Result<Value, ResourceError> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned();
        if let Some(known) = known {
            return known;
        }
        let found =
            self.runtime.block_on(self.remote.get(path)).map_err(|error| Arc::new(error) as ResourceError);
        let found = found.map(|found| found.payload.unwrap_or_default());
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(path.clone(), found.clone());
        found
    }
}

//! Lists of collections, read once per run.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use url::Url;

use super::listed::Listed;
use super::once::{Once, cell};
use super::pages::{LIST_BOUNDS, Pages, is_missing};
use super::references::Reader;
use super::server::{Remote, Waiting, decoded};
use crate::error::{Categorized as _, Category};
use crate::language::referred::{KnownValues, ReferenceValues};
use crate::memory::{Pool, Reservation, Share};
use crate::metadata::{
    Entries, Listing, MetadataError, NextPage, OperationName, PageParameters, Rules, Shape,
};
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::server::{Request, ServerError};
use crate::sync::model::{Doubt, ListAnswer, Match, Observed, Resource, SyncError, Wanted, request};
use crate::sync::tasks::blocking;

/// The maximum depth of lists that need each other through `resource()`.
const MAX_NESTING: usize = 8;

/// The time after which a page that is missing is requested again.
const PAGE_PAUSE: Duration = Duration::from_millis(200);

impl Remote {
    /// Returns the answer of the list of `collection`. The first caller reads it.
    pub(super) async fn listed(&self, collection: &LogicalPath) -> Listed {
        if let Some(current) = &self.current {
            if let Some(declared) = self.declared_at(collection) {
                current.note_declared(collection.clone(), declared);
            }
            if self.has_rules_of(current, collection).await {
                return Box::pin(current.listed(collection)).await;
            }
        }
        let collection = &self.listed_as(collection).await;
        let complete = |lists: &Once<Listed>| {
            let lists = lists.lock();
            lists.get(collection).and_then(|list| list.get().cloned())
        };
        if let Some(list) = self.outer.iter().find_map(complete) {
            return list;
        }
        let ask = || async {
            let answer = Arc::new(answer(Box::pin(self.read_list(collection)).await));
            Listed { answer, rules: self.rules(collection).await.ok() }
        };
        cell(&self.lists, collection).get_or_init(ask).await.clone()
    }

    /// Returns the answer of the list of `collection` for the decision about `member`.
    pub(crate) async fn list_for(&self, member: &Resource, collection: &LogicalPath) -> Arc<ListAnswer> {
        self.note_place(member);
        self.listed(collection).await.of(member)
    }

    /// Whether the resource that was found by its path is a member of its collection: its address is below that of the
    /// collection, the list shows it, or the list is not whole.
    pub(crate) async fn may_be_a_member(&self, observed: &Observed) -> bool {
        if !observed.is_elsewhere() {
            return true;
        }
        let at = observed.addressed();
        let Some(collection) = at.path.parent() else { return true };
        match &*self.list_for(&at, &collection).await {
            ListAnswer::Listed { listing, doubt: None, .. } => {
                let wanted = Wanted { id: Some(&at.identity.remote_id), ..Wanted::of(&at) };
                !matches!(wanted.find(listing), Match::Nothing)
            }
            _ => true,
        }
    }

    /// Returns the declared path of a collection with the ids of parents, if the lists of both are one request, because
    /// metadata addresses the collection by the names of its parents. Otherwise returns `collection`.
    async fn listed_as(&self, collection: &LogicalPath) -> LogicalPath {
        let Some(declared) = self.declared_at(collection) else { return collection.clone() };
        let requests = (self.list_request(collection, None).await, self.list_request(&declared, None).await);
        match requests {
            (Ok(located), Ok(other)) if located == other => declared,
            _ => collection.clone(),
        }
    }

    async fn list_request(
        &self,
        collection: &LogicalPath,
        page: Option<PageParameters>,
    ) -> Result<Request, SyncError> {
        let rules = self.rules(collection).await?;
        let declared = self.declared_at(collection).unwrap_or_else(|| collection.clone());
        let values = self.values_of_list(&rules, collection, &declared).await?;
        let values = values.as_deref().map(|values| values as &dyn ReferenceValues);
        let mut evaluation = rules.on_collection_with(collection, values, Some(&declared))?;
        if let Some(page) = page {
            evaluation = evaluation.at_page(page);
        }
        request(&evaluation, OperationName::List, &Value::Null)
    }

    /// Whether the server answers the request of a page that it has shown. A gateway may answer 404 for a time.
    async fn still_shows(&self, page: Option<&Request>) -> bool {
        let Some(page) = page else { return false };
        self.session.client.send(page).await.is_ok_and(|response| response.status.is_success())
    }

    /// Whether `other` has the same rules for `collection`, so that its list shows the same.
    async fn has_rules_of(&self, other: &Self, collection: &LogicalPath) -> bool {
        let (own, others) = (self.rules(collection).await, other.rules(collection).await);
        matches!((own, others), (Ok(own), Ok(others)) if own.digest() == others.digest())
    }

    /// Reads all pages of the list of `collection`.
    pub(super) async fn read_list(&self, collection: &LogicalPath) -> Result<List, SyncError> {
        let list = Waiting::List(collection.clone());
        if self.within.contains(&list) || self.within.len() >= MAX_NESTING {
            return Err(SyncError::ListCycle(collection.clone()));
        }
        let rules = self.rules(collection).await?;
        let declared = self.declared_at(collection).unwrap_or_else(|| collection.clone());
        let request = self.list_request(collection, None).await?;
        let answers = rules.absent_statuses(OperationName::List).into();
        let mut request = Request { answers, ..request };
        let transforms = Arc::new(Transforms {
            collection: collection.clone(),
            values: self.values_of_list(&rules, collection, &declared).await?,
            rules: Arc::clone(&rules),
            declared,
            reader: self.nested(list).reader(),
        });
        let pages = Pages::new(&rules, collection, LIST_BOUNDS);
        let mut reader =
            PageReader { remote: self, transforms, pages, held: Reservation::new(Pool::Answers) };
        let (mut asked, mut last) = (Ok::<_, ServerError>(request.clone()), None);
        let (mut is_relative, mut is_missed) = (false, false);
        loop {
            let page = match &asked {
                Ok(asked) => reader.page(asked).await,
                Err(error) => Err(SyncError::from(error.clone())),
            };
            let (url, next) = match page {
                Ok(page) => page,
                Err(error)
                    if reader.pages.is_past_end(&error)
                        && (is_missed || self.still_shows(last.as_ref()).await) =>
                {
                    if is_missed {
                        return Ok(reader.finish(false));
                    }
                    // While a gateway changes its servers, some of them may not have the list yet.
                    is_missed = true;
                    tokio::time::sleep(PAGE_PAUSE).await;
                    continue;
                }
                // Some servers state URLs relative to another place than the request.
                Err(error) if is_relative && is_missing(&error) => return Ok(reader.finish(true)),
                Err(error) if reader.pages.number == 1 || matches!(error, SyncError::UnboundedList(..)) => {
                    return Err(error);
                }
                Err(error) => {
                    return Err(SyncError::Page(collection.clone(), reader.pages.number, error.into()));
                }
            };
            (last, is_missed) = (asked.ok(), false);
            is_relative =
                matches!(&next, NextPage::At(url) if !url.starts_with(['/', '?']) && !url.contains("://"));
            asked = match next {
                NextPage::End => return Ok(reader.finish(false)),
                NextPage::Unknown => return Ok(reader.finish(true)),
                NextPage::At(reference) => request.following(&url, &reference),
                NextPage::With(page) => {
                    request = self.list_request(collection, Some(page)).await?;
                    Ok(request.clone())
                }
            };
        }
    }
}

/// A list that is read page by page.
struct PageReader<'a> {
    remote: &'a Remote,
    transforms: Arc<Transforms>,
    pages: Pages<'a>,
    /// The memory of the answers.
    held: Reservation,
}

impl PageReader<'_> {
    /// Sends `asked`, and adds the entries of its page. Returns the URL of the page, and the next one.
    async fn page(&mut self, asked: &Request) -> Result<(Url, NextPage), SyncError> {
        let Transforms { collection, rules, declared, .. } = &*self.transforms;
        let session = &self.remote.session;
        let mut response = self.remote.ask(asked, true).await?;
        self.remote.check_parents(collection, &response).await?;
        self.pages.count(response.body.len());
        let status = response.status;
        let mut answer = match decoded(collection, &mut response, rules.payload_type(), &mut self.held).await
        {
            // Only `list.absent` expects it.
            Err(SyncError::Server(_)) if status.is_client_error() => Value::Null,
            answer => answer?,
        };
        // Some servers answer with an error instead of an empty list.
        if self.pages.number == 1 {
            let is_empty;
            (is_empty, answer) = self.transforms.is_empty(status, answer).await?;
            if is_empty && self.remote.has_parent(declared).await {
                return Ok((response.url, NextPage::End));
            }
        }
        if status.is_client_error() {
            return Err(session.client.rejection(asked, &response).into());
        }
        let next = self.pages.next(asked, &response, &answer);
        // If the answer is not a list, this error is reported and not that of the pagination.
        let shown = self.transforms.run(answer).await;
        let entries = shown.and_then(|shown| Ok(rules.entries(collection, shown)?));
        // Servers of remote procedures answer 200 and state a failure.
        let entries = entries.map_err(|error| match error {
            SyncError::Metadata(_) if response.states_failure() => {
                let rejection = session.client.rejection(asked, &response.statement());
                let (collection, reason) = (collection.clone(), rejection.to_string());
                MetadataError::ListShape { collection, reason }.into()
            }
            error => error,
        })?;
        entries.named.iter().for_each(|entry| session.hide_names(rules, &entry.payload));
        Ok((response.url, self.pages.add(entries, next?)?))
    }

    /// Returns the list. `cut` means that there are further pages.
    fn finish(self, cut: bool) -> List {
        let (entries, doubt) = self.pages.finish(cut);
        List { entries, doubt, held: self.held.share() }
    }
}

/// The entries of all pages of a list.
pub(super) struct List {
    pub entries: Entries,
    /// The doubt if the list may be incomplete.
    pub doubt: Option<Doubt>,
    /// The memory that the entries occupy.
    held: Share,
}

/// Converts the result of reading a list to a [`ListAnswer`].
fn answer(read: Result<List, SyncError>) -> ListAnswer {
    let is_refusal = |status| [StatusCode::FORBIDDEN, StatusCode::METHOD_NOT_ALLOWED].contains(&status);
    ListAnswer::Unknown(match read {
        Ok(List { entries, .. }) if entries.shape == Shape::Guessed => {
            let why = "it is an object with one array among other members".to_owned();
            Doubt::NotAList(why, true)
        }
        Ok(List { entries, doubt, held }) => {
            return ListAnswer::Listed { listing: Listing::new(entries.named), doubt, held };
        }
        Err(SyncError::Metadata(MetadataError::ListShape { reason: why, .. })) => Doubt::NotAList(why, true),
        Err(SyncError::Server(ServerError::Decode { reason: why, .. })) => Doubt::NotAList(why, false),
        Err(SyncError::Server(ServerError::Status { status, .. })) if is_refusal(status) => {
            Doubt::Unlistable(status)
        }
        Err(SyncError::Server(ServerError::Status { status, .. })) if status.is_redirection() => {
            Doubt::NotAList(format!("HTTP {}", status.as_u16()), false)
        }
        Err(SyncError::Undecided(_, doubt @ Doubt::Moved(..))) => doubt,
        Err(error) if error.category() == Category::NotFound && !matches!(error, SyncError::Page(..)) => {
            Doubt::NoList
        }
        Err(error) => Doubt::Failed(Arc::new(error)),
    })
}

/// The transforms of one list, which run on each page separately.
struct Transforms {
    collection: LogicalPath,
    declared: LogicalPath,
    rules: Arc<Rules>,
    /// The values that templates refer to.
    values: Option<Arc<KnownValues>>,
    reader: Reader,
}

impl Transforms {
    /// Whether the list has no entries, because of `list.absent`. Also returns the answer.
    async fn is_empty(
        self: &Arc<Self>,
        status: StatusCode,
        answer: Value,
    ) -> Result<(bool, Value), SyncError> {
        if self.rules.resolved().operation(OperationName::List).absent.is_none() {
            return Ok((false, answer));
        }
        let rules = Arc::clone(&self.rules);
        let look = move || Ok((rules.means_absent(OperationName::List, status, &answer), answer));
        blocking(self.collection.clone(), look).await
    }

    async fn run(self: &Arc<Self>, answer: Value) -> Result<Value, SyncError> {
        let list = Arc::clone(self);
        let transform = move || {
            let values = list.values.as_deref().map(|values| values as &dyn ReferenceValues);
            let evaluation = list.rules.on_collection_with(&list.collection, values, Some(&list.declared))?;
            Ok(evaluation.reading(Some(&list.reader)).transform(OperationName::List, answer)?)
        };
        // The jq waits for the resources that it reads.
        if self.rules.runs_jq() { blocking(self.collection.clone(), transform).await } else { transform() }
    }
}

//! Lists with pages. A list is read completely, or it fails.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use url::Url;

use crate::error::{Categorized as _, Category};
use crate::metadata::{Entries, NextPage, PageView, Pager, Rules, Shape, is_usual_page};
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::server::{NextLink, Request, Response, ServerError};
use crate::sync::model::{Doubt, SyncError};

/// The limits of a list. A longer list is treated as endless.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub pages: usize,
    pub entries: usize,
    /// The total size of all bodies, after decompression.
    pub bytes: usize,
}

pub(super) const LIST_BOUNDS: Bounds = Bounds { pages: 10_000, entries: 1_000_000, bytes: 256 << 20 };

/// How many pages in sequence may be empty, as those that a server filters, before the list counts as cut.
const EMPTY_PAGES: usize = 20;

/// The pages of one list, read one after the other.
pub(super) struct Pages<'a> {
    collection: &'a LogicalPath,
    pager: Pager<'a>,
    bounds: Bounds,
    /// The number of the page that is read now, from 1.
    pub number: usize,
    bytes: usize,
    /// The number of the last pages that are empty.
    empty: usize,
    /// The number of entries before them, as the pager counts.
    counted: u64,
    /// Whether the server may have cut the list at the length of a usual page, and ignores the request for the next one.
    undecided: bool,
    /// The URLs of the pages, and the bodies of the requests for them.
    seen: HashSet<(Url, Bytes)>,
    found: Entries,
    /// The index of the first entry of each id.
    places: HashMap<String, usize>,
}

impl<'a> Pages<'a> {
    pub(super) fn new(rules: &'a Rules, collection: &'a LogicalPath, bounds: Bounds) -> Self {
        let pager = Pager::new(rules, collection);
        let (bytes, empty, counted, undecided, seen, found, places) = Default::default();
        Self { collection, pager, bounds, number: 1, bytes, empty, counted, undecided, seen, found, places }
    }

    /// Counts the body of the current page, of this number of bytes.
    pub(super) fn count(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// Returns the page after the current one, the answer to `asked`. `answer` is the decoded body of `response` before the transforms.
    pub(super) fn next(
        &mut self,
        asked: &Request,
        response: &Response,
        answer: &Value,
    ) -> Result<NextPage, SyncError> {
        let link = response.next_link();
        let next = self.pager.next(PageView {
            answer,
            link: if let NextLink::At(reference) = &link { Some(reference) } else { None },
            unreadable_links: link == NextLink::Unreadable,
            total: response.paging.total,
            pages: response.paging.pages,
            next: response.paging.next.as_deref(),
            continues: response.paging.continues,
        })?;
        let body = asked.body.as_ref().map(|body| body.bytes.clone());
        if !self.seen.insert((response.url.clone(), body.unwrap_or_default())) {
            return Err(self.never_ends("was read before"));
        }
        Ok(next)
    }

    /// Adds the new entries of the current page. Entries may move to later pages during the read, so equal entries
    /// count once. Returns `next`, the page after the current one, unless the list is too long.
    pub(super) fn add(&mut self, page: Entries, next: NextPage) -> Result<NextPage, SyncError> {
        let found = &mut self.found.named;
        let (shown, before) = (page.named.len(), found.len());
        for entry in page.named {
            let place = *self.places.entry(entry.remote_id.clone()).or_insert(found.len());
            let known = found.get(place).filter(|_| place < before);
            if known.is_none_or(|known| known.alias != entry.alias || known.payload != entry.payload) {
                found.push(entry);
            }
        }
        let count = found.len();
        self.found.nameless += page.nameless;
        if page.shape == Shape::Guessed {
            self.found.shape = Shape::Guessed;
        }
        let repeats = shown > 0 && count == before;
        if repeats && matches!(next, NextPage::With(_)) {
            if self.pager.guesses() {
                self.undecided = true;
                return Ok(NextPage::End);
            }
            return Err(self.never_ends("shows only what earlier ones showed: does the server know the parameters of operations.list.pagination?"));
        }
        // Some servers repeat their last page under new URLs without an end.
        self.empty = if self.is_empty(shown + page.nameless) || repeats { self.empty + 1 } else { 0 };
        let goes_on = matches!(next, NextPage::At(_) | NextPage::With(_));
        let limits = [
            (count > self.bounds.entries, format!("{} entries", self.bounds.entries)),
            (self.bytes > self.bounds.bytes, format!("{} bytes", self.bounds.bytes)),
            (goes_on && self.number >= self.bounds.pages, format!("{} pages", self.bounds.pages)),
        ];
        self.number += 1;
        match limits.into_iter().find(|(exceeded, _)| *exceeded) {
            Some((_, limit)) => Err(self.unbounded(format!(
                "it is longer than the limit of {limit}; narrow it with operations.list.query"
            ))),
            None if goes_on && self.empty >= EMPTY_PAGES => Ok(NextPage::Unknown),
            None => Ok(next),
        }
    }

    /// Whether `error` ends the list if the server still shows the page before, because the page that failed may not
    /// exist. Many servers answer 404 to the page after the last one. If they reject the request, the list may be cut.
    /// A page that states another one after it is not the last.
    pub(super) fn is_past_end(&mut self, error: &SyncError) -> bool {
        let is_missing = is_missing(error);
        let is_past = if is_missing {
            self.pager.may_be_last()
        } else {
            self.pager.guesses() && error.rejects_address()
        };
        self.undecided |= is_past && !is_missing;
        is_past
    }

    /// Whether the current page has no entries before transforms, or none of `shown` if they cannot be counted.
    fn is_empty(&mut self, shown: usize) -> bool {
        match self.pager.entries() {
            Some(counted) => std::mem::replace(&mut self.counted, counted) == counted,
            None => shown == 0,
        }
    }

    /// Returns the entries of all pages, and the doubt if the list may be incomplete. `cut` means that there are
    /// further pages.
    pub(super) fn finish(self, cut: bool) -> (Entries, Option<Doubt>) {
        let counted = self.pager.entries().unwrap_or((self.found.named.len() + self.found.nameless) as u64);
        let lacks = self.pager.entries().is_none() && self.pager.lacks(counted);
        let page_sized = if self.undecided {
            Some(self.found.named.len() as u64)
        } else {
            (!self.pager.ends_surely() && is_usual_page(counted)).then_some(counted)
        };
        let doubt = if cut || lacks {
            Some(Doubt::Cut)
        } else if self.pager.shrank(counted) {
            Some(Doubt::Shrank)
        } else {
            page_sized.map(Doubt::PageSized)
        };
        (self.found, doubt)
    }

    fn never_ends(&self, reason: &str) -> SyncError {
        self.unbounded(format!("the pages do not end: page {} {reason}", self.number))
    }

    fn unbounded(&self, reason: String) -> SyncError {
        SyncError::UnboundedList(self.collection.clone(), reason)
    }
}

/// Whether the server answered that the page does not exist.
pub(super) fn is_missing(error: &SyncError) -> bool {
    matches!(error, SyncError::Server(ServerError::Status { .. })) && error.category() == Category::NotFound
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::{Method, StatusCode};
    use rstest::rstest;

    use super::*;
    use crate::error::Categorized;
    use crate::metadata::Metadata;
    use crate::payload::{PayloadType, decode};
    use crate::repository::DirTree;

    /// Reads pages with `size` entries each, each with a link to another page, until one is refused.
    fn read(bounds: Bounds, size: usize) -> (usize, SyncError) {
        let root = tempfile::tempdir().unwrap();
        let collection = LogicalPath::parse("/orders").unwrap();
        let metadata = Metadata::new(Arc::new(DirTree::open(root.path()).unwrap()));
        let rules = metadata.rules(&collection).unwrap();
        let mut pages = Pages::new(&rules, &collection, bounds);
        for page in 1.. {
            let entries: Vec<_> = (0..size).map(|index| format!("{{\"id\":\"{page}-{index}\"}}")).collect();
            let body = format!("[{}]", entries.join(","));
            let answer = decode(PayloadType::Json, body.as_bytes()).unwrap();
            let response = Response {
                method: Method::GET,
                path: "/orders".to_owned(),
                url: Url::parse(&format!("http://h.test/orders?page={page}")).unwrap(),
                detour: None,
                status: StatusCode::OK,
                content_type: None,
                location: None,
                etag: None,
                last_modified: None,
                links: vec!["<?more>; rel=next".to_owned()],
                paging: crate::server::Paging::default(),
                body: Bytes::from(body),
            };
            pages.count(response.body.len());
            let next = pages.next(&Request::default(), &response, &answer).unwrap();
            let entries = rules.entries(&collection, answer).unwrap();
            if let Err(error) = pages.add(entries, next) {
                return (page, error);
            }
        }
        panic!("no page was refused");
    }

    #[rstest]
    #[case(Bounds { pages: 3, ..LIST_BOUNDS }, 3, "3 pages")]
    #[case(Bounds { entries: 3, ..LIST_BOUNDS }, 2, "3 entries")]
    #[case(Bounds { bytes: 60, ..LIST_BOUNDS }, 3, "60 bytes")]
    #[case(LIST_BOUNDS, 10_000, "10000 pages")]
    fn lists_are_bounded(#[case] bounds: Bounds, #[case] last: usize, #[case] limit: &str) {
        let (page, error) = read(bounds, 2);
        let expected = format!(
            "list of /orders: it is longer than the limit of {limit}; narrow it with operations.list.query"
        );
        assert_eq!((page, error.to_string()), (last, expected));
        assert_eq!(error.category(), crate::error::Category::Validation);
    }
}

//! Lists that come in pages, read to their end or not at all.

use std::collections::{HashMap, HashSet};

use url::Url;

use crate::metadata::{Entries, Entry, NextPage, PageView, Pager, Rules, Shape};
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::server::{NextLink, Response};
use crate::sync::model::{Doubt, SyncError};

/// How long a list may be. What is longer is taken for one that never ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub pages: usize,
    pub entries: usize,
    /// Of all bodies together, after decompression.
    pub bytes: usize,
}

impl Bounds {
    pub(super) const LIST: Self = Self { pages: 10_000, entries: 1_000_000, bytes: 256 << 20 };
}

/// A list, as far as it could be read.
#[derive(Debug)]
pub struct Listed {
    /// Its entries that have a name, in the order of the pages.
    pub entries: Vec<Entry>,
    /// How many entries have none.
    pub nameless: usize,
    /// What they leave open of what they do not show; `None` if they are the whole list.
    pub doubt: Option<Doubt>,
    /// How they were found.
    pub shape: Shape,
}

/// Whether a list of so many entries may have been cut at the size of a page without a sign of it.
const fn is_usual_page(entries: u64) -> bool {
    matches!(entries, 12 | 15 | 24)
        || (entries >= 10
            && (entries.is_multiple_of(10) || entries.is_multiple_of(25) || entries.is_power_of_two()))
}

/// The pages of one list, one after the other.
pub(super) struct Pages<'a> {
    collection: &'a LogicalPath,
    pager: Pager<'a>,
    bounds: Bounds,
    /// How many pages were read.
    read: usize,
    bytes: usize,
    /// Where they came from.
    seen: HashSet<Url>,
    entries: Vec<Entry>,
    nameless: usize,
    shape: Shape,
    /// Where among the entries the first of each id is; filled from the second page on.
    places: HashMap<String, usize>,
}

impl<'a> Pages<'a> {
    pub(super) fn new(rules: &'a Rules, collection: &'a LogicalPath, bounds: Bounds) -> Self {
        Self {
            collection,
            pager: rules.pager(collection),
            bounds,
            read: 0,
            bytes: 0,
            seen: HashSet::new(),
            entries: Vec::new(),
            nameless: 0,
            shape: Shape::default(),
            places: HashMap::new(),
        }
    }

    /// The number of the page that is read now, from 1.
    pub(super) fn number(&self) -> usize {
        self.read + 1
    }

    /// What comes after the page that is read now; `answer` is what `response` holds, before its transforms.
    pub(super) fn next(&mut self, response: &Response, answer: &Value) -> Result<NextPage, SyncError> {
        self.bytes += response.body.len();
        let link = response.next_link();
        let next = self.pager.next(PageView {
            answer,
            link: if let NextLink::At(reference) = &link { Some(reference) } else { None },
            unreadable_links: link == NextLink::Unreadable,
            total: response.paging.total,
            continues: response.paging.continues,
        })?;
        let goes_on = matches!(next, NextPage::At(_) | NextPage::With(_));
        if (goes_on || self.read > 0) && !self.seen.insert(response.url.clone()) {
            return Err(self.never_ends("was read before"));
        }
        Ok(next)
    }

    /// Takes the entries of the page that is read now. `next` is what comes after it.
    pub(super) fn add(&mut self, entries: Entries, next: &NextPage) -> Result<(), SyncError> {
        let (found, before) = (entries.named.len(), self.entries.len());
        self.nameless += entries.nameless;
        if entries.shape == Shape::Guessed {
            self.shape = Shape::Guessed;
        }
        if self.read == 0 {
            self.entries = entries.named;
        } else {
            self.merge(entries.named);
        }
        if self.read > 0 && found > 0 && self.entries.len() == before && matches!(next, NextPage::With(_)) {
            return Err(self.never_ends("shows only what earlier ones showed: does the server know the query parameters of operations.list.pagination?"));
        }
        self.read += 1;
        let goes_on = matches!(next, NextPage::At(_) | NextPage::With(_));
        let limits = [
            (self.entries.len() > self.bounds.entries, format!("{} entries", self.bounds.entries)),
            (self.bytes > self.bounds.bytes, format!("{} bytes", self.bounds.bytes)),
            (goes_on && self.read >= self.bounds.pages, format!("{} pages", self.bounds.pages)),
        ];
        match limits.into_iter().find(|(exceeded, _)| *exceeded) {
            Some((_, limit)) => Err(self.unbounded(format!(
                "it is longer than the limit of {limit}; narrow it with operations.list.query"
            ))),
            None => Ok(()),
        }
    }

    /// What all pages showed. `cut` means that there are more of them.
    pub(super) fn finish(self, cut: bool) -> Listed {
        let counted = self.pager.entries().unwrap_or((self.entries.len() + self.nameless) as u64);
        let lacks = self.pager.entries().is_none() && self.pager.lacks(counted);
        let doubt = if cut || lacks {
            Some(Doubt::Cut)
        } else if !self.pager.ends_surely() && is_usual_page(counted) {
            Some(Doubt::PageSized(counted))
        } else {
            None
        };
        Listed { entries: self.entries, nameless: self.nameless, doubt, shape: self.shape }
    }

    /// Adds what is new. While pages are read, entries may move to later ones; what is equal in all is one.
    fn merge(&mut self, entries: Vec<Entry>) {
        if self.places.is_empty() {
            for (place, entry) in self.entries.iter().enumerate() {
                self.places.entry(entry.remote_id.clone()).or_insert(place);
            }
        }
        let before = self.entries.len();
        for entry in entries {
            let place = *self.places.entry(entry.remote_id.clone()).or_insert(self.entries.len());
            let known = self.entries.get(place).filter(|_| place < before);
            if known.is_none_or(|known| known.alias != entry.alias || known.payload != entry.payload) {
                self.entries.push(entry);
            }
        }
    }

    fn never_ends(&self, reason: &str) -> SyncError {
        self.unbounded(format!("the pages do not end: page {} {reason}", self.number()))
    }

    fn unbounded(&self, reason: String) -> SyncError {
        SyncError::UnboundedList(self.collection.clone(), reason)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use http::{Method, StatusCode};
    use rstest::rstest;

    use super::*;
    use crate::error::Categorized;
    use crate::metadata::Metadata;
    use crate::payload::{PayloadType, decode};
    use crate::repository::DirTree;

    /// Pages with `size` entries each, each of which names another one after it, until one is refused.
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
                status: StatusCode::OK,
                content_type: None,
                location: None,
                etag: None,
                last_modified: None,
                links: vec!["<?more>; rel=next".to_owned()],
                paging: crate::server::Paging::default(),
                body: Bytes::from(body),
            };
            let next = pages.next(&response, &answer).unwrap();
            let entries = rules.entries(&collection, answer).unwrap();
            if let Err(error) = pages.add(entries, &next) {
                return (page, error);
            }
        }
        panic!("it went on and on");
    }

    #[rstest]
    #[case(Bounds { pages: 3, ..Bounds::LIST }, 3, "3 pages")]
    #[case(Bounds { entries: 3, ..Bounds::LIST }, 2, "3 entries")]
    #[case(Bounds { bytes: 60, ..Bounds::LIST }, 3, "60 bytes")]
    #[case(Bounds::LIST, 10_000, "10000 pages")]
    fn lists_are_bounded(#[case] bounds: Bounds, #[case] last: usize, #[case] limit: &str) {
        let (page, error) = read(bounds, 2);
        let expected = format!(
            "list of /orders: it is longer than the limit of {limit}; narrow it with operations.list.query"
        );
        assert_eq!((page, error.to_string()), (last, expected));
        assert_eq!(error.category(), crate::error::Category::Validation);
    }
}

//! Pages of lists: detects the last page, and determines the request for the next one.

use super::document::{Numbered, Pagination};
use super::page_members::{
    COUNTS, ENDED, LAST, ODATA_NEXT, PAGES, SIZES, TOTALS, URL_OF_LINK, enveloped, flags, holders, is_next,
    is_next_url, is_sign, next_links, numbers, states_end, usual_numbers,
};
use super::{MetadataError, Rules, list};
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::payload::pointer::Pointer;

/// The parts of a response that describe the next page.
#[derive(Clone, Copy, Debug)]
pub struct PageView<'a> {
    /// The body of the response, before its transforms.
    pub answer: &'a Value,
    /// The target of its `Link` with the relation `next`.
    pub link: Option<&'a str>,
    /// Whether its `Link` headers cannot be parsed, so they may name a next page.
    pub unreadable_links: bool,
    /// The number of entries of the whole list, if its headers state it.
    pub total: Option<u64>,
    /// The number of its pages, if its headers state it.
    pub pages: Option<u64>,
    /// The URL, number or token of the next page in another header, such as `Next-Page`.
    pub next: Option<&'a str>,
    /// Whether its headers state that it is not the last page.
    pub continues: bool,
}

/// The parameters of the request for a page. A name that is a JSON Pointer is that of a member of the body, and others are
/// those of query parameters.
pub type PageParameters = Vec<(String, Value)>;

/// The page that follows a page.
#[derive(Clone, Debug, PartialEq)]
pub enum NextPage {
    /// There is no further page.
    End,
    /// The page at this URI reference, relative to the URL of the current page.
    At(String),
    /// The page that the list request returns with these parameters.
    With(PageParameters),
    /// There is a further page, but its request is unknown. Resources that are not on a page may exist.
    Unknown,
}

/// Follows the pages of one list, by the rules of metadata, otherwise by links in the responses.
#[derive(Debug)]
pub struct Pager<'a> {
    rules: &'a Rules,
    collection: &'a LogicalPath,
    /// The offset or the number of the current page.
    position: u64,
    /// The number of pages read.
    pages: u64,
    /// The number of entries on them, if they can be counted.
    entries: Option<u64>,
    /// The largest number of entries that a response states for the whole list.
    total: u64,
    /// Whether a response states that the list has no further entries.
    complete: bool,
    /// Whether the last response states that the list has further entries.
    states_more: bool,
    /// The length of a first page that is shorter than metadata states. The server may have this limit without a sign.
    limit: Option<u64>,
}

/// Whether a list with this number of entries may have been cut at a page size without a sign.
pub const fn is_usual_page(entries: u64) -> bool {
    matches!(entries, 12 | 15 | 24)
        || (entries >= 10
            && (entries.is_multiple_of(10) || entries.is_multiple_of(25) || entries.is_power_of_two()))
}

impl<'a> Pager<'a> {
    /// Returns the pager of the list of `collection`.
    pub fn new(rules: &'a Rules, collection: &'a LogicalPath) -> Self {
        let numbered = rules.pagination().and_then(Pagination::numbered);
        let position = numbered.map_or(0, |numbered| numbered.start.into());
        let (pages, entries, total, limit) = (0, Some(0), 0, None);
        let (complete, states_more) = (false, false);
        Self { rules, collection, position, pages, entries, total, complete, states_more, limit }
    }

    /// Returns whether [`NextPage::End`] is certain: metadata describes the pages, a response states a matching
    /// total, or an earlier page linked to the last one. Otherwise the response just has no sign of a further page.
    pub fn ends_surely(&self) -> bool {
        self.rules.pagination().is_some() || self.complete || self.pages > 1
    }

    /// Returns whether the current page was requested only because the first one has the length of a usual page.
    pub fn guesses(&self) -> bool {
        self.limit.is_some()
    }

    /// Returns whether the last page that was read may be that of the list although another one was requested: pages have
    /// numbers or offsets, and its answer does not state another page.
    pub fn may_be_last(&self) -> bool {
        let is_numbered = self.rules.pagination().is_some_and(|pagination| pagination.numbered().is_some());
        is_numbered && !self.states_more
    }

    /// The number of entries on the pages before transforms, if they can be counted.
    pub fn entries(&self) -> Option<u64> {
        self.entries
    }

    /// Returns whether the responses state that the list has more than `found` entries. It is used if entries cannot be
    /// counted before transforms.
    pub fn lacks(&self, found: u64) -> bool {
        self.rules.pagination().is_none() && self.total > found
    }

    /// Returns whether a response stated that the list has more than `found` entries, although the last of several pages
    /// did not. Then entries were removed while the pages were read, and others may have moved to a page that was read
    /// before.
    pub fn shrank(&self, found: u64) -> bool {
        self.pages > 1 && self.total > found
    }

    /// Returns the page that follows `page`, which is the first page or the result of the previous call.
    pub fn next(&mut self, page: PageView<'_>) -> Result<NextPage, MetadataError> {
        self.pages += 1;
        let numbered = self.rules.pagination().and_then(Pagination::numbered);
        let found = match numbered.and_then(|numbered| numbered.items.as_ref()) {
            Some(pointer) => pointer.get(page.answer).and_then(Value::as_array).map(<[Value]>::len),
            None => list::count(page.answer, self.collection.name())
                .or_else(|| list::count(enveloped(page.answer)?, self.collection.name())),
        };
        let found = found.map(|count| count as u64);
        self.entries = self.entries.zip(found).map(|(before, found)| before + found);
        // Some servers link from an empty list to further empty pages.
        if found == Some(0) && page.total.is_some() && page.total == self.entries {
            self.complete = true;
            return Ok(NextPage::End);
        }
        let more = self.more(&page);
        self.states_more = more != NextPage::End;
        let next = match self.rules.pagination() {
            Some(Pagination::Whole) => return Ok(NextPage::End),
            None => return Ok(more),
            Some(Pagination::Link) => page.link.map(|link| NextPage::At(link.to_owned())),
            Some(Pagination::Next { pointer }) => self.next_url(pointer, page.answer)?.map(NextPage::At),
            Some(Pagination::Cursor { pointer, parameter }) => {
                let cursor = self.cursor(pointer, page.answer)?;
                cursor.map(|cursor| NextPage::With(vec![(parameter.clone(), cursor)]))
            }
            Some(Pagination::Offset(numbered)) => {
                let count = self.count(numbered, page.answer)?;
                self.advance(numbered, count, count, more != NextPage::End)
            }
            Some(Pagination::Page(numbered)) => {
                let count = self.count(numbered, page.answer)?;
                self.advance(numbered, count, 1, more != NextPage::End)
            }
        };
        // If the response contradicts the end, resources on further pages may exist.
        Ok(next.unwrap_or(if more == NextPage::End { NextPage::End } else { NextPage::Unknown }))
    }

    /// Returns the page after one of `count` entries. A page that is not full is the last one, unless the response
    /// states that there is `more`: servers may have smaller limits for the size of a page. If they do not state that,
    /// the first page shows the limit.
    fn advance(&mut self, numbered: &Numbered, count: u64, step: u64, more: bool) -> Option<NextPage> {
        let size = u64::from(numbered.size);
        if self.pages == 1 && count < size && !more && !self.complete && is_usual_page(count) {
            self.limit = Some(count);
        }
        let size = self.limit.unwrap_or(size);
        // Some servers reject the request of a page after the last one.
        if count == 0 || !more && (count < size || self.complete) {
            return None;
        }
        self.position += step;
        Some(NextPage::With(numbered.parameters(self.position, size)))
    }

    fn next_url(&self, pointer: &Pointer, answer: &Value) -> Result<Option<String>, MetadataError> {
        match pointer.get(answer).filter(|value| is_meaningful(value)) {
            None => Ok(None),
            Some(Value::String(url)) => Ok(Some(url.clone())),
            Some(other) => Err(self.misfit(".pointer", format!("{pointer} is {}, not a URL", other.kind()))),
        }
    }

    fn cursor(&self, pointer: &Pointer, answer: &Value) -> Result<Option<Value>, MetadataError> {
        match pointer.get(answer).filter(|value| is_meaningful(value)) {
            None => Ok(None),
            Some(cursor @ (Value::String(_) | Value::Int(_) | Value::Unsigned(_) | Value::Float(_))) => {
                Ok(Some(cursor.clone()))
            }
            Some(other) => {
                let reason = format!("{pointer} is {}, not a string or number", other.kind());
                Err(self.misfit(".pointer", reason))
            }
        }
    }

    fn count(&self, numbered: &Numbered, answer: &Value) -> Result<u64, MetadataError> {
        let count = match &numbered.items {
            Some(pointer) => pointer.get(answer).and_then(Value::as_array).map(<[Value]>::len),
            None => list::count(answer, self.collection.name()),
        };
        count.map(|count| count as u64).ok_or_else(|| {
            let Some(pointer) = &numbered.items else {
                return self.misfit(
                    "",
                    "the response before transforms is not a list, so its entries cannot be counted; set items to its array"
                        .to_owned(),
                );
            };
            self.misfit(".items", format!("the response has no array at {pointer}"))
        })
    }

    fn misfit(&self, key: &str, reason: String) -> MetadataError {
        let field = self.rules.origin(format!("operations.list.pagination{key}"));
        MetadataError::Pagination { collection: self.collection.clone(), field: field.into(), reason }
    }
}

impl Pagination {
    /// Returns the parameters of the first page.
    pub(super) fn first_page(&self) -> PageParameters {
        self.numbered()
            .map(|numbered| numbered.parameters(numbered.start.into(), numbered.size.into()))
            .unwrap_or_default()
    }
}

impl Numbered {
    fn parameters(&self, position: u64, size: u64) -> PageParameters {
        let size = self.size_parameter.iter().map(|name| (name.clone(), Value::from(size)));
        std::iter::once((self.parameter.clone(), Value::from(position))).chain(size).collect()
    }
}

impl Pager<'_> {
    /// Returns the next page according to the response: a `Link`, a URL in another header or in the body, or only that
    /// there is one.
    fn more(&mut self, page: &PageView<'_>) -> NextPage {
        // If entries cannot be counted here, transforms may leave some out.
        let stated: Vec<u64> = match self.entries {
            Some(_) => numbers(page.answer, &TOTALS).collect(),
            None => usual_numbers(page.answer, &TOTALS).collect(),
        };
        let totals = page.total.into_iter().chain(stated);
        // A total that is smaller than the number of entries counts something else.
        let (mut lacks, mut complete) = (false, false);
        for total in totals {
            lacks |= self.entries.is_some_and(|entries| total > entries);
            complete |= self.entries == Some(total);
            self.total = self.total.max(total);
        }
        // Such a number may count only the page, so it shows missing entries, and a complete list only if no page follows.
        let counts = usual_numbers(page.answer, &COUNTS).max().unwrap_or_default();
        lacks |= self.entries.is_some_and(|entries| counts > entries);
        let is_guess = self.rules.pagination().is_none();
        complete |= is_guess && self.entries == Some(counts) && states_no_next(page.answer);
        self.total = self.total.max(counts);
        // A first page that is full may have been cut there.
        let is_full = || {
            self.entries.is_some_and(|entries| {
                entries > 0 && numbers(page.answer, &SIZES).any(|size| size == entries)
            })
        };
        let pages: Vec<u64> = numbers(page.answer, &PAGES).chain(page.pages).collect();
        let may_end =
            complete || pages.contains(&self.pages) || states_end(page.answer) || states_no_next(page.answer);
        lacks |= is_guess && self.pages == 1 && !may_end && is_full();
        if let Some(link) = page.link.or_else(|| page.next.and_then(as_reference)) {
            return NextPage::At(link.to_owned());
        }
        lacks |= pages.into_iter().any(|pages| pages > self.pages);
        complete |= flags(page.answer, &LAST).any(|last| last);
        let mut ends = flags(page.answer, &LAST).chain(flags(page.answer, &ENDED));
        let continues = page.unreadable_links || page.continues || lacks || ends.any(|end| !end);
        // Pages with numbers are requested as metadata states.
        let is_numbered = self.rules.pagination().is_some_and(|pagination| pagination.numbered().is_some());
        let only_urls = is_numbered || states_end(page.answer);
        match next_in(page.answer, self.collection.name(), only_urls) {
            NextPage::End if continues => NextPage::Unknown,
            NextPage::End => {
                self.complete |= complete;
                NextPage::End
            }
            next => next,
        }
    }
}

/// Whether the answer shows the member of a next URL with null.
fn states_no_next(answer: &Value) -> bool {
    let mut members = holders(answer).filter_map(Value::as_object).flatten();
    members.any(|(name, value)| is_next(name) && value.is_null())
}

/// Returns the next page according to the body of a list response: its URL, which is a string or an object with
/// `href`, or only that there is one. With `only_urls`, a number or a token does not state that. The collection has the
/// name `own`.
fn next_in(answer: &Value, own: &str, only_urls: bool) -> NextPage {
    let entries = list::place(answer, own).ok().flatten();
    let mut next = NextPage::End;
    for holder in holders(answer) {
        let members = || holder.as_object().into_iter().flatten();
        let mut urls = members().filter(|(name, _)| is_next_url(name)).map(|(_, value)| value);
        let url = urls.find_map(reference_in).map(str::to_owned);
        if let Some(url) = url.or_else(|| odata_next(holder)) {
            return NextPage::At(url);
        }
        if let Some(link) = next_links(holder, entries).next() {
            let url = URL_OF_LINK.iter().find_map(|name| page_url(link.get(name)?.as_str()?));
            return url.map_or(NextPage::Unknown, |url| NextPage::At(url.to_owned()));
        }
        let signs = members().filter(|(name, value)| is_sign(name, value)).map(|(_, value)| value);
        let nexts = members().filter(|(name, _)| if only_urls { is_next_url(name) } else { is_next(name) });
        if nexts.map(|(_, value)| value).chain(signs).any(is_meaningful) {
            next = NextPage::Unknown;
        }
    }
    next
}

/// Returns the next URL of an `OData` answer. A relative one is resolved against `@odata.context`, if the answer has it
/// (`OData` JSON Format 4.01 §4.6.5).
fn odata_next(answer: &Value) -> Option<String> {
    let url = answer.get(ODATA_NEXT)?.as_str().map(str::trim).filter(|url| !url.is_empty())?;
    if url.starts_with('/') || url.contains("://") {
        return Some(url.to_owned());
    }
    let context = answer.get("@odata.context").and_then(Value::as_str).unwrap_or_default();
    let context = context.split(['#', '?']).next().unwrap_or_default();
    // A server behind a proxy may state the origin by which the proxy reaches it.
    let path =
        context.split_once("://").map_or(context, |(_, rest)| rest.find('/').map_or("", |at| &rest[at..]));
    let base = path.rfind('/').map_or("", |end| &path[..=end]);
    Some(format!("{base}{url}"))
}

fn reference_in(value: &Value) -> Option<&str> {
    match URL_OF_LINK.iter().find_map(|name| value.get(name)).map(Value::as_str) {
        Some(url) => url.filter(|url| !is_template(url)).and_then(|url| as_reference(url).or(page_url(url))),
        None => as_reference(value.as_str()?),
    }
}

/// Returns the URL of a link, which may be relative. Without a query, it may lead to the next resource of a series.
fn page_url(url: &str) -> Option<&str> {
    Some(url.trim()).filter(|url| url.contains('?') && !is_template(url))
}

/// Whether the text has an expression of a URI template (RFC 6570).
fn is_template(url: &str) -> bool {
    let mut expressions = url.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    expressions.any(|(expression, _)| {
        let is_part = |character: char| character.is_alphanumeric() || "_,.*?&/#;+".contains(character);
        !expression.is_empty() && expression.chars().all(is_part)
    })
}

/// Returns an absolute URL or a path with a query. Other texts are taken for cursors, which may begin with a slash.
fn as_reference(text: &str) -> Option<&str> {
    let text = text.trim();
    let starts_with =
        |scheme: &str| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    let is_absolute = starts_with("http://") || starts_with("https://");
    (is_absolute || text.starts_with('?') || (text.starts_with('/') && text.contains('?'))).then_some(text)
}

fn is_meaningful(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) | Value::Int(0) => false,
        Value::String(text) => !["", "0", "false"].contains(&text.as_str()),
        _ => true,
    }
}

/// Replaces the parameters in `query` that have the names of query parameters of a page, and sorts the result by name.
pub(super) fn replace_parameters(query: &mut Vec<(String, String)>, page: &PageParameters) {
    query.retain(|(name, _)| page.iter().all(|(replaced, _)| replaced != name));
    let own = page.iter().filter(|(name, _)| member(name).is_none());
    query.extend(own.filter_map(|(name, value)| Some((name.clone(), value.scalar_text()?))));
    query.sort();
}

/// Returns `body` with the members of a page.
pub(super) fn replace_members(body: Value, page: &PageParameters) -> Value {
    let members = page.iter().filter_map(|(name, value)| Some((member(name)?, value)));
    members.fold(body, |body, (pointer, value)| pointer.put(body, value.clone()))
}

/// Returns the place of a parameter in the body; `None` if it is a query parameter.
pub(super) fn member(name: &str) -> Option<Pointer> {
    Pointer::parse(name).ok().filter(|pointer| !pointer.is_root())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::resolve::tests::{path, rules, yaml};
    use super::*;

    /// The page after pages with these bodies under the rule `pagination`.
    fn after(pagination: &str, answers: &[&str], link: Option<&str>) -> Result<NextPage, String> {
        let document = format!("operations: {{list: {{pagination: {pagination}}}}}");
        let (rules, orders) = (rules(&[("orders/_/metadata.yaml", &document)], "/orders"), path("/orders"));
        let mut pager = Pager::new(&rules, &orders);
        let mut next = NextPage::Unknown;
        for answer in answers {
            let page = PageView {
                answer: &yaml(answer),
                link,
                unreadable_links: false,
                total: None,
                pages: None,
                next: None,
                continues: false,
            };
            next = pager.next(page).map_err(|error| error.to_string())?;
        }
        Ok(next)
    }

    fn at(reference: &str) -> NextPage {
        NextPage::At(reference.to_owned())
    }

    fn with(parameters: &[(&str, &str)]) -> NextPage {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), yaml(value));
        NextPage::With(parameters.iter().map(own).collect())
    }

    #[rstest]
    #[case("[]", NextPage::End)]
    #[case("{items: [], next: null, hasMore: false, nextPageToken: ''}", NextPage::End)]
    #[case("{items: [], total: 0}", NextPage::End)]
    #[case("{items: [], total: 3}", NextPage::Unknown)]
    #[case("{items: [{}], meta: {total_count: '3'}}", NextPage::Unknown)]
    #[case("{content: [{}], last: false, totalPages: 3}", NextPage::Unknown)]
    #[case("{content: [{}], last: true, totalPages: 1}", NextPage::End)]
    #[case("{content: [{}], page: {totalElements: 1, totalPages: 1}}", NextPage::End)]
    #[case("{values: [{}], isLast: false}", NextPage::Unknown)]
    #[case("{data: [{}], meta: {last_page: 2}}", NextPage::Unknown)]
    #[case("{data: [{}], hasNextPage: true}", NextPage::Unknown)]
    #[case("{items: [], next: {href: null}, links: {next: null}}", NextPage::Unknown)]
    #[case("{items: [], next: '/orders?page=2'}", at("/orders?page=2"))]
    #[case("{items: [], has_more: true}", NextPage::Unknown)]
    #[case("{items: [], has_more: true, meta: {next_page: '?p=2'}}", at("?p=2"))]
    #[case("{items: [], metadata: {continue: abc}}", NextPage::Unknown)]
    #[case("{items: [], _links: {next: {href: ' /orders?page=2 '}}}", at("/orders?page=2"))]
    #[case("{items: [], links: {next: 'HTTPS://h.test/orders/2'}}", at("HTTPS://h.test/orders/2"))]
    #[case("{items: [], paging: {next: '/orders/2'}}", NextPage::Unknown)]
    #[case("{items: [], '@odata.nextLink': 'http://h.test/x'}", at("http://h.test/x"))]
    #[case("{items: [], nextCursor: 'http://h.test/x'}", NextPage::Unknown)]
    #[case("{items: [], next: 2}", NextPage::Unknown)]
    #[case("{items: [{}], nextKey: 100}", NextPage::Unknown)]
    #[case("{items: [{}], nextKey: 0}", NextPage::End)]
    #[case("{items: [{}], NextToken: abc, nextRun: 5}", NextPage::Unknown)]
    #[case("{items: [{}], nextRun: 5, nextStep: {id: 1}}", NextPage::End)]
    #[case("{items: [{}], response_metadata: {next_cursor: abc}}", NextPage::Unknown)]
    #[case(
        "{items: [{}], _pagination: {next: {offset: 3, url: 'http://h.test/a?p=2'}}}",
        at("http://h.test/a?p=2")
    )]
    #[case("{data: [{}], meta: {pagination: {total: 2, total_pages: 2}}}", NextPage::Unknown)]
    #[case("{d: {results: [{}], __next: 'http://h.test/x'}}", at("http://h.test/x"))]
    #[case("{code: 0, data: {list: [{}], nextPageToken: abc}}", NextPage::Unknown)]
    #[case("{rio: {tags: [1], next: 2}}", NextPage::End)]
    #[case("{items: [{}], isLast: true, nextStart: 50}", NextPage::End)]
    #[case("{items: [{}], hasMore: false, nextOffset: 20}", NextPage::End)]
    #[case("{response: {numFound: 2, docs: [{}]}}", NextPage::Unknown)]
    #[case("{data: [{}], recordsTotal: 9}", NextPage::Unknown)]
    #[case("{items: [{}], metadata: {remainingItemCount: 4}}", NextPage::Unknown)]
    #[case("{items: [{}], done: false}", NextPage::Unknown)]
    #[case("{items: [{}, {}], nextPageToken: x, complete: true}", NextPage::Unknown)]
    #[case("{features: [{}], exceededTransferLimit: true}", NextPage::Unknown)]
    #[case("{hits: {total: {value: 1}, hits: [{}]}}", NextPage::End)]
    #[case("{items: [], _links: {next: {href: 'orders?page=2'}}}", at("orders?page=2"))]
    #[case("{items: [], _links: {next: {href: '/orders{?page}', templated: true}}}", NextPage::Unknown)]
    #[case("{items: [], _links: {next: {href: '/orders?where={\"a\":1}'}}}", at("/orders?where={\"a\":1}"))]
    #[case("{items: [], links: [{rel: self, href: '/a'}, {rel: Next, href: 'a?p=2'}]}", at("a?p=2"))]
    #[case("{link: [{relation: next, url: 'http://h.test/a?p=2'}], entry: []}", at("http://h.test/a?p=2"))]
    #[case("{types: [], types_links: [{rel: next prefetch, href: '/a?p=2'}]}", at("/a?p=2"))]
    #[case("{items: [], meta: {links: [{rel: next, uri: '?p=2'}]}}", at("?p=2"))]
    #[case("{items: [], links: [{rel: next, href: ''}]}", NextPage::Unknown)]
    #[case("{items: [], links: [{rel: [self, next], href: '?p=2'}]}", at("?p=2"))]
    #[case("{items: [], links: [{rel: next, href: '/a', id: 1}]}", NextPage::End)]
    #[case("{orders: [], next_orders_links: [{rel: next, href: '/a?p=2'}]}", at("/a?p=2"))]
    #[case("{steps: [], links: [{rel: next, href: '/builds/2'}]}", NextPage::Unknown)]
    #[case("{links: [{rel: next, href: '/a?p=2'}]}", NextPage::End)]
    #[case("{items: [], links: [{rel: prev, href: '/a'}], other: [{rel: next, href: '/b'}]}", NextPage::End)]
    #[case("{items: [], links: [{rel: next, href: '/a'}, {href: '/b'}]}", NextPage::End)]
    fn responses_state_the_next_page(#[case] answer: &str, #[case] expected: NextPage) {
        assert_eq!(after("null", &[answer], None), Ok(expected.clone()));
        assert_eq!(after("null", &[answer], Some("/b")), Ok(at("/b")));
        assert_eq!(after("{style: none}", &[answer], Some("/b")), Ok(NextPage::End));
        assert_eq!(after("{style: link}", &[answer], Some("/b")), Ok(at("/b")));
        let silent = if expected == NextPage::End { NextPage::End } else { NextPage::Unknown };
        assert_eq!(after("{style: link}", &[answer], None), Ok(silent));
    }

    #[rstest]
    #[case("{items: [{}, {}], limit: 2, offset: 0}", NextPage::Unknown)]
    #[case("{items: [{}, {}], page: {per_page: 2}}", NextPage::Unknown)]
    #[case("{items: [{}, {}], limit: 3}", NextPage::End)]
    #[case("{items: [{}, {}], limit: 2, total: 2}", NextPage::End)]
    #[case("{items: [{}, {}], limit: 2, next: null}", NextPage::End)]
    #[case("{items: [{}, {}], limit: 2, total_pages: 1}", NextPage::End)]
    #[case("{items: [{}, {}], limit: 2, complete: true}", NextPage::Unknown)]
    #[case("{items: [{}, {}], limit: 2, hasMore: false}", NextPage::End)]
    #[case("{items: [], limit: 0}", NextPage::End)]
    fn a_full_first_page_may_be_cut(#[case] answer: &str, #[case] expected: NextPage) {
        assert_eq!(after("null", &[answer], None), Ok(expected));
        assert_eq!(after("{style: link}", &[answer], None), Ok(NextPage::End));
    }

    const NEXT: &str = "{style: next, pointer: /at}";
    const CURSOR: &str = "{style: cursor, pointer: /at, parameter: after}";
    const OFFSET: &str = "{style: offset, parameter: first, sizeParameter: max, size: 2}";
    const LONG: &str = "{style: offset, parameter: first, sizeParameter: max, size: 1000}";
    const LONG_PAGE: &str = "{style: page, parameter: page, sizeParameter: max, size: 1000}";
    const TEN: &str = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]";
    const PAGE: &str = "{style: page, parameter: page, size: 2, items: /deep/all}";

    #[rstest]
    #[case(NEXT, &["{at: /x/2}"], Ok(at("/x/2")))]
    #[case(NEXT, &["{at: null}"], Ok(NextPage::End))]
    #[case(NEXT, &["{at: ''}"], Ok(NextPage::End))]
    #[case(NEXT, &["[]"], Ok(NextPage::End))]
    #[case(NEXT, &["{at: {}}"], Err("pointer (orders/_/metadata.yaml): /at is an object, not a URL"))]
    #[case(CURSOR, &["{at: /x}"], Ok(with(&[("after", "/x")])))]
    #[case(CURSOR, &["{at: 7}"], Ok(with(&[("after", "7")])))]
    #[case(CURSOR, &["{at: false}"], Ok(NextPage::End))]
    #[case(CURSOR, &["{at: true}"], Err("pointer (orders/_/metadata.yaml): /at is a boolean, not a string or number"))]
    #[case(OFFSET, &["[{}, {}]"], Ok(with(&[("first", "2"), ("max", "2")])))]
    #[case(OFFSET, &["[{}, {}]", "{total: 5, all: [{}, {}]}"], Ok(with(&[("first", "4"), ("max", "2")])))]
    #[case(OFFSET, &["[{}, {}]", "[{}]"], Ok(NextPage::End))]
    #[case(OFFSET, &["[{}, {}]", "[]"], Ok(NextPage::End))]
    #[case(OFFSET, &["[{}, {}]", "{total: 4, all: [{}, {}]}"], Ok(NextPage::End))]
    #[case(OFFSET, &["{items: [{}], hasMore: true}"], Ok(with(&[("first", "1"), ("max", "2")])))]
    #[case(OFFSET, &["{items: [], hasMore: true}"], Ok(NextPage::Unknown))]
    #[case(OFFSET, &["{items: [{}], meta: {pagination: {next_offset: 1}}}"], Ok(NextPage::End))]
    #[case(LONG, &[TEN], Ok(with(&[("first", "10"), ("max", "10")])))]
    #[case(LONG, &[TEN, TEN], Ok(with(&[("first", "20"), ("max", "10")])))]
    #[case(LONG, &[TEN, "[1]"], Ok(NextPage::End))]
    #[case(LONG, &[TEN, "[]"], Ok(NextPage::End))]
    #[case(LONG, &["[1, 2, 3]"], Ok(NextPage::End))]
    #[case(LONG, &["{total: 10, items: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}"], Ok(NextPage::End))]
    #[case(LONG_PAGE, &[TEN], Ok(with(&[("page", "2"), ("max", "10")])))]
    #[case(PAGE, &["{deep: {all: [1, 2]}}"], Ok(with(&[("page", "2")])))]
    #[case(PAGE, &["{deep: {all: [1, 2, 3]}}", "{deep: {all: [1, 2]}}"], Ok(with(&[("page", "3")])))]
    #[case(PAGE, &["{deep: {all: [1]}}"], Ok(NextPage::End))]
    #[case(PAGE, &["[1, 2]"], Err("items (orders/_/metadata.yaml): the response has no array at /deep/all"))]
    fn metadata_states_the_next_page(
        #[case] pagination: &str,
        #[case] answers: &[&str],
        #[case] expected: Result<NextPage, &str>,
    ) {
        let expected =
            expected.map_err(|error| format!("list of /orders: operations.list.pagination.{error}"));
        assert_eq!(after(pagination, answers, None), expected);
    }
}

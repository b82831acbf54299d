//! Pages of lists: whether an answer is the last one, and how the next one is asked for.

use super::document::{Numbered, Pagination};
use super::{MetadataError, Rules, list};
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::payload::pointer::Pointer;

/// What an answer says about where the list goes on.
#[derive(Clone, Copy, Debug)]
pub struct PageView<'a> {
    /// The answer, before its transforms.
    pub answer: &'a Value,
    /// The target of its `Link` with the relation `next`.
    pub link: Option<&'a str>,
    /// Whether its `Link` headers cannot be read, so that they may name a next page.
    pub unreadable_links: bool,
    /// How many entries its headers say that the whole list has.
    pub total: Option<u64>,
    /// Whether its headers say that it is not the last page.
    pub continues: bool,
}

/// What comes after a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextPage {
    /// Nothing: all of the list is read.
    End,
    /// The page at this URI reference, relative to where the answer came from.
    At(String),
    /// The page that the request for the list gets with these query parameters.
    With(Vec<(String, String)>),
    /// There is more, and nothing says how to ask for it. What is on no page read so far may still exist.
    Unknown,
}

/// Goes through the pages of one list, as metadata says or else as the answers do.
#[derive(Debug)]
pub struct Pager<'a> {
    rules: &'a Rules,
    collection: &'a LogicalPath,
    /// The offset, or the number of the page, of the page that is looked at.
    position: u64,
    /// How many pages were looked at.
    pages: u64,
    /// How many entries they have, if that can be counted.
    entries: Option<u64>,
    /// The largest number of entries that an answer says the whole list has.
    total: u64,
    /// Whether something says that the end is the end: metadata, a total, or a page before.
    ends_surely: bool,
}

impl<'a> Pager<'a> {
    pub(super) fn new(rules: &'a Rules, collection: &'a LogicalPath) -> Self {
        let numbered = rules.pagination().and_then(Pagination::numbered);
        let position = numbered.map_or(0, |numbered| numbered.start.into());
        let ends_surely = rules.pagination().is_some();
        Self { rules, collection, position, pages: 0, entries: Some(0), total: 0, ends_surely }
    }

    /// Whether something states [`NextPage::End`]: metadata, a total in the answer, or because an earlier
    /// page led to the last one. Otherwise the answer only shows no sign of a further page.
    pub fn ends_surely(&self) -> bool {
        self.ends_surely || self.pages > 1
    }

    /// How many entries the pages have before transforms, if they can be counted.
    pub fn entries(&self) -> Option<u64> {
        self.entries
    }

    /// Whether the answers say that the list has more than `found` entries. It is asked where entries cannot be counted
    /// before transforms.
    pub fn lacks(&self, found: u64) -> bool {
        self.rules.pagination().is_none() && self.total > found
    }

    /// What comes after `page`, which is the first one, or the one that the last call led to.
    pub fn next(&mut self, page: PageView<'_>) -> Result<NextPage, MetadataError> {
        self.pages += 1;
        let found = list::count(page.answer).map(|count| count as u64);
        self.entries = self.entries.zip(found).map(|(before, found)| before + found);
        let more = self.more(&page);
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
        // An end that the answer contradicts proves of nothing that it does not exist.
        Ok(next.unwrap_or(if more == NextPage::End { NextPage::End } else { NextPage::Unknown }))
    }

    /// The page after one of `count` entries. One that is not full is the last one, unless it says otherwise:
    /// servers have limits of their own to the size of a page.
    fn advance(&mut self, numbered: &Numbered, count: u64, step: u64, more: bool) -> Option<NextPage> {
        if count == 0 || (count < u64::from(numbered.size) && !more) {
            return None;
        }
        self.position += step;
        Some(NextPage::With(numbered.parameters(self.position)))
    }

    fn next_url(&self, pointer: &Pointer, answer: &Value) -> Result<Option<String>, MetadataError> {
        match pointer.get(answer).filter(|value| is_meaningful(value)) {
            None => Ok(None),
            Some(Value::String(url)) => Ok(Some(url.clone())),
            Some(other) => Err(self.misfit(".pointer", format!("{pointer} is {}, not a URL", other.kind()))),
        }
    }

    fn cursor(&self, pointer: &Pointer, answer: &Value) -> Result<Option<String>, MetadataError> {
        match pointer.get(answer).filter(|value| is_meaningful(value)) {
            None => Ok(None),
            Some(Value::String(cursor)) => Ok(Some(cursor.clone())),
            Some(number @ (Value::Int(_) | Value::Float(_))) => Ok(number.scalar_text()),
            Some(other) => {
                let reason = format!("{pointer} is {}, not a string or number", other.kind());
                Err(self.misfit(".pointer", reason))
            }
        }
    }

    fn count(&self, numbered: &Numbered, answer: &Value) -> Result<u64, MetadataError> {
        let count = match &numbered.items {
            Some(pointer) => pointer.get(answer).and_then(Value::as_array).map(<[Value]>::len),
            None => list::count(answer),
        };
        count.map(|count| count as u64).ok_or_else(|| {
            let Some(pointer) = &numbered.items else {
                return self.misfit(
                    "",
                    "entries are counted before transforms, where the answer is not a list; state in items where its array is"
                        .to_owned(),
                );
            };
            self.misfit(".items", format!("the answer has no array at {pointer}"))
        })
    }

    fn misfit(&self, key: &str, reason: String) -> MetadataError {
        let field = self.rules.origin(format!("operations.list.pagination{key}"));
        MetadataError::Pagination { collection: self.collection.clone(), field: field.into(), reason }
    }
}

impl Pagination {
    /// The query parameters of the first page.
    pub(super) fn first_page(&self) -> Vec<(String, String)> {
        self.numbered().map(|numbered| numbered.parameters(numbered.start.into())).unwrap_or_default()
    }
}

impl Numbered {
    fn parameters(&self, position: u64) -> Vec<(String, String)> {
        let size = self.size_parameter.iter().map(|name| (name.clone(), self.size.to_string()));
        std::iter::once((self.parameter.clone(), position.to_string())).chain(size).collect()
    }
}

impl Pager<'_> {
    /// What the answer says by itself: a link, a URL in its body, or just that there is more.
    fn more(&mut self, page: &PageView<'_>) -> NextPage {
        if let Some(link) = page.link {
            return NextPage::At(link.to_owned());
        }
        let totals = page.total.into_iter().chain(numbers(page.answer, &TOTALS));
        // A total that is smaller than what is there counts something else.
        let (mut lacks, mut complete) = (false, false);
        for total in totals {
            lacks |= self.entries.is_some_and(|entries| total > entries);
            complete |= self.entries == Some(total);
            self.total = self.total.max(total);
        }
        // Such a number may be that of the page alone, so it only shows that something is missing.
        let counts = numbers(page.answer, &COUNTS).max().unwrap_or_default();
        lacks |= self.entries.is_some_and(|entries| counts > entries);
        self.total = self.total.max(counts);
        lacks |= numbers(page.answer, &PAGES).any(|pages| pages > self.pages);
        complete |= flags(page.answer, &LAST).any(|last| last);
        let continues =
            page.unreadable_links || page.continues || lacks || flags(page.answer, &LAST).any(|last| !last);
        match next_in(page.answer) {
            NextPage::End if continues => NextPage::Unknown,
            NextPage::End => {
                self.ends_surely |= complete;
                NextPage::End
            }
            next => next,
        }
    }
}

/// Members that hold the URL of the next page, or another sign of one.
const URLS: [&str; 8] =
    ["next", "nextPage", "next_page", "nextLink", "next_link", "nextUrl", "next_url", "@odata.nextLink"];
/// Members that state that there is a next page.
const SIGNS: [&str; 12] = [
    "nextPageToken",
    "next_page_token",
    "next_cursor",
    "nextCursor",
    "hasMore",
    "has_more",
    "hasNext",
    "has_next",
    "hasNextPage",
    "has_next_page",
    "isTruncated",
    "continue",
];
/// Objects next to the entries that hold such members.
const WRAPPERS: [&str; 8] =
    ["links", "_links", "paging", "pagination", "metadata", "meta", "page", "pageInfo"];
/// Members that count the entries of the whole list.
const TOTALS: [&str; 11] = [
    "total",
    "totalCount",
    "total_count",
    "totalItems",
    "total_items",
    "totalResults",
    "total_results",
    "totalElements",
    "total_elements",
    "totalSize",
    "@odata.count",
];
/// Members that count the entries of the list or of the page.
const COUNTS: [&str; 1] = ["count"];
/// Members that count its pages.
const PAGES: [&str; 9] = [
    "pages",
    "totalPages",
    "total_pages",
    "lastPage",
    "last_page",
    "pageCount",
    "page_count",
    "numPages",
    "num_pages",
];
/// Members that state whether a page is the last one.
const LAST: [&str; 4] = ["last", "isLast", "is_last", "isLastPage"];

/// Whether a member of this name beside the entries of a list is about its pages.
pub(super) fn describes_pages(name: &str) -> bool {
    [&URLS[..], &SIGNS, &WRAPPERS, &TOTALS, &COUNTS, &PAGES, &LAST].iter().any(|names| names.contains(&name))
}

/// The answer and the objects beside its entries that describe its pages.
fn holders(answer: &Value) -> impl Iterator<Item = &Value> {
    std::iter::once(answer).chain(WRAPPERS.iter().filter_map(|key| answer.get(key)))
}

fn numbers<'v>(answer: &'v Value, names: &'v [&'v str]) -> impl Iterator<Item = u64> {
    let found = holders(answer).flat_map(move |holder| names.iter().filter_map(|name| holder.get(name)));
    found.filter_map(|value| match value {
        Value::Int(number) => u64::try_from(*number).ok(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    })
}

fn flags<'v>(answer: &'v Value, names: &'v [&'v str]) -> impl Iterator<Item = bool> {
    let found = holders(answer).flat_map(move |holder| names.iter().filter_map(|name| holder.get(name)));
    found.filter_map(|value| if let Value::Bool(flag) = value { Some(*flag) } else { None })
}

/// What the body of a list answer says about a next page: its URL if it has one, as an address or as a link
/// object with `href`.
fn next_in(answer: &Value) -> NextPage {
    let mut next = NextPage::End;
    for holder in holders(answer) {
        let member = |key: &&str| holder.get(key);
        if let Some(url) = URLS.iter().filter_map(member).find_map(as_reference) {
            return NextPage::At(url.to_owned());
        }
        if URLS.iter().chain(&SIGNS).filter_map(member).any(is_meaningful) {
            next = NextPage::Unknown;
        }
    }
    next
}

/// An absolute URL, or a path with a query; other texts are rather cursors, which may begin with a slash.
fn as_reference(value: &Value) -> Option<&str> {
    let text = value.get("href").unwrap_or(value).as_str()?.trim();
    let starts_with =
        |scheme: &str| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    let is_absolute = starts_with("http://") || starts_with("https://");
    (is_absolute || text.starts_with('?') || (text.starts_with('/') && text.contains('?'))).then_some(text)
}

fn is_meaningful(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        _ => true,
    }
}

/// `query` with `parameters` in the place of those of the same names, sorted by name.
pub(crate) fn replace_parameters(query: &mut Vec<(String, String)>, parameters: Vec<(String, String)>) {
    query.retain(|(name, _)| parameters.iter().all(|(replaced, _)| replaced != name));
    query.extend(parameters);
    query.sort();
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::resolve::tests::{path, rules, yaml};
    use super::*;

    /// What comes after pages with these bodies under `pagination`.
    fn after(pagination: &str, answers: &[&str], link: Option<&str>) -> Result<NextPage, String> {
        let document = format!("operations: {{list: {{pagination: {pagination}}}}}");
        let (rules, orders) = (rules(&[("orders/_/metadata.yaml", &document)], "/orders"), path("/orders"));
        let mut pager = rules.pager(&orders);
        let mut next = NextPage::Unknown;
        for answer in answers {
            let page = PageView {
                answer: &yaml(answer),
                link,
                unreadable_links: false,
                total: None,
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
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
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
    fn what_answers_say_by_themselves(#[case] answer: &str, #[case] expected: NextPage) {
        assert_eq!(after("null", &[answer], None), Ok(expected.clone()));
        assert_eq!(after("null", &[answer], Some("/b")), Ok(at("/b")));
        assert_eq!(after("{style: none}", &[answer], Some("/b")), Ok(NextPage::End));
        assert_eq!(after("{style: link}", &[answer], Some("/b")), Ok(at("/b")));
        let silent = if expected == NextPage::End { NextPage::End } else { NextPage::Unknown };
        assert_eq!(after("{style: link}", &[answer], None), Ok(silent));
    }

    const NEXT: &str = "{style: next, pointer: /at}";
    const CURSOR: &str = "{style: cursor, pointer: /at, parameter: after}";
    const OFFSET: &str = "{style: offset, parameter: first, sizeParameter: max, size: 2}";
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
    #[case(OFFSET, &["{items: [{}], hasMore: true}"], Ok(with(&[("first", "1"), ("max", "2")])))]
    #[case(OFFSET, &["{items: [], hasMore: true}"], Ok(NextPage::Unknown))]
    #[case(PAGE, &["{deep: {all: [1, 2]}}"], Ok(with(&[("page", "2")])))]
    #[case(PAGE, &["{deep: {all: [1, 2, 3]}}", "{deep: {all: [1, 2]}}"], Ok(with(&[("page", "3")])))]
    #[case(PAGE, &["{deep: {all: [1]}}"], Ok(NextPage::End))]
    #[case(PAGE, &["[1, 2]"], Err("items (orders/_/metadata.yaml): the answer has no array at /deep/all"))]
    fn what_metadata_says(
        #[case] pagination: &str,
        #[case] answers: &[&str],
        #[case] expected: Result<NextPage, &str>,
    ) {
        let expected = expected.map_err(|told| format!("list of /orders: operations.list.pagination.{told}"));
        assert_eq!(after(pagination, answers, None), expected);
    }
}

//! Members next to the entries of a list that describe its pages.

use crate::payload::Value;

/// Members that hold the URL of the next page, or another sign that there is one.
pub(super) const URLS: [&str; 8] =
    ["next", "nextPage", "next_page", "nextLink", "next_link", "nextUrl", "next_url", ODATA_NEXT];
/// The member of [`URLS`] that always has a URL, which may be relative.
pub(super) const ODATA_NEXT: &str = "@odata.nextLink";
/// Members that state that there is a next page.
pub(super) const SIGNS: [&str; 12] = [
    "nextPageToken", "next_page_token", "next_cursor", "nextCursor", "hasMore", "has_more", "hasNext",
    "has_next", "hasNextPage", "has_next_page", "isTruncated", "continue",
];
/// Objects next to the entries that hold such members.
const WRAPPERS: [&str; 8] =
    ["links", "_links", "paging", "pagination", "metadata", "meta", "page", "pageInfo"];
/// Members that count the entries of the whole list.
pub(super) const TOTALS: [&str; 12] = [
    "total", "totalCount", "total_count", "totalItems", "total_items", "totalResults", "total_results",
    "totalElements", "total_elements", "totalSize", "numberMatched", "@odata.count",
];
/// Members that count the entries of the list or of the page.
pub(super) const COUNTS: [&str; 1] = ["count"];
/// Members that count its pages.
pub(super) const PAGES: [&str; 9] = [
    "pages", "totalPages", "total_pages", "lastPage", "last_page", "pageCount", "page_count", "numPages",
    "num_pages",
];
/// Members that state whether a page is the last one.
pub(super) const LAST: [&str; 4] = ["last", "isLast", "is_last", "isLastPage"];

/// Members of a link that hold its URL.
pub(super) const URL_OF_LINK: [&str; 3] = ["href", "url", "uri"];

/// Returns whether a member of this name, next to the entries of a list, describes its pages.
pub(super) fn describes_pages(name: &str) -> bool {
    [&URLS[..], &SIGNS, &WRAPPERS, &TOTALS, &COUNTS, &PAGES, &LAST].iter().any(|names| names.contains(&name))
}

/// Whether a member of this name, next to the entries of a list, may be an array of links with their relations: `links` of OGC
/// APIs and Oracle REST Data Services, `types_links` of `OpenStack`, `link` of FHIR.
fn may_be_links(name: &str) -> bool {
    ["links", "_links", "link"].contains(&name) || name.ends_with("_links")
}

/// Returns the links if the member is an array of links. Resources with a relation and a URL also have an id.
pub(super) fn links<'v>(name: &str, member: &'v Value) -> Option<&'v [Value]> {
    let links = member.as_array().filter(|links| may_be_links(name) && !links.is_empty())?;
    let is_link = |link: &Value| {
        let has_url = URL_OF_LINK.iter().any(|name| link.get(name).is_some());
        has_url && link.get("id").is_none() && relations(link).next().is_some()
    };
    links.iter().all(is_link).then_some(links)
}

/// Whether the member is an array of links, or an empty array with the name of one.
pub(super) fn holds_links(name: &str, member: &Value) -> bool {
    links(name, member).is_some() || may_be_links(name) && member.as_array().is_some_and(<[Value]>::is_empty)
}

/// Returns the links of `holder` with the relation `next` (RFC 8288 §3.3). The member `entries` has the entries of the list.
pub(super) fn next_links<'v>(holder: &'v Value, entries: Option<&'v str>) -> impl Iterator<Item = &'v Value> {
    let members =
        holder.as_object().into_iter().flatten().filter(move |(name, _)| Some(name.as_str()) != entries);
    let links = members.filter_map(|(name, member)| links(name, member)).flatten();
    links.filter(|link| relations(link).any(|relation| relation.eq_ignore_ascii_case("next")))
}

fn relations(link: &Value) -> impl Iterator<Item = &str> {
    let stated = ["rel", "relation"].iter().filter_map(|name| link.get(name));
    let texts = stated.flat_map(|stated| stated.as_array().unwrap_or(std::slice::from_ref(stated)));
    texts.filter_map(Value::as_str).flat_map(str::split_whitespace)
}

/// Returns the response and the objects in it that describe its pages.
pub(super) fn holders(answer: &Value) -> impl Iterator<Item = &Value> {
    std::iter::once(answer).chain(WRAPPERS.iter().filter_map(|key| answer.get(key)))
}

pub(super) fn numbers<'v>(answer: &'v Value, names: &'v [&'v str]) -> impl Iterator<Item = u64> {
    let found = holders(answer).flat_map(move |holder| names.iter().filter_map(|name| holder.get(name)));
    found.filter_map(|value| match value {
        Value::Int(number) => u64::try_from(*number).ok(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    })
}

pub(super) fn flags<'v>(answer: &'v Value, names: &'v [&'v str]) -> impl Iterator<Item = bool> {
    let found = holders(answer).flat_map(move |holder| names.iter().filter_map(|name| holder.get(name)));
    found.filter_map(|value| if let Value::Bool(flag) = value { Some(*flag) } else { None })
}

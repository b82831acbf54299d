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

/// Returns whether a member of this name, next to the entries of a list, describes its pages.
pub(super) fn describes_pages(name: &str) -> bool {
    [&URLS[..], &SIGNS, &WRAPPERS, &TOTALS, &COUNTS, &PAGES, &LAST].iter().any(|names| names.contains(&name))
}

/// Returns the links if a member next to the entries of a list is an array of links, each with its relation: `links` of OGC
/// APIs and Oracle REST Data Services, `types_links` of `OpenStack`, `link` of FHIR.
pub(super) fn links<'v>(name: &str, member: &'v Value) -> Option<&'v [Value]> {
    let is_named = ["links", "_links", "link"].contains(&name) || name.ends_with("_links");
    let links = member.as_array().filter(|links| is_named && !links.is_empty())?;
    links.iter().all(|link| relations(link).is_some()).then_some(links)
}

/// Returns the links of `holder` with the relation `next` (RFC 8288 §3.3).
pub(super) fn next_links(holder: &Value) -> impl Iterator<Item = &Value> {
    let members = holder.as_object().into_iter().flatten();
    let links = members.filter_map(|(name, member)| links(name, member)).flatten();
    let is_next = |relations: &str| relations.split_whitespace().any(|one| one.eq_ignore_ascii_case("next"));
    links.filter(move |link| relations(link).is_some_and(is_next))
}

fn relations(link: &Value) -> Option<&str> {
    ["rel", "relation"].iter().find_map(|name| link.get(name)?.as_str())
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

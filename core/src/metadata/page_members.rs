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
pub(super) const TOTALS: [&str; 11] = [
    "total", "totalCount", "total_count", "totalItems", "total_items", "totalResults", "total_results",
    "totalElements", "total_elements", "totalSize", "@odata.count",
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

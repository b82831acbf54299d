//! Members next to the entries of a list that describe its pages.

use crate::payload::Value;

/// The member that always has a URL of the next page, which may be relative.
pub(super) const ODATA_NEXT: &str = "@odata.nextLink";

/// What may follow `next` in the names of members that have the URL of the next page. These and other names are written
/// without case and punctuation.
const OF_URL: [&str; 5] = ["page", "link", "url", "uri", "href"];
/// What else may follow it if the member has the number or the token of the next page, or states that there is one.
const OF_NEXT: [&str; 14] = [
    "key", "token", "cursor", "offset", "marker", "start", "number", "index", "records", "results", "batch",
    "position", "skip", "after",
];
/// Other members that state that there is a next page.
const SIGNS: [&str; 15] = [
    "hasmore", "hasmoreitems", "hasmoreresults", "hasnext", "hasnextpage", "istruncated", "truncated",
    "incompleteresults", "continue", "continuationtoken", "moreresults", "more", "remainingitemcount",
    "exceededtransferlimit", "lastevaluatedkey",
];
/// Objects next to the entries that hold such members.
const WRAPPERS: [&str; 7] = ["links", "paging", "pagination", "metadata", "meta", "page", "pageinfo"];
/// Further ones.
const RARE_WRAPPERS: [&str; 4] = ["paginginfo", "paginationinfo", "responsemetadata", "resultinfo"];
/// Objects that hold the entries.
const ENVELOPES: [&str; 8] = ["data", "result", "results", "response", "d", "hits", "payload", "body"];
/// Members that count the entries of the whole list.
pub(super) const TOTALS: [&str; 13] = [
    "total", "totalcount", "totalitems", "totalresults", "totalelements", "totalsize", "totalrows",
    "totalrecords", "totalentries", "recordstotal", "numbermatched", "numfound", "odatacount",
];
/// Members that count the entries of the list or of the page.
pub(super) const COUNTS: [&str; 1] = ["count"];
/// Members that count its pages.
pub(super) const PAGES: [&str; 5] = ["pages", "totalpages", "lastpage", "pagecount", "numpages"];
/// Members that state the number of entries that a page can have.
pub(super) const SIZES: [&str; 4] = ["limit", "pagesize", "perpage", "maxresults"];
/// Members that state whether a page is the last one.
pub(super) const LAST: [&str; 3] = ["last", "islast", "islastpage"];
/// Members whose `false` states that there are further pages. Their `true` may only state that a search has ended.
pub(super) const ENDED: [&str; 4] = ["done", "complete", "iscomplete", "eof"];

/// Members of a link that hold its URL.
pub(super) const URL_OF_LINK: [&str; 3] = ["href", "url", "uri"];

/// Returns whether a member of this name, next to the entries of a list, describes its pages.
pub(super) fn describes_pages(name: &str) -> bool {
    let letters = letters(name);
    let known = [&SIGNS[..], &WRAPPERS, &RARE_WRAPPERS, &TOTALS, &COUNTS, &PAGES, &LAST];
    is_next(name) || known.iter().any(|names| names.contains(&letters.as_str()))
}

/// Returns the letters and digits of a name, in lower case.
fn letters(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
}

/// Whether a member of this name has the URL, the number or the token of the next page.
pub(super) fn is_next(name: &str) -> bool {
    follows_next(name, &[&OF_URL, &OF_NEXT])
}

/// Whether a member of this name has the URL of the next page, if its value is a URL. Cursors may look like one.
pub(super) fn is_next_url(name: &str) -> bool {
    follows_next(name, &[&OF_URL])
}

fn follows_next(name: &str, words: &[&[&str]]) -> bool {
    let letters = letters(name);
    let Some(mut rest) = letters.trim_start_matches("odata").strip_prefix("next") else { return false };
    let words = || words.iter().flat_map(|words| words.iter());
    while let Some(shorter) = words().find_map(|word| rest.strip_prefix(word)) {
        rest = shorter;
    }
    rest.is_empty()
}

/// Whether a member states that there is a next page. A member of one of the names may have another meaning, unless it is a
/// flag.
pub(super) fn is_sign(name: &str, value: &Value) -> bool {
    let letters = letters(name);
    let is_flag = matches!(value, Value::Bool(true));
    SIGNS.contains(&letters.as_str()) && (is_flag || !["more", "truncated"].contains(&letters.as_str()))
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

/// Returns the object that holds the entries, if the response has no array.
pub(super) fn enveloped(answer: &Value) -> Option<&Value> {
    let arrays = |holder: &Value| members(holder).any(|(_, member)| member.as_array().is_some());
    let is_envelope = |name: &str| ENVELOPES.contains(&letters(name).as_str());
    let mut lists = members(answer).filter(|(name, member)| is_envelope(name) && arrays(member));
    let list = lists.next().filter(|_| lists.next().is_none() && !arrays(answer));
    list.map(|(_, member)| member)
}

/// Returns the response and the objects in it that describe its pages.
pub(super) fn holders(answer: &Value) -> impl Iterator<Item = &Value> {
    [Some(answer), enveloped(answer)].into_iter().flatten().flat_map(|list| {
        let described = wrapped(list, true);
        let described = described.flat_map(|holder| std::iter::once(holder).chain(wrapped(holder, true)));
        std::iter::once(list).chain(described)
    })
}

fn members(holder: &Value) -> impl Iterator<Item = (&String, &Value)> {
    holder.as_object().into_iter().flatten()
}

fn wrapped(holder: &Value, rare: bool) -> impl Iterator<Item = &Value> {
    let is_wrapper = move |name: &str| {
        let letters = letters(name);
        WRAPPERS.contains(&letters.as_str()) || rare && RARE_WRAPPERS.contains(&letters.as_str())
    };
    members(holder)
        .filter(move |(name, value)| value.as_object().is_some() && is_wrapper(name))
        .map(|(_, value)| value)
}

fn named<'v>(
    holders: impl Iterator<Item = &'v Value>,
    names: &'v [&'v str],
) -> impl Iterator<Item = &'v Value> {
    let found = holders.flat_map(members);
    found.filter(move |(name, _)| names.contains(&letters(name).as_str())).map(|(_, value)| value)
}

pub(super) fn numbers<'v>(answer: &'v Value, names: &'v [&'v str]) -> impl Iterator<Item = u64> {
    named(holders(answer), names).filter_map(number)
}

/// The same only for the usual places.
pub(super) fn usual_numbers<'v>(answer: &'v Value, names: &'v [&'v str]) -> impl Iterator<Item = u64> {
    named(std::iter::once(answer).chain(wrapped(answer, false)), names).filter_map(number)
}

fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Int(number) => u64::try_from(*number).ok(),
        Value::String(text) => text.trim().parse().ok(),
        // `{"value": 2, "relation": "eq"}` of OpenSearch.
        Value::Object(total) => match total.get("value") {
            Some(Value::Int(number)) => u64::try_from(*number).ok(),
            _ => None,
        },
        _ => None,
    }
}

pub(super) fn flags<'v>(answer: &'v Value, names: &'v [&'v str]) -> impl Iterator<Item = bool> {
    let found = named(holders(answer), names);
    found.filter_map(|value| if let Value::Bool(flag) = value { Some(*flag) } else { None })
}

/// Whether a flag states that the page is the last one.
pub(super) fn states_end(answer: &Value) -> bool {
    flags(answer, &LAST).any(|last| last) || flags(answer, &SIGNS).any(|more| !more)
}

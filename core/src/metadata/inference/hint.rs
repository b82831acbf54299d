//! Hints of an `OpenAPI` document about paths for which no metadata exists.

use std::collections::BTreeSet;

use http::Method;

use super::target::Target;
use crate::metadata::openapi::{OpenApi, PathItem, Segment};
use crate::path::LogicalPath;

/// Returns whether the document describes `path` as a collection: it has GET, and POST, a path below with GET, or paths
/// below the members.
///
/// A path that looks like a resource, with GET and one of PUT, PATCH and DELETE but without POST, is a collection only
/// if the document has exactly this path as a collection.
pub fn is_collection(document: &OpenApi, path: &LogicalPath) -> bool {
    let Some(item) = document.path(path.as_str(), "") else { return false };
    // The document has paths below this name, and none for it: the item describes its siblings.
    let is_sibling = || path.parent().is_some_and(|parent| children(document, &parent).contains(path.name()));
    if item.segments().last().is_some_and(|last| last.literal().is_none()) && is_sibling() {
        return false;
    }
    is_described(document, item, path.as_str())
}

/// Returns the collections that the document describes and that a request can change, with `_` for the names of their
/// parents.
pub fn collections(document: &OpenApi) -> BTreeSet<String> {
    let named =
        document.paths().filter(|item| item.segments().last().is_some_and(|last| last.literal().is_some()));
    let patterns = named.filter_map(|item| {
        let names = item.segments().iter().map(|segment| segment.literal().unwrap_or("_"));
        let pattern: String = names.flat_map(|name| ["/", name]).collect();
        is_described(document, item, &pattern).then_some(pattern)
    });
    patterns.filter(|pattern| !is_read_only(document, pattern)).collect()
}

/// Whether the document describes the path `text`, at `item`, as a collection.
fn is_described(document: &OpenApi, item: &PathItem, text: &str) -> bool {
    let has = |method: &Method| item.operation(method).is_some();
    let changes = [Method::PUT, Method::PATCH, Method::DELETE].iter().any(has);
    let like_a_resource = has(&Method::GET) && changes && !has(&Method::POST);
    let as_written = Target::parse(text, Some(document));
    let as_collection = (!like_a_resource).then(|| Target::parse(&format!("{text}/"), Some(document)));
    [Some(as_written), as_collection]
        .into_iter()
        .flatten()
        .flatten()
        .any(|target| describes(document, &target))
}

fn describes(document: &OpenApi, target: &Target) -> bool {
    let has =
        |path: Option<&PathItem>, method: &Method| path.is_some_and(|path| path.operation(method).is_some());
    let collection = target.best_collection(document);
    target.is_collection
        && has(collection, &Method::GET)
        && (has(collection, &Method::POST)
            || has(target.best_item(document), &Method::GET)
            || collection.is_some_and(|collection| has_more_below_members(document, collection)))
}

/// Whether the document has paths below members of `collection`. It may lack a path of the members themselves.
fn has_more_below_members(document: &OpenApi, collection: &PathItem) -> bool {
    document.paths().any(|path| match path.segments().strip_prefix(collection.segments()) {
        Some([member, _, ..]) => member.variable().is_some(),
        _ => false,
    })
}

/// Returns whether the document describes a collection, with `_` for the names of its parents, without any request that
/// changes it or its members. A POST that searches changes nothing.
pub fn is_read_only(document: &OpenApi, collection: &str) -> bool {
    let Ok(target) = Target::parse(&format!("{collection}/"), Some(document)) else { return false };
    let item = target.best_item(document);
    let described = [target.best_collection(document), item, target.creator(document)];
    // Without a path of members, a POST to a path with such a name searches.
    let searches = item.is_none() && collection.split('/').any(|name| matches!(name, "search" | "_search"));
    if searches {
        return true;
    }
    let writes = [Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
    let mut described = described.into_iter().flatten().peekable();
    described.peek().is_some()
        && !described.any(|path| writes.iter().any(|method| path.operation(method).is_some()))
}

/// Returns the literal names one level below `path` in the document, for completion.
pub fn children<'d>(document: &'d OpenApi, path: &LogicalPath) -> BTreeSet<&'d str> {
    let above: Vec<&str> = path.segments().collect();
    // A name that the document has at a place is not a value of a variable there.
    let named = |depth: usize| {
        let mut paths = document.paths().filter(|item| begins_with(item.segments(), &above[..depth]));
        paths.any(|item| item.segments().get(depth).and_then(Segment::literal) == Some(above[depth]))
    };
    let named: Vec<bool> = (0..above.len()).map(named).collect();
    let below = |item: &'d PathItem| {
        let (parents, rest) = item.segments().split_at_checked(above.len())?;
        let is_other = |(parent, named): (&Segment, &bool)| *named && parent.literal().is_none();
        let fits = begins_with(parents, &above) && !parents.iter().zip(&named).any(is_other);
        rest.first().filter(|_| fits).and_then(Segment::literal)
    };
    document.paths().filter_map(below).collect()
}

fn begins_with(segments: &[Segment], names: &[&str]) -> bool {
    segments.len() >= names.len()
        && segments
            .iter()
            .zip(names)
            .all(|(segment, name)| segment.literal().is_none_or(|text| text == *name))
}

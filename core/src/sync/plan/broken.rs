//! Declared resources whose names or address cannot be determined. They prevent only deletions of resources that they may
//! be.

use std::sync::Arc;

use crate::metadata::{OperationName, Rules};
use crate::path::LogicalPath;
use crate::server::percent_decoded;
use crate::sync::model::SyncError;

/// A declared resource whose names or address cannot be determined.
#[derive(Clone)]
pub struct Broken {
    pub why: String,
    /// The number of segments of the path of its collection.
    depth: usize,
    /// Its collection on the server, unless metadata states another one; `None` if it is unknown.
    located: Option<LogicalPath>,
    /// `None` if its metadata cannot be read, or if it may be anywhere.
    rules: Option<Arc<Rules>>,
}

impl Broken {
    /// `collection` is its collection in Git.
    pub fn new(
        why: String,
        collection: &LogicalPath,
        located: Option<LogicalPath>,
        rules: Option<Arc<Rules>>,
    ) -> Self {
        // An address relative to a parent of the collection has no constant part.
        let climbs =
            |rules: &Arc<Rules>| stated_paths(rules).any(|path| path.starts_with('.') && path.contains(".."));
        let rules = rules.filter(|rules| !climbs(rules));
        Self { why, depth: collection.segments().count(), located, rules }
    }

    pub fn error(&self) -> SyncError {
        not_comparable(&self.why)
    }

    /// Whether it may be a resource in `collection` of the server that is read at the path `address`. It is another one if
    /// the constant parts of its own addresses differ from both.
    pub fn may_be(&self, collection: &str, address: Option<&str>) -> bool {
        let Some(rules) = self.rules.as_ref().filter(|rules| !rules.reads_from_list()) else { return true };
        let read = rules.resolved().operation(OperationName::Get).path.as_deref();
        let is_in = |parent: &str| self.may_be_in(rules, parent);
        let is_at = |address: &str| {
            absolute_paths(rules).any(|stated| may_render(stated, address))
                || match read {
                    None => parents(address).last().is_some_and(is_in),
                    // It may have several segments below its collection.
                    Some(path) if path.starts_with('.') => parents(address).any(is_in),
                    Some(_) => false,
                }
        };
        self.may_be_in(rules, collection) || address.is_some_and(is_at)
    }

    /// Whether it may have one of its addresses, or its collection, at or below the path `removed` of the server.
    pub fn may_be_below(&self, removed: &str) -> bool {
        let Some(rules) = &self.rules else { return true };
        let removed = removed.trim_matches('/');
        let is_below = |stated: &str| may_render(stated, removed) || constant(stated).starts_with(removed);
        let has_collection_below = match rules.resolved().remote_collection_path.as_deref() {
            Some(stated) => is_below(stated),
            None => removed.split('/').count() <= self.depth,
        };
        has_collection_below || absolute_paths(rules).any(is_below)
    }

    fn may_be_in(&self, rules: &Rules, collection: &str) -> bool {
        if let Some(stated) = rules.resolved().remote_collection_path.as_deref() {
            return may_render(stated, collection);
        }
        let remote = segments(collection);
        let is_named = |located: &LogicalPath| {
            let names = [located.segments().last(), remote.last().copied()];
            let [own, other] = names.map(|name| name.map(percent_decoded));
            own == other
        };
        remote.len() == self.depth && self.located.as_ref().is_none_or(is_named)
    }
}

/// Returns the error of a candidate that cannot be compared with a declared resource.
pub fn not_comparable(why: &str) -> SyncError {
    SyncError::NotDeleted(format!("a declared resource that may be the same one cannot be compared: {why}"))
}

/// Whether a collection without an address in metadata may be `remote`: the ids of parents may differ from their names, and
/// it is a parent itself if it is `of_resource`.
pub fn may_be(collection: &LogicalPath, of_resource: bool, remote: &str) -> bool {
    let remote = segments(remote);
    let is_named = || collection.segments().last() == remote.last().copied();
    collection.segments().count() == remote.len() && (of_resource || is_named())
}

fn segments(path: &str) -> Vec<&str> {
    path.trim_matches('/').split_terminator('/').collect()
}

/// Returns the paths above `path`.
fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(end, _)| &path[..end])
}

/// Returns the paths of a resource that metadata states.
fn stated_paths(rules: &Rules) -> impl Iterator<Item = &str> {
    let operations = [OperationName::Get, OperationName::Update, OperationName::Delete];
    operations.into_iter().filter_map(|operation| rules.resolved().operation(operation).path.as_deref())
}

/// Returns those that are not relative to the collection.
fn absolute_paths(rules: &Rules) -> impl Iterator<Item = &str> {
    stated_paths(rules).filter(|path| !path.starts_with('.'))
}

/// Whether a template may render `path`.
fn may_render(template: &str, path: &str) -> bool {
    let is_normalised = template.contains("/.") || template.contains("//");
    is_normalised || format!("{}/", path.trim_matches('/')).starts_with(constant(template))
}

/// Returns the start of a template that is constant and has no characters that can be encoded in several ways, without
/// the slash at the start.
fn constant(template: &str) -> &str {
    let is_constant = |c: char| c.is_ascii_alphanumeric() || "/_-".contains(c);
    template.trim_start_matches('/').split(|c| !is_constant(c)).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::same("/experiments/get", "/experiments/get", true)]
    #[case::other("/experiments/get", "/models/get", false)]
    #[case::below("/experiments/{{/id}}", "/experiments/7", true)]
    #[case::above("/v1/experiments/get", "/v1", false)]
    #[case::root("/{{/kind}}/7", "/models/7", true)]
    #[case::part_of_a_segment("/models{{/n}}", "/models7", true)]
    #[case::no_slash("experiments/get", "/experiments/get", true)]
    #[case::slash("/experiments/", "/experiments", true)]
    #[case::can_be_encoded("/a b/x", "/a%20b/y", true)]
    #[case::slashes("/a//b", "/a/b", true)]
    #[case::dots("/a/../b", "/b", true)]
    fn what_a_template_may_render(#[case] template: &str, #[case] path: &str, #[case] expected: bool) {
        assert_eq!(may_render(template, path), expected);
    }
}

//! Paths as lists of segments, and patterns over them in which `*` is any one segment.

use std::ops::Range;

/// The segments of a path; repeated and trailing slashes do not matter.
pub fn segments(path: &str) -> Vec<&str> {
    path.split('/').filter(|segment| !segment.is_empty()).collect()
}

/// The one spelling of a path: a leading slash, no empty segment.
pub fn normalise(path: &str) -> String {
    format!("/{}", segments(path).join("/"))
}

/// The path one level up and the last segment; none for the root.
pub fn split_last(path: &str) -> Option<(&str, &str)> {
    let (parent, last) = path.rsplit_once('/')?;
    if last.is_empty() {
        return None;
    }
    Some((if parent.is_empty() { "/" } else { parent }, last))
}

/// `collection` and `segment` as one path.
pub fn join(collection: &str, segment: &str) -> String {
    format!("{}/{segment}", collection.trim_end_matches('/'))
}

/// Whether `path` is strictly below `ancestor`.
pub fn is_below(path: &str, ancestor: &str) -> bool {
    path.strip_prefix(ancestor.trim_end_matches('/'))
        .is_some_and(|rest| rest.len() > 1 && rest.starts_with('/'))
}

/// The range, in the order of strings, of all paths strictly below `ancestor`.
pub fn below(ancestor: &str) -> Range<String> {
    let ancestor = ancestor.trim_end_matches('/');
    // `0` is what follows `/`.
    format!("{ancestor}/")..format!("{ancestor}0")
}

/// Whether the whole path matches. A last segment `**` matches any rest, also an empty one.
pub fn matches(pattern: &str, path: &str) -> bool {
    let (pattern, path) = (segments(pattern), segments(path));
    let (pattern, open_ended) = match pattern.split_last() {
        Some((&"**", head)) => (head.to_vec(), true),
        _ => (pattern, false),
    };
    let long_enough = if open_ended { path.len() >= pattern.len() } else { path.len() == pattern.len() };
    long_enough && pattern.iter().zip(&path).all(|(wanted, segment)| *wanted == "*" || wanted == segment)
}

/// The part of `path` up to the last `*` of a pattern that matches it: the resource that a declared
/// collection belongs to. None when the pattern has no `*`.
pub fn owner(pattern: &str, path: &str) -> Option<String> {
    let star = segments(pattern).iter().rposition(|segment| *segment == "*")?;
    Some(format!("/{}", segments(path)[..=star].join("/")))
}

//! Logical paths: the validated address of a resource or collection.

mod names;
mod selector;

use std::fmt;
use std::sync::Arc;

use crate::error::categories;
pub use names::{PathNames, url_path, url_segment};
pub use selector::Selector;

/// The reason why a text is not a logical path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The text is blank.
    #[error("logical path must not be blank")]
    Blank,
    /// The first character is not a slash.
    #[error("logical path \"{0}\" must start with \"/\"")]
    Relative(String),
    /// A `..` segment.
    #[error("logical path \"{0}\": logical path must not contain traversal segments (\"..\")")]
    Traversal(String),
    /// A `_` segment in the path of a resource.
    #[error("logical path \"{0}\" must not contain the reserved segment \"_\"")]
    Reserved(String),
    /// A NUL character, or a segment that is `.git` in any case.
    #[error("logical path \"{0}\" contains a forbidden segment (\".git\" or a NUL character)")]
    Forbidden(String),
    /// An alias or remote id that is not a single plain segment.
    #[error("\"{0}\" is not a single path segment (empty, \".\", \"..\", \"_\" and slashes are not allowed)")]
    NotASegment(String),
    /// An invalid glob.
    #[error("selector \"{selector}\": bad pattern: {reason}")]
    BadPattern {
        /// The selector as written.
        selector: String,
        /// The fault.
        reason: String,
    },
}

categories!(PathError: Validation);

/// A normalised absolute path such as `/shops/rio`.
///
/// Invariants: starts with `/`; no empty, `.`, `..`, `_` or `.git` segment; no trailing slash except for
/// the root. Comparison is bytewise (case-sensitive, no Unicode normalisation, no percent-decoding), so a
/// parent always sorts before its descendants. Cloning is cheap.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct LogicalPath(Arc<str>);

/// A path from user input: normalised like [`LogicalPath`], but with `_` segments, which selectors use, and the
/// information whether it ended in a slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawPath {
    text: String,
    /// Whether the input ended in `/` and was not the root: it addresses a collection.
    pub explicit_collection: bool,
}

impl LogicalPath {
    /// Returns the root, `/`.
    pub fn root() -> Self {
        Self(Arc::from("/"))
    }

    /// Parses and normalises the path of a resource or collection.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        if text.trim().is_empty() {
            return Err(PathError::Blank);
        }
        let path = normalise(text, Split::Plain)?;
        if path.split('/').any(|segment| segment == "_") {
            return Err(PathError::Reserved(path));
        }
        Ok(Self(path.into()))
    }

    /// Like [`LogicalPath::parse`], for the `source.path` of a `SyncPolicy`, whose leading slash is optional.
    pub fn parse_scope(text: &str) -> Result<Self, PathError> {
        let text = text.trim();
        if text.is_empty() || text.starts_with(['/', '\\']) {
            return Self::parse(text);
        }
        Self::parse(&format!("/{text}"))
    }

    /// Returns the path of a child. The name of a directory is used unchanged as the segment, so unlike in
    /// [`PathNames::check`] its outer white space counts.
    pub fn child(&self, segment: &str) -> Result<Self, PathError> {
        if !is_single_segment(segment) {
            return Err(PathError::NotASegment(segment.to_owned()));
        }
        if segment.eq_ignore_ascii_case(".git") || segment.contains('\0') {
            return Err(PathError::Forbidden(segment.to_owned()));
        }
        Ok(Self(if self.is_root() { format!("/{segment}") } else { format!("{}/{segment}", self.0) }.into()))
    }

    /// Joins `text`, which may have several segments: `/shops` + `eu/rio` is `/shops/eu/rio`.
    pub fn join(&self, text: &str) -> Result<Self, PathError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(PathError::Blank);
        }
        Self::parse(&format!("{}/{text}", self.0))
    }

    /// Returns the path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the path relative to the root: `shops/rio`; empty for the root itself.
    pub fn relative(&self) -> &str {
        self.0.trim_start_matches('/')
    }

    /// Whether this is `/`.
    pub fn is_root(&self) -> bool {
        &*self.0 == "/"
    }

    /// Returns the segments from the root; none for the root.
    pub fn segments(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.relative().split('/').filter(|segment| !segment.is_empty())
    }

    /// Returns the last segment; empty for the root.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the collection that holds this path; `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        if self.is_root() {
            return None;
        }
        match self.0.rfind('/') {
            Some(0) | None => Some(Self::root()),
            Some(at) => Some(Self(Arc::from(&self.0[..at]))),
        }
    }

    /// Returns the collection that holds this path; the root for the root.
    #[must_use]
    pub fn collection(&self) -> Self {
        self.parent().unwrap_or_else(Self::root)
    }

    /// Returns all proper ancestors, nearest first, the root last.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> {
        std::iter::successors(self.parent(), Self::parent)
    }

    /// Returns the closest path that contains this one and `other`.
    pub(crate) fn common(&self, other: &Self) -> Self {
        let contains = |path: &Self| other.is_within(path);
        std::iter::successors(Some(self.clone()), Self::parent).find(contains).unwrap_or_else(Self::root)
    }

    /// Returns the last segment of `path`, if it is exactly one level below this one.
    pub fn child_of<'a>(&self, path: &'a Self) -> Option<&'a str> {
        (path.parent().as_ref() == Some(self)).then(|| path.name())
    }

    /// Whether this path is `scope` or below it.
    pub fn is_within(&self, scope: &Self) -> bool {
        is_within(&self.0, &scope.0)
    }

    /// Whether one of the two paths contains the other.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.is_within(other) || other.is_within(self)
    }
}

/// Whether `path` is `scope` or below it. Both start with a slash, and may be paths on a server.
pub(crate) fn is_within(path: &str, scope: &str) -> bool {
    let rest = path.strip_prefix(scope.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl fmt::Display for LogicalPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for LogicalPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

impl<'de> serde::Deserialize<'de> for LogicalPath {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl RawPath {
    /// Normalises user input. A `/` inside balanced `{{ }}` does not separate segments.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(PathError::Blank);
        }
        let path = normalise(text, Split::OutsideTemplates)?;
        let explicit_collection = text.ends_with(['/', '\\']) && path != "/";
        Ok(Self { text: path, explicit_collection })
    }

    /// Returns the normalised text, without trailing slash.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

fn is_single_segment(text: &str) -> bool {
    !matches!(text, "" | "." | ".." | "_") && !text.contains(['/', '\\'])
}

#[derive(Clone, Copy, PartialEq)]
enum Split {
    Plain,
    OutsideTemplates,
}

/// Performs the steps of strict and raw parsing in this order: slashes, traversal, cleaning, forbidden names.
fn normalise(text: &str, split: Split) -> Result<String, PathError> {
    let text = text.replace('\\', "/");
    if !text.starts_with('/') {
        return Err(PathError::Relative(text));
    }
    let segments = match split {
        Split::Plain => text.split('/').collect(),
        Split::OutsideTemplates => split_outside_templates(&text),
    };
    if segments.contains(&"..") {
        return Err(PathError::Traversal(text));
    }
    let kept: Vec<&str> = segments.into_iter().filter(|segment| !matches!(*segment, "" | ".")).collect();
    if kept.iter().any(|segment| segment.eq_ignore_ascii_case(".git") || segment.contains('\0')) {
        return Err(PathError::Forbidden(text.replace('\0', "\\0")));
    }
    Ok(format!("/{}", kept.join("/")))
}

fn split_outside_templates(text: &str) -> Vec<&str> {
    let (mut segments, mut start, mut at) = (Vec::new(), 0, 0);
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("{{") {
            // Unbalanced opening braces are plain text, so the slashes after them separate.
            at += rest.find("}}").map_or(2, |end| end + 2);
        } else if rest.starts_with('/') {
            segments.push(&text[start..at]);
            at += 1;
            start = at;
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    segments.push(&text[start..]);
    segments
}

#[cfg(test)]
mod tests;

//! Selectors: the address of a metadata document, possibly with wildcards.

use globset::{GlobBuilder, GlobMatcher};

use super::{LogicalPath, PathError, RawPath, Split, normalise};

/// The paths that a metadata document describes.
///
/// Segments are matched one by one: `_` matches any segment, a glob (`*`, `?`, `[…]`) matches within one segment, and
/// other segments match literally.
#[derive(Clone, Debug)]
pub struct Selector {
    segments: Vec<Segment>,
    collection: bool,
}

/// The longest glob in bytes. File systems do not have longer names, and the cost of matching grows with the length.
const MAX_GLOB: usize = 255;

#[derive(Clone, Debug)]
enum Segment {
    Any,
    Glob(String, GlobMatcher),
    Literal(String),
}

impl Selector {
    /// Parses a selector from user input. It addresses a collection if it is the root, ends in `/` or `/_`, or
    /// contains `_` or a glob segment. One trailing `_` is dropped.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let raw = RawPath::parse(text)?;
        // The name of a directory has no slash, so templates are split here, too.
        let path = normalise(raw.as_str(), Split::Plain)?;
        let mut names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
        let collection = names.is_empty()
            || raw.explicit_collection
            || names.iter().any(|name| *name == "_" || name.contains(['*', '?', '[']));
        if names.last() == Some(&"_") {
            names.pop();
        }
        let segments = names.iter().map(|name| Segment::parse(name, text)).collect::<Result<_, _>>()?;
        Ok(Self { segments, collection })
    }

    /// Returns the selector of the collection document in `<directory>/_/`, by the directory's path on disk.
    pub fn of_directory(directory: &str) -> Result<Self, PathError> {
        // Parsing drops the last `_`. Without the appended one, a directory called `_` would be dropped.
        Self::parse(&format!("/{directory}/_"))
    }

    /// Whether the selector addresses a collection and not a resource.
    pub fn is_collection(&self) -> bool {
        self.collection
    }

    /// Returns the file of the document relative to the metadata root, without its extension:
    /// `shops/_/tills/_/metadata` or `shops/rio/metadata`.
    pub fn document_stem(&self) -> String {
        let mut stem: String = self.segments.iter().flat_map(|segment| [segment.text(), "/"]).collect();
        stem.push_str(if self.collection { "_/metadata" } else { "metadata" });
        stem
    }

    /// Returns the longest leading path without wildcards.
    pub fn literal_prefix(&self) -> Result<LogicalPath, PathError> {
        self.segments
            .iter()
            .map_while(|segment| match segment {
                Segment::Literal(name) => Some(name),
                Segment::Any | Segment::Glob(..) => None,
            })
            .try_fold(LogicalPath::root(), |path, name| path.child(name))
    }

    /// Whether all segments match those of `path`.
    pub fn matches(&self, path: &LogicalPath) -> bool {
        let mut names = path.segments();
        self.segments.iter().all(|segment| names.next().is_some_and(|name| segment.matches(name)))
            && names.next().is_none()
    }
}

impl Segment {
    fn parse(name: &str, selector: &str) -> Result<Self, PathError> {
        if name == "_" {
            return Ok(Self::Any);
        }
        if !name.contains(['*', '?', '[']) {
            return Ok(Self::Literal(name.to_owned()));
        }
        let bad = |reason: String| PathError::BadPattern { selector: selector.to_owned(), reason };
        if name.len() > MAX_GLOB {
            return Err(bad(format!(
                "a segment with wildcards may have {MAX_GLOB} bytes, not {}",
                name.len()
            )));
        }
        let glob = GlobBuilder::new(&without_alternates(name))
            .literal_separator(true)
            .backslash_escape(false)
            .build();
        let glob = glob.map_err(|error| bad(error.kind().to_string()))?;
        Ok(Self::Glob(name.to_owned(), glob.compile_matcher()))
    }

    fn text(&self) -> &str {
        match self {
            Self::Any => "_",
            Self::Glob(text, _) | Self::Literal(text) => text,
        }
    }

    fn matches(&self, name: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Glob(_, glob) => glob.is_match(name),
            Self::Literal(text) => text == name,
        }
    }
}

/// Puts braces outside of a class into a class, because `globset` would treat `{a,b}` as alternatives.
fn without_alternates(pattern: &str) -> String {
    let mut literal = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some(char) = rest.chars().next() {
        let length = if char == '[' { class_length(rest) } else { char.len_utf8() };
        let (part, after) = rest.split_at(length);
        match part {
            "{" | "}" => literal.extend(["[", part, "]"]),
            _ => literal.push_str(part),
        }
        rest = after;
    }
    literal
}

/// Returns the length of the class at the start of `text`. A `]` in its first place is a member.
fn class_length(text: &str) -> usize {
    let negated = usize::from(text[1..].starts_with(['!', '^']));
    let first = 1 + negated;
    let member = usize::from(text[first..].starts_with(']'));
    text[first + member..].find(']').map_or(text.len(), |end| first + member + end + 1)
}

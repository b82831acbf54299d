//! The target of inference, and the paths of a document that describe it.

use http::Method;

use super::InferenceError;
use crate::language::template::singular;
use crate::metadata::openapi::{ApiOperation, OpenApi, PathItem, Segment};
use crate::metadata::transform::is_identifier;
use crate::path::{RawPath, Selector};

/// A collection or one resource, by the segments of its path.
#[derive(Clone, Debug)]
pub struct Target {
    names: Vec<Name>,
    pub is_collection: bool,
}

/// A segment of a selector.
#[derive(Clone, Debug)]
enum Name {
    Literal(String),
    /// `_`, or any resource of a collection.
    Any,
    Glob(String),
}

impl Target {
    /// Parses a target. It is a collection if the text states it, or if the document has the path as a collection.
    pub fn parse(text: &str, document: Option<&OpenApi>) -> Result<Self, InferenceError> {
        let selector = Selector::parse(text)?;
        let raw = RawPath::parse(text)?;
        let mut names: Vec<Name> =
            raw.as_str().split('/').filter(|name| !name.is_empty()).map(Name::parse).collect();
        if matches!(names.last(), Some(Name::Any)) {
            names.pop();
        }
        let is_collection = selector.is_collection()
            || document.is_some_and(|document| is_collection(document, raw.as_str()));
        Ok(Self { names, is_collection })
    }

    /// Returns the target if it is a collection, otherwise its parent.
    fn collection(&self) -> &[Name] {
        if self.is_collection { &self.names } else { self.names.split_last().map_or(&[], |(_, names)| names) }
    }

    /// Returns the last segment of the collection that is not a wildcard.
    pub fn last_literal(&self) -> Option<&str> {
        self.collection().iter().rev().find_map(Name::literal)
    }

    /// Returns the path of the collection, with placeholders for wildcards.
    pub fn collection_template(&self) -> String {
        joined(self.placeholders().into_iter().take(self.collection().len()))
    }

    /// Returns the path of the resource, or of any resource of the collection with `id_field` as the placeholder.
    pub fn item_template(&self, id_field: &str) -> String {
        let last = self.is_collection.then(|| placeholder(id_field));
        joined(self.placeholders().into_iter().chain(last))
    }

    /// Returns the path of the document that describes the collection best.
    pub fn best_collection<'d>(&self, document: &'d OpenApi) -> Option<&'d PathItem> {
        best(document, self.collection(), false)
    }

    /// Returns the path of the document that describes the resources best. For a collection, it must end with a
    /// variable, because a path with a fixed name does not describe all resources.
    pub fn best_item<'d>(&self, document: &'d OpenApi) -> Option<&'d PathItem> {
        let any = self.is_collection.then_some(Name::Any);
        let names: Vec<Name> = self.names.iter().cloned().chain(any).collect();
        best(document, &names, self.is_collection)
    }

    /// Returns the path of the document with the POST request that creates a resource: that of the collection, unless that
    /// is a query because its answer is a list, or one such as `/users/create`.
    pub fn creator<'d>(&self, document: &'d OpenApi) -> Option<&'d PathItem> {
        let create = Name::Literal("create".to_owned());
        let below: Vec<Name> = self.collection().iter().cloned().chain([create]).collect();
        let is_literal = |item: &&PathItem| item.segments().last().is_some_and(|it| it.literal().is_some());
        let below = || best(document, &below, false).filter(is_literal);
        let has_post = |item: &&PathItem| item.operation(&Method::POST).is_some();
        let is_query = |item: &PathItem| {
            let answer = item.operation(&Method::POST).and_then(ApiOperation::response_schema);
            answer.is_some_and(|schema| document.items(schema).is_some())
        };
        let collection = self.best_collection(document).filter(has_post);
        let below = || below().filter(has_post);
        collection.filter(|item| !is_query(item)).or_else(below).or(collection)
    }

    /// Whether a path of the document is below the collection.
    pub fn is_below(&self, item: &PathItem) -> bool {
        item.segments().len() > self.collection().len()
    }

    /// Converts a path of the document to a template: `{v}` becomes the placeholder of `v`. If `v` is not an
    /// identifier, it becomes the placeholder that is inferred for this segment without a document.
    pub fn template_of(&self, item: &PathItem, id_field: &str) -> String {
        let inferred = self.placeholders();
        joined(item.segments().iter().enumerate().map(|(index, segment)| match segment {
            Segment::Literal(text) => text.clone(),
            Segment::Variable(name) if is_identifier(name) => placeholder(name),
            Segment::Variable(_) => match (self.names.get(index), inferred.get(index)) {
                (Some(Name::Any | Name::Glob(_)), Some(inferred)) => inferred.clone(),
                (None, _) => placeholder(id_field),
                _ => placeholder("id"),
            },
        }))
    }

    /// Returns whether a path of the document has a fixed name where the target has a wildcard, so the logical path
    /// does not determine it.
    pub fn is_narrowed_by(&self, item: &PathItem) -> bool {
        let pairs = self.collection().iter().zip(item.segments());
        pairs.into_iter().any(|(name, segment)| name.literal().is_none() && segment.literal().is_some())
    }

    /// Returns the segments. A wildcard becomes a placeholder of the singular of the nearest name before it, numbered
    /// if it repeats.
    fn placeholders(&self) -> Vec<String> {
        let mut used: Vec<String> = Vec::new();
        let mut before: Option<&str> = None;
        let mut texts = Vec::new();
        for (index, name) in self.names.iter().enumerate() {
            if let Name::Literal(text) = name {
                before = Some(text);
                texts.push(text.clone());
                continue;
            }
            let key = before.and_then(field_name).unwrap_or_else(|| format!("segment{}", index + 1));
            let repeats = used.iter().filter(|used| **used == key).count();
            texts.push(placeholder(&if repeats == 0 {
                key.clone()
            } else {
                format!("{key}{}", repeats + 1)
            }));
            used.push(key);
        }
        texts
    }
}

impl Name {
    fn parse(text: &str) -> Self {
        match text {
            "_" => Self::Any,
            text if text.contains(['*', '?', '[']) => Self::Glob(text.to_owned()),
            text => Self::Literal(text.to_owned()),
        }
    }

    fn literal(&self) -> Option<&str> {
        match self {
            Self::Literal(text) => Some(text),
            Self::Any | Self::Glob(_) => None,
        }
    }

    /// Returns how well a segment of a document matches this one; `None` if it does not match.
    fn score(&self, segment: &Segment) -> Option<u32> {
        match (self, segment) {
            (Self::Literal(name), Segment::Literal(text)) => (name == text).then_some(3),
            (Self::Literal(_) | Self::Glob(_), Segment::Variable(_)) => Some(1),
            (Self::Any, Segment::Variable(_)) => Some(2),
            (Self::Any, Segment::Literal(_)) => Some(0),
            (Self::Glob(glob), Segment::Literal(text)) => fits(glob, text).then_some(1),
        }
    }
}

/// Returns the name of the attribute for a collection's name: the singular of its last word.
pub fn field_name(literal: &str) -> Option<String> {
    let word = literal.rsplit(['-', '_', '.']).next().unwrap_or(literal);
    Some(singular(literal).unwrap_or_else(|| word.to_owned())).filter(|name| is_identifier(name))
}

pub fn placeholder(name: &str) -> String {
    format!("{{{{/{name}}}}}")
}

/// Returns whether the document has exactly this path as a collection, with a path for its resources.
fn is_collection(document: &OpenApi, path: &str) -> bool {
    let has =
        |item: &PathItem, methods: &[Method]| methods.iter().any(|method| item.operation(method).is_some());
    let Some(collection) = document.exact_path(path) else { return false };
    let below = document.paths_with_length(collection.segments().len() + 1);
    has(collection, &[Method::GET, Method::POST])
        && below
            .filter(|item| item.segments().starts_with(collection.segments()))
            .filter(|item| item.segments().last().and_then(Segment::variable).is_some_and(is_identifier))
            .any(|item| has(item, &[Method::GET, Method::PUT, Method::PATCH, Method::DELETE]))
}

fn best<'d>(document: &'d OpenApi, names: &[Name], variable_last: bool) -> Option<&'d PathItem> {
    let candidates = document.paths_with_length(names.len()).filter(|item| {
        !variable_last || item.segments().last().is_some_and(|segment| segment.variable().is_some())
    });
    let scored = candidates.filter_map(|item| {
        let pairs = names.iter().zip(item.segments());
        let score = pairs.map(|(name, segment)| name.score(segment)).sum::<Option<u32>>()?;
        Some((score, item))
    });
    let better = |a: &(u32, &PathItem), b: &(u32, &PathItem)| {
        a.0.cmp(&b.0).then_with(|| b.1.template().cmp(a.1.template()))
    };
    scored.max_by(better).map(|(_, item)| item)
}

fn fits(glob: &str, name: &str) -> bool {
    let path = crate::path::LogicalPath::root().child(name);
    let selector = Selector::parse(&format!("/{glob}"));
    matches!((path, selector), (Ok(path), Ok(selector)) if selector.matches(&path))
}

fn joined(segments: impl IntoIterator<Item = String>) -> String {
    let path: String = segments.into_iter().flat_map(|segment| ["/".to_owned(), segment]).collect();
    if path.is_empty() { "/".to_owned() } else { path }
}

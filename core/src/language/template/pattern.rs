//! Path templates as patterns: they match segments of a logical path with the values of fields.

use std::collections::BTreeMap;

use super::Template;
use super::ast::Node;
use super::field::is_engine_name;
use crate::path::LogicalPath;

/// A path template that is matched with logical paths. It is compiled once and applied to every resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    base: Base,
    segments: Vec<Segment>,
}

/// The templates that fields are derived from.
#[derive(Clone, Debug, Default)]
pub struct PatternSources<'t> {
    /// `remoteCollectionPath`, if set.
    pub remote_collection: Option<&'t Template>,
    /// The jq expressions of `operations.defaults`.
    pub default_steps: Vec<&'t Template>,
    /// The operations by name.
    pub operations: BTreeMap<&'t str, OperationSources<'t>>,
}

/// The templates of one operation that fields are derived from.
#[derive(Clone, Debug, Default)]
pub struct OperationSources<'t> {
    /// The jq expressions of the operation.
    pub steps: Vec<&'t Template>,
    /// The path of the operation.
    pub path: Option<&'t Template>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    Root,
    /// The logical collection without its last `up` segments.
    Collection {
        up: usize,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Literal(String),
    /// Exactly one placeholder with a single key.
    Field(String),
    /// Any other segment; matching stops here.
    Opaque,
}

/// Returns the patterns of all templates, in the order of their precedence: the remote collection, the
/// `resource("…")` calls of the default steps, then the calls and the path of each operation by name.
pub fn path_patterns(sources: &PatternSources<'_>) -> Vec<PathPattern> {
    let collection = sources.remote_collection.map(|template| {
        PathPattern { base: Base::Root, segments: segments(&template.parsed.nodes) }.resolved()
    });
    let mut patterns: Vec<PathPattern> = collection.iter().cloned().collect();
    patterns.extend(sources.default_steps.iter().flat_map(|step| resource_calls(step)));
    for operation in sources.operations.values() {
        patterns.extend(operation.steps.iter().flat_map(|step| resource_calls(step)));
        patterns.extend(operation.path.map(|path| of_operation(path, collection.as_ref())));
    }
    patterns
}

impl PathPattern {
    /// Returns the fields and their values in `path`; `None` if a field would have two values.
    pub(super) fn bind<'a>(
        &'a self,
        path: &'a LogicalPath,
        collection: &LogicalPath,
    ) -> Option<BTreeMap<&'a str, &'a str>> {
        let known = match self.base {
            Base::Root => 0,
            Base::Collection { up } => collection.segments().count().saturating_sub(up),
        };
        let mut bound = BTreeMap::new();
        for (segment, name) in self.segments.iter().zip(path.segments().skip(known)) {
            match segment {
                Segment::Field(key) => {
                    if *bound.entry(key.as_str()).or_insert(name) != name {
                        return None;
                    }
                }
                Segment::Literal(text) if text == name => {}
                Segment::Literal(_) | Segment::Opaque => break,
            }
        }
        Some(bound)
    }

    /// Resolves `.` and `..` segments.
    fn resolved(self) -> Self {
        let mut resolved = Self { base: self.base, segments: Vec::new() };
        resolved.join(self.segments);
        resolved
    }

    fn join(&mut self, segments: Vec<Segment>) {
        for segment in segments {
            match &segment {
                Segment::Literal(text) if text == "." => {}
                Segment::Literal(text) if text == ".." => {
                    if self.segments.pop().is_none()
                        && let Base::Collection { up } = &mut self.base
                    {
                        *up += 1;
                    }
                }
                _ => self.segments.push(segment),
            }
        }
    }
}

/// Returns the pattern of an operation's path. A path that starts with a dot is relative to the remote collection,
/// otherwise to the logical one.
fn of_operation(path: &Template, collection: Option<&PathPattern>) -> PathPattern {
    let relative = matches!(path.parsed.nodes.first(), Some(Node::Text(text)) if text.starts_with('.'));
    let mut pattern = match (relative, collection) {
        (false, _) => PathPattern { base: Base::Root, segments: Vec::new() },
        (true, Some(collection)) => collection.clone(),
        (true, None) => PathPattern { base: Base::Collection { up: 0 }, segments: Vec::new() },
    };
    pattern.join(segments(&path.parsed.nodes));
    pattern
}

fn segments(nodes: &[Node]) -> Vec<Segment> {
    let mut splitter = Splitter::default();
    for node in nodes {
        match node {
            Node::Text(text) => splitter.text(text),
            node => splitter.node(node, true),
        }
    }
    splitter.finish()
}

/// Joins text and placeholders, and splits the result at the slashes in the text.
#[derive(Default)]
struct Splitter {
    done: Vec<Segment>,
    open: Option<Segment>,
}

impl Splitter {
    fn text(&mut self, text: &str) {
        for (index, part) in text.split('/').enumerate() {
            if index > 0 {
                self.done.extend(self.open.take());
            }
            if !part.is_empty() {
                self.open = Some(match self.open.take() {
                    None => Segment::Literal(part.to_owned()),
                    Some(Segment::Literal(before)) => Segment::Literal(before + part),
                    Some(_) => Segment::Opaque,
                });
            }
        }
    }

    fn node(&mut self, node: &Node, root_dot: bool) {
        let key = match node {
            Node::Output(expression) => expression.single_key(root_dot),
            _ => None,
        };
        self.open = Some(match (self.open.take(), key) {
            (None, Some(key)) if !is_engine_name(key) => Segment::Field(key.to_owned()),
            _ => Segment::Opaque,
        });
    }

    fn finish(mut self) -> Vec<Segment> {
        self.done.extend(self.open);
        self.done
    }
}

/// Returns the patterns of literal paths in `resource("…")` calls of a jq expression.
fn resource_calls(template: &Template) -> Vec<PathPattern> {
    let mut calls = Vec::new();
    collect_calls(&template.parsed.nodes, true, &mut calls);
    calls
}

fn collect_calls(nodes: &[Node], root_dot: bool, calls: &mut Vec<PathPattern>) {
    let mut literal: Option<Splitter> = None;
    for node in nodes {
        match (node, &mut literal) {
            (Node::Text(text), _) => literal = scan(text, literal.take(), calls),
            (node, Some(splitter)) => splitter.node(node, root_dot),
            (Node::If { branches, otherwise }, None) => {
                for branch in branches {
                    collect_calls(&branch.body, root_dot, calls);
                }
                collect_calls(otherwise, root_dot, calls);
            }
            (Node::With { branch, otherwise } | Node::Range { branch, otherwise, .. }, None) => {
                collect_calls(&branch.body, false, calls);
                collect_calls(otherwise, root_dot, calls);
            }
            (Node::Output(_) | Node::Assign { .. }, None) => {}
        }
    }
}

/// Scans jq text for calls. `literal` is the literal of a call that is open at the start; returns the one that is open
/// at the end.
fn scan(mut text: &str, mut literal: Option<Splitter>, calls: &mut Vec<PathPattern>) -> Option<Splitter> {
    loop {
        let Some(mut splitter) = literal.take() else {
            text = after_call_opening(text)?;
            literal = Some(Splitter::default());
            continue;
        };
        let Some((inside, after)) = text.split_once('"') else {
            splitter.text(text);
            return Some(splitter);
        };
        splitter.text(inside);
        // With an escape or interpolation, the value of the literal differs from its text.
        let plain = !inside.contains('\\');
        if plain && after.trim_start().starts_with(')') {
            calls.push(PathPattern { base: Base::Root, segments: splitter.finish() }.resolved());
        }
        text = after;
    }
}

/// Returns the text after the next `resource("`.
fn after_call_opening(text: &str) -> Option<&str> {
    const NAME: &str = "resource";
    let mut from = 0;
    loop {
        let found = from + text[from..].find(NAME)?;
        from = found + NAME.len();
        let part_of_name =
            text[..found].ends_with(|char: char| char.is_alphanumeric() || "_.$:".contains(char));
        let opening = text[from..].trim_start().strip_prefix('(').map(str::trim_start);
        if let (false, Some(rest)) = (part_of_name, opening.and_then(|rest| rest.strip_prefix('"'))) {
            return Some(rest);
        }
    }
}

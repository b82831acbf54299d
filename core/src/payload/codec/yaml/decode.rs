//! From parser events to a value.

use std::borrow::Cow;
use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};

use super::super::{MAX_DEPTH, TOO_DEEP, utf8};
use super::scalar;
use crate::payload::{Object, PayloadError, PayloadType, Value};

/// How much anchors may copy, in bytes of text plus [`NODE_WEIGHT`] per node. Aliases let a short file
/// describe a value of any size; this bounds it ("billion laughs").
const MAX_COPIED: usize = 64 << 20;
/// About what a node costs apart from its text.
const NODE_WEIGHT: usize = 64;

const CORE_NAMESPACE: &str = "tag:yaml.org,2002:";
const MERGE_KEY: &str = "<<";

/// One document; an empty one is null. Equal keys in one mapping are an error.
pub fn decode(bytes: &[u8]) -> Result<Value, PayloadError> {
    let text = utf8(PayloadType::Yaml, bytes)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut options =
        granit_parser::options! { flow_nesting_limit: MAX_DEPTH, block_nesting_limit: MAX_DEPTH };
    options.set_emit_comments(false);
    let parser = Parser::new_from_str_with_options(text, options);
    Composer { parser, anchors: HashMap::new(), copied: 0 }.document()
}

type Step<'i> = (Event<'i>, Span);

/// A composed value with what aliases need to know about it.
#[derive(Clone)]
struct Node {
    value: Value,
    /// Collections nested in it, itself included.
    height: usize,
    weight: usize,
}

impl Node {
    fn scalar(value: Value) -> Self {
        let weight = NODE_WEIGHT + value.as_str().map_or(0, str::len);
        Self { value, height: 0, weight }
    }
}

struct Composer<'i> {
    parser: Parser<'i, StrInput<'i>>,
    anchors: HashMap<usize, Node>,
    copied: usize,
}

impl<'i> Composer<'i> {
    fn document(mut self) -> Result<Value, PayloadError> {
        let mut root = None;
        loop {
            let (event, span) = self.step()?;
            match event {
                Event::StreamEnd => return Ok(root.unwrap_or_default()),
                Event::DocumentStart(..) if root.is_some() => {
                    return Err(fail(span, "a second document; a payload is exactly one"));
                }
                Event::DocumentStart(..) => {
                    let step = self.step()?;
                    root = Some(self.node(step, 0)?.value);
                }
                _ => {}
            }
        }
    }

    fn step(&mut self) -> Result<Step<'i>, PayloadError> {
        match self.parser.next() {
            Some(step) => step.map_err(|error| described(&error)),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    /// Composes the node that begins with `step`, inside of `depth` collections.
    fn node(&mut self, step: Step<'i>, depth: usize) -> Result<Node, PayloadError> {
        let (event, span) = step;
        let (anchor, node) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let value =
                    scalar_value(&text, style, tag.as_deref()).map_err(|reason| fail(span, reason))?;
                (anchor, Node::scalar(value))
            }
            Event::SequenceStart(_, anchor, tag) => {
                expect_collection_tag(tag.as_deref(), "seq").map_err(|reason| fail(span, reason))?;
                (anchor, self.sequence(span, depth)?)
            }
            Event::MappingStart(_, anchor, tag) => {
                expect_collection_tag(tag.as_deref(), "map").map_err(|reason| fail(span, reason))?;
                (anchor, self.mapping(span, depth)?)
            }
            Event::Alias(anchor) => return self.alias(anchor, span, depth),
            _ => return Err(fail(span, "a value is missing here")),
        };
        if anchor != 0 {
            self.count_copy(node.weight, span)?;
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn alias(&mut self, anchor: usize, span: Span, depth: usize) -> Result<Node, PayloadError> {
        let Some(node) = self.anchors.get(&anchor).cloned() else {
            return Err(fail(span, "the alias refers to the node that it is part of"));
        };
        if depth + node.height > MAX_DEPTH {
            return Err(fail(span, TOO_DEEP));
        }
        self.count_copy(node.weight, span)?;
        Ok(node)
    }

    fn count_copy(&mut self, weight: usize, span: Span) -> Result<(), PayloadError> {
        self.copied = self.copied.saturating_add(weight);
        if self.copied > MAX_COPIED {
            return Err(fail(span, "anchors and aliases expand to more than 64 MiB"));
        }
        Ok(())
    }

    fn sequence(&mut self, start: Span, depth: usize) -> Result<Node, PayloadError> {
        check_depth(start, depth)?;
        let (mut items, mut height, mut weight) = (Vec::new(), 0, NODE_WEIGHT);
        loop {
            let step = self.step()?;
            if matches!(step.0, Event::SequenceEnd) {
                return Ok(Node { value: Value::Array(items), height: height + 1, weight });
            }
            let item = self.node(step, depth + 1)?;
            height = height.max(item.height);
            weight += item.weight;
            items.push(item.value);
        }
    }

    fn mapping(&mut self, start: Span, depth: usize) -> Result<Node, PayloadError> {
        check_depth(start, depth)?;
        let (mut members, mut height, mut weight) = (Object::new(), 0, NODE_WEIGHT);
        let mut merged: Option<Vec<Object>> = None;
        loop {
            let (event, span) = self.step()?;
            if matches!(event, Event::MappingEnd) {
                break;
            }
            let merge = is_merge_key(&event);
            let key = if merge { MERGE_KEY.to_owned() } else { self.key((event, span))? };
            let step = self.step()?;
            let value_span = step.1;
            let member = self.node(step, depth + 1)?;
            height = height.max(member.height);
            weight += member.weight + NODE_WEIGHT + key.len();
            let duplicate = if merge {
                merged.replace(merge_sources(member.value, value_span)?).is_some()
            } else {
                members.insert(key.clone(), member.value).is_some()
            };
            if duplicate {
                return Err(fail(span, format!("the key \"{key}\" is there twice")));
            }
        }
        // The mapping's own keys win wherever they stand, then the earlier source.
        for (key, member) in merged.into_iter().flatten().flatten() {
            members.entry(key).or_insert(member);
        }
        Ok(Node { value: Value::Object(members), height: height + 1, weight })
    }

    fn key(&mut self, step: Step<'i>) -> Result<String, PayloadError> {
        let span = step.1;
        if matches!(step.0, Event::SequenceStart(..) | Event::MappingStart(..)) {
            return Err(fail(span, "a collection cannot be a key; keys are strings"));
        }
        match self.node(step, 0)?.value {
            Value::String(key) => Ok(key),
            other => Err(fail(span, format!("{} cannot be a key; put it in quotes", other.kind()))),
        }
    }
}

fn check_depth(span: Span, depth: usize) -> Result<(), PayloadError> {
    if depth < MAX_DEPTH { Ok(()) } else { Err(fail(span, TOO_DEEP)) }
}

/// A plain `<<`, or any tagged `!!merge`; a quoted one is an ordinary key.
fn is_merge_key(event: &Event<'_>) -> bool {
    match event {
        Event::Scalar(text, ScalarStyle::Plain, _, None) => text == MERGE_KEY,
        Event::Scalar(_, _, _, Some(tag)) => {
            tag.suffix_in_namespace(CORE_NAMESPACE).as_deref() == Some("merge")
        }
        _ => false,
    }
}

fn merge_sources(value: Value, span: Span) -> Result<Vec<Object>, PayloadError> {
    let sources = match value {
        Value::Array(items) => items,
        other => vec![other],
    };
    let objects = sources.into_iter().map(|source| match source {
        Value::Object(members) => Ok(members),
        _ => Err(fail(span, "\"<<\" merges only mappings or a list of them")),
    });
    objects.collect()
}

fn scalar_value(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Value, Cow<'static, str>> {
    let Some(tag) = tag else {
        return match style {
            ScalarStyle::Plain => scalar::resolve(text).map_err(Cow::Borrowed),
            _ => Ok(Value::from(text)),
        };
    };
    let name = tag.suffix_in_namespace(CORE_NAMESPACE).unwrap_or_default();
    let value = match (&*name, is_non_specific(tag)) {
        ("str" | "timestamp", _) | (_, true) => return Ok(Value::from(text)),
        _ => scalar::resolve(text)?,
    };
    match (&*name, value) {
        ("null", Value::Null) => Ok(Value::Null),
        ("bool", value @ Value::Bool(_))
        | ("int", value @ Value::Int(_))
        | ("float", value @ Value::Float(_)) => Ok(value),
        #[expect(clippy::cast_precision_loss, reason = "the document asks for a float")]
        ("float", Value::Int(integer)) => Ok(Value::Float(integer as f64)),
        ("null" | "bool" | "int" | "float", other) => {
            Err(format!("the tag \"!!{name}\" does not fit {}", other.kind()).into())
        }
        _ => Err(unknown_tag(tag)),
    }
}

fn expect_collection_tag(tag: Option<&Tag>, name: &str) -> Result<(), Cow<'static, str>> {
    match tag {
        None => Ok(()),
        Some(tag) if is_non_specific(tag) => Ok(()),
        Some(tag) if tag.suffix_in_namespace(CORE_NAMESPACE).as_deref() == Some(name) => Ok(()),
        Some(tag) => Err(unknown_tag(tag)),
    }
}

/// The tag `!`, which only says that the content is not to be resolved.
fn is_non_specific(tag: &Tag) -> bool {
    matches!((tag.handle(), tag.suffix()), ("", "!") | ("!", ""))
}

fn unknown_tag(tag: &Tag) -> Cow<'static, str> {
    let (handle, suffix) = tag.original_parts();
    format!("the tag \"{handle}{suffix}\" has no meaning here; only the YAML core tags do").into()
}

fn fail(span: Span, reason: impl Into<Cow<'static, str>>) -> PayloadError {
    PayloadError::decode(PayloadType::Yaml, span.start.line(), Some(span.start.col() + 1), reason)
}

/// The messages of the parser are fixed texts that quote nothing of the document but brackets.
fn described(error: &ScanError) -> PayloadError {
    let marker = error.marker();
    PayloadError::decode(PayloadType::Yaml, marker.line(), Some(marker.col() + 1), error.kind().to_string())
}

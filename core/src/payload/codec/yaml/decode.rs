//! Composes parser events into a value.

use std::borrow::Cow;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput, StructureStyle, Tag};

use super::super::compose::repeated;
use super::super::{Compose, Scalar, TOO_DEEP, utf8};
use super::scalar;
use crate::payload::weight::Meter;
use crate::payload::{MAX_DEPTH, PayloadError, PayloadType, Position, Value};
use crate::secret::is_secret_name;

/// The most that anchors may copy, in bytes of text plus [`NODE_WEIGHT`] per node. Without a limit, aliases could
/// expand a short file to a value of any size ("billion laughs").
const MAX_COPIED: usize = 64 << 20;
/// The approximate size of a node without its text.
const NODE_WEIGHT: usize = 64;

const CORE_NAMESPACE: &str = "tag:yaml.org,2002:";
const MERGE_KEY: &str = "<<";

/// The tag is not shown, because it may be a password that begins with an exclamation mark.
const UNKNOWN_TAG: &str =
    "the tag is not one of the YAML core schema; put text that begins with \"!\" in quotes";

/// Composes one document into `N`; `None` if it has only comments and white space. Duplicate keys in one mapping are
/// an error.
pub fn compose<N: Compose>(bytes: &[u8], meter: &Meter) -> Result<Option<N>, PayloadError> {
    let text = utf8(PayloadType::Yaml, bytes)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut options =
        granit_parser::options! { flow_nesting_limit: MAX_DEPTH, block_nesting_limit: MAX_DEPTH };
    options.set_emit_comments(false);
    let parser = Parser::new_from_str_with_options(text, options);
    Composer { parser, meter, anchors: HashMap::new(), copied: 0, repeated: None }.document()
}

type Step<'i> = (Event<'i>, Span);

/// A composed node with the data that aliases need.
#[derive(Clone)]
struct Node<N> {
    content: N,
    /// The depth of nested collections, itself included.
    height: usize,
    weight: usize,
}

struct Composer<'i, N> {
    parser: Parser<'i, StrInput<'i>>,
    meter: &'i Meter,
    anchors: HashMap<usize, Node<N>>,
    copied: usize,
    /// The place of a duplicate key.
    repeated: Option<Span>,
}

impl<'i, N: Compose> Composer<'i, N> {
    fn document(mut self) -> Result<Option<N>, PayloadError> {
        let mut root = None;
        loop {
            let (event, span) = self.step()?;
            match event {
                Event::StreamEnd => return Ok(root),
                Event::DocumentStart(..) if root.is_some() => {
                    return Err(fail(span, "a second document; there must be exactly one"));
                }
                Event::DocumentStart(..) => {
                    let step = self.step()?;
                    root = Some(self.node(step, 0)?.content);
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

    /// Composes the node that begins with `step`, inside `depth` collections.
    fn node(&mut self, step: Step<'i>, depth: usize) -> Result<Node<N>, PayloadError> {
        let (event, span) = step;
        let (anchor, node) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let weight = NODE_WEIGHT + text.len();
                self.meter.scalar(text.len()).map_err(|reason| fail(span, reason))?;
                let value = scalar_value(&text, style, tag.as_deref());
                let scalar = Scalar { text: &text, value, tagged: tag.is_some() };
                let content = N::scalar(scalar, position(span)).map_err(|reason| fail(span, reason))?;
                (anchor, Node { content, height: 0, weight })
            }
            Event::SequenceStart(_, anchor, tag) => {
                expect_collection_tag(tag.as_deref(), "seq").map_err(|reason| fail(span, reason))?;
                self.meter.array().map_err(|reason| fail(span, reason))?;
                (anchor, self.sequence(span, depth)?)
            }
            Event::MappingStart(style, anchor, tag) => {
                expect_collection_tag(tag.as_deref(), "map").map_err(|reason| fail(span, reason))?;
                self.meter.object().map_err(|reason| fail(span, reason))?;
                (anchor, self.mapping(span, style, depth)?)
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

    fn alias(&mut self, anchor: usize, span: Span, depth: usize) -> Result<Node<N>, PayloadError> {
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
        self.meter.add(weight).map_err(|reason| fail(span, reason))?;
        if self.copied > MAX_COPIED {
            return Err(fail(span, "anchors and aliases expand to more than 64 MiB"));
        }
        Ok(())
    }

    fn sequence(&mut self, start: Span, depth: usize) -> Result<Node<N>, PayloadError> {
        check_depth(start, depth)?;
        let (mut items, mut height, mut weight) = (Vec::new(), 0, NODE_WEIGHT);
        loop {
            let step = self.step()?;
            if matches!(step.0, Event::SequenceEnd) {
                return Ok(Node { content: N::sequence(items, position(start)), height: height + 1, weight });
            }
            let item = self.node(step, depth + 1)?;
            height = height.max(item.height);
            weight += item.weight;
            items.push(item.content);
        }
    }

    fn mapping(&mut self, start: Span, style: StructureStyle, depth: usize) -> Result<Node<N>, PayloadError> {
        check_depth(start, depth)?;
        let (mut members, mut height, mut weight) = (BTreeMap::new(), 0, NODE_WEIGHT);
        let mut merged: Option<Vec<BTreeMap<String, N>>> = None;
        loop {
            let (event, span) = self.step()?;
            if matches!(event, Event::MappingEnd) {
                break;
            }
            if is_merge_key(&event) {
                let step = self.step()?;
                let value_span = step.1;
                let source = self.node(step, depth + 1)?;
                height = height.max(source.height);
                weight += source.weight + NODE_WEIGHT + MERGE_KEY.len();
                if merged.replace(merge_sources(source.content, value_span)?).is_some() {
                    return Err(fail(span, repeated(Some(MERGE_KEY))));
                }
                continue;
            }
            let key = self.key((event, span))?;
            let step = self.step()?;
            let alone = matches!(style, StructureStyle::Flow) && is_nothing(&step.0);
            let member = self.node(step, depth + 1).map_err(|error| self.concealed(error, key.key_text()))?;
            height = height.max(member.height);
            let content = if alone { member.content.left_out() } else { member.content };
            let (key, content) = N::member(key, content).map_err(|reason| fail(span, reason))?;
            weight += member.weight + NODE_WEIGHT + key.len();
            self.meter.member(key.len()).map_err(|reason| fail(span, reason))?;
            match members.entry(key) {
                Entry::Vacant(vacant) => vacant.insert(content),
                Entry::Occupied(occupied) => {
                    self.repeated = Some(span);
                    return Err(fail(span, repeated(Some(occupied.key()))));
                }
            };
        }
        // The mapping's own keys take precedence, then the earlier sources.
        for (key, member) in merged.into_iter().flatten().flatten() {
            members.entry(key).or_insert(member);
        }
        Ok(Node { content: N::mapping(members, position(start)), height: height + 1, weight })
    }

    /// Hides the duplicate key in the error of a value whose `key` is the name of a secret, because it may be a piece
    /// of the secret.
    fn concealed(&self, error: PayloadError, key: Option<&str>) -> PayloadError {
        match self.repeated {
            Some(span) if key.is_some_and(is_secret_name) => fail(span, repeated(None)),
            _ => error,
        }
    }

    fn key(&mut self, step: Step<'i>) -> Result<N, PayloadError> {
        let span = step.1;
        if matches!(step.0, Event::SequenceStart(..) | Event::MappingStart(..)) {
            return Err(fail(
                span,
                "a collection cannot be a key; put text that begins with \"{\" or \"[\" in quotes",
            ));
        }
        Ok(self.node(step, 0)?.content)
    }
}

fn check_depth(span: Span, depth: usize) -> Result<(), PayloadError> {
    if depth < MAX_DEPTH { Ok(()) } else { Err(fail(span, TOO_DEEP)) }
}

/// Whether the value is omitted. The parser inserts a tilde for it.
fn is_nothing(event: &Event<'_>) -> bool {
    matches!(event, Event::Scalar(text, ScalarStyle::Plain, _, None) if matches!(&**text, "" | "~"))
}

/// Whether the key is a plain `<<`, or tagged `!!merge`. A quoted one is an ordinary key.
fn is_merge_key(event: &Event<'_>) -> bool {
    match event {
        Event::Scalar(text, ScalarStyle::Plain, _, None) => text == MERGE_KEY,
        Event::Scalar(_, _, _, Some(tag)) => {
            tag.suffix_in_namespace(CORE_NAMESPACE).as_deref() == Some("merge")
        }
        _ => false,
    }
}

fn merge_sources<N: Compose>(source: N, span: Span) -> Result<Vec<BTreeMap<String, N>>, PayloadError> {
    let sources = source.into_items().unwrap_or_else(|single| vec![single]);
    let members = sources.into_iter().map(|source| {
        source.into_members().ok_or_else(|| fail(span, "\"<<\" merges only mappings or a list of them"))
    });
    members.collect()
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
        | ("int", value @ (Value::Int(_) | Value::Unsigned(_)))
        | ("float", value @ Value::Float(_)) => Ok(value),
        #[expect(clippy::cast_precision_loss, reason = "the document asks for a float")]
        ("float", Value::Int(integer)) => Ok(Value::Float(integer as f64)),
        #[expect(clippy::cast_precision_loss, reason = "the document asks for a float")]
        ("float", Value::Unsigned(integer)) => Ok(Value::Float(integer as f64)),
        ("null" | "bool" | "int" | "float", other) => {
            Err(format!("the tag \"!!{name}\" does not fit {}", other.kind()).into())
        }
        _ => Err(UNKNOWN_TAG.into()),
    }
}

fn expect_collection_tag(tag: Option<&Tag>, name: &str) -> Result<(), Cow<'static, str>> {
    match tag {
        None => Ok(()),
        Some(tag) if is_non_specific(tag) => Ok(()),
        Some(tag) if tag.suffix_in_namespace(CORE_NAMESPACE).as_deref() == Some(name) => Ok(()),
        Some(_) => Err(UNKNOWN_TAG.into()),
    }
}

/// Whether this is the tag `!`, which prevents the resolution of the content.
fn is_non_specific(tag: &Tag) -> bool {
    matches!((tag.handle(), tag.suffix()), ("", "!") | ("!", ""))
}

fn position(span: Span) -> Position {
    Position { line: span.start.line(), column: Some(span.start.col() + 1) }
}

fn fail(span: Span, reason: impl Into<Cow<'static, str>>) -> PayloadError {
    let Position { line, column } = position(span);
    PayloadError::decode(PayloadType::Yaml, line, column, reason)
}

/// Converts an error of the parser. Its messages are fixed texts that quote only brackets of the document.
fn described(error: &ScanError) -> PayloadError {
    let (marker, found) = (error.marker(), error.kind().to_string());
    let reason = match advice(&found) {
        Some(advice) => format!("{found}; {advice}"),
        None => found,
    };
    PayloadError::decode(PayloadType::Yaml, marker.line(), Some(marker.col() + 1), reason)
}

/// Returns the correction of common mistakes.
fn advice(found: &str) -> Option<&'static str> {
    let corrections = [
        (
            "mapping values are not allowed",
            "put text that holds \": \" in quotes, or correct the indentation",
        ),
        ("tabs disallowed", "indent with spaces"),
        ("unexpected character", "put text that begins with it in quotes"),
        ("unknown anchor", "an alias needs its anchor (&name) above it"),
        ("unknown escape", "write a backslash twice, or use single quotes"),
        ("did not find expected key", "members of a mapping have the same indentation"),
        ("recursion limit", TOO_DEEP),
    ];
    corrections.iter().find(|(start, _)| found.contains(start)).map(|(_, correction)| *correction)
}

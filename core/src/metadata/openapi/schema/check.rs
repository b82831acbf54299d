//! Checks values against compiled schemas.

use super::{Additional, MAX_DEPTH, Node, Schema, Type};
use crate::payload::pointer::escape;
use crate::payload::{Object, Value};

/// The maximum number of schemas that are applied to a value, because nested `oneOf` multiplies them.
const WORK: usize = 100_000;
/// The additional number for each part of the value.
const WORK_PER_PART: usize = 64;
/// The maximum number of alternatives and of allowed values in a message.
const SHOWN: usize = 5;
/// The maximum length of a nested reason, in characters.
const EXCERPT: usize = 200;

/// A value does not match a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", place(.at))]
pub struct SchemaViolation {
    /// The part of the value, as a JSON Pointer.
    pub at: String,
    /// The expectation. It never contains a value of the body.
    pub reason: String,
}

/// The reason why the check stopped.
enum Stop {
    /// The value does not match; another alternative may match.
    Violation(SchemaViolation),
    /// The schema cannot be used; alternatives are not tried.
    Fault(SchemaViolation),
}

type Outcome = Result<(), Stop>;

/// The schemas that apply to the same value, linked to the outer ones. A schema that occurs twice is a circular
/// reference.
#[derive(Clone, Copy)]
struct Chain<'a> {
    node: usize,
    outer: Option<&'a Chain<'a>>,
}

struct Check<'s> {
    schema: &'s Schema,
    at: String,
    work_left: usize,
}

pub fn value(schema: &Schema, value: &Value) -> Result<(), SchemaViolation> {
    let mut check = Check { schema, at: String::new(), work_left: WORK + WORK_PER_PART * parts(value) };
    match check.apply(schema.root, value, None, MAX_DEPTH) {
        Ok(()) => Ok(()),
        Err(Stop::Violation(violation) | Stop::Fault(violation)) => Err(violation),
    }
}

/// Returns the number of values in a value, including itself.
fn parts(value: &Value) -> usize {
    1 + value.children().map(parts).sum::<usize>()
}

impl Check<'_> {
    fn apply(&mut self, index: usize, value: &Value, outer: Option<&Chain<'_>>, depth: usize) -> Outcome {
        let Some(node) = self.schema.nodes.get(index) else { return Ok(()) };
        if std::iter::successors(outer, |chain| chain.outer).any(|chain| chain.node == index) {
            return Err(self.fault("the schema has a circular reference"));
        }
        let Some(depth) = depth.checked_sub(1) else {
            return Err(self.fault(format!("schemas are nested deeper than {MAX_DEPTH} levels")));
        };
        self.work(1 + node.required.len() + node.allowed.as_ref().map_or(0, Vec::len))?;
        if let Some(fault) = &node.fault {
            return Err(self.fault(fault.to_string()));
        }
        if node.never {
            return Err(self.violation("no value is allowed here"));
        }
        if value.is_null() && node.nullable {
            return Ok(());
        }
        self.scalar(node, value)?;
        let chain = Chain { node: index, outer };
        for part in &node.all_of {
            self.apply(*part, value, Some(&chain), depth)?;
        }
        self.alternatives("anyOf", &node.any_of, value, &chain, depth)?;
        self.alternatives("oneOf", &node.one_of, value, &chain, depth)?;
        match value {
            Value::Object(members) => self.object(node, members, depth),
            Value::Array(items) => node.items.map_or(Ok(()), |schema| self.items(schema, items, depth)),
            _ => Ok(()),
        }
    }

    fn scalar(&self, node: &Node, value: &Value) -> Outcome {
        if !node.types.is_empty() && !node.types.iter().any(|expected| expected.is(value)) {
            let expected: Vec<_> = node.types.iter().map(|expected| expected.name()).collect();
            return Err(self.violation(format!(
                "expected {}, found {}",
                expected.join(" or "),
                value.kind()
            )));
        }
        match &node.allowed {
            Some(allowed) if !allowed.contains(value) => {
                Err(self.violation(format!("expected one of {}", listed(allowed))))
            }
            _ => Ok(()),
        }
    }

    /// Checks that at least one schema of `anyOf`, or exactly one of `oneOf`, matches. For scalars, one of `oneOf` is enough.
    fn alternatives(
        &mut self,
        keyword: &str,
        schemas: &[usize],
        value: &Value,
        chain: &Chain<'_>,
        depth: usize,
    ) -> Outcome {
        if schemas.is_empty() {
            return Ok(());
        }
        let (mut fitting, mut reasons) = (0, Vec::new());
        for schema in schemas {
            match self.apply(*schema, value, Some(chain), depth) {
                Ok(()) => fitting += 1,
                Err(Stop::Violation(violation)) if reasons.len() < SHOWN => {
                    reasons.push(violation.to_string().chars().take(EXCERPT).collect::<String>());
                }
                Err(Stop::Violation(_)) => {}
                Err(fault) => return Err(fault),
            }
            if fitting == 1 && keyword == "anyOf" {
                return Ok(());
            }
        }
        let count = schemas.len();
        match fitting {
            0 => Err(self.violation(format!(
                "matches none of the {count} schemas in {keyword} ({})",
                reasons.join("; ")
            ))),
            1 => Ok(()),
            // Many documents describe a number as one of an integer and a number.
            _ if !matches!(value, Value::Object(_) | Value::Array(_)) => Ok(()),
            _ => Err(self.violation(format!(
                "matches {fitting} of the {count} schemas in oneOf, expected exactly one"
            ))),
        }
    }

    fn object(&mut self, node: &Node, members: &Object, depth: usize) -> Outcome {
        let missing: Vec<_> = node.required.iter().filter(|name| !members.contains_key(*name)).collect();
        if !missing.is_empty() {
            let names: Vec<_> = missing.iter().map(|name| format!("\"{name}\"")).collect();
            return Err(self.violation(format!("missing required property {}", names.join(", "))));
        }
        for (name, member) in members {
            let schema = match (node.properties.get(name).copied(), node.additional) {
                (Some(schema), _) | (None, Additional::Schema(schema)) => schema,
                (None, Additional::Any) => continue,
                (None, Additional::Forbidden) => {
                    return self.below(name, |check| Err(check.violation(unknown(node, name))));
                }
            };
            self.below(name, |check| check.apply(schema, member, None, depth))?;
        }
        Ok(())
    }

    fn items(&mut self, schema: usize, items: &[Value], depth: usize) -> Outcome {
        items.iter().enumerate().try_for_each(|(index, item)| {
            self.below(&index.to_string(), |check| check.apply(schema, item, None, depth))
        })
    }

    fn below(&mut self, token: &str, check: impl FnOnce(&mut Self) -> Outcome) -> Outcome {
        let above = self.at.len();
        self.at.push('/');
        self.at.push_str(&escape(token));
        let outcome = check(self);
        self.at.truncate(above);
        outcome
    }

    fn work(&mut self, amount: usize) -> Outcome {
        match self.work_left.checked_sub(amount) {
            Some(left) => {
                self.work_left = left;
                Ok(())
            }
            None => Err(self.fault("the schema has too many alternatives to check")),
        }
    }

    fn violation(&self, reason: impl Into<String>) -> Stop {
        Stop::Violation(SchemaViolation { at: self.at.clone(), reason: reason.into() })
    }

    fn fault(&self, reason: impl Into<String>) -> Stop {
        Stop::Fault(SchemaViolation { at: self.at.clone(), reason: reason.into() })
    }
}

impl Type {
    const fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "a boolean",
            Self::Integer => "an integer",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        }
    }

    /// Returns whether a value is of this type; `3.0` is an integer (JSON Schema 2020-12, section 6.1.1).
    fn is(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Null, Value::Null)
            | (Self::Boolean, Value::Bool(_))
            | (Self::Integer | Self::Number, Value::Int(_) | Value::Unsigned(_))
            | (Self::Number, Value::Float(_))
            | (Self::String, Value::String(_))
            | (Self::Array, Value::Array(_))
            | (Self::Object, Value::Object(_)) => true,
            (Self::Integer, Value::Float(number)) => number.fract() == 0.0,
            _ => false,
        }
    }
}

/// Returns the reason for a property that is not allowed, with the known ones.
fn unknown(node: &Node, name: &str) -> String {
    let known: Vec<&str> = node.properties.keys().take(SHOWN).map(String::as_str).collect();
    let more = if node.properties.len() > SHOWN { ", …" } else { "" };
    if known.is_empty() {
        return format!("property \"{name}\" is not allowed");
    }
    format!("property \"{name}\" is not allowed; known are {}{more}", known.join(", "))
}

fn listed(allowed: &[Value]) -> String {
    let shown = allowed.iter().take(SHOWN).map(|value| match value {
        Value::String(text) => format!("\"{}\"", text.chars().take(EXCERPT).collect::<String>()),
        other => other.scalar_text().unwrap_or_else(|| other.kind().to_owned()),
    });
    let more = if allowed.len() > SHOWN { ", …" } else { "" };
    format!("{}{more}", shown.collect::<Vec<_>>().join(", "))
}

fn place(at: &str) -> &str {
    if at.is_empty() { "the whole body" } else { at }
}

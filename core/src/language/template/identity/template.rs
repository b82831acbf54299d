//! Evaluates identity templates.

use std::fmt;

use super::IdentityError;
use crate::payload::Value;
use crate::payload::pointer::Pointer;

/// A parsed template that renders a name from a payload: text with `{{…}}` expressions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityTemplate {
    source: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Text(String),
    Expression(Expression),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Expression {
    Value(Argument),
    Call(Function, Vec<Argument>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub(super) enum Function {
    Uppercase,
    Lowercase,
    Trim,
    Substring,
    Default,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Argument {
    Pointer(Pointer),
    Text(String),
    /// A number as written. It is a text, except as a start or length of `substring`.
    Number(String),
}

impl Function {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "uppercase" | "to_uppercase" => Self::Uppercase,
            "lowercase" | "to_lowercase" => Self::Lowercase,
            "trim" => Self::Trim,
            "substring" => Self::Substring,
            "default" => Self::Default,
            _ => return None,
        })
    }
}

impl IdentityTemplate {
    pub(super) fn new(source: String, parts: Vec<Part>) -> Self {
        Self { source, parts }
    }

    /// Returns the template of a single pointer.
    pub(crate) fn of_pointer(pointer: Pointer) -> Self {
        let source = pointer.to_string();
        Self::new(source, vec![Part::Expression(Expression::Value(Argument::Pointer(pointer)))])
    }

    /// The template as written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the pointer of a *simple* template, which consists of exactly one pointer. Such a template may have no
    /// value, and can be reversed: the name is the value at the pointer.
    pub fn simple(&self) -> Option<&Pointer> {
        match self.parts.as_slice() {
            [Part::Expression(Expression::Value(Argument::Pointer(pointer)))] => Some(pointer),
            _ => None,
        }
    }

    /// Returns all pointers, in the order of the text.
    pub fn pointers(&self) -> impl Iterator<Item = &Pointer> {
        self.expressions().flat_map(Expression::arguments).filter_map(Argument::pointer)
    }

    /// Returns the values that `payload` lacks for this template: each pointer that does not exist or is null, and each
    /// `default` whose values are all blank, as text.
    pub fn missing_in(&self, payload: &Value) -> Vec<String> {
        let absent = |pointer: &&Pointer| pointer.get(payload).is_none_or(Value::is_null);
        let missing = |expression: &Expression| match expression {
            Expression::Call(Function::Default, _) => match self.expression(expression, payload) {
                Err(IdentityError::Missing { expression, .. }) => vec![expression],
                _ => Vec::new(),
            },
            other => other
                .arguments()
                .iter()
                .filter_map(Argument::pointer)
                .filter(absent)
                .map(Pointer::to_string)
                .collect(),
        };
        self.expressions().flat_map(missing).collect()
    }

    /// Renders the name for `payload`, trimmed and not blank.
    ///
    /// Values are scalars as trimmed text. Null and blank values count as missing, which is an error except within
    /// `default`.
    pub fn evaluate(&self, payload: &Value) -> Result<String, IdentityError> {
        let mut name = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => name.push_str(text),
                Part::Expression(expression) => name.push_str(&self.expression(expression, payload)?),
            }
        }
        match name.trim() {
            "" => Err(IdentityError::Blank(self.source.clone())),
            name => Ok(name.to_owned()),
        }
    }

    fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.parts.iter().filter_map(|part| match part {
            Part::Expression(expression) => Some(expression),
            Part::Text(_) => None,
        })
    }

    fn expression(&self, expression: &Expression, payload: &Value) -> Result<String, IdentityError> {
        let (function, arguments) = match expression {
            Expression::Value(argument) => return self.required(argument, payload),
            Expression::Call(function, arguments) => (function, arguments.as_slice()),
        };
        match (function, arguments) {
            (Function::Default, _) => {
                let values = arguments.iter().map(|argument| self.value(argument, payload));
                let first = values.filter_map(Result::transpose).find(|value| {
                    // Stop at an error: an object or array is a fault, not a missing value.
                    value.as_ref().map_or(true, |text| !text.trim().is_empty())
                });
                first.unwrap_or_else(|| Err(self.missing(expression)))
            }
            (Function::Substring, [value, range @ ..]) => {
                let text = self.required(value, payload)?;
                let range = range.iter().map(|bound| self.required(bound, payload));
                let bounds = range.collect::<Result<Vec<_>, _>>()?;
                substring(&text, &bounds).ok_or_else(|| IdentityError::OutOfRange {
                    template: self.source.clone(),
                    expression: expression.to_string(),
                    length: text.chars().count(),
                })
            }
            (Function::Uppercase, [value, ..]) => Ok(self.required(value, payload)?.to_uppercase()),
            (Function::Lowercase, [value, ..]) => Ok(self.required(value, payload)?.to_lowercase()),
            (Function::Trim, [value, ..]) => Ok(self.required(value, payload)?.trim().to_owned()),
            // The parser counts arguments.
            (_, []) => Err(self.missing(expression)),
        }
    }

    fn required(&self, argument: &Argument, payload: &Value) -> Result<String, IdentityError> {
        self.value(argument, payload)?.ok_or_else(|| self.missing(argument))
    }

    fn missing(&self, expression: &impl fmt::Display) -> IdentityError {
        IdentityError::Missing { template: self.source.clone(), expression: expression.to_string() }
    }

    fn value(&self, argument: &Argument, payload: &Value) -> Result<Option<String>, IdentityError> {
        let pointer = match argument {
            Argument::Text(text) | Argument::Number(text) => return Ok(Some(text.clone())),
            Argument::Pointer(pointer) => pointer,
        };
        let Some(value) = pointer.get(payload).filter(|value| !value.is_null()) else { return Ok(None) };
        let Some(text) = value.scalar_text() else {
            return Err(IdentityError::NotScalar {
                template: self.source.clone(),
                pointer: pointer.to_string(),
                kind: value.kind(),
            });
        };
        let text = text.trim();
        Ok((!text.is_empty()).then(|| text.to_owned()))
    }
}

/// Returns a substring; `bounds` are a start and optionally a length, in code points.
fn substring(text: &str, bounds: &[String]) -> Option<String> {
    let mut bounds = bounds.iter().map(|bound| bound.trim().parse::<usize>().ok());
    let start = bounds.next()??;
    let available = text.chars().count().checked_sub(start)?;
    let length = match bounds.next() {
        Some(length) => length?,
        None => available,
    };
    (length <= available).then(|| text.chars().skip(start).take(length).collect())
}

impl Expression {
    fn arguments(&self) -> &[Argument] {
        match self {
            Self::Value(argument) => std::slice::from_ref(argument),
            Self::Call(_, arguments) => arguments,
        }
    }
}

impl Argument {
    fn pointer(&self) -> Option<&Pointer> {
        match self {
            Self::Pointer(pointer) => Some(pointer),
            Self::Text(_) | Self::Number(_) => None,
        }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(argument) => argument.fmt(f),
            Self::Call(function, arguments) => {
                f.write_str(function.into_str())?;
                arguments.iter().try_for_each(|argument| write!(f, " {argument}"))
            }
        }
    }
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pointer(pointer) => pointer.fmt(f),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Number(number) => f.write_str(number),
        }
    }
}

impl fmt::Display for IdentityTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

//! Errors of templates.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use crate::error::categories;
use crate::payload::Position;

/// The maximum number of characters of an expression in messages.
const SHOWN: usize = 80;

/// A template cannot be parsed or rendered.
///
/// Messages quote the template and name types of values, but never values, which may be secret. Callers add path,
/// operation and field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The text is not a template.
    #[error("cannot parse {at}: {reason}")]
    Syntax {
        /// The action, and the position of the fault.
        at: Place,
        /// The fault and the correction.
        reason: Cow<'static, str>,
    },
    /// A text is required, but the value is missing.
    #[error("{0} has no value: neither the payload nor the path has a field with this name")]
    Missing(Place),
    /// A value is not a scalar.
    #[error("{at} is {kind}; only strings, numbers and booleans can become part of a request")]
    NotScalar {
        /// The expression.
        at: Place,
        /// The type of the value, with its article.
        kind: &'static str,
    },
    /// The operands of a function or field access are not valid.
    #[error("cannot evaluate {at}: {reason}")]
    Evaluate {
        /// The expression.
        at: Place,
        /// The fault.
        reason: Cow<'static, str>,
    },
    /// A value would change the meaning of the text around it.
    #[error("{at} cannot be used here: {reason}")]
    Unsafe {
        /// The expression.
        at: Place,
        /// The effect that the value would have.
        reason: Cow<'static, str>,
    },
    /// A template exceeds a limit.
    #[error("{at} exceeds a limit: {limit}")]
    Limit {
        /// The expression.
        at: Place,
        /// The exceeded limit.
        limit: Cow<'static, str>,
    },
}

categories!(TemplateError: Validation);

/// A position in a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The action as written; a long one is shortened.
    pub expression: String,
    /// The position in the text; the column counts characters.
    pub position: Position,
}

impl Place {
    /// Returns the position of byte `at` of `text`, in the action that spans `action`.
    pub(super) fn new(text: &str, action: Range<usize>, at: usize) -> Self {
        let before = &text[..at];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let action = &text[action];
        let expression = match action.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{}…", &action[..end]),
            None => action.to_owned(),
        };
        Self { expression, position: Position { line, column: Some(column) } }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.expression, self.position)
    }
}

/// An error of evaluating an expression, without its position.
#[derive(Debug)]
pub(super) enum Fault {
    Missing,
    NotScalar(&'static str),
    Evaluate(Cow<'static, str>),
    Unsafe(Cow<'static, str>),
    Limit(Cow<'static, str>),
}

impl Fault {
    pub(super) fn evaluate(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Evaluate(reason.into())
    }

    pub(super) fn at(self, at: Place) -> TemplateError {
        match self {
            Self::Missing => TemplateError::Missing(at),
            Self::NotScalar(kind) => TemplateError::NotScalar { at, kind },
            Self::Evaluate(reason) => TemplateError::Evaluate { at, reason },
            Self::Unsafe(reason) => TemplateError::Unsafe { at, reason },
            Self::Limit(limit) => TemplateError::Limit { at, limit },
        }
    }
}

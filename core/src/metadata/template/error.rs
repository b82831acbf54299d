//! What can be wrong with a template.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use crate::error::{Categorized, Category};
use crate::payload::Position;

/// Expressions are shortened to this many characters in messages.
const SHOWN: usize = 80;

/// Why a template does not parse or render.
///
/// Errors quote the template and name kinds of values, never a value: it may be a secret. Path, operation
/// and field are not known here; callers add them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The text is no template.
    #[error("cannot parse {at}: {reason}")]
    Syntax {
        /// The action, and where reading it stopped.
        at: Place,
        /// What is wrong, and what to write instead.
        reason: Cow<'static, str>,
    },
    /// Nothing is found where a text is needed.
    #[error("{at} has no value: nothing of that name is in the payload or derived from the path")]
    Missing {
        /// The expression.
        at: Place,
    },
    /// A value that has no text.
    #[error("{at} is {kind}; only strings, numbers and booleans can become part of a request")]
    NotScalar {
        /// The expression.
        at: Place,
        /// What it is, with its article.
        kind: &'static str,
    },
    /// A function or field access that its operands do not allow.
    #[error("cannot evaluate {at}: {reason}")]
    Evaluate {
        /// The expression.
        at: Place,
        /// What is wrong.
        reason: Cow<'static, str>,
    },
    /// A value that would change what the text around it means.
    #[error("{at} cannot be used here: {reason}")]
    Unsafe {
        /// The expression.
        at: Place,
        /// What it would do.
        reason: Cow<'static, str>,
    },
    /// A template that yields or computes too much.
    #[error("{at} goes too far: {limit}")]
    Limit {
        /// Where rendering stopped.
        at: Place,
        /// The limit that was met.
        limit: Cow<'static, str>,
    },
}

impl Categorized for TemplateError {
    fn category(&self) -> Category {
        Category::Validation
    }
}

/// A place in a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The action as written, shortened when long.
    pub expression: String,
    /// Where it is in the text; the column counts characters.
    pub position: Position,
}

impl Place {
    /// The place at byte `at` of `text`, inside of the action that spans `action`.
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

/// What failed while evaluating an expression, before its place is known.
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
            Self::Missing => TemplateError::Missing { at },
            Self::NotScalar(kind) => TemplateError::NotScalar { at, kind },
            Self::Evaluate(reason) => TemplateError::Evaluate { at, reason },
            Self::Unsafe(reason) => TemplateError::Unsafe { at, reason },
            Self::Limit(limit) => TemplateError::Limit { at, limit },
        }
    }
}

//! What can be wrong with a payload, or with the description of one.

use std::borrow::Cow;
use std::fmt;

use super::codec::{NOT_FINITE, WIDE_INTEGER};
use super::{PayloadType, pointer::Pointer};
use crate::error::{Categorized, Category};

/// Why a payload could not be described, decoded or encoded.
///
/// Errors name types, keys and places, never a scalar of the document: it may be a secret. The file is
/// not known here; callers add it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// A payload type that does not exist.
    #[error(
        "payload type \"{0}\" is not supported; use json, yaml, ini, properties, xml, hcl, text or octet-stream"
    )]
    UnsupportedType(String),
    /// The bytes are not a document of the format, or say something outside of the value model.
    #[error("cannot decode {payload_type}, {position}: {reason}")]
    Decode {
        /// The format that was expected.
        payload_type: PayloadType,
        /// Where reading stopped.
        position: Position,
        /// What is wrong there.
        reason: Cow<'static, str>,
    },
    /// The value has a part that the format cannot hold, or would give back as something else.
    #[error("cannot encode as {payload_type}, {}: {reason}", place(.at))]
    Encode {
        /// The format that was wanted.
        payload_type: PayloadType,
        /// The part that does not fit.
        at: Pointer,
        /// Why it does not fit.
        reason: Cow<'static, str>,
    },
    /// A JSON number outside of the value model, met while converting a parsed JSON value.
    #[error("the number at {} is outside of the 64-bit signed integers", place(.at))]
    WideInteger {
        /// Where the number is.
        at: Pointer,
    },
}

impl PayloadError {
    pub(super) fn decode(
        payload_type: PayloadType,
        line: usize,
        column: Option<usize>,
        reason: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::Decode { payload_type, position: Position { line, column }, reason: reason.into() }
    }

    pub(super) fn encode(payload_type: PayloadType, reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Encode { payload_type, at: Pointer::default(), reason: reason.into() }
    }

    /// Whether a number is the reason that no value can hold. It would be no less wrong for being read as text.
    pub fn is_number_out_of_range(&self) -> bool {
        match self {
            Self::Decode { reason, .. } => matches!(reason.as_ref(), WIDE_INTEGER | NOT_FINITE),
            Self::WideInteger { .. } => true,
            Self::UnsupportedType(_) | Self::Encode { .. } => false,
        }
    }

    /// Says that the failing part lies below `token`; called while an encoder unwinds.
    pub(super) fn below(mut self, token: &str) -> Self {
        if let Self::Encode { at, .. } | Self::WideInteger { at } = &mut self {
            at.prepend(token);
        }
        self
    }
}

impl Categorized for PayloadError {
    fn category(&self) -> Category {
        Category::Validation
    }
}

/// A place in a text, counted from 1. The column counts characters or bytes, as the format's parser does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column, where the format gives one.
    pub column: Option<usize>,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.column {
            Some(column) => write!(f, "line {}, column {column}", self.line),
            None => write!(f, "line {}", self.line),
        }
    }
}

fn place(at: &Pointer) -> String {
    if at.is_root() { "the whole document".to_owned() } else { format!("\"{at}\"") }
}

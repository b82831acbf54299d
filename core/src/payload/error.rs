//! The errors of payloads.

use std::borrow::Cow;
use std::fmt;

use super::PayloadType;
use super::pointer::Pointer;
use crate::error::categories;

pub(super) const WIDE_INTEGER: &str = "an integer outside of the 64-bit range; write it as a string";
/// The decoder stops at the limit, so the size of the whole value is not known.
pub(crate) const TOO_HEAVY: &str =
    "the document has too many values: decoded, it exceeds the limit of memory";
pub(super) const NOT_FINITE: &str = "a number that is not finite as a 64-bit float";

/// A failure to decode or encode a payload.
///
/// Messages name types, keys and places, but never a scalar of the document, because it may be a secret. The file is
/// not known here; callers add it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// The bytes are not a document of the format, or contain a value outside of the value model.
    #[error("cannot decode {payload_type}, {position}: {reason}")]
    Decode {
        /// The expected format.
        payload_type: PayloadType,
        /// The place where decoding stopped.
        position: Position,
        /// The fault.
        reason: Cow<'static, str>,
    },
    /// The format cannot represent a part of the value, or would decode it as another value.
    #[error("cannot encode as {payload_type}, {}: {reason}", place(.at))]
    Encode {
        /// The requested format.
        payload_type: PayloadType,
        /// The part that cannot be represented.
        at: Pointer,
        /// The reason.
        reason: Cow<'static, str>,
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

    /// Whether the document was not decoded because its value needs too much memory.
    pub fn is_too_heavy(&self) -> bool {
        matches!(self, Self::Decode { reason, .. } if reason == TOO_HEAVY)
    }

    /// Whether the cause is a number outside of the value model. Decoding the payload as text would not correct it.
    pub fn is_number_out_of_range(&self) -> bool {
        match self {
            Self::Decode { reason, .. } => matches!(reason.as_ref(), WIDE_INTEGER | NOT_FINITE),
            Self::Encode { .. } => false,
        }
    }

    /// Prefixes the place of the failing part with `token`. Encoders call it while they return.
    pub(super) fn below(mut self, token: &str) -> Self {
        if let Self::Encode { at, .. } = &mut self {
            at.prepend(token);
        }
        self
    }
}

categories!(PayloadError: Validation);

/// A place in a text, counted from 1. Depending on the parser of the format, the column counts characters or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column, if the format's parser reports it.
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

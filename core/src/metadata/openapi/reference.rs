//! References within a document: JSON Reference, whose targets are JSON Pointers (RFC 6901, section 6).

use percent_encoding::percent_decode_str;

use crate::payload::Value;
use crate::payload::pointer::Pointer;

/// How many references may follow each other. Documents use one or two; a circle has no end.
const MAX_HOPS: usize = 96;

/// How long a reference may be, in bytes: what it leads to is addressed by it.
const MAX_LENGTH: usize = 4096;

/// Why a `$ref` leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// It leads to another document.
    #[error("$ref \"{0}\" leads out of the document; only references that start with \"#\" are followed")]
    Foreign(String),
    /// It is too long to tell.
    #[error("a $ref is longer than {MAX_LENGTH} bytes")]
    TooLong,
    /// It is no JSON Pointer.
    #[error("$ref \"{0}\" is no JSON Pointer")]
    Malformed(String),
    /// There is nothing at the place.
    #[error("there is nothing at #{0}")]
    Missing(Pointer),
    /// What is there is no schema.
    #[error("there is {kind} at #{at}, not a schema")]
    NotASchema {
        /// The place.
        at: Pointer,
        /// What is there.
        kind: &'static str,
    },
    /// It leads to itself.
    #[error("$ref \"{0}\" is part of a circle, or of a chain of more than {MAX_HOPS} references")]
    Circular(String),
}

/// A part of a document and its address, with references followed.
#[derive(Clone, Debug)]
pub struct Part<'d> {
    pub at: Pointer,
    pub value: &'d Value,
}

impl Part<'_> {
    /// The address of a member, if there is one.
    pub fn member(&self, key: &str) -> Option<Pointer> {
        self.value.get(key).map(|_| self.at.child(key))
    }
}

/// The text of the reference that `value` is.
pub fn reference(value: &Value) -> Option<&str> {
    value.get("$ref").and_then(Value::as_str)
}

/// Where a reference leads.
pub fn target(reference: &str) -> Result<Pointer, ReferenceError> {
    if reference.len() > MAX_LENGTH {
        return Err(ReferenceError::TooLong);
    }
    let Some(fragment) = reference.strip_prefix('#') else {
        return Err(ReferenceError::Foreign(reference.to_owned()));
    };
    let malformed = || ReferenceError::Malformed(reference.to_owned());
    let decoded = percent_decode_str(fragment).decode_utf8().map_err(|_| malformed())?;
    Pointer::parse(&decoded).map_err(|_| malformed())
}

/// A reference to a place of the same document.
pub fn reference_to(at: &Pointer) -> Value {
    let text = format!("#{at}").replace('%', "%25");
    Value::Object([("$ref".to_owned(), Value::from(text))].into())
}

/// What is at a place, or where the references there lead to.
pub fn follow(root: &Value, at: Pointer) -> Result<Part<'_>, ReferenceError> {
    let mut at = at;
    let mut last = "";
    for _ in 0..=MAX_HOPS {
        let Some(value) = at.get(root) else { return Err(ReferenceError::Missing(at)) };
        let Some(text) = reference(value) else { return Ok(Part { at, value }) };
        (last, at) = (text, target(text)?);
    }
    Err(ReferenceError::Circular(last.to_owned()))
}

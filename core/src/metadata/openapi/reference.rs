//! References within a document: JSON Reference, whose targets are JSON Pointers (RFC 6901, section 6).

use percent_encoding::percent_decode_str;

use crate::payload::Value;
use crate::payload::pointer::Pointer;

/// The maximum length of a chain of references. Documents use one or two; circular ones are endless.
const MAX_HOPS: usize = 96;

/// The maximum length of a reference, in bytes.
const MAX_LENGTH: usize = 4096;

/// A `$ref` cannot be resolved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// The target is in another document.
    #[error("$ref \"{0}\" refers to another document; only references that start with \"#\" are supported")]
    Foreign(String),
    /// The reference is too long to be part of a message.
    #[error("a $ref is longer than {MAX_LENGTH} bytes")]
    TooLong,
    /// The reference is not a JSON Pointer.
    #[error("$ref \"{0}\" is not a JSON Pointer")]
    Malformed(String),
    /// The target does not exist.
    #[error("#{0} does not exist")]
    Missing(Pointer),
    /// The target is not a schema.
    #[error("#{at} is {kind}, not a schema")]
    NotASchema {
        /// The target.
        at: Pointer,
        /// The type of the target.
        kind: &'static str,
    },
    /// The reference is circular.
    #[error("$ref \"{0}\" is circular, or part of a chain of more than {MAX_HOPS} references")]
    Circular(String),
}

/// A part of a document and its pointer, after following references.
#[derive(Clone, Debug)]
pub struct Part<'d> {
    pub at: Pointer,
    pub value: &'d Value,
}

impl Part<'_> {
    /// Returns the pointer of a member, if it exists.
    pub fn member(&self, key: &str) -> Option<Pointer> {
        self.value.get(key).map(|_| self.at.child(key))
    }
}

/// Returns the `$ref` of `value`.
pub fn reference(value: &Value) -> Option<&str> {
    value.get("$ref").and_then(Value::as_str)
}

/// Returns the target of a reference.
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

/// Returns a reference to a pointer in the same document.
pub fn reference_to(at: &Pointer) -> Value {
    let text = format!("#{at}").replace('%', "%25");
    Value::Object([("$ref".to_owned(), Value::from(text))].into())
}

/// Returns the part at a pointer, after following references.
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

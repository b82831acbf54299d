//! One codec per format, and shared parts of the structured ones.

mod compose;
mod ini;
mod json;
mod located;
mod octet_stream;
mod properties;
mod text;
mod yaml;

use super::error::NOT_FINITE;
use super::weight::Meter;
use super::{MAX_DEPTH, MAX_WEIGHT, PayloadError, PayloadType, Value};

use compose::{Compose, Scalar};
pub use json::{AnyValue, decode_leniently};
pub use located::{Located, Part};

/// The most memory that a document with places may need without them.
const MAX_DOCUMENT_WEIGHT: usize = 32 << 20;

const TOO_DEEP: &str = "arrays and objects nested deeper than 127 levels";

/// Decodes a payload.
///
/// Structured types return the value of their syntax. Text types return a string, or bytes if the content is not
/// UTF-8, so that it is preserved. Binary types return bytes. Fails with [`PayloadError::Decode`], also for nesting
/// beyond [`MAX_DEPTH`], for a value that needs more memory than [`MAX_WEIGHT`] and, in YAML, for aliases that expand to
/// more than 64 MiB.
pub fn decode(payload_type: PayloadType, bytes: &[u8]) -> Result<Value, PayloadError> {
    decode_within(payload_type, bytes, MAX_WEIGHT)
}

/// Like [`decode`], but stops with an error that [is too heavy](PayloadError::is_too_heavy) when the value needs more
/// than `limit` bytes of memory.
pub fn decode_within(payload_type: PayloadType, bytes: &[u8], limit: usize) -> Result<Value, PayloadError> {
    let meter = Meter::new(limit.min(MAX_WEIGHT));
    match payload_type {
        PayloadType::Json => return json::decode(bytes, &meter),
        PayloadType::Yaml => return yaml::decode(bytes, &meter),
        PayloadType::Ini => return ini::decode(bytes, &meter),
        PayloadType::Properties => return properties::decode(bytes, &meter),
        PayloadType::Xml | PayloadType::Hcl | PayloadType::Text | PayloadType::OctetStream => {}
    }
    meter.scalar(bytes.len()).map_err(|reason| PayloadError::decode(payload_type, 1, None, reason))?;
    match payload_type {
        PayloadType::OctetStream => Ok(octet_stream::decode(bytes)),
        _ => Ok(text::decode(bytes)),
    }
}

/// Decodes a YAML or JSON document with the place of each part; `None` for an empty document or another type.
/// Duplicate keys are an error in both formats.
pub fn decode_located(payload_type: PayloadType, bytes: &[u8]) -> Result<Option<Located>, PayloadError> {
    decode_located_within(payload_type, bytes, MAX_DOCUMENT_WEIGHT)
}

/// Like [`decode_located`], with another limit of memory than 32 MiB.
pub fn decode_located_within(
    payload_type: PayloadType,
    bytes: &[u8],
    limit: usize,
) -> Result<Option<Located>, PayloadError> {
    let meter = Meter::new(limit);
    match payload_type {
        PayloadType::Json => json::decode_located(bytes, &meter),
        PayloadType::Yaml => yaml::compose(bytes, &meter),
        _ => Ok(None),
    }
}

/// Encodes a payload. Decoding the result returns the same value, except that ini and properties turn scalars into
/// strings. The same value always has the same bytes. Fails with [`PayloadError::Encode`].
pub fn encode(payload_type: PayloadType, value: &Value) -> Result<Vec<u8>, PayloadError> {
    match payload_type {
        PayloadType::Json => json::encode(value),
        PayloadType::Yaml => yaml::encode(value),
        PayloadType::Ini => ini::encode(value),
        PayloadType::Properties => properties::encode(value),
        PayloadType::Xml | PayloadType::Hcl | PayloadType::Text => text::encode(payload_type, value),
        PayloadType::OctetStream => octet_stream::encode(value),
    }
}

/// Returns the content as text; an error with the line if it is not UTF-8.
fn utf8(payload_type: PayloadType, bytes: &[u8]) -> Result<&str, PayloadError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let line = bytes[..error.valid_up_to()].split(|byte| *byte == b'\n').count();
        PayloadError::decode(payload_type, line, None, "the text is not UTF-8")
    })
}

/// Returns the lines of a text that end in LF, CRLF or CR.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'))
}

/// Rejects values that JSON and YAML cannot represent: bytes, non-finite floats, and nesting too deep to decode.
fn check_tree(payload_type: PayloadType, value: &Value, depth: usize) -> Result<(), PayloadError> {
    let refuse = |reason: &'static str| Err(PayloadError::encode(payload_type, reason));
    match value {
        Value::Bytes(_) => refuse("bytes cannot be part of a structured payload"),
        Value::Float(number) if !number.is_finite() => refuse(NOT_FINITE),
        Value::Array(_) | Value::Object(_) if depth == MAX_DEPTH => refuse(TOO_DEEP),
        Value::Array(items) => items.iter().enumerate().try_for_each(|(index, item)| {
            check_tree(payload_type, item, depth + 1).map_err(|error| error.below(&index.to_string()))
        }),
        Value::Object(members) => members.iter().try_for_each(|(key, member)| {
            check_tree(payload_type, member, depth + 1).map_err(|error| error.below(key))
        }),
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Unsigned(_)
        | Value::Float(_)
        | Value::String(_) => Ok(()),
    }
}

/// Returns a value as text for formats that hold only strings: null is empty, booleans and numbers are their text.
fn flat_text(payload_type: PayloadType, value: &Value) -> Result<String, PayloadError> {
    match value {
        Value::Null => Ok(String::new()),
        Value::Float(number) if !number.is_finite() => Err(PayloadError::encode(payload_type, NOT_FINITE)),
        _ => value.scalar_text().ok_or_else(|| {
            PayloadError::encode(payload_type, format!("{} is not allowed here", value.kind()))
        }),
    }
}

#[cfg(test)]
mod tests;

//! One codec per format, and what the structured ones share.

mod compose;
mod ini;
mod json;
mod located;
mod octet_stream;
mod properties;
mod text;
mod yaml;

use super::{PayloadError, PayloadType, Value};

use compose::{Compose, Scalar};
pub use located::{Located, Part};

/// The deepest nesting of arrays and objects that structured formats read and write.
///
/// It is what `serde_json` accepts; one limit for all formats keeps every decoded value encodable.
pub const MAX_DEPTH: usize = 127;

pub(super) const WIDE_INTEGER: &str = "an integer outside of the 64-bit signed range; write it as a string";
pub(super) const NOT_FINITE: &str = "a number that is not finite as a 64-bit float";
const TOO_DEEP: &str = "arrays and objects nested deeper than 127 levels";

/// Reads a payload.
///
/// Structured types give what their syntax says, text types a string (bytes if the content is not UTF-8,
/// so that it survives unchanged), binary ones bytes. Fails with [`PayloadError::Decode`], also for nesting
/// beyond [`MAX_DEPTH`] and, in YAML, for aliases that expand to more than 64 MiB.
pub fn decode(payload_type: PayloadType, bytes: &[u8]) -> Result<Value, PayloadError> {
    match payload_type {
        PayloadType::Json => json::decode(bytes),
        PayloadType::Yaml => yaml::decode(bytes),
        PayloadType::Ini => ini::decode(bytes),
        PayloadType::Properties => properties::decode(bytes),
        PayloadType::Xml | PayloadType::Hcl | PayloadType::Text => Ok(text::decode(bytes)),
        PayloadType::OctetStream => Ok(octet_stream::decode(bytes)),
    }
}

/// Reads a YAML or JSON document and keeps where everything stands in it; `None` for an empty document or
/// another type. Equal keys are an error in both formats.
pub fn decode_located(payload_type: PayloadType, bytes: &[u8]) -> Result<Option<Located>, PayloadError> {
    match payload_type {
        PayloadType::Json => json::decode_located(bytes),
        PayloadType::Yaml => yaml::compose(bytes),
        _ => Ok(None),
    }
}

/// Writes a payload; decoding the result gives the value back, except that ini and properties turn scalars
/// into strings. The same value always gives the same bytes. Fails with [`PayloadError::Encode`].
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

/// The content as UTF-8, or where it stops being so.
fn utf8(payload_type: PayloadType, bytes: &[u8]) -> Result<&str, PayloadError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let line = bytes[..error.valid_up_to()].split(|byte| *byte == b'\n').count();
        PayloadError::decode(payload_type, line, None, "the text is not UTF-8")
    })
}

/// The lines of a text, ended by LF, CRLF or CR.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'))
}

/// Refuses what JSON and YAML cannot hold: bytes, non-finite floats, nesting too deep to be read again.
pub(super) fn check_tree(payload_type: PayloadType, value: &Value, depth: usize) -> Result<(), PayloadError> {
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
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) => Ok(()),
    }
}

/// A value of a format that holds only strings: null is empty, booleans and numbers are their text.
fn flat_text(payload_type: PayloadType, value: &Value) -> Result<String, PayloadError> {
    match value {
        Value::Null => Ok(String::new()),
        Value::Float(number) if !number.is_finite() => Err(PayloadError::encode(payload_type, NOT_FINITE)),
        _ => value
            .scalar_text()
            .ok_or_else(|| PayloadError::encode(payload_type, format!("{} has no place here", value.kind()))),
    }
}

#[cfg(test)]
mod tests;

//! Binary payloads, unchanged.

use crate::payload::{PayloadError, PayloadType, Value};

pub fn decode(bytes: &[u8]) -> Value {
    Value::Bytes(bytes.to_vec())
}

pub fn encode(value: &Value) -> Result<Vec<u8>, PayloadError> {
    match value {
        Value::Bytes(bytes) => Ok(bytes.clone()),
        _ => Err(PayloadError::encode(
            PayloadType::OctetStream,
            format!("a binary payload needs bytes, not {}", value.kind()),
        )),
    }
}

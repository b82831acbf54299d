//! Text, XML and HCL: the whole file as one string, byte for byte.

use crate::payload::{PayloadError, PayloadType, Value};

pub fn decode(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => Value::from(text),
        Err(_) => Value::Bytes(bytes.to_vec()),
    }
}

pub fn encode(payload_type: PayloadType, value: &Value) -> Result<Vec<u8>, PayloadError> {
    match value {
        Value::String(text) => Ok(text.clone().into_bytes()),
        // Bytes that `decode` could not convert to text are written unchanged. Other bytes would become a string.
        Value::Bytes(bytes) if std::str::from_utf8(bytes).is_err() => Ok(bytes.clone()),
        _ => Err(PayloadError::encode(
            payload_type,
            format!("a text payload needs a string, not {}", value.kind()),
        )),
    }
}

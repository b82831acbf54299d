//! Resources whose whole payload is one secret.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use super::{PLACEHOLDER, Secret, is_placeholder};
use crate::error::categories;
use crate::payload::{MAX_WEIGHT, PayloadError, PayloadType, Value, decode, decode_within, encode};

/// The prefix of a stored text that is base64.
const MARKER: &str = "declarest:whole-resource:v1:base64:";

/// The reason why a secret cannot be decoded as a payload. Messages do not contain the secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WholeError {
    /// The text after the marker is not base64.
    #[error("it is marked as base64 but is not valid base64")]
    Base64,
    /// The secret is not a document of the resource's format.
    #[error("it is not a valid {0} document")]
    Format(PayloadType),
}

categories!(WholeError: Validation);

/// Returns the text that a store keeps for the content of a payload file: the content itself, or the marker and
/// base64 if it is not UTF-8 or begins with the marker.
pub fn whole_secret(content: &[u8]) -> Secret {
    Secret::from(match std::str::from_utf8(content) {
        Ok(text) if !text.starts_with(MARKER) => text.to_owned(),
        _ => format!("{MARKER}{}", STANDARD.encode(content)),
    })
}

/// Returns the payload that is stored as `secret`.
pub(super) fn whole_payload(secret: &Secret, payload_type: PayloadType) -> Result<Value, WholeError> {
    let text = secret.expose();
    let content = match text.strip_prefix(MARKER) {
        Some(encoded) => Zeroizing::new(STANDARD.decode(encoded.trim()).map_err(|_| WholeError::Base64)?),
        None => Zeroizing::new(text.as_bytes().to_vec()),
    };
    // The decoder's error is dropped, because it may quote the secret.
    decode(payload_type, &content).map_err(|_| WholeError::Format(payload_type))
}

/// Returns the payload to write into the file of a resource that is a secret as a whole.
pub fn whole_placeholder(payload_type: PayloadType) -> Value {
    match payload_type {
        PayloadType::OctetStream => Value::Bytes(PLACEHOLDER.into()),
        _ => Value::from(PLACEHOLDER),
    }
}

/// Decodes a payload file. A file of a format without plain strings may be a placeholder instead.
pub fn decode_file(payload_type: PayloadType, content: &[u8]) -> Result<Value, PayloadError> {
    decode_file_within(payload_type, content, MAX_WEIGHT)
}

/// Like [`decode_file`], with a limit of the memory that the value needs.
pub fn decode_file_within(
    payload_type: PayloadType,
    content: &[u8],
    limit: usize,
) -> Result<Value, PayloadError> {
    if holds_no_text(payload_type)
        && let Ok(text) = std::str::from_utf8(content)
        && is_placeholder(text)
    {
        return Ok(Value::from(text.trim()));
    }
    decode_within(payload_type, content, limit)
}

/// Encodes a payload file, which [`decode_file`] reads.
pub fn encode_file(payload_type: PayloadType, payload: &Value) -> Result<Vec<u8>, PayloadError> {
    match payload.as_str() {
        Some(text) if holds_no_text(payload_type) && is_placeholder(text) => {
            Ok(format!("{text}\n").into_bytes())
        }
        _ => encode(payload_type, payload),
    }
}

fn holds_no_text(payload_type: PayloadType) -> bool {
    matches!(payload_type, PayloadType::Ini | PayloadType::Properties)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::text(b"a: 1\n", "a: 1\n")]
    #[case::nothing(b"", "")]
    #[case::bytes(&[0xff, 0], "declarest:whole-resource:v1:base64:/wA=")]
    #[case::marked(
        b"declarest:whole-resource:v1:base64:x",
        "declarest:whole-resource:v1:base64:ZGVjbGFyZXN0Ondob2xlLXJlc291cmNlOnYxOmJhc2U2NDp4"
    )]
    fn stored_texts(#[case] content: &[u8], #[case] stored: &str) {
        let secret = whole_secret(content);
        assert_eq!(secret.expose(), stored);
        let back = whole_payload(&secret, PayloadType::OctetStream).unwrap();
        assert_eq!(back, Value::Bytes(content.to_vec()));
    }

    #[rstest]
    #[case(PayloadType::Json, "{\"a\": 1}", Ok("{a: 1}"))]
    #[case(PayloadType::Yaml, "a: 1", Ok("{a: 1}"))]
    #[case(PayloadType::Text, "a: 1", Ok("'a: 1'"))]
    #[case(PayloadType::Json, "canary", Err("it is not a valid json document"))]
    #[case(
        PayloadType::Json,
        "declarest:whole-resource:v1:base64:!",
        Err("it is marked as base64 but is not valid base64")
    )]
    fn payloads(#[case] format: PayloadType, #[case] stored: &str, #[case] expected: Result<&str, &str>) {
        let payload = whole_payload(&Secret::from(stored.to_owned()), format);
        let expected = expected.map(|yaml| decode(PayloadType::Yaml, yaml.as_bytes()).unwrap());
        assert_eq!(payload.map_err(|error| error.to_string()), expected.map_err(str::to_owned));
    }

    #[rstest]
    #[case(PayloadType::Json, "\"{{secret .}}\"\n")]
    #[case(PayloadType::Yaml, "'{{secret .}}'\n")]
    #[case(PayloadType::Text, "{{secret .}}")]
    #[case(PayloadType::Xml, "{{secret .}}")]
    #[case(PayloadType::Hcl, "{{secret .}}")]
    #[case(PayloadType::OctetStream, "{{secret .}}")]
    #[case(PayloadType::Ini, "{{secret .}}\n")]
    #[case(PayloadType::Properties, "{{secret .}}\n")]
    fn files(#[case] format: PayloadType, #[case] expected: &str) {
        let content = encode_file(format, &whole_placeholder(format)).unwrap();
        let text = String::from_utf8(content.clone()).unwrap();
        assert_eq!(text.replace('"', "'").trim(), expected.replace('"', "'").trim());
        assert_eq!(decode_file(format, &content).unwrap(), whole_placeholder(format));
    }

    #[rstest]
    #[case(PayloadType::Ini, "a=1")]
    #[case(PayloadType::Properties, "{{secrets .}}")]
    fn other_files_are_decoded(#[case] format: PayloadType, #[case] content: &str) {
        assert!(decode_file(format, content.as_bytes()).unwrap().as_object().is_some());
    }
}

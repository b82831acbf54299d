//! Payload formats, and how payloads and their parts are named.

use declarest_core::payload::pointer::Pointer;
use declarest_core::payload::{Descriptor, PayloadType, Value, decode, decode_located, encode};

use super::utf8;

pub fn json(data: &[u8]) {
    tree(PayloadType::Json, data);
}

pub fn yaml(data: &[u8]) {
    tree(PayloadType::Yaml, data);
}

pub fn ini(data: &[u8]) {
    round_trip(PayloadType::Ini, data);
}

pub fn properties(data: &[u8]) {
    round_trip(PayloadType::Properties, data);
}

pub fn text(data: &[u8]) {
    for payload_type in [PayloadType::Text, PayloadType::Xml, PayloadType::Hcl] {
        round_trip(payload_type, data);
    }
}

pub fn octet_stream(data: &[u8]) {
    let value = round_trip(PayloadType::OctetStream, data);
    assert!(value.is_some(), "all bytes are a payload");
}

/// JSON and YAML hold the same values, so what one of them reads both of them write.
fn tree(payload_type: PayloadType, data: &[u8]) {
    let Some(value) = round_trip(payload_type, data) else { return };
    for other in [PayloadType::Json, PayloadType::Yaml] {
        assert_eq!(again(other, &written(other, &value)), value, "as {other}");
    }
}

fn round_trip(payload_type: PayloadType, data: &[u8]) -> Option<Value> {
    let value = decode(payload_type, data).ok()?;
    let bytes = written(payload_type, &value);
    let read = again(payload_type, &bytes);
    assert_eq!(read, value);
    assert_eq!(written(payload_type, &read), bytes, "the same value gives the same bytes");
    Some(value)
}

fn written(payload_type: PayloadType, value: &Value) -> Vec<u8> {
    encode(payload_type, value).expect("what was read can be written")
}

fn again(payload_type: PayloadType, bytes: &[u8]) -> Value {
    decode(payload_type, bytes).expect("what was written can be read")
}

/// A document that is read with the places of its parts says the same as one that is read without.
pub fn located(data: &[u8]) {
    for payload_type in [PayloadType::Json, PayloadType::Yaml] {
        let Ok(Some(located)) = decode_located(payload_type, data) else { continue };
        if let Ok(value) = located.into_value() {
            assert_eq!(decode(payload_type, data).expect("it was read before"), value);
        }
    }
}

/// Each line is a media type, or an extension.
pub fn media_type(data: &[u8]) {
    let Some(text) = utf8(data) else { return };
    for line in text.split('\n') {
        if let Some(descriptor) = Descriptor::from_media_type(line) {
            assert_eq!(Descriptor::from_media_type(descriptor.media_type), Some(descriptor));
        }
        let descriptor = Descriptor::from_extension(line);
        assert_eq!(Descriptor::from_extension(&descriptor.extension), descriptor);
    }
}

/// The first line is a pointer, the rest what it points into.
pub fn pointer(data: &[u8]) {
    let Some(text) = utf8(data) else { return };
    let (text, value) = text.split_once('\n').unwrap_or((text, "{}"));
    let Ok(pointer) = Pointer::parse(text) else { return };
    assert_eq!(pointer.to_string(), text);
    let Ok(value) = decode(PayloadType::Json, value.as_bytes()) else { return };
    let put = pointer.put(value.clone(), Value::from("part"));
    match pointer.get(&value) {
        Some(_) => assert_eq!(pointer.get(&put), Some(&Value::from("part"))),
        None => assert!(pointer.get(&put).is_none_or(|part| *part == Value::from("part"))),
    }
}

//! JSON (RFC 8259), read and written with `serde_json`.

mod located;
mod value;

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::ser::PrettyFormatter;

use super::{TOO_DEEP, check_tree};
use crate::payload::error::{NOT_FINITE, WIDE_INTEGER};
use crate::payload::weight::Meter;
use crate::payload::{MAX_WEIGHT, Object, PayloadError, PayloadType, Value};

pub use located::decode as decode_located;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Decodes one document. Trailing content is an error. The last of several equal keys applies.
pub fn decode(bytes: &[u8], meter: &Meter) -> Result<Value, PayloadError> {
    check(bytes)?;
    if bytes.trim_ascii().is_empty() {
        return Err(PayloadError::decode(PayloadType::Json, 1, None, "the document is empty"));
    }
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = ValueSeed(meter).deserialize(&mut deserializer).map_err(|error| described(&error))?;
    deserializer.end().map_err(|error| described(&error))?;
    Ok(value)
}

/// Decodes one JSON document in which integers beyond 64 bits become floats, and which needs at most `limit`
/// bytes of memory.
pub fn decode_leniently(bytes: &[u8], limit: usize) -> Result<Value, serde_json::Error> {
    let meter = Meter::new(limit);
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = ValueSeed(&meter).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// Rejects faults that `serde_json` accepts or describes badly.
fn check(bytes: &[u8]) -> Result<(), PayloadError> {
    let fail = |line, column, reason| Err(PayloadError::decode(PayloadType::Json, line, column, reason));
    if bytes.starts_with(BYTE_ORDER_MARK) {
        return fail(1, Some(1), "the file starts with a byte order mark; save it as UTF-8 without one");
    }
    match wide_integer(bytes) {
        Some((line, column)) => fail(line, Some(column), WIDE_INTEGER),
        None => Ok(()),
    }
}

/// Encodes with two spaces of indentation, keys ascending bytewise, and no final newline.
pub fn encode(value: &Value) -> Result<Vec<u8>, PayloadError> {
    check_tree(PayloadType::Json, value, 0)?;
    let mut bytes = Vec::new();
    let mut serializer =
        serde_json::Serializer::with_formatter(&mut bytes, PrettyFormatter::with_indent(b"  "));
    value
        .serialize(&mut serializer)
        .map_err(|error| PayloadError::encode(PayloadType::Json, error.to_string()))?;
    Ok(bytes)
}

/// Converts an error of `serde_json`. Its position is removed from the message, because ours has it separately. The
/// message quotes no content, because [`AnyValue`] accepts every type.
fn described(error: &serde_json::Error) -> PayloadError {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    let found = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text);
    let reason = explained(found).map_or_else(|| found.to_owned().into(), Cow::Borrowed);
    PayloadError::decode(PayloadType::Json, line, Some(column), reason)
}

/// Returns a clearer text for common mistakes.
fn explained(found: &str) -> Option<&'static str> {
    Some(match found {
        "trailing characters" => "more text after the document; a file holds exactly one",
        "expected value" => {
            "expected a value: an object, an array, text in quotes, a number, true, false or null"
        }
        "key must be a string" => {
            "expected a key in quotes; JSON has neither comments nor keys without quotes"
        }
        "trailing comma" => "a comma after the last member; remove it",
        "invalid escape" => "an unknown escape; write a backslash twice",
        "recursion limit exceeded" => TOO_DEEP,
        "number out of range" => NOT_FINITE,
        "invalid unicode code point" => "the text is not UTF-8",
        _ if found.contains("hex escape") => "a \\u escape that is incomplete, or half of a surrogate pair",
        _ if found.starts_with("control character") => {
            "a line break or another control character within a string; write it as an escape, such as \\n"
        }
        _ => return None,
    })
}

/// Returns the place of the first integer literal beyond 64 bits.
///
/// The parser would return it as a float, which cannot be distinguished from `1e20`.
fn wide_integer(bytes: &[u8]) -> Option<(usize, usize)> {
    let (mut line, mut line_start, mut at) = (1, 0, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\n' => {
                at += 1;
                (line, line_start) = (line + 1, at);
            }
            b'"' => at += string_length(&bytes[at..]),
            b'-' | b'0'..=b'9' => {
                let number = number_at(&bytes[at..]);
                let digits = number.strip_prefix('-').unwrap_or(number);
                let integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
                if integer && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
                    return Some((line, at - line_start + 1));
                }
                at += number.len();
            }
            _ => at += 1,
        }
    }
    None
}

/// Returns the length of a string literal with both quotes; the whole length if it is not closed.
fn string_length(bytes: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn number_at(bytes: &[u8]) -> &str {
    let end = bytes.iter().position(|byte| !matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'));
    std::str::from_utf8(&bytes[..end.unwrap_or(bytes.len())]).unwrap_or_default()
}

/// Any value of JSON. It is separate from [`Value`], which must not be deserialised from formats with other types.
pub struct AnyValue(pub Value);

impl<'de> Deserialize<'de> for AnyValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let meter = Meter::new(MAX_WEIGHT);
        ValueSeed(&meter).deserialize(deserializer).map(Self)
    }
}

/// Decodes a value, and counts its memory.
#[derive(Clone, Copy)]
struct ValueSeed<'m>(&'m Meter);

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl ValueSeed<'_> {
    fn scalar<E: Error>(self, value: Value, length: usize) -> Result<Value, E> {
        self.0.scalar(length).map(|()| value).map_err(E::custom)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        self.scalar(Value::Null, 0)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        self.scalar(Value::Bool(value), 0)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        self.scalar(Value::Int(value), 0)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        self.scalar(Value::from(value), 0)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        self.scalar(Value::Float(value), 0)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.0.scalar(value.len()).map_err(E::custom)?;
        Ok(Value::from(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        self.0.array().map_err(A::Error::custom)?;
        let mut items = Vec::new();
        while let Some(item) = elements.next_element_seed(self)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        self.0.object().map_err(A::Error::custom)?;
        let mut members = Object::new();
        while let Some(key) = entries.next_key::<String>()? {
            self.0.member(key.len()).map_err(A::Error::custom)?;
            let member = entries.next_value_seed(self)?;
            members.insert(key, member);
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use rstest::rstest;

    use super::*;

    fn decode_whole(bytes: &[u8]) -> Result<Value, PayloadError> {
        decode(bytes, &Meter::new(MAX_WEIGHT))
    }

    #[rstest]
    #[case("null", Value::Null)]
    #[case(" true\n", Value::Bool(true))]
    #[case("9223372036854775807", Value::Int(i64::MAX))]
    #[case("-9223372036854775808", Value::Int(i64::MIN))]
    #[case("9223372036854775808", Value::Unsigned(1 << 63))]
    #[case("18446744073709551615", Value::Unsigned(u64::MAX))]
    #[case("1e3", Value::Float(1000.0))]
    #[case("1.0", Value::Float(1.0))]
    #[case("1e19", Value::Float(1e19))]
    #[case("\"99999999999999999999\\\" 1\"", Value::from("99999999999999999999\" 1"))]
    #[case("\"\\ud83d\\ude00\"", Value::from("😀"))]
    #[case("[]", Value::Array(vec![]))]
    fn decodes(#[case] text: &str, #[case] expected: Value) {
        let value = decode_whole(text.as_bytes()).unwrap();
        assert_eq!(value, expected);
        assert_eq!(value.kind(), expected.kind());
    }

    #[test]
    fn the_last_of_several_equal_keys_applies() {
        let value = decode_whole(br#"{"a": 1, "a": {"b": 2}}"#).unwrap();
        assert_eq!(value, decode_whole(br#"{"a": {"b": 2}}"#).unwrap());
    }

    #[rstest]
    #[case::empty("", "cannot decode json, line 1: the document is empty")]
    #[case::blank(" \n", "cannot decode json, line 1: the document is empty")]
    #[case::trailing(
        "{}\n {}",
        "cannot decode json, line 2, column 2: more text after the document; a file holds exactly one"
    )]
    #[case::cut("{\n\"a\": [", "cannot decode json, line 2, column 6: EOF while parsing a list")]
    #[case::bom(
        "\u{feff}{}",
        "cannot decode json, line 1, column 1: the file starts with a byte order mark; \
        save it as UTF-8 without one"
    )]
    #[case::wide(
        "[1,\n 18446744073709551616]",
        "cannot decode json, line 2, column 2: an integer outside of \
        the 64-bit range; write it as a string"
    )]
    #[case::wider(
        "{\"a\": -99999999999999999999}",
        "cannot decode json, line 1, column 7: an integer outside \
        of the 64-bit range; write it as a string"
    )]
    #[case::infinite(
        "1e999",
        "cannot decode json, line 1, column 5: a number that is not finite as a 64-bit float"
    )]
    #[case::nan(
        "NaN",
        "cannot decode json, line 1, column 1: expected a value: an object, an array, text in quotes, a number, true, false or null"
    )]
    #[case::comment(
        "// c\n{}",
        "cannot decode json, line 1, column 1: expected a value: an object, an array, text in quotes, a number, true, false or null"
    )]
    fn rejects(#[case] text: &str, #[case] message: &str) {
        assert_eq!(decode_whole(text.as_bytes()).unwrap_err().to_string(), message);
    }

    #[test]
    fn errors_do_not_quote_the_document() {
        for text in ["{\"a\": \"s3cret\" \"b\"}", "[\"s3cret\\x\"]", "{\"a\": s3cret}", "\"s3cret"] {
            let message = decode_whole(text.as_bytes()).unwrap_err().to_string();
            assert!(!message.contains("s3cret"), "{message}");
        }
    }

    #[test]
    fn encodes() {
        let text =
            r#"{"b":[1.0,1.5,-0.0,1e19,18446744073709551615,{}],"B":"<a & b>\u0001","a":{"é":null,"d":[]}}"#;
        let bytes = encode(&decode_whole(text.as_bytes()).unwrap()).unwrap();
        assert_snapshot!(String::from_utf8(bytes).unwrap(), @r##"
        {
          "B": "<a & b>\u0001",
          "a": {
            "d": [],
            "é": null
          },
          "b": [
            1,
            1.5,
            0,
            1e+19,
            18446744073709551615,
            {}
          ]
        }
        "##);
    }
}

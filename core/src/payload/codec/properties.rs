//! Java properties, as defined by `java.util.Properties.load`, but in UTF-8.

use std::fmt::Write;

use super::{flat_text, lines, utf8};
use crate::payload::weight::Meter;
use crate::payload::{Object, PayloadError, PayloadType, Value};

/// Decodes a flat map of strings. The last of several equal keys applies.
pub fn decode(bytes: &[u8], meter: &Meter) -> Result<Value, PayloadError> {
    let text = utf8(PayloadType::Properties, bytes)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut members = Object::new();
    let mut lines = lines(text).enumerate();
    while let Some((index, line)) = lines.next() {
        let line = line.trim_start_matches(is_blank);
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        let mut logical = line.to_owned();
        while ends_in_continuation(&logical) {
            logical.pop();
            let Some((_, next)) = lines.next() else { break };
            logical.push_str(next.trim_start_matches(is_blank));
        }
        let (key, value) = split(&logical);
        let fail = |reason| PayloadError::decode(PayloadType::Properties, index + 1, None, reason);
        let (key, value) = (unescape(key).map_err(fail)?, unescape(value).map_err(fail)?);
        meter.member(key.len()).and_then(|()| meter.scalar(value.len())).map_err(fail)?;
        members.insert(key, Value::String(value));
    }
    Ok(Value::Object(members))
}

/// Encodes one line `key=value` per member, sorted by key.
pub fn encode(value: &Value) -> Result<Vec<u8>, PayloadError> {
    let Value::Object(members) = value else {
        let reason = format!("properties hold an object, not {}", value.kind());
        return Err(PayloadError::encode(PayloadType::Properties, reason));
    };
    let mut out = String::new();
    for (key, member) in members {
        let value = flat_text(PayloadType::Properties, member).map_err(|error| error.below(key))?;
        escape_key(&mut out, key);
        out.push('=');
        escape_value(&mut out, &value);
        out.push('\n');
    }
    Ok(out.into_bytes())
}

/// Whether `char` is white space within a line.
fn is_blank(char: char) -> bool {
    matches!(char, ' ' | '\t' | '\u{c}')
}

fn ends_in_continuation(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// Splits at the first white space, `=` or `:` that is not escaped. White space around one separator is removed.
fn split(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = line.find(|char: char| {
        let here = !escaped && (is_blank(char) || matches!(char, '=' | ':'));
        escaped = !escaped && char == '\\';
        here
    });
    let (key, rest) = line.split_at(end.unwrap_or(line.len()));
    let rest = rest.trim_start_matches(is_blank);
    (key, rest.strip_prefix(['=', ':']).map_or(rest, |value| value.trim_start_matches(is_blank)))
}

fn unescape(text: &str) -> Result<String, &'static str> {
    let mut units = Vec::with_capacity(text.len());
    let mut chars = text.chars();
    let mut buffer = [0; 2];
    while let Some(char) = chars.next() {
        let plain = match char {
            '\\' => match chars.next() {
                Some('u') => {
                    units.push(code_unit(chars.as_str())?);
                    chars = chars.as_str()[4..].chars();
                    continue;
                }
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('f') => '\u{c}',
                Some(other) => other,
                None => break,
            },
            other => other,
        };
        units.extend_from_slice(plain.encode_utf16(&mut buffer));
    }
    // Escapes are UTF-16 code units, so two of them may be one character.
    String::from_utf16(&units).map_err(|_| "a \\u escape is half of a surrogate pair")
}

/// Returns the four hexadecimal digits at the start of `text` as a number.
fn code_unit(text: &str) -> Result<u16, &'static str> {
    const BAD: &str = "a \\u escape needs four hexadecimal digits";
    let digits = text.get(..4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    u16::from_str_radix(digits.ok_or(BAD)?, 16).map_err(|_| BAD)
}

fn escape_key(out: &mut String, key: &str) {
    for (at, char) in key.char_indices() {
        if matches!(char, ' ' | '=' | ':') || (at == 0 && matches!(char, '#' | '!')) {
            out.push('\\');
            out.push(char);
        } else {
            escape_char(out, char);
        }
    }
}

fn escape_value(out: &mut String, value: &str) {
    let rest = value.strip_prefix(' ');
    if rest.is_some() {
        out.push_str("\\ ");
    }
    rest.unwrap_or(value).chars().for_each(|char| escape_char(out, char));
}

fn escape_char(out: &mut String, char: char) {
    match char {
        '\\' => out.push_str("\\\\"),
        '\t' => out.push_str("\\t"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\u{c}' => out.push_str("\\f"),
        // Decoding would remove a byte order mark at the start of the file.
        '\u{feff}' => {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\u{:04X}", u32::from(char));
        }
        _ => out.push(char),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::payload::{decode as decode_as, encode as encode_as};

    fn json(text: &str) -> Value {
        decode_as(PayloadType::Json, text.as_bytes()).unwrap()
    }

    #[rstest]
    #[case::empty("", "{}")]
    #[case::separators("a=1\nb:2\nc 3\nd\t=\t4\ne", r#"{"a":"1","b":"2","c":"3","d":"4","e":""}"#)]
    #[case::one_sign_only("a==1\nb =:2", r#"{"a":"=1","b":":2"}"#)]
    #[case::comments("# a\\\n  ! b\nc=1 # text\n", r#"{"c":"1 # text"}"#)]
    #[case::continued("a = 1,\\\n    2,\\\r\n\t3\nb=x", r#"{"a":"1,2,3","b":"x"}"#)]
    #[case::a_comment_cannot_interrupt("a=1\\\n# 2", r#"{"a":"1# 2"}"#)]
    #[case::an_even_number_of_backslashes_ends("a=1\\\\\nb=2", r#"{"a":"1\\","b":"2"}"#)]
    #[case::continued_at_the_end("a=1\\", r#"{"a":"1"}"#)]
    #[case::escapes("a\\ b\\=\\:\\#=\\t\\n\\r\\f\\z\\\\", r#"{"a b=:#":"\t\n\r\fz\\"}"#)]
    #[case::unicode("a=\\u00e9\\uD83D\\uDE00", r#"{"a":"é😀"}"#)]
    #[case::dots_do_not_nest("a.b=1", r#"{"a.b":"1"}"#)]
    #[case::later_wins("a=1\na=2", r#"{"a":"2"}"#)]
    #[case::trailing_space_is_text("a=1 \n", r#"{"a":"1 "}"#)]
    #[case::byte_order_mark("\u{feff}a=1", r#"{"a":"1"}"#)]
    #[case::empty_key("=1", r#"{"":"1"}"#)]
    fn decodes(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(decode_as(PayloadType::Properties, text.as_bytes()).unwrap(), json(expected));
    }

    #[rstest]
    #[case("a=1\nb=\\u12", "line 2: a \\u escape needs four hexadecimal digits")]
    #[case("a=\\u+123", "line 1: a \\u escape needs four hexadecimal digits")]
    #[case("a=\\u12é", "line 1: a \\u escape needs four hexadecimal digits")]
    #[case("a=\\ud83d", "line 1: a \\u escape is half of a surrogate pair")]
    #[case("a=1,\\\n2\nb=\\ude00", "line 3: a \\u escape is half of a surrogate pair")]
    fn rejects(#[case] text: &str, #[case] message: &str) {
        let expected = format!("cannot decode properties, {message}");
        assert_eq!(decode_as(PayloadType::Properties, text.as_bytes()).unwrap_err().to_string(), expected);
    }

    #[rstest]
    #[case::empty("{}", "")]
    #[case::sorted_scalars(r#"{"b":true,"a":null,"c":1.0,"d":-2}"#, "a=\nb=true\nc=1\nd=-2\n")]
    #[case::keys(r##"{"#a b=c:d#":"1","!":"2"}"##, "\\!=2\n\\#a\\ b\\=c\\:d#=1\n")]
    #[case::values(r#"{"a":"  b = c:#\\\t\n\r\f"}"#, "a=\\  b = c:#\\\\\\t\\n\\r\\f\n")]
    #[case::text_stays_readable(r#"{"ключ":"значение"}"#, "ключ=значение\n")]
    #[case::byte_order_mark(r#"{"\ufeff":"a"}"#, "\\uFEFF=a\n")]
    fn encodes(#[case] value: &str, #[case] expected: &str) {
        let bytes = encode_as(PayloadType::Properties, &json(value)).unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    }

    #[rstest]
    #[case(
        r#""a""#,
        "cannot encode as properties, the whole document: properties hold an object, not a string"
    )]
    #[case(r#"{"a":{}}"#, "cannot encode as properties, \"/a\": an object is not allowed here")]
    #[case(r#"{"a":[]}"#, "cannot encode as properties, \"/a\": an array is not allowed here")]
    fn refuses(#[case] value: &str, #[case] message: &str) {
        assert_eq!(encode_as(PayloadType::Properties, &json(value)).unwrap_err().to_string(), message);
    }
}

//! INI: `key = value` lines under one level of sections. No quoting, escapes or inline comments.

use std::borrow::Cow;

use super::{flat_text, lines, utf8};
use crate::payload::weight::Meter;
use crate::payload::{Object, PayloadError, PayloadType, Value};

/// It is a mark only at the beginning of a file, and an ordinary character elsewhere.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Decodes a file. All values are strings. The last of several equal keys applies.
pub fn decode(bytes: &[u8], meter: &Meter) -> Result<Value, PayloadError> {
    let text = utf8(PayloadType::Ini, bytes)?;
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let mut root = Object::new();
    let mut section: Option<String> = None;
    for (index, line) in lines(text).enumerate() {
        let fail = |reason: String| PayloadError::decode(PayloadType::Ini, index + 1, None, reason);
        match Line::parse(line) {
            Line::Nothing => {}
            Line::Section("") => return Err(fail("the section has no name".to_owned())),
            Line::Entry("", _) => return Err(fail("the key before the separator is empty".to_owned())),
            Line::Section(name) => {
                meter
                    .object()
                    .and_then(|()| meter.member(name.len()))
                    .map_err(|reason| fail(reason.to_owned()))?;
                let opened = root.entry(name.to_owned()).or_insert_with(|| Value::Object(Object::new()));
                if opened.as_object().is_none() {
                    return Err(fail(format!("the section \"{name}\" has the name of a key above")));
                }
                section = Some(name.to_owned());
            }
            Line::Entry(key, value) => {
                let counted = meter.member(key.len()).and_then(|()| meter.scalar(value.len()));
                counted.map_err(|reason| fail(reason.to_owned()))?;
                let members = match section.as_ref().and_then(|name| root.get_mut(name)) {
                    Some(Value::Object(members)) => members,
                    _ => &mut root,
                };
                members.insert(key.to_owned(), Value::from(value));
            }
        }
    }
    Ok(Value::Object(root))
}

/// Encodes root keys, then the sections, each sorted and separated by a blank line. If the text begins with a byte
/// order mark, a second one is added, because decoding removes one.
pub fn encode(value: &Value) -> Result<Vec<u8>, PayloadError> {
    let Value::Object(root) = value else {
        return Err(refuse(format!("ini holds an object, not {}", value.kind())));
    };
    let mut blocks = vec![String::new()];
    for (key, member) in root {
        if let Value::Object(members) = member {
            let mut block = section_line(key).map_err(|error| error.below(key))?;
            for (inner, member) in members {
                let line = entry_line(inner, member).map_err(|error| error.below(inner).below(key))?;
                block.push_str(&line);
            }
            blocks.push(block);
        } else {
            let line = entry_line(key, member).map_err(|error| error.below(key))?;
            blocks[0].push_str(&line);
        }
    }
    blocks.retain(|block| !block.is_empty());
    let text = blocks.join("\n");
    let mark = text.starts_with(BYTE_ORDER_MARK).then_some(BYTE_ORDER_MARK);
    Ok(mark.into_iter().chain(text.chars()).collect::<String>().into_bytes())
}

#[derive(PartialEq)]
enum Line<'t> {
    /// A blank line or a comment.
    Nothing,
    Section(&'t str),
    Entry(&'t str, &'t str),
}

impl<'t> Line<'t> {
    fn parse(line: &'t str) -> Self {
        let line = line.trim();
        if line.is_empty() || line.starts_with([';', '#']) {
            return Self::Nothing;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            return Self::Section(name.trim());
        }
        // A comment may follow the name.
        if let Some((name, rest)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']'))
            && rest.trim_start().starts_with([';', '#'])
        {
            return Self::Section(name.trim());
        }
        let (key, value) = line
            .split_once(['=', ':'])
            .or_else(|| line.split_once(char::is_whitespace))
            .unwrap_or((line, ""));
        Self::Entry(key.trim(), value.trim())
    }
}

fn section_line(name: &str) -> Result<String, PayloadError> {
    let line = format!("[{name}]");
    if name.is_empty() || !is_one_line(&line) || Line::parse(&line) != Line::Section(name) {
        return Err(refuse("a section of this name would be read as another one"));
    }
    Ok(line + "\n")
}

fn entry_line(key: &str, value: &Value) -> Result<String, PayloadError> {
    let value = flat_text(PayloadType::Ini, value)?;
    let line = format!("{key} = {value}");
    let line = line.trim_end();
    if key.is_empty() || !is_one_line(line) || Line::parse(line) != Line::Entry(key, &value) {
        return Err(refuse("ini has no quoting, so this key or value would be read as another one"));
    }
    Ok(format!("{line}\n"))
}

fn is_one_line(line: &str) -> bool {
    !line.contains(['\n', '\r'])
}

fn refuse(reason: impl Into<Cow<'static, str>>) -> PayloadError {
    PayloadError::encode(PayloadType::Ini, reason)
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
    #[case::the_documented_example(
        "owner = ops\n\n[db]\nport = 5432\n",
        r#"{"owner":"ops","db":{"port":"5432"}}"#
    )]
    #[case::empty("", "{}")]
    #[case::comments("; a\n  # b\n\na=1 ; not a comment\n", r#"{"a":"1 ; not a comment"}"#)]
    #[case::line_ends("a=1\rb=2\r\nc=3\nd=4", r#"{"a":"1","b":"2","c":"3","d":"4"}"#)]
    #[case::separators("a=b:c\nd:e=f\ng h i\nj\nk =\n", r#"{"a":"b:c","d":"e=f","g":"h i","j":"","k":""}"#)]
    #[case::quotes_are_text("a = \"b\\n\"", r#"{"a":"\"b\\n\""}"#)]
    #[case::later_wins("a=1\na=2\n[s]\nb=1\n[ s ]\nb=2\nc=3", r#"{"a":"2","s":{"b":"2","c":"3"}}"#)]
    #[case::dots_are_literal("[a.b]\nc.d=1", r#"{"a.b":{"c.d":"1"}}"#)]
    #[case::empty_section("[s]", r#"{"s":{}}"#)]
    #[case::not_a_section("[a]b = 1", r#"{"[a]b":"1"}"#)]
    #[case::comment_after_a_section(
        "[db] ; main\nport = 1\n[x]#y\na=1",
        r#"{"db":{"port":"1"},"x":{"a":"1"}}"#
    )]
    #[case::byte_order_mark("\u{feff}a=1", r#"{"a":"1"}"#)]
    fn decodes(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(decode_as(PayloadType::Ini, text.as_bytes()).unwrap(), json(expected));
    }

    #[rstest]
    #[case("a=1\n[]\n", "cannot decode ini, line 2: the section has no name")]
    #[case("[ ]", "cannot decode ini, line 1: the section has no name")]
    #[case("\n= s3cret", "cannot decode ini, line 2: the key before the separator is empty")]
    #[case("db=1\r\n\r\n[db]", "cannot decode ini, line 3: the section \"db\" has the name of a key above")]
    fn rejects(#[case] text: &str, #[case] message: &str) {
        assert_eq!(decode_as(PayloadType::Ini, text.as_bytes()).unwrap_err().to_string(), message);
    }

    #[rstest]
    #[case::the_documented_example(
        r#"{"owner":"ops","db":{"port":5432}}"#,
        "owner = ops\n\n[db]\nport = 5432\n"
    )]
    #[case::empty("{}", "")]
    #[case::scalars(r#"{"z":null,"b":true,"a":1.0,"f":1.5}"#, "a = 1\nb = true\nf = 1.5\nz =\n")]
    #[case::sections_only(r#"{"t":{"b":"2","a":"1"},"s":{}}"#, "[s]\n\n[t]\na = 1\nb = 2\n")]
    #[case::spaces_inside(r#"{"a b":"c d"}"#, "a b = c d\n")]
    #[case::byte_order_mark_first(r#"{"\ufeffa":"b"}"#, "\u{feff}\u{feff}a = b\n")]
    #[case::byte_order_mark_later(r#"{"a":"b","\ufeff":"c"}"#, "a = b\n\u{feff} = c\n")]
    fn encodes(#[case] value: &str, #[case] expected: &str) {
        let bytes = encode_as(PayloadType::Ini, &json(value)).unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    }

    #[rstest]
    #[case("\u{feff}a=1")]
    #[case("\u{feff}\u{feff}a=1")]
    #[case("a=1\n\u{feff}b=2")]
    #[case("\u{feff}\u{feff}")]
    #[case("[s]\n\u{feff} \u{feff}")]
    fn byte_order_marks_survive(#[case] text: &str) {
        let value = decode_as(PayloadType::Ini, text.as_bytes()).unwrap();
        assert_eq!(decode_as(PayloadType::Ini, &encode(&value).unwrap()).unwrap(), value);
    }

    #[rstest]
    #[case::not_an_object("[1]", "the whole document")]
    #[case::null("null", "the whole document")]
    #[case::array(r#"{"a":[1]}"#, "\"/a\"")]
    #[case::too_deep(r#"{"a":{"b":{}}}"#, "\"/a/b\"")]
    #[case::line_end(r#"{"a":"b\nc"}"#, "\"/a\"")]
    #[case::outer_space(r#"{"a":" b"}"#, "\"/a\"")]
    #[case::separator_in_key(r#"{"a=b":"c"}"#, "\"/a=b\"")]
    #[case::colon_in_key(r#"{"s":{"a:b":"c"}}"#, "\"/s/a:b\"")]
    #[case::comment(r##"{"#a":"b"}"##, "\"/#a\"")]
    #[case::empty_key(r#"{"":"b"}"#, "\"/\"")]
    #[case::like_a_section(r#"{"[a":"b]"}"#, "\"/[a\"")]
    #[case::empty_section(r#"{"":{}}"#, "\"/\"")]
    #[case::section_with_space(r#"{" s":{}}"#, "\"/ s\"")]
    fn refuses(#[case] value: &str, #[case] place: &str) {
        let message = encode_as(PayloadType::Ini, &json(value)).unwrap_err().to_string();
        assert!(
            message.starts_with("cannot encode as ini, ") && message.contains(&format!("{place}: ")),
            "{message}"
        );
    }
}

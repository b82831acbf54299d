//! Escapes text for JSON, queries, HTML and JavaScript.

use std::borrow::Cow;
use std::fmt::Write;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The characters to encode in a query component: all except unreserved ones (RFC 3986, section 2.3) and the space.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b' ');

/// Escapes the inside of a JSON string (RFC 8259, section 7).
pub(super) fn json(text: &str) -> Cow<'_, str> {
    let quoted = serde_json::Value::from(text).to_string();
    if quoted.len() == text.len() + 2 {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(quoted[1..quoted.len() - 1].to_owned())
    }
}

/// Escapes a component of a query, with `+` for a space.
pub(super) fn query(text: &str) -> String {
    utf8_percent_encode(text, QUERY).to_string().replace(' ', "+")
}

/// Escapes text of an HTML document or of an attribute.
pub(super) fn html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&#34;"),
            '\'' => escaped.push_str("&#39;"),
            '\0' => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Escapes the inside of a JavaScript string, which may be in an HTML document.
pub(super) fn js(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '\\' | '\'' | '"' => escaped.extend(['\\', char]),
            '<' | '>' | '&' | '=' => push_unit(&mut escaped, char),
            char if char.is_control() || matches!(char, '\u{2028}' | '\u{2029}') => {
                push_unit(&mut escaped, char);
            }
            other => escaped.push(other),
        }
    }
    escaped
}

/// Returns a double-quoted literal with escapes `\n` and `\uXXXX`.
pub(super) fn quoted(text: &str) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => literal.extend(['\\', char]),
            '\n' => literal.push_str("\\n"),
            '\r' => literal.push_str("\\r"),
            '\t' => literal.push_str("\\t"),
            char if char.is_control() => push_unit(&mut literal, char),
            other => literal.push(other),
        }
    }
    literal.push('"');
    literal
}

/// Appends `\uXXXX`; `char` is in the basic plane.
fn push_unit(text: &mut String, char: char) {
    // Writing to a string cannot fail.
    let _ = write!(text, "\\u{:04X}", u32::from(char));
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(json("a\"b\\(c)\n").into_owned(), "a\\\"b\\\\(c)\\n")]
    #[case(json("é/ü").into_owned(), "é/ü")]
    #[case(query("a b&c=d/é~*"), "a+b%26c%3Dd%2F%C3%A9~%2A")]
    #[case(html("<a href=\"x\">'&'</a>\0"), "&lt;a href=&#34;x&#34;&gt;&#39;&amp;&#39;&lt;/a&gt;\u{fffd}")]
    #[case(js("</'\"\\=&\n"), "\\u003C/\\'\\\"\\\\\\u003D\\u0026\\u000A")]
    #[case(quoted("a\"\\\n\r\té\u{1}"), "\"a\\\"\\\\\\n\\r\\té\\u0001\"")]
    fn escapes(#[case] escaped: String, #[case] expected: &str) {
        assert_eq!(escaped, expected);
    }
}

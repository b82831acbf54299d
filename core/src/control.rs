//! Control characters in texts from servers and files. A terminal would execute them, and a line break could forge a
//! line in a log.

use std::borrow::Cow;

/// Returns `text` with escapes (`\u{1b}`) for its control characters, except line feeds and tabs.
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, |character| !matches!(character, '\n' | '\t'))
}

/// Returns `text` as one line, with escapes for all of its control characters.
pub fn one_line(text: &str) -> Cow<'_, str> {
    escaped(text, |_| true)
}

/// Returns indented JSON with a space in the place of each line break and indentation. The texts in JSON have no line breaks
/// (RFC 8259 §7). Other texts stay as they are.
pub fn unindented(text: &str) -> Cow<'_, str> {
    if !text.starts_with(['{', '[']) || !text.contains('\n') {
        return text.into();
    }
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines.join(" ").into()
}

/// Escapes the control characters (C0, DEL and C1) and line separators for which `meant` is true.
fn escaped(text: &str, meant: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_escaped = |character: char| {
        (character.is_control() || matches!(character, '\u{2028}' | '\u{2029}')) && meant(character)
    };
    if !text.contains(is_escaped) {
        return text.into();
    }
    let mut visible = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_escaped(character) {
            visible.extend(character.escape_default());
        } else {
            visible.push(character);
        }
    }
    visible.into()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("a\tb\nc é", "a\tb\nc é", "a\\tb\\nc é")]
    #[case("\x1b[2J\r\0", "\\u{1b}[2J\\r\\u{0}", "\\u{1b}[2J\\r\\u{0}")]
    #[case("\u{7f}\u{9b}31m\u{2028}", "\\u{7f}\\u{9b}31m\\u{2028}", "\\u{7f}\\u{9b}31m\\u{2028}")]
    fn control_characters_are_made_visible(#[case] text: &str, #[case] shown: &str, #[case] line: &str) {
        assert_eq!(visible(text), shown);
        assert_eq!(one_line(text), line);
    }

    #[rstest]
    #[case(
        "{\n  \"error\": \"x\\ny\",\r\n  \"codes\": [\n    1\n  ]\n}",
        "{ \"error\": \"x\\ny\", \"codes\": [ 1 ] }"
    )]
    #[case("{\"error\": 1}", "{\"error\": 1}")]
    #[case("Traceback\n  line 1", "Traceback\n  line 1")]
    fn indented_json_is_joined(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(unindented(text), expected);
    }
}

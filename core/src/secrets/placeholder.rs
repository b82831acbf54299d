//! Parses and writes `{{secret …}}` and the other placeholders of payload values.

use std::fmt;

use crate::error::categories;
use crate::payload::Descriptor;

/// The mask of a secret: the placeholder that has its place as the key.
pub const PLACEHOLDER: &str = "{{secret .}}";

/// A placeholder for a secret: a text that consists of `{{secret …}}`.
///
/// ```text
/// placeholder = WS* "{{" WS* "secret" WS+ arg WS* "}}" WS*
/// arg         = "." | quoted | bare
/// quoted      = double-quoted, with the escapes \" \\ \n \t \uXXXX, not blank
/// bare        = 1 or more characters without white space and braces, the first not `"`
/// ```
///
/// `Display` writes the canonical text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placeholder {
    /// `{{secret .}}`: the place of the value is the key.
    Implicit,
    /// `{{secret "db pass"}}`: a key that the author chose, relative to the resource.
    Explicit(String),
}

/// The reason why a text that begins like a placeholder is malformed. The argument is not shown, because it may be
/// the secret itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceholderError {
    /// There is no argument.
    #[error("the placeholder has no key; write {{{{secret .}}}} or {{{{secret \"a key\"}}}}")]
    NoKey,
    /// There are several arguments, or a brace in an argument without quotes.
    #[error(
        "the placeholder's key has white space or a brace; write it in double quotes: {{{{secret \"a key\"}}}}"
    )]
    Unquoted,
    /// A key in quotes that are not closed, with an unknown escape, or with text after the quotes.
    #[error(
        "the placeholder's quoted key is malformed; use the escapes \\\", \\\\, \\n, \\t and \\uXXXX, and nothing \
         after the last quote"
    )]
    Quoting,
    /// A key that begins with a slash.
    #[error(
        "the placeholder's key starts with \"/\"; keys are relative to the resource, so remove the slash"
    )]
    Absolute,
    /// A descriptor placeholder such as `{{payload_type …}}` with another argument than `.`.
    #[error("{{{{{0} …}}}} takes only \".\"; write {{{{{0} .}}}}")]
    DescriptorArgument(&'static str),
}

categories!(PlaceholderError: Validation);

impl Placeholder {
    /// Parses `text`; `None` for plain text. A malformed placeholder is an error, because sending it would overwrite
    /// the credential on the server.
    pub fn parse(text: &str) -> Result<Option<Self>, PlaceholderError> {
        let Some(argument) = argument_of(text, "secret") else { return Ok(None) };
        if argument.is_empty() {
            return Err(PlaceholderError::NoKey);
        }
        let key = match argument.strip_prefix('"') {
            Some(rest) => unquote(rest)?,
            None if argument == "." => return Ok(Some(Self::Implicit)),
            None if argument.contains(|c: char| c.is_whitespace() || matches!(c, '{' | '}')) => {
                return Err(PlaceholderError::Unquoted);
            }
            None => argument.to_owned(),
        };
        let key = key.trim();
        match key.as_bytes().first() {
            None => Err(PlaceholderError::NoKey),
            Some(b'/') => Err(PlaceholderError::Absolute),
            Some(_) => Ok(Some(Self::Explicit(key.to_owned()))),
        }
    }
}

impl fmt::Display for Placeholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = match self {
            Self::Implicit => return f.write_str(PLACEHOLDER),
            Self::Explicit(key) => key,
        };
        f.write_str("{{secret \"")?;
        for character in key.chars() {
            match character {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                '\t' => f.write_str("\\t")?,
                other if other.is_control() => write!(f, "\\u{:04x}", u32::from(other))?,
                other => write!(f, "{other}")?,
            }
        }
        f.write_str("\"}}")
    }
}

/// Whether the whole text is a placeholder `{{ secret … }}`, malformed ones included. White space or the end must
/// follow the word: `{{secrets .}}` and `{{secret.}}` are plain text.
pub fn is_placeholder(text: &str) -> bool {
    argument_of(text, "secret").is_some()
}

/// A placeholder for a property of the payload itself, such as `{{payload_type .}}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescriptorPlaceholder {
    /// `{{payload_type .}}`: the name of the format.
    PayloadType,
    /// `{{payload_media_type .}}`: the media type of the payload.
    MediaType,
    /// `{{payload_extension .}}`: the extension of the payload's file, with the dot.
    Extension,
}

impl DescriptorPlaceholder {
    const WORDS: [(&'static str, Self); 3] = [
        ("payload_type", Self::PayloadType),
        ("payload_media_type", Self::MediaType),
        ("payload_extension", Self::Extension),
    ];

    /// Parses `text`; `None` for plain text.
    pub fn parse(text: &str) -> Result<Option<Self>, PlaceholderError> {
        let found =
            Self::WORDS.iter().find_map(|(word, field)| Some((*word, *field, argument_of(text, word)?)));
        match found {
            None => Ok(None),
            Some((_, field, ".")) => Ok(Some(field)),
            Some((word, _, _)) => Err(PlaceholderError::DescriptorArgument(word)),
        }
    }

    /// Returns its value in a payload that `descriptor` describes.
    pub fn value(self, descriptor: &Descriptor) -> &str {
        match self {
            Self::PayloadType => descriptor.payload_type.name(),
            Self::MediaType => descriptor.media_type,
            Self::Extension => &descriptor.extension,
        }
    }
}

/// Returns the trimmed text after `word` in a text that is `{{ word … }}` as a whole; `None` for any other text.
fn argument_of<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    let body = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    let argument = body.trim().strip_prefix(word)?;
    (argument.is_empty() || argument.starts_with(char::is_whitespace)).then(|| argument.trim())
}

/// Returns the text up to the closing quote. The opening quote is already removed.
fn unquote(rest: &str) -> Result<String, PlaceholderError> {
    let mut characters = rest.chars();
    let mut text = String::new();
    loop {
        match characters.next().ok_or(PlaceholderError::Quoting)? {
            '"' if characters.as_str().is_empty() => return Ok(text),
            '"' => return Err(PlaceholderError::Quoting),
            '\\' => text.push(unescape(&mut characters)?),
            other => text.push(other),
        }
    }
}

fn unescape(characters: &mut std::str::Chars<'_>) -> Result<char, PlaceholderError> {
    match characters.next() {
        Some(same @ ('"' | '\\')) => Ok(same),
        Some('n') => Ok('\n'),
        Some('t') => Ok('\t'),
        Some('u') => {
            let first = code_unit(characters)?;
            if !(0xd800..0xdc00).contains(&first) {
                return char::from_u32(u32::from(first)).ok_or(PlaceholderError::Quoting);
            }
            // Characters beyond U+FFFF are surrogate pairs, as in JSON (RFC 8259 §7).
            let escaped = characters.next() == Some('\\') && characters.next() == Some('u');
            let second = if escaped { code_unit(characters)? } else { 0 };
            let mut decoded = char::decode_utf16([first, second]);
            decoded.next().and_then(Result::ok).ok_or(PlaceholderError::Quoting)
        }
        _ => Err(PlaceholderError::Quoting),
    }
}

fn code_unit(characters: &mut std::str::Chars<'_>) -> Result<u16, PlaceholderError> {
    let digits: String = characters.by_ref().take(4).collect();
    let all = digits.len() == 4 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    all.then(|| u16::from_str_radix(&digits, 16).ok()).flatten().ok_or(PlaceholderError::Quoting)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;
    use crate::error::{Categorized, Category};

    #[rstest]
    #[case::plain("{{secret .}}")]
    #[case::spaces("{{ secret  . }}")]
    #[case::outside(" \n{{secret .}}\t")]
    #[case::line_break("{{secret\n.}}")]
    fn implicit(#[case] text: &str) {
        assert_eq!(Placeholder::parse(text), Ok(Some(Placeholder::Implicit)));
        assert!(is_placeholder(text));
    }

    #[rstest]
    #[case("{{secret db-pass}}", "db-pass")]
    #[case(r#"{{secret "db pass"}}"#, "db pass")]
    #[case(r#"{{secret "."}}"#, ".")]
    #[case(r#"{{secret " a "}}"#, "a")]
    #[case(r#"{{secret "a\"b\\c\nd\te\u00e9"}}"#, "a\"b\\c\nd\teé")]
    #[case(r#"{{secret "\ud83d\ude00"}}"#, "😀")]
    #[case(r#"{{secret "a}}b{{"}}"#, "a}}b{{")]
    #[case("{{secret a/b}}", "a/b")]
    #[case("{{secret a\"b}}", "a\"b")]
    #[case("{{secret ..}}", "..")]
    fn explicit(#[case] text: &str, #[case] key: &str) {
        assert_eq!(Placeholder::parse(text), Ok(Some(Placeholder::Explicit(key.to_owned()))));
        assert!(is_placeholder(text));
    }

    #[rstest]
    #[case("x {{secret .}}")]
    #[case("{{secret .}} x")]
    #[case("{{secrets .}}")]
    #[case("{{secret.}}")]
    #[case("{{include a}}")]
    #[case("{secret .}")]
    #[case("{{}}")]
    #[case("")]
    fn plain_text(#[case] text: &str) {
        assert_eq!(Placeholder::parse(text), Ok(None));
        assert!(!is_placeholder(text));
    }

    #[rstest]
    #[case("{{secret}}", PlaceholderError::NoKey)]
    #[case("{{secret }}", PlaceholderError::NoKey)]
    #[case(r#"{{secret ""}}"#, PlaceholderError::NoKey)]
    #[case(r#"{{secret "  "}}"#, PlaceholderError::NoKey)]
    #[case("{{secret a b}}", PlaceholderError::Unquoted)]
    #[case("{{secret a{b}}", PlaceholderError::Unquoted)]
    #[case("{{secret a}} and {{secret b}}", PlaceholderError::Unquoted)]
    #[case(r#"{{secret "a}}"#, PlaceholderError::Quoting)]
    #[case(r#"{{secret "a" b}}"#, PlaceholderError::Quoting)]
    #[case(r#"{{secret "a\x"}}"#, PlaceholderError::Quoting)]
    #[case(r#"{{secret "\u00g0"}}"#, PlaceholderError::Quoting)]
    #[case(r#"{{secret "\u+0ff"}}"#, PlaceholderError::Quoting)]
    #[case(r#"{{secret "\ud83d"}}"#, PlaceholderError::Quoting)]
    #[case(r#"{{secret "\ude00"}}"#, PlaceholderError::Quoting)]
    #[case(r#"{{secret "a\"}}"#, PlaceholderError::Quoting)]
    #[case("{{secret /a}}", PlaceholderError::Absolute)]
    #[case(r#"{{secret "/a"}}"#, PlaceholderError::Absolute)]
    #[case(r#"{{secret " /a"}}"#, PlaceholderError::Absolute)]
    fn malformed(#[case] text: &str, #[case] expected: PlaceholderError) {
        assert_eq!(expected.category(), Category::Validation);
        assert_eq!(Placeholder::parse(text), Err(expected));
        assert!(is_placeholder(text));
    }

    #[rstest]
    #[case(Placeholder::Implicit, "{{secret .}}")]
    #[case(Placeholder::Explicit("db-pass".into()), r#"{{secret "db-pass"}}"#)]
    #[case(Placeholder::Explicit("a\"b\\c\n\t\u{1}é".into()), r#"{{secret "a\"b\\c\n\t\u0001é"}}"#)]
    fn canonical_texts(#[case] placeholder: Placeholder, #[case] text: &str) {
        assert_eq!(placeholder.to_string(), text);
    }

    #[rstest]
    #[case("{{payload_type .}}", "yaml")]
    #[case(" {{ payload_media_type  . }} ", "application/yaml")]
    #[case("{{payload_extension .}}", ".yml")]
    fn descriptors(#[case] text: &str, #[case] expected: &str) {
        let placeholder = DescriptorPlaceholder::parse(text).unwrap().unwrap();
        assert_eq!(placeholder.value(&Descriptor::from_extension(".yml")), expected);
        assert!(!is_placeholder(text));
    }

    #[rstest]
    #[case("{{payload_type}}", "payload_type")]
    #[case("{{payload_type $}}", "payload_type")]
    #[case("{{payload_media_type x}}", "payload_media_type")]
    #[case("{{payload_extension \".\"}}", "payload_extension")]
    fn descriptors_accept_only_a_dot(#[case] text: &str, #[case] word: &'static str) {
        let error = DescriptorPlaceholder::parse(text).unwrap_err();
        assert_eq!(error.to_string(), format!("{{{{{word} …}}}} takes only \".\"; write {{{{{word} .}}}}"));
    }

    #[rstest]
    #[case("{{payload_types .}}")]
    #[case("a {{payload_type .}}")]
    fn not_descriptors(#[case] text: &str) {
        assert_eq!(DescriptorPlaceholder::parse(text), Ok(None));
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in any::<String>()) {
            let _ = Placeholder::parse(&text);
            let _ = Placeholder::parse(&format!("{{{{secret {text}}}}}"));
            let _ = Placeholder::parse(&format!("{{{{secret \"{text}\"}}}}"));
        }

        #[test]
        fn canonical_texts_mean_the_same(text in "[ -~é😀\\\\\"{}\n\t/.]{0,12}") {
            let quoted = format!("{{{{secret \"{text}\"}}}}");
            for written in [format!("{{{{secret {text}}}}}"), quoted] {
                if let Ok(Some(placeholder)) = Placeholder::parse(&written) {
                    let canonical = placeholder.to_string();
                    prop_assert_eq!(Placeholder::parse(&canonical), Ok(Some(placeholder)));
                }
            }
        }

        #[test]
        fn keys_survive_their_canonical_text(key in any::<String>()) {
            let key = key.trim();
            prop_assume!(!key.is_empty() && !key.starts_with('/'));
            let placeholder = Placeholder::Explicit(key.to_owned());
            prop_assert_eq!(Placeholder::parse(&placeholder.to_string()), Ok(Some(placeholder)));
        }
    }
}

//! Texts with decoded escapes, and the source of each of their bytes.
//!
//! Servers echo a value in the spelling of their encoder, and encoders escape different characters. After decoding
//! all spellings are equal.

use std::borrow::Cow;
use std::ops::Range;

use zeroize::Zeroizing;

/// The largest number of encodings on top of each other. JSON within JSON within a URL is three.
const DEPTH: usize = 6;

/// A text as it is, and with its escapes decoded once, twice and so on.
pub(super) struct Depths(Vec<Decoded>);

/// A text with decoded escapes. Each `+` becomes a space, because forms write spaces so and the two cannot be
/// distinguished.
struct Decoded {
    bytes: Zeroizing<Vec<u8>>,
    /// The ends of escapes, at which the offset between the two texts changes.
    joints: Vec<Joint>,
}

struct Joint {
    at: usize,
    source: usize,
}

impl Depths {
    pub fn of(text: &str) -> Self {
        let plain = Decoded { bytes: Zeroizing::new(spaced(text.as_bytes())), joints: Vec::new() };
        let mut depths = vec![plain];
        while depths.len() <= DEPTH
            && let Some(deeper) = depths.last().and_then(|last| Decoded::of(&last.bytes))
        {
            depths.push(deeper);
        }
        Self(depths)
    }

    /// Returns each text with its depth.
    pub fn each(&self) -> impl Iterator<Item = (usize, &[u8])> {
        self.0.iter().enumerate().map(|(depth, decoded)| (depth, decoded.bytes.as_slice()))
    }

    /// Returns the range of the original text for `part` of the text at `depth`.
    pub fn source(&self, depth: usize, part: Range<usize>) -> Range<usize> {
        let source = |at| self.0[..=depth].iter().rev().fold(at, |at, decoded| decoded.source(at));
        source(part.start)..source(part.end)
    }
}

impl Decoded {
    /// Decodes the escapes of `text` once; `None` if there are none.
    fn of(text: &[u8]) -> Option<Self> {
        let (mut bytes, mut joints) = (Zeroizing::new(Vec::new()), Vec::new());
        let mut copied = 0;
        let mut at = 0;
        while at < text.len() {
            let Some((length, stands_for)) = escape(&text[at..]) else {
                at += 1;
                continue;
            };
            if joints.is_empty() {
                bytes.reserve(text.len());
            }
            bytes.extend_from_slice(&text[copied..at]);
            bytes.extend(stands_for.bytes().iter().map(|&byte| space(byte)));
            at += length;
            copied = at;
            joints.push(Joint { at: bytes.len(), source: at });
        }
        if joints.is_empty() {
            return None;
        }
        bytes.extend_from_slice(&text[copied..]);
        Some(Self { bytes, joints })
    }

    fn source(&self, at: usize) -> usize {
        let after = self.joints.partition_point(|joint| joint.at <= at);
        match after.checked_sub(1).and_then(|last| self.joints.get(last)) {
            Some(joint) => joint.source + (at - joint.at),
            None => at,
        }
    }
}

/// Returns the patterns for `value`: as it is, and with everything decoded that looks like an escape.
pub(super) fn forms(value: &str) -> Vec<Zeroizing<Vec<u8>>> {
    let mut depths = Depths::of(value).0;
    let deepest = depths.pop().filter(|_| !depths.is_empty());
    let plain = Zeroizing::new(spaced(value.as_bytes()));
    std::iter::once(plain).chain(deepest.map(|deepest| deepest.bytes)).collect()
}

/// Returns the first `limit` characters of `text`, and `…` if there are more. An escape is not split, because the
/// rest of it could not be decoded.
pub(crate) fn excerpt(text: &str, limit: usize) -> Cow<'_, str> {
    let Some((mut end, _)) = text.char_indices().nth(limit) else { return text.into() };
    let before = text[..end].char_indices().rev().take(LONGEST_ESCAPE);
    let cut = before.filter(|(at, _)| escape(&text.as_bytes()[*at..]).is_some_and(|(len, _)| at + len > end));
    if let Some((start, _)) = cut.last() {
        end = start;
    }
    format!("{}…", &text[..end]).into()
}

fn spaced(text: &[u8]) -> Vec<u8> {
    text.iter().map(|&byte| space(byte)).collect()
}

const fn space(byte: u8) -> u8 {
    if byte == b'+' { b' ' } else { byte }
}

/// The longest escape in bytes: a pair of surrogates.
const LONGEST_ESCAPE: usize = 12;

/// The decoded form of an escape.
enum Sense {
    Byte(u8),
    Char([u8; 4], usize),
}

impl Sense {
    fn char(character: char) -> Self {
        let mut buffer = [0; 4];
        let length = character.encode_utf8(&mut buffer).len();
        Self::Char(buffer, length)
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Byte(byte) => std::slice::from_ref(byte),
            Self::Char(bytes, length) => &bytes[..*length],
        }
    }
}

/// Returns the length of the escape at the start of `text` and its decoded form.
fn escape(text: &[u8]) -> Option<(usize, Sense)> {
    match text.first()? {
        b'%' => Some((3, Sense::Byte(byte(text.get(1..3)?)?))),
        b'\\' => backslash(text),
        b'&' => entity(text),
        _ => None,
    }
}

/// Decodes an escape of JSON (RFC 8259, section 7), or one that JavaScript, Python and Rust write in addition.
fn backslash(text: &[u8]) -> Option<(usize, Sense)> {
    let short = |sense| Some((2, Sense::Byte(sense)));
    match text.get(1)? {
        b'n' => short(b'\n'),
        b'r' => short(b'\r'),
        b't' => short(b'\t'),
        b'b' => short(8),
        b'f' => short(12),
        other @ (b'\\' | b'/' | b'"' | b'\'') => short(*other),
        b'x' => Some((4, Sense::Byte(byte(text.get(2..4)?)?))),
        b'U' => Some((10, Sense::char(char::from_u32(number(text.get(2..10)?, 16)?)?))),
        b'u' if text.get(2) == Some(&b'{') => {
            let digits = text[3..].iter().take(7).position(|&byte| byte == b'}')?;
            Some((digits + 4, Sense::char(char::from_u32(number(&text[3..3 + digits], 16)?)?)))
        }
        b'u' => utf16(text),
        _ => None,
    }
}

/// Decodes `\uXXXX`, or a pair of surrogates (RFC 8259, section 7).
fn utf16(text: &[u8]) -> Option<(usize, Sense)> {
    let first = number(text.get(2..6)?, 16)?;
    if let Some(character) = char::from_u32(first) {
        return Some((6, Sense::char(character)));
    }
    let second = text.get(6..12).filter(|second| second.starts_with(b"\\u"))?;
    let units = [u16::try_from(first).ok()?, u16::try_from(number(&second[2..], 16)?).ok()?];
    let character = char::decode_utf16(units).next()?.ok()?;
    Some((12, Sense::char(character)))
}

/// Decodes the character references for characters that HTML and XML reserve (HTML, section 13.5), and numeric ones.
fn entity(text: &[u8]) -> Option<(usize, Sense)> {
    let end = text.iter().take(LONGEST_ESCAPE).position(|&byte| byte == b';')?;
    let name = &text[1..end];
    let character = match name {
        [b'#', b'x' | b'X', digits @ ..] => char::from_u32(number(digits, 16)?)?,
        [b'#', digits @ ..] => char::from_u32(number(digits, 10)?)?,
        _ => match name.to_ascii_lowercase().as_slice() {
            b"amp" => '&',
            b"lt" => '<',
            b"gt" => '>',
            b"quot" => '"',
            b"apos" => '\'',
            _ => return None,
        },
    };
    Some((end + 1, Sense::char(character)))
}

fn byte(digits: &[u8]) -> Option<u8> {
    u8::try_from(number(digits, 16)?).ok()
}

fn number(digits: &[u8], radix: u32) -> Option<u32> {
    let digits = std::str::from_utf8(digits).ok()?;
    // `from_str_radix` accepts a sign, which is not a digit.
    let all = digits.chars().all(|digit| digit.is_digit(radix));
    u32::from_str_radix(digits, radix).ok().filter(|_| all)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::json(r#"a\"\\\/\n\u00fc\u003C"#, "a\"\\/\nü<")]
    #[case::surrogates(r"\ud83d\uDE00", "😀")]
    #[case::lone_surrogate(r"\ud83dx", r"\ud83dx")]
    #[case::other_languages(r"\x41\'\u{fc}\U0001f600", "A'ü😀")]
    #[case::percent("%C3%bc%2F%zz%4", "ü/%zz%4")]
    #[case::html("&amp;&LT;&gt;&quot;&#39;&#x27;&#34;&#252;&nope;&", "&<>\"''\"ü&nope;&")]
    #[case::sign(r"\u+041%+4&#+65;", r"\u 041% 4&# 65;")]
    #[case::plus("a+b%2Bc", "a b c")]
    fn escapes(#[case] text: &str, #[case] expected: &str) {
        let once = Depths::of(text);
        let (_, bytes) = once.each().take(2).last().unwrap();
        assert_eq!(String::from_utf8_lossy(bytes), expected);
    }

    #[test]
    fn parts_are_mapped_to_their_source() {
        let text = r"x%255C\u00fcy";
        let depths = Depths::of(text);
        let (depth, deepest) = depths.each().last().unwrap();
        assert_eq!(deepest, "x\\üy".as_bytes());
        assert_eq!(&text[depths.source(depth, 1..2)], "%255C");
        assert_eq!(&text[depths.source(depth, 2..4)], r"\u00fc");
        assert_eq!(&text[depths.source(depth, 0..5)], text);
    }

    #[rstest]
    #[case("abcdef", 6, "abcdef")]
    #[case("abcdef", 5, "abcde…")]
    #[case(r"ab\u00fcd", 5, "ab…")]
    #[case("ab%41d", 5, "ab%41…")]
    #[case("ab%41d", 4, "ab…")]
    #[case("ééé", 2, "éé…")]
    fn excerpts(#[case] text: &str, #[case] limit: usize, #[case] expected: &str) {
        assert_eq!(excerpt(text, limit), expected);
    }
}

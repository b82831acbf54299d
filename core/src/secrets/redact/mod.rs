//! Removes secrets from texts that are shown.

mod decoded;
mod members;
mod patterns;

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use zeroize::Zeroizing;

pub(crate) use decoded::excerpt;
use decoded::{Depths, forms};
use patterns::Patterns;

use super::Secret;
use crate::payload::pointer::{Pointer, array_index};

/// The replacement of a secret value.
const REDACTED: &str = "<redacted>";

/// The shortest value that is redacted, in bytes. Replacing every `on` or `1` would make messages unreadable without
/// hiding anything.
const SHORTEST: usize = 6;

/// The shortest line of a value that is redacted by itself, in characters. Shorter lines may occur in any text.
const SHORTEST_LINE: usize = 16;

/// The parts of bodies that are secret regardless of their names and values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confidential {
    /// The members with these names.
    Members(Arc<[String]>),
    /// The whole body.
    Everything,
}

impl Confidential {
    /// Returns a form (`application/x-www-form-urlencoded`) without the values that are confidential or whose name looks
    /// like that of a secret.
    pub fn redact_form(&self, form: &str) -> String {
        match self {
            Self::Everything => REDACTED.to_owned(),
            Self::Members(names) => members::redact_form(form, names),
        }
    }
}

impl Default for Confidential {
    fn default() -> Self {
        Self::Members(Arc::default())
    }
}

impl Confidential {
    /// Returns the names of the members at `places`. Names are used because a shown body need not have the structure
    /// of the payload. A place in an array hides the whole array.
    pub fn at<'p>(places: impl IntoIterator<Item = &'p Pointer>) -> Self {
        let name = |place: &'p Pointer| place.tokens().iter().rfind(|token| array_index(token).is_none());
        let names: Option<Arc<[String]>> = places.into_iter().map(|place| name(place).cloned()).collect();
        names.map_or(Self::Everything, Self::Members)
    }
}

/// Replaces known secret values, in any encoding, with `<redacted>`.
#[derive(Clone, Default)]
pub struct Redactor {
    patterns: Arc<Patterns>,
}

impl Redactor {
    /// Returns a redactor for `secrets`. It finds values that are raw or escaped as in JSON, HTML and URLs,
    /// completely, partly or repeatedly, and in base64 of both alphabets at any place in the encoded text. In a value
    /// of several lines each line of at least 16 characters counts separately. Values below 6 bytes are ignored.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let values = secrets.into_iter().map(Secret::expose).filter(|value| value.len() >= SHORTEST);
        Self { patterns: Arc::new(Patterns::new(values.flat_map(spellings))) }
    }

    /// Whether it has no secrets.
    pub fn is_empty(&self) -> bool {
        self.patterns.len() == 0
    }

    /// Returns `text` without the known values, and without their beginnings before a cut (`…`).
    pub fn redact(&self, text: &str) -> String {
        Self::redact_all(&[self], text)
    }

    /// Returns `text` without the values of all `redactors`. Applying them one after the other is not enough: one may
    /// remove a part of another's value, which then would not be found.
    pub(crate) fn redact_all(redactors: &[&Self], text: &str) -> String {
        if redactors.iter().all(|redactor| redactor.is_empty()) {
            return text.to_owned();
        }
        let depths = Depths::of(text);
        let mut spans = Vec::new();
        for (depth, spelling) in depths.each() {
            for redactor in redactors {
                redactor.patterns.find(spelling, |part| spans.push(depths.source(depth, part)));
            }
        }
        replaced(text, spans)
    }

    /// Like [`Redactor::redact`] for a body, which may be cut off. It also replaces the values of JSON members that
    /// are `confidential` or whose name looks like that of a secret.
    pub fn redact_body(&self, body: &str, confidential: &Confidential) -> String {
        Self::redact_body_all(&[self], body, confidential)
    }

    /// [`Redactor::redact_body`] for all `redactors` at once.
    pub(crate) fn redact_body_all(redactors: &[&Self], body: &str, confidential: &Confidential) -> String {
        match confidential {
            Confidential::Everything => REDACTED.to_owned(),
            Confidential::Members(names) => Self::redact_all(redactors, &members::redact(body, names)),
        }
    }
}

/// Returns `text` with `spans` replaced.
fn replaced(text: &str, mut spans: Vec<Range<usize>>) -> String {
    spans.retain(|span| !span.is_empty());
    spans.sort_unstable_by_key(|span| (span.start, Reverse(span.end)));
    let mut redacted = String::with_capacity(text.len());
    let (mut shown, mut hidden) = (0, 0);
    for span in spans {
        let (start, end) = (text.floor_char_boundary(span.start), text.ceil_char_boundary(span.end));
        // Overlapping spans are replaced once.
        if start >= hidden {
            redacted.push_str(&text[shown..start]);
            redacted.push_str(REDACTED);
        }
        hidden = hidden.max(end);
        shown = hidden;
    }
    redacted.push_str(&text[shown..]);
    redacted
}

/// Returns the patterns for `value` in a text whose escapes are decoded.
fn spellings(value: &str) -> Vec<Zeroizing<Vec<u8>>> {
    let mut spellings = forms(value);
    // Messages may show single lines of a key. The lines `-----BEGIN …` are the same in all keys.
    let lines = value.lines().map(str::trim).filter(|line| line.chars().count() >= SHORTEST_LINE);
    let lines = lines.filter(|line| value.contains('\n') && !line.starts_with("-----"));
    spellings.extend(lines.flat_map(forms));
    let mut encoded = vec![STANDARD.encode(value), URL_SAFE.encode(value)];
    for offset in 0..3 {
        encoded.push(inner_base64(&STANDARD_NO_PAD, value, offset));
        encoded.push(inner_base64(&URL_SAFE_NO_PAD, value, offset));
    }
    let encoded = encoded.into_iter().map(Zeroizing::new);
    spellings.extend(encoded.map(|text| forms(&text).swap_remove(0)));
    spellings.retain(|spelling| spelling.len() >= SHORTEST);
    spellings
}

/// Returns the base64 digits of `value` that do not depend on the neighbours, if it begins at byte `3n + offset` of
/// the encoded text.
fn inner_base64(engine: &impl Engine, value: &str, offset: usize) -> String {
    let mut bytes = Zeroizing::new(vec![0; offset]);
    bytes.extend_from_slice(value.as_bytes());
    let encoded = Zeroizing::new(engine.encode(&*bytes));
    let (first, end) = ((offset * 8).div_ceil(6), bytes.len() * 8 / 6);
    encoded[first..end].to_owned()
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} spellings)", self.patterns.len())
    }
}

#[cfg(test)]
mod tests {
    use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    const VALUE: &str = "p\"ss w/rd!?~é";

    fn redactor() -> Redactor {
        Redactor::new([&Secret::from(VALUE.to_owned()), &Secret::from("on".to_owned())])
    }

    #[rstest]
    #[case::raw(VALUE)]
    #[case::json(r#"p\"ss w/rd!?~é"#)]
    #[case::json_in_json(r#"p\\\"ss w/rd!?~é"#)]
    #[case::form("p%22ss+w%2Frd%21%3F%7E%C3%A9")]
    #[case::lower_case_form("p%22ss+w%2frd%21%3f%7e%c3%a9")]
    #[case::url("p%22ss%20w%2Frd%21%3F~%C3%A9")]
    #[case::lower_case_url("p%22ss%20w%2frd%21%3f~%c3%a9")]
    #[case::base64("cCJzcyB3L3JkIT9+w6k=")]
    #[case::url_base64("cCJzcyB3L3JkIT9-w6k=")]
    fn every_encoding_is_redacted(#[case] spelling: &str) {
        assert_eq!(redactor().redact(&format!("got {spelling} here")), "got <redacted> here");
    }

    #[rstest]
    fn base64_is_redacted_at_every_offset(#[values("", "u", "us", "usr", "user")] before: &str) {
        for after in ["", "1", "12", "123"] {
            let encoded = STANDARD.encode(format!("{before}{VALUE}{after}"));
            let redacted = redactor().redact(&encoded);
            assert!(redacted.contains(REDACTED), "{before:?} {after:?}: {redacted}");
            let left = redacted.replace(REDACTED, "");
            // Only digits that also encode a part of the neighbours are left.
            assert!(left.len() + 18 <= encoded.len(), "{before:?} {after:?}: {redacted}");
        }
    }

    #[rstest]
    #[case::go(r#"p\"ss\u0020w/rd!?~é"#)]
    #[case::ascii(r#"p\"ss w/rd!?~\u00e9"#)]
    #[case::upper_case_ascii(r#"p\"ss w/rd!?~\u00E9"#)]
    #[case::php(r#"p\"ss w\/rd!?~\u00e9"#)]
    #[case::html("p&quot;ss w&#x2f;rd!?~é")]
    #[case::path("p%22ss%20w%2Frd!%3F~%C3%A9")]
    #[case::partly("p%22ss w/rd!?~%c3%A9")]
    #[case::html_in_go(r"p\u0026#34;ss w/rd!?~é")]
    #[case::json_in_a_url("p%5C%22ss%20w/rd!?~%5Cu00e9")]
    fn other_encoders(#[case] spelling: &str) {
        assert_eq!(redactor().redact(&format!("got {spelling} here")), "got <redacted> here");
    }

    #[rstest]
    #[case::contained("known-value-and-more", "<redacted>")]
    #[case::overlapping("a known-value-and-more-value b", "a <redacted> b")]
    #[case::side_by_side("known-valueknown-value", "<redacted><redacted>")]
    fn overlapping_values_of_several_redactors_are_replaced_once(#[case] text: &str, #[case] expected: &str) {
        let knowing = |value: &str| Redactor::new([&Secret::from(value.to_owned())]);
        let (short, long) = (knowing("known-value"), knowing("known-value-and-more"));
        let third = knowing("more-value");
        for redactors in [[&short, &long, &third], [&third, &long, &short]] {
            assert_eq!(Redactor::redact_all(&redactors, text), expected);
        }
    }

    #[rstest]
    #[case("status 400: p\"ss w/r…", "status 400: <redacted>…")]
    #[case("status 400: p%22ss…; try again", "status 400: <redacted>…; try again")]
    #[case("status 400: its prices…", "status 400: its prices…")]
    fn beginnings_before_a_cut_are_redacted(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(redactor().redact(text), expected);
    }

    #[test]
    fn single_lines_of_a_key_are_redacted() {
        let key = "-----BEGIN KEY-----\r\nMIIEvQIBADANBgkqhkiG\r\nshort\r\n-----END KEY-----\r\n";
        let redactor = Redactor::new([&Secret::from(key.to_owned())]);
        let text = "line 2: MIIEvQIBADANBgkqhkiG\nshort, after -----BEGIN KEY-----";
        assert_eq!(redactor.redact(text), "line 2: <redacted>\nshort, after -----BEGIN KEY-----");
    }

    #[test]
    fn many_values_are_searched_for_at_once() {
        let secrets: Vec<Secret> = (0..5000).map(|n| Secret::from(format!("s3cret-value-{n:04}"))).collect();
        let redactor = Redactor::new(&secrets);
        let text: Vec<_> = (0..5000).map(|n| format!("no. {n}: s3cret%2Dvalue-{n:04}\n")).collect();
        let expected: Vec<_> = (0..5000).map(|n| format!("no. {n}: <redacted>\n")).collect();
        assert_eq!(redactor.redact(&text.concat()), expected.concat());
    }

    type Encoder = fn(char) -> String;

    /// Characters that URL paths keep in addition to letters and digits (WHATWG URL, path percent-encode set).
    const PATH: &AsciiSet =
        &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'<').add(b'>').add(b'?').add(b'%').add(b'\\').add(b'+');

    fn go(character: char) -> String {
        match character {
            '<' | '>' | '&' => format!("\\u{:04x}", u32::from(character)),
            other => json(other),
        }
    }

    fn json(character: char) -> String {
        let quoted = serde_json::Value::from(character.to_string()).to_string();
        quoted[1..quoted.len() - 1].to_owned()
    }

    fn ascii(character: char) -> String {
        if character.is_ascii() {
            return json(character);
        }
        let units = character.encode_utf16(&mut [0; 2]).to_vec();
        units.iter().map(|unit| format!("\\u{unit:04X}")).collect::<Vec<_>>().concat()
    }

    fn html(character: char) -> String {
        match character {
            '&' => "&amp;".to_owned(),
            '<' => "&lt;".to_owned(),
            '>' => "&gt;".to_owned(),
            '"' => "&#34;".to_owned(),
            '\'' => "&#x27;".to_owned(),
            other => other.to_string(),
        }
    }

    fn php(character: char) -> String {
        match character {
            '/' => "\\/".to_owned(),
            other if other.is_ascii() => json(other),
            other => ascii(other).to_lowercase(),
        }
    }

    fn path(character: char) -> String {
        utf8_percent_encode(&character.to_string(), PATH).to_string()
    }

    fn url(character: char) -> String {
        let encoded = utf8_percent_encode(&character.to_string(), NON_ALPHANUMERIC).to_string();
        if character.is_ascii_alphanumeric() { encoded } else { encoded.to_lowercase() }
    }

    fn form(character: char) -> String {
        url::form_urlencoded::byte_serialize(character.to_string().as_bytes()).collect()
    }

    const ENCODERS: [Encoder; 8] = [go, json, ascii, html, php, path, url, form];

    /// Generates a value of at least six letters or digits, mixed with characters that encoders escape. No part of it
    /// looks like an escape; a value with such a part is found only if it is encoded in one way as a whole.
    fn value() -> impl Strategy<Value = String> {
        let letters =
            prop::collection::vec(prop::char::ranges(vec!['g'..='m', 'o'..='q', 'G'..='Z'].into()), 6..12);
        let special = prop::sample::select("<>&\"' /+\\%?#=:@éü😀".chars().collect::<Vec<_>>());
        (letters, prop::collection::vec(special, 0..12)).prop_flat_map(|(letters, special)| {
            let all: Vec<char> = letters.into_iter().chain(special).collect();
            Just(all).prop_shuffle().prop_map(|all| all.into_iter().collect())
        })
    }

    proptest! {
        #[test]
        fn any_mix_of_encoders_is_redacted(
            value in value(),
            encoders in prop::collection::vec(0..ENCODERS.len(), 24),
        ) {
            let mixed = value.chars().zip(encoders).map(|(character, encoder)| match character {
                // Every encoder escapes the first character of its own escapes.
                '\\' => "\\\\".to_owned(),
                '%' => "%25".to_owned(),
                '&' => "&amp;".to_owned(),
                other => ENCODERS[encoder](other),
            });
            let text = format!("got {} here", mixed.collect::<String>());
            let redactor = Redactor::new([&Secret::from(value.clone())]);
            prop_assert_eq!(redactor.redact(&text), "got <redacted> here", "{}", text);
        }

        #[test]
        fn any_encoder_applied_twice_is_redacted(
            value in value(),
            first in 0..ENCODERS.len(),
            second in 0..ENCODERS.len(),
        ) {
            let redactor = Redactor::new([&Secret::from(value.clone())]);
            let once: String = value.chars().map(ENCODERS[first]).collect();
            let twice: String = once.chars().map(ENCODERS[second]).collect();
            for text in [value, once, twice] {
                prop_assert_eq!(redactor.redact(&format!("got {text} here")), "got <redacted> here", "{}", text);
            }
        }

        #[test]
        fn never_panics(text in ".{0,40}", value in ".{6,12}") {
            Redactor::new([&Secret::from(value)]).redact(&text);
        }
    }

    #[test]
    fn short_values_are_not_redacted() {
        assert_eq!(redactor().redact("connection on"), "connection on");
        assert!(!format!("{:?}", redactor()).contains("rd!"));
    }

    #[test]
    fn values_and_members_of_bodies_are_redacted() {
        let body = r#"{"note": "p\"ss w/rd!?~é", "apiKey": "k1", "id": 7}"#;
        let expected = r#"{"note": "<redacted>", "apiKey": "<redacted>", "id": 7}"#;
        assert_eq!(redactor().redact_body(body, &Confidential::default()), expected);
    }

    #[rstest]
    #[case::member("/pin", r#"{"pin": "<redacted>", "door": {"code": 2}}"#)]
    #[case::inner("/door/code", r#"{"pin": "0", "door": {"code": "<redacted>"}}"#)]
    #[case::whole_member("/door", r#"{"pin": "0", "door": "<redacted>"}"#)]
    #[case::in_an_array("/pin/0", r#"{"pin": "<redacted>", "door": {"code": 2}}"#)]
    #[case::everything("", "<redacted>")]
    #[case::an_array("/0", "<redacted>")]
    fn confidential_members_are_hidden_by_name(#[case] place: &str, #[case] expected: &str) {
        let confidential = Confidential::at(&[Pointer::parse(place).unwrap()]);
        let body = r#"{"pin": "0", "door": {"code": 2}}"#;
        assert_eq!(Redactor::default().redact_body(body, &confidential), expected);
    }
}

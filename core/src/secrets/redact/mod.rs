//! Takes secrets out of text that is about to be shown.

mod members;

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use zeroize::Zeroizing;

use super::Secret;
use crate::payload::pointer::{Pointer, array_index};

/// What a secret value is replaced by.
const REDACTED: &str = "<redacted>";

/// Shorter values are left alone: replacing every `on` or `1` would destroy messages and hide nothing.
const SHORTEST: usize = 6;

/// Everything but the unreserved characters of RFC 3986, section 2.3.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What of bodies is secret whatever it is called, and whether or not its value is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confidential {
    /// The members of these names.
    Members(Arc<[String]>),
    /// All of it.
    Everything,
}

impl Default for Confidential {
    fn default() -> Self {
        Self::Members(Arc::default())
    }
}

impl Confidential {
    /// What is at these places, by name: bodies that are shown need not have the form of payloads. A place in an
    /// array hides the whole array.
    pub fn at<'p>(places: impl IntoIterator<Item = &'p Pointer>) -> Self {
        let name = |place: &'p Pointer| place.tokens().iter().rfind(|token| array_index(token).is_none());
        let names: Option<Arc<[String]>> = places.into_iter().map(|place| name(place).cloned()).collect();
        names.map_or(Self::Everything, Self::Members)
    }
}

/// Replaces known secret values, in every spelling they may come back in, by `<redacted>`.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Longest first, so that a value containing another is replaced as a whole.
    spellings: Vec<Zeroizing<String>>,
}

impl Redactor {
    /// A redactor that knows `secrets`: raw, JSON-escaped once or twice, percent-encoded as in forms and as in URLs, and in
    /// base64 of either alphabet, wherever in the encoded text they stand. Values below 6 bytes are left alone.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let values = secrets.into_iter().map(Secret::expose).filter(|value| value.len() >= SHORTEST);
        let mut spellings: Vec<Zeroizing<String>> = values.flat_map(spellings).collect();
        spellings.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        spellings.dedup();
        Self { spellings }
    }

    /// `text` without the values this redactor knows.
    pub fn redact(&self, text: &str) -> String {
        self.spellings.iter().fold(text.to_owned(), |text, secret| {
            if text.contains(secret.as_str()) { text.replace(secret.as_str(), REDACTED) } else { text }
        })
    }

    /// [`Redactor::redact`] for a body, which may be cut off: what JSON members hold whose name looks like that
    /// of a secret is replaced as well, and what is `confidential`.
    pub fn redact_body(&self, body: &str, confidential: &Confidential) -> String {
        match confidential {
            Confidential::Everything => REDACTED.to_owned(),
            Confidential::Members(names) => self.redact(&members::redact(body, names)),
        }
    }
}

fn spellings(value: &str) -> Vec<Zeroizing<String>> {
    let json = Zeroizing::new(serde_json::Value::from(value).to_string());
    // Errors quote the JSON that they are about, in JSON.
    let quoted = Zeroizing::new(serde_json::Value::from(&json[1..json.len() - 1]).to_string());
    let form: String = url::form_urlencoded::byte_serialize(value.as_bytes()).collect();
    let url = utf8_percent_encode(value, RESERVED).to_string();
    let mut spellings = vec![
        value.to_owned(),
        json[1..json.len() - 1].to_owned(),
        quoted[1..quoted.len() - 1].to_owned(),
        lower_case_escapes(&form),
        lower_case_escapes(&url),
        form,
        url,
        STANDARD.encode(value),
        URL_SAFE.encode(value),
    ];
    for offset in 0..3 {
        spellings.push(inner_base64(&STANDARD_NO_PAD, value, offset));
        spellings.push(inner_base64(&URL_SAFE_NO_PAD, value, offset));
    }
    spellings.into_iter().map(Zeroizing::new).collect()
}

/// What stays the same of a value in the base64 of a text that holds it after `3n + offset` bytes: the digits
/// that none of its neighbours has a bit in.
fn inner_base64(engine: &impl Engine, value: &str, offset: usize) -> String {
    let mut bytes = Zeroizing::new(vec![0; offset]);
    bytes.extend_from_slice(value.as_bytes());
    let encoded = Zeroizing::new(engine.encode(&*bytes));
    let (first, end) = ((offset * 8).div_ceil(6), bytes.len() * 8 / 6);
    encoded[first..end].to_owned()
}

/// Some programs write `%2f` for `%2F`.
fn lower_case_escapes(encoded: &str) -> String {
    let mut digits = 0;
    let lower = |character: char| {
        let is_digit = digits > 0;
        digits = if character == '%' { 2 } else { usize::saturating_sub(digits, 1) };
        if is_digit { character.to_ascii_lowercase() } else { character }
    };
    encoded.chars().map(lower).collect()
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} spellings)", self.spellings.len())
    }
}

#[cfg(test)]
mod tests {
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
    fn every_spelling_disappears(#[case] spelling: &str) {
        assert_eq!(redactor().redact(&format!("got {spelling} here")), "got <redacted> here");
    }

    #[rstest]
    fn base64_hides_it_at_every_place(#[values("", "u", "us", "usr", "user")] before: &str) {
        for after in ["", "1", "12", "123"] {
            let encoded = STANDARD.encode(format!("{before}{VALUE}{after}"));
            let redacted = redactor().redact(&encoded);
            assert!(redacted.contains(REDACTED), "{before:?} {after:?}: {redacted}");
            let left = redacted.replace(REDACTED, "");
            // Only digits that its neighbours have a part in are left.
            assert!(left.len() + 18 <= encoded.len(), "{before:?} {after:?}: {redacted}");
        }
    }

    #[test]
    fn short_values_do_not_shred_messages() {
        assert_eq!(redactor().redact("connection on"), "connection on");
        assert!(!format!("{:?}", redactor()).contains("rd!"));
    }

    #[test]
    fn bodies_lose_values_and_members() {
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

//! Takes known secret values out of text that is about to be shown.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use super::Secret;

/// What a secret value is replaced by.
const REDACTED: &str = "<redacted>";

/// Shorter values are left alone: replacing every `on` or `1` would destroy messages and hide nothing.
const SHORTEST: usize = 6;

/// Replaces known secret values, in every spelling they may come back in, by `<redacted>`.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Longest first, so that a value containing another is replaced as a whole.
    spellings: Vec<Zeroizing<String>>,
}

impl Redactor {
    /// A redactor that knows `secrets`: raw, JSON-escaped, percent-encoded and base64.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let mut spellings: Vec<Zeroizing<String>> = secrets
            .into_iter()
            .map(Secret::expose)
            .filter(|value| value.len() >= SHORTEST)
            .flat_map(|value| {
                let json = serde_json::Value::from(value).to_string();
                [
                    value.to_owned(),
                    json[1..json.len() - 1].to_owned(),
                    url::form_urlencoded::byte_serialize(value.as_bytes()).collect(),
                    STANDARD.encode(value),
                ]
            })
            .map(Zeroizing::new)
            .collect();
        spellings.sort_by_key(|spelling| std::cmp::Reverse(spelling.len()));
        spellings.dedup();
        Self { spellings }
    }

    /// `text` without the values this redactor knows.
    pub fn redact(&self, text: &str) -> String {
        self.spellings.iter().fold(text.to_owned(), |text, secret| {
            if text.contains(secret.as_str()) { text.replace(secret.as_str(), REDACTED) } else { text }
        })
    }
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} spellings)", self.spellings.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_disappears() {
        let secret = Secret::from("p\"ss w&rd!".to_owned());
        let redactor = Redactor::new([&secret]);
        let encoded = STANDARD.encode("p\"ss w&rd!");
        let text = format!("raw p\"ss w&rd! json p\\\"ss w&rd! form p%22ss+w%26rd%21 base64 {encoded}");
        assert_eq!(
            redactor.redact(&text),
            "raw <redacted> json <redacted> form <redacted> base64 <redacted>"
        );
    }

    #[test]
    fn short_values_do_not_shred_messages() {
        let redactor = Redactor::new([&Secret::from("on".to_owned())]);
        assert_eq!(redactor.redact("connection on"), "connection on");
    }
}

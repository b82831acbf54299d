//! Secrets that tests put wherever one can be, and a search for them in everything that is said.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// How each of them but a key begins; programs have no other word that begins like it.
pub const BEGINNING: &str = "c4n-";

/// The key of an encrypted store.
pub const STORE_KEY: &str = "5ec0de5ec0de5ec0de5ec0de5ec0de5ec0de5ec0de5ec0de5ec0de5ec0de5ec0";

/// What the secret of a place is: what JSON, HTML, URLs and base64 write in other ways.
pub fn canary(place: &str) -> String {
    format!("{BEGINNING}{place}/+& <>\"%s3cret")
}

/// The secret of a place that need not fit into a header.
pub fn wide_canary(place: &str) -> String {
    format!("{}é", canary(place))
}

/// A text as encoders of other languages write it: Go's JSON, Python's, PHP's, and HTML.
pub fn encoded(text: &str) -> [String; 4] {
    let json = Value::from(text).to_string();
    let json = &json[1..json.len() - 1];
    let escaped = |escaped: fn(char) -> bool| -> String {
        let escape = |character: char| match character {
            character if escaped(character) => {
                let units: Vec<u16> = character.encode_utf16(&mut [0; 2]).to_vec();
                units.iter().map(|unit| format!("\\u{unit:04x}")).collect::<Vec<_>>().concat()
            }
            character => character.to_string(),
        };
        json.chars().map(escape).collect()
    };
    let html = [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\"", "&#34;"), ("'", "&#39;")];
    [
        escaped(|character| matches!(character, '<' | '>' | '&')),
        escaped(|character| !character.is_ascii()),
        escaped(|character| !character.is_ascii()).replace('/', "\\/"),
        html.iter().fold(text.to_owned(), |text, (character, reference)| text.replace(character, reference)),
    ]
}

/// What was said, by where: `("standard error", "…")`.
pub type Said = (String, String);

/// Adds the files below a directory, but for those that hold secrets on purpose.
pub fn files(directory: &Path, keeping: &[&str], said: &mut Vec<Said>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if keeping.iter().any(|kept| path.ends_with(kept)) {
            continue;
        }
        if path.is_dir() {
            files(&path, keeping, said);
        } else if let Ok(content) = fs::read(&path) {
            said.push((path.display().to_string(), String::from_utf8_lossy(&content).into_owned()));
        }
    }
}

/// Fails if the secret of `place` is anywhere, in any spelling.
pub fn search(place: &str, secret: &str, said: &[Said]) {
    for spelling in spellings(secret) {
        search_text(place, &spelling, said);
    }
}

/// Fails if this text is anywhere.
pub fn search_text(place: &str, text: &str, said: &[Said]) {
    for (what, said) in said {
        let before = said.find(text).map(|at| {
            let before: Vec<char> = said[..at].chars().rev().take(300).collect();
            before.into_iter().rev().collect::<String>()
        });
        assert_eq!(before, None, "the secret of {place} is in {what} after this");
    }
}

/// Base64 is looked for without its ends, which depend on what stands beside.
fn spellings(secret: &str) -> Vec<String> {
    let json = Value::from(secret).to_string();
    let mut spellings = vec![
        secret.to_owned(),
        json[1..json.len() - 1].to_owned(),
        utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string(),
        utf8_percent_encode(secret, CONTROLS).to_string(),
        url::form_urlencoded::byte_serialize(secret.as_bytes()).collect(),
    ];
    spellings.extend(encoded(secret));
    for offset in 0..3 {
        let padded = [&[b' '; 3][..offset], secret.as_bytes()].concat();
        for encoded in [STANDARD_NO_PAD.encode(&padded), URL_SAFE_NO_PAD.encode(&padded)] {
            spellings.push(encoded[4..encoded.len() - 4].to_owned());
        }
    }
    spellings
}

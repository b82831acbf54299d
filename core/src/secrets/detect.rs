//! Detects likely secrets in a payload by names and values.

use super::{is_placeholder, is_secret_name};
use crate::payload::pointer::Pointer;
use crate::payload::{Object, Value};

/// Values that are settings, not secrets, whatever their name.
const SWITCHES: [&str; 8] = ["true", "false", "yes", "no", "on", "off", "enabled", "disabled"];

/// Returns the sorted pointers of all members of `payload` that look like secrets: the name is that of a secret, and
/// the value is a plausible string that is not a placeholder.
pub fn detect(payload: &Value) -> Vec<Pointer> {
    let mut found = Vec::new();
    walk(&Pointer::default(), payload, &mut found);
    found.sort();
    found
}

fn walk(at: &Pointer, value: &Value, found: &mut Vec<Pointer>) {
    match value {
        Value::Object(members) => {
            let is_key = is_key(members);
            for (name, member) in members {
                let at = at.child(name);
                let is_secret = || is_secret_name(name) || (is_key && is_private_key_part(name));
                if member.as_str().is_some_and(is_secret_text) && is_secret() {
                    found.push(at);
                } else {
                    walk(&at, member, found);
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                walk(&at.child(&index.to_string()), item, found);
            }
        }
        _ => {}
    }
}

/// Whether an object is a JSON Web Key: it states the type of the key (RFC 7517 section 4.1).
pub(super) fn is_key(members: &Object) -> bool {
    members.get("kty").is_some_and(|kind| kind.as_str().is_some())
}

/// Whether the member of a JSON Web Key is a private part (RFC 7518 section 6, RFC 8037 section 2).
pub(super) fn is_private_key_part(name: &str) -> bool {
    matches!(name, "d" | "p" | "q" | "dp" | "dq" | "qi" | "k")
}

/// Whether a text can be a secret: it is neither empty, a number, a switch nor a placeholder.
fn is_secret_text(text: &str) -> bool {
    let text = text.trim();
    !text.is_empty()
        && !text.bytes().all(|byte| byte.is_ascii_digit())
        && !SWITCHES.iter().any(|switch| switch.eq_ignore_ascii_case(text))
        && !is_placeholder(text)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::payload::{PayloadType, decode};

    #[rstest]
    #[case("'k1'", true)]
    #[case("' 0420 '", false)]
    #[case("'0420a'", true)]
    #[case("''", false)]
    #[case("'  '", false)]
    #[case("'true'", false)]
    #[case("'False'", false)]
    #[case("'yes'", false)]
    #[case("'NO'", false)]
    #[case("'on'", false)]
    #[case("' off '", false)]
    #[case("'enabled'", false)]
    #[case("'Disabled'", false)]
    #[case("'nope'", true)]
    #[case("'{{secret .}}'", false)]
    #[case("'{{secret ci}}'", false)]
    #[case("'{{secrets .}}'", true)]
    #[case("17", false)]
    #[case("true", false)]
    #[case("null", false)]
    #[case("[a]", false)]
    fn values(#[case] value: &str, #[case] secret: bool) {
        let payload = decode(PayloadType::Yaml, format!("password: {value}").as_bytes()).unwrap();
        assert_eq!(!detect(&payload).is_empty(), secret);
    }

    #[test]
    fn members_are_found_at_any_depth() {
        let payload = br#"{"users": [{"pw/password": "a"}, {"password": {"token": "b"}}], "apiKey": "c",
            "tokens": ["d"], "id": "e"}"#;
        let found = detect(&decode(PayloadType::Json, payload).unwrap());
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, ["/apiKey", "/users/0/pw~1password", "/users/1/password/token"]);
    }

    #[rstest]
    #[case::rsa(
        r#"{"kty": "RSA", "n": "a", "d": "b", "p": "c", "q": "e", "dp": "f", "dq": "g", "qi": "h"}"#,
        "/d /dp /dq /p /q /qi"
    )]
    #[case::curve(r#"{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "a", "d": "b"}]}"#, "/keys/0/d")]
    #[case::symmetric(r#"{"kty": "oct", "k": "a"}"#, "/k")]
    #[case::public(r#"{"kty": "EC", "x": "a", "y": "b"}"#, "")]
    #[case::no_key(r#"{"d": "a", "k": "b", "p": "c"}"#, "")]
    fn private_parts_of_web_keys(#[case] payload: &str, #[case] expected: &str) {
        let found = detect(&decode(PayloadType::Json, payload.as_bytes()).unwrap());
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found.join(" "), expected);
    }
}

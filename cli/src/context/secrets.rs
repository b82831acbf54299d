//! The secrets in a catalogue.

use declarest_core::payload::Value;
use declarest_core::secrets::{Secret, is_secret_name};
use percent_encoding::percent_decode_str;
use url::Url;

/// Keys of secrets, at any place in a catalogue.
const NAMES: [&str; 7] = ["clientSecret", "key", "passphrase", "password", "secretID", "token", "value"];
/// The key of headers that each request has.
const HEADERS: &str = "defaultHeaders";
const MASK: &str = "<redacted>";

/// Returns a value with masked secrets.
pub fn masked(value: Value) -> Value {
    rewritten(value, &mut drop)
}

/// Returns the secrets of a value.
pub fn secrets_of(value: Value) -> Vec<Secret> {
    let mut secrets = Vec::new();
    rewritten(value, &mut |secret| secrets.push(Secret::from(secret)));
    secrets
}

/// Returns `value` with masked secrets, and passes each of them to `found`: the values of secret keys, headers with the
/// names of secrets, and passwords and queries of URLs.
fn rewritten(value: Value, found: &mut impl FnMut(String)) -> Value {
    match value {
        Value::Object(members) => Value::Object(
            members
                .into_iter()
                .map(|(key, member)| match member {
                    Value::String(text) if NAMES.contains(&key.as_str()) => (key, mask(text, found)),
                    Value::Object(headers) if key == HEADERS => {
                        let header = |(name, value): (String, Value)| match value {
                            Value::String(text) if is_secret_name(&name) => (name, mask(text, found)),
                            other => (name, other),
                        };
                        (key, Value::Object(headers.into_iter().map(header).collect()))
                    }
                    member => (key, rewritten(member, found)),
                })
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.into_iter().map(|item| rewritten(item, found)).collect()),
        Value::String(text) => in_url(&text, found).map_or(Value::String(text), Value::from),
        other => other,
    }
}

fn mask(secret: String, found: &mut impl FnMut(String)) -> Value {
    found(secret);
    MASK.into()
}

/// Returns `text` with masked userinfo and query, and passes its secrets to `found`; `None` if it is not a URL with one
/// of them.
fn in_url(text: &str, found: &mut impl FnMut(String)) -> Option<String> {
    let url = Url::parse(text).ok().filter(Url::has_host)?;
    let password =
        url.password().map(|password| percent_decode_str(password).decode_utf8_lossy().into_owned());
    password.into_iter().for_each(&mut *found);
    url.query_pairs().for_each(|(_, value)| found(value.into_owned()));
    let masked = |(before, _)| (before, format!("?{MASK}"));
    let (before, query) = text.split_once('?').map_or_else(|| (text, String::new()), masked);
    let (scheme, rest) = before.split_once("://")?;
    let at = rest[..rest.find('/').unwrap_or(rest.len())].rfind('@');
    let userinfo = at.map(|at| &rest[..at]);
    // The user name of a Git URL over SSH is not a secret. Over HTTP, it may be a token.
    let shown = match userinfo.map(|userinfo| (userinfo, userinfo.split_once(':'))) {
        Some((_, Some((user, _)))) => format!("{user}:{MASK}"),
        Some((_, None)) if scheme.starts_with("http") => MASK.to_owned(),
        Some((user, None)) => user.to_owned(),
        None => String::new(),
    };
    let masked = format!("{scheme}://{shown}{}{query}", &rest[at.unwrap_or_default()..]);
    (masked != text).then_some(masked)
}

#[cfg(test)]
mod tests {
    use declarest_core::payload::{PayloadType, decode, encode};
    use rstest::rstest;

    use super::*;

    fn value() -> Value {
        decode(PayloadType::Yaml, b"a: [{token: t, name: n}]\nkey: {prompt: true}").unwrap()
    }

    #[test]
    fn secrets_are_masked() {
        assert_eq!(
            encode(PayloadType::Yaml, &masked(value())).unwrap(),
            b"a:\n    - name: \"n\"\n      token: <redacted>\nkey:\n    prompt: true\n"
        );
    }

    #[rstest]
    #[case("{token: t, name: n}", "{name: n, token: <redacted>}", &["t"])]
    #[case("{token: {prompt: true}}", "{token: {prompt: true}}", &[])]
    #[case("{defaultHeaders: {X-Api-Key: k, Accept: a}}", "{defaultHeaders: {Accept: a, X-Api-Key: <redacted>}}", &["k"])]
    #[case("[http://u:p%40ss@proxy:3128]", "['http://u:<redacted>@proxy:3128']", &["p@ss"])]
    #[case("['https://h.test/b?sig=s&n=1']", "['https://h.test/b?<redacted>']", &["s", "1"])]
    #[case("['https://token@h.test/b/a@c']", "['https://<redacted>@h.test/b/a@c']", &[])]
    #[case("['ssh://git@h.test/b', 'git@h.test:b?', 'https://h.test/a@b', '/a?b']",
           "['ssh://git@h.test/b', 'git@h.test:b?', 'https://h.test/a@b', '/a?b']", &[])]
    fn secrets_are_found(#[case] value: &str, #[case] expected: &str, #[case] secrets: &[&str]) {
        let parsed = |text: &str| decode(PayloadType::Yaml, text.as_bytes()).unwrap();
        assert_eq!(masked(parsed(value)), parsed(expected));
        let expected: Vec<Secret> = secrets.iter().map(|&secret| Secret::from(secret.to_owned())).collect();
        assert_eq!(secrets_of(parsed(value)), expected);
    }
}

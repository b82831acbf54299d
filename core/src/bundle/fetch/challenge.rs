//! Parses the authentication challenges of registries: the `WWW-Authenticate` header.

use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

use crate::transport::field_text::{FieldText, is_space};

/// The authentication that a registry requires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// User name and password.
    Basic,
    /// A token of another service.
    Bearer {
        /// The URL of the token service.
        realm: String,
        /// The name of the registry at the token service.
        service: Option<String>,
        /// The scope to request.
        scope: Option<String>,
    },
}

impl Challenge {
    /// Returns the first supported challenge of a response; Bearer takes precedence over Basic.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let texts = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
        let mut found: Vec<Self> = texts.filter_map(Self::parse).collect();
        let bearer = found.iter().position(|challenge| *challenge != Self::Basic).unwrap_or_default();
        (!found.is_empty()).then(|| found.swap_remove(bearer))
    }

    /// Parses a header according to RFC 9110, section 11.6.1. Registries send only one challenge in a header.
    fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Self::Basic);
        }
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let (mut realm, mut service, mut scope) = (None, None, None);
        let mut rest = FieldText(rest);
        loop {
            rest.skip(|c| is_space(c) || matches!(c, ',' | ';'));
            let Some((name, value)) = rest.parameter().filter(|(name, _)| !name.is_empty()) else { break };
            match name.to_ascii_lowercase().as_str() {
                "realm" => realm = Some(value),
                "service" => service = Some(value),
                "scope" => scope = Some(value),
                _ => {}
            }
        }
        Some(Self::Bearer { realm: realm?, service, scope })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use reqwest::header::HeaderValue;
    use rstest::rstest;

    use super::*;

    fn of(values: &[&str]) -> Option<Challenge> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(WWW_AUTHENTICATE, HeaderValue::from_str(value).unwrap());
        }
        Challenge::of(&headers)
    }

    fn bearer(realm: &str, service: Option<&str>, scope: Option<&str>) -> Challenge {
        let owned = |text: &str| text.to_owned();
        Challenge::Bearer { realm: owned(realm), service: service.map(owned), scope: scope.map(owned) }
    }

    #[rstest]
    #[case(&["Basic realm=\"x\""], Some(Challenge::Basic))]
    #[case(&["basic"], Some(Challenge::Basic))]
    #[case(
        &["Bearer realm=\"https://a.test/token\",service=\"r.test\",scope=\"repository:a/b:pull\""],
        Some(bearer("https://a.test/token", Some("r.test"), Some("repository:a/b:pull")))
    )]
    #[case(&["bearer Realm=https://a.test/t , error=\"x, \\\"y\\\"\""], Some(bearer("https://a.test/t", None, None)))]
    #[case(&["Basic realm=x", "Bearer realm=y"], Some(bearer("y", None, None)))]
    #[case(&["Negotiate", "Basic"], Some(Challenge::Basic))]
    #[case(&["Bearer service=\"r\""], None)]
    #[case(&["Bearer realm=\"unclosed"], None)]
    #[case(&[], None)]
    fn challenges(#[case] headers: &[&str], #[case] expected: Option<Challenge>) {
        assert_eq!(of(headers), expected);
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "[Bb]earer [a-z=\", \\\\é]{0,40}") {
            let _ = Challenge::parse(&text);
        }
    }
}

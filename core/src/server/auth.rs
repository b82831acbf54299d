//! The credentials of requests to a managed server.

use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use zeroize::Zeroizing;

use super::header::sensitive;
use super::{OAuth2, ServerError};
use crate::secret::basic_pair;
use crate::secrets::Secret;

/// The credentials of a managed server.
#[derive(Clone, Debug, Default)]
pub enum Auth {
    /// Requests carry no credentials.
    #[default]
    None,
    /// `Authorization: Basic` (RFC 7617).
    Basic {
        /// The user.
        username: Secret,
        /// The password.
        password: Secret,
    },
    /// Headers with secret values, in order; a repeated name overwrites.
    Headers(Vec<HeaderCredential>),
    /// `Authorization: Bearer` with a token from a token endpoint (RFC 6749, RFC 6750).
    OAuth2(OAuth2),
}

/// One header that carries a credential.
#[derive(Clone, Debug)]
pub struct HeaderCredential {
    /// The header's name.
    pub header: String,
    /// Put before the value with one space, if not empty: `Bearer`.
    pub prefix: String,
    /// The secret value.
    pub value: Secret,
}

impl Auth {
    /// Returns the kind of authentication, as the settings spell it.
    pub(super) const fn mode(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic { .. } => "basic",
            Self::Headers(_) => "customHeaders",
            Self::OAuth2(_) => "oauth2",
        }
    }

    /// Returns the secrets in these credentials, for the redactor. This includes the encoded value of basic
    /// authentication, because a gateway may echo it.
    pub(super) fn secrets(&self) -> Vec<Secret> {
        match self {
            Self::None => Vec::new(),
            Self::Basic { username, password } => {
                vec![password.clone(), basic_pair(username.expose(), password)]
            }
            Self::Headers(headers) => headers.iter().map(HeaderCredential::sent).collect(),
            Self::OAuth2(settings) => settings.secrets(),
        }
    }

    /// Returns the headers to add to every request, except for that of a token. The values are marked sensitive, so
    /// that no layer below prints or indexes them (HTTP/2 never-indexed literals).
    pub(super) fn headers(&self) -> Result<Vec<(HeaderName, HeaderValue)>, ServerError> {
        match self {
            Self::None | Self::OAuth2(_) => Ok(Vec::new()),
            Self::Basic { username, password } => {
                let pair = basic_pair(username.expose(), password);
                let encoded = Zeroizing::new(format!("Basic {}", pair.expose()));
                Ok(vec![(AUTHORIZATION, sensitive(&encoded, "http.auth.basic", "user or password")?)])
            }
            Self::Headers(headers) => headers.iter().map(HeaderCredential::header).collect(),
        }
    }
}

impl HeaderCredential {
    /// Returns the value as it is sent.
    fn sent(&self) -> Secret {
        Secret::from(self.value.expose().trim().to_owned())
    }

    fn header(&self) -> Result<(HeaderName, HeaderValue), ServerError> {
        const SETTING: &str = "http.auth.customHeaders";
        let name = HeaderName::try_from(self.header.trim()).map_err(|_| {
            ServerError::setting(SETTING, format!("\"{}\" is not a header name", self.header))
        })?;
        let (prefix, value) = (self.prefix.trim(), self.value.expose().trim());
        if value.is_empty() {
            return Err(ServerError::setting(SETTING, format!("{name} has an empty value")));
        }
        let text = if prefix.is_empty() { value.to_owned() } else { format!("{prefix} {value}") };
        let value =
            sensitive(&Zeroizing::new(text), SETTING, &format!("the value of {:?}", self.header.trim()))?;
        Ok((name, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credential(header: &str, prefix: &str, value: &str) -> HeaderCredential {
        HeaderCredential {
            header: header.to_owned(),
            prefix: prefix.to_owned(),
            value: Secret::from(value.to_owned()),
        }
    }

    #[test]
    fn basic_and_bearer_spelling() {
        let basic = Auth::Basic {
            username: Secret::from("ops".to_owned()),
            password: Secret::from("pa:ss".to_owned()),
        };
        assert_eq!(basic.headers().unwrap()[0].1, "Basic b3BzOnBhOnNz");
        let bearer = Auth::Headers(vec![credential("Authorization", "Bearer", " tok \n")]);
        assert_eq!(bearer.headers().unwrap()[0].1, "Bearer tok");
    }

    #[test]
    fn the_text_of_basic_credentials_is_a_secret() {
        let basic = Auth::Basic {
            username: Secret::from("ops".to_owned()),
            password: Secret::from("pa:ss-word".to_owned()),
        };
        let redactor = crate::secrets::Redactor::new(&basic.secrets());
        assert_eq!(redactor.redact("got Basic b3BzOnBhOnNzLXdvcmQ="), "got Basic <redacted>");
    }

    #[test]
    fn the_secret_of_a_header_is_its_value_as_sent() {
        let auth = Auth::Headers(vec![credential("X-Key", "", " abc12345 ")]);
        let redactor = crate::secrets::Redactor::new(&auth.secrets());
        assert_eq!(redactor.redact("unknown key abc12345"), "unknown key <redacted>");
    }

    #[test]
    fn header_injection_is_rejected_without_echoing_the_value() {
        let error = Auth::Headers(vec![credential("X-Key", "", "canary\r\nX: y")]).headers().unwrap_err();
        assert_eq!(
            error.to_string(),
            "http.auth.customHeaders: the value of \"X-Key\" contains characters that a header cannot carry (such as \
                         a line break)"
        );
    }
}

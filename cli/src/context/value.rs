//! Single settings with their own format. The format is checked after references to the environment are replaced.

use declarest_core::payload::fields::TextOr;
use declarest_core::proxy::is_loopback;
use declarest_core::secrets::Secret;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use url::Url;

use super::reference::is_reference;

/// A text that is not blank; surrounding white space is ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(inline)]
pub struct Text(pub String);

/// An http or https URL with a host and without credentials.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(inline, extend("pattern" = "^\\s*([Hh][Tt][Tt][Pp][Ss]?://|\\$\\{)"))]
pub struct HttpUrl(pub String);

/// A text that must not be shown.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(inline)]
pub struct SecretText(#[schemars(with = "String")] pub Secret);

/// An integer from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "i64")]
#[schemars(inline, extend("minimum" = 0))]
pub struct Count(pub u32);

/// A number from 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "f64")]
#[schemars(inline, extend("minimum" = 0))]
pub struct Rate(pub f64);

/// A version of Vault's key-value engine: 1 or 2; 0 is the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "i64")]
#[schemars(inline, extend("enum" = [0, 1, 2]))]
pub struct KvVersion(pub u8);

/// The grant type of an OAuth 2.0 token request (RFC 6749, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum GrantType {
    ClientCredentials,
    Password,
}

/// A part of a credential: a literal value, or a prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, try_from = "TextOr<Prompt>")]
#[schemars(inline, !try_from)]
pub enum CredentialValue {
    Literal(SecretText),
    Prompt(Prompt),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(inline)]
pub struct Prompt {
    /// Always true.
    #[schemars(extend("const" = true))]
    pub prompt: bool,
    /// Whether the prompted value is stored for the rest of the session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub persist_in_session: bool,
}

fn text(text: &str, check: impl FnOnce(&str) -> Result<(), String>) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("must not be empty".to_owned());
    }
    if !is_reference(text) {
        check(text)?;
    }
    Ok(text.to_owned())
}

impl TryFrom<String> for Text {
    type Error = String;

    fn try_from(written: String) -> Result<Self, String> {
        text(&written, |_| Ok(())).map(Self)
    }
}

impl HttpUrl {
    /// Checks the format of the URL.
    pub fn check(text: &str) -> Result<(), String> {
        let text = text.trim();
        let url = Url::parse(text)
            .ok()
            .filter(|_| !text.contains(char::is_control))
            .ok_or_else(|| "is not a URL; write it like https://api.example.com/v1".to_owned())?;
        // The parser takes the first segment of the path for a missing host, and ignores tabs and line breaks.
        let states_host = text.split_once("://").is_some_and(|(scheme, rest)| {
            scheme.eq_ignore_ascii_case(url.scheme()) && !rest.starts_with(['/', '\\'])
        });
        if !matches!(url.scheme(), "http" | "https") || !states_host {
            return Err("must be an http or https URL with a host".to_owned());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("must not contain a user or password; configure auth instead".to_owned());
        }
        if url.fragment().is_some() {
            return Err("must not have a fragment (#…), which is never sent".to_owned());
        }
        Ok(())
    }

    /// Returns whether the URL is plain http over a network. Loopback addresses do not leave this machine.
    pub fn is_plain(&self) -> bool {
        let Ok(url) = Url::parse(self.0.trim()) else { return false };
        let loopback = is_loopback(&url) || url.domain().is_some_and(|name| name.ends_with(".localhost"));
        url.scheme() == "http" && !loopback
    }
}

impl TryFrom<String> for HttpUrl {
    type Error = String;

    fn try_from(written: String) -> Result<Self, String> {
        text(&written, Self::check).map(Self)
    }
}

impl TryFrom<String> for SecretText {
    type Error = String;

    fn try_from(written: String) -> Result<Self, String> {
        text(&written, |_| Ok(())).map(|text| Self(Secret::from(text)))
    }
}

/// For the file of the catalogue, which holds the secrets of its contexts.
impl Serialize for SecretText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.expose())
    }
}

impl TryFrom<i64> for Count {
    type Error = String;

    fn try_from(number: i64) -> Result<Self, String> {
        u32::try_from(number).map(Self).map_err(|_| format!("must be an integer from 0 to {}", u32::MAX))
    }
}

impl TryFrom<f64> for Rate {
    type Error = &'static str;

    fn try_from(rate: f64) -> Result<Self, &'static str> {
        if rate >= 0.0 && rate.is_finite() { Ok(Self(rate)) } else { Err("must be a number from 0") }
    }
}

impl TryFrom<i64> for KvVersion {
    type Error = &'static str;

    fn try_from(version: i64) -> Result<Self, &'static str> {
        let version = u8::try_from(version).ok().filter(|version| *version <= 2);
        version.map(Self).ok_or("must be 1 or 2")
    }
}

impl TryFrom<TextOr<Prompt>> for CredentialValue {
    type Error = &'static str;

    fn try_from(written: TextOr<Prompt>) -> Result<Self, &'static str> {
        match written {
            TextOr::Text(text) => Ok(Self::Literal(SecretText(Secret::from(text.trim().to_owned())))),
            TextOr::Other(prompt) if prompt.prompt => Ok(Self::Prompt(prompt)),
            TextOr::Other(_) => Err("prompt must be true; write a string instead of a prompt"),
        }
    }
}

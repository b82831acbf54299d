//! Single settings with their own format. The format is checked after references to the environment are replaced.

use declarest_core::payload::fields::{Field, FieldError, Keyword};
use declarest_core::payload::{Object, Value};
use declarest_core::secrets::Secret;
use serde_json::{Value as Json, json};
use url::Url;

use super::reference::is_reference;
use super::section::{Definitions, Setting};

/// A text that is not blank; surrounding white space is ignored.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Text(pub String);

/// An http or https URL with a host and without credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpUrl(pub String);

/// A text that must not be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretText(pub Secret);

/// An integer from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count(pub u32);

/// An integer from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Positive(pub u32);

/// A number above 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate(pub f64);

/// A version of Vault's key-value engine: 1 or 2; 0 is the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvVersion(pub u8);

/// The grant type of an OAuth 2.0 token request (RFC 6749, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantType {
    ClientCredentials,
    Password,
}

/// A part of a credential: a literal value, or a prompt.
#[derive(Clone, Debug, PartialEq)]
pub enum CredentialValue {
    Literal(Secret),
    Prompt {
        /// Whether the prompted value is stored for the rest of the session.
        persist_in_session: bool,
    },
}

fn text(field: Field, check: impl FnOnce(&str) -> Result<(), String>) -> Result<String, FieldError> {
    field.parsed(|text| {
        let text = text.trim();
        if text.is_empty() {
            return Err("must not be empty".to_owned());
        }
        if !is_reference(text) {
            check(text)?;
        }
        Ok(text.to_owned())
    })
}

impl Setting for Text {
    fn read(field: Field) -> Result<Self, FieldError> {
        text(field, |_| Ok(())).map(Self)
    }

    fn write(&self) -> Option<Value> {
        self.0.write()
    }

    fn schema(definitions: &mut Definitions) -> Json {
        String::schema(definitions)
    }
}

impl HttpUrl {
    /// Checks the format of the URL.
    pub fn check(text: &str) -> Result<(), String> {
        let url = Url::parse(text.trim())
            .map_err(|_| "is not a URL; write it like https://api.example.com/v1".to_owned())?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
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

    /// Returns whether the URL is plain http.
    pub fn is_plain(&self) -> bool {
        self.0.trim().to_ascii_lowercase().starts_with("http://")
    }
}

impl Setting for HttpUrl {
    fn read(field: Field) -> Result<Self, FieldError> {
        text(field, Self::check).map(Self)
    }

    fn write(&self) -> Option<Value> {
        self.0.write()
    }

    fn schema(_: &mut Definitions) -> Json {
        json!({"type": "string", "pattern": "^\\s*([Hh][Tt][Tt][Pp][Ss]?://|\\$\\{)"})
    }
}

impl Setting for SecretText {
    fn read(field: Field) -> Result<Self, FieldError> {
        text(field, |_| Ok(())).map(|text| Self(Secret::from(text)))
    }

    fn write(&self) -> Option<Value> {
        Some(Value::from(self.0.expose()))
    }

    fn schema(definitions: &mut Definitions) -> Json {
        String::schema(definitions)
    }
}

fn integer(field: Field, least: u32) -> Result<u32, FieldError> {
    let refused = field.fail(format!("must be an integer from {least} to {}", u32::MAX));
    u32::try_from(field.integer()?).ok().filter(|number| *number >= least).ok_or(refused)
}

impl Setting for Count {
    fn read(field: Field) -> Result<Self, FieldError> {
        integer(field, 0).map(Self)
    }

    fn write(&self) -> Option<Value> {
        Some(Value::Int(self.0.into()))
    }

    fn schema(_: &mut Definitions) -> Json {
        json!({"type": "integer", "minimum": 0})
    }
}

impl Setting for Positive {
    fn read(field: Field) -> Result<Self, FieldError> {
        integer(field, 1).map(Self)
    }

    fn write(&self) -> Option<Value> {
        Some(Value::Int(self.0.into()))
    }

    fn schema(_: &mut Definitions) -> Json {
        json!({"type": "integer", "minimum": 1})
    }
}

impl Setting for Rate {
    fn read(field: Field) -> Result<Self, FieldError> {
        let refused = field.fail("must be a number above 0");
        let rate = field.number()?;
        if rate > 0.0 && rate.is_finite() { Ok(Self(rate)) } else { Err(refused) }
    }

    fn write(&self) -> Option<Value> {
        Some(Value::Float(self.0))
    }

    fn schema(_: &mut Definitions) -> Json {
        json!({"type": "number", "exclusiveMinimum": 0})
    }
}

impl Setting for KvVersion {
    fn read(field: Field) -> Result<Self, FieldError> {
        let refused = field.fail("must be 1 or 2");
        let version = u8::try_from(field.integer()?).ok().filter(|version| *version <= 2);
        version.map(Self).ok_or(refused)
    }

    fn write(&self) -> Option<Value> {
        Some(Value::Int(self.0.into()))
    }

    fn schema(_: &mut Definitions) -> Json {
        json!({"type": "integer", "enum": [0, 1, 2]})
    }
}

impl Keyword for GrantType {
    const WORDS: &'static [(&'static str, Self)] =
        &[("client_credentials", Self::ClientCredentials), ("password", Self::Password)];
}

impl Setting for GrantType {
    fn read(field: Field) -> Result<Self, FieldError> {
        field.keyword()
    }

    fn write(&self) -> Option<Value> {
        Some(Value::from(self.word()))
    }

    fn schema(_: &mut Definitions) -> Json {
        let words: Vec<_> = Self::WORDS.iter().map(|(word, _)| *word).collect();
        json!({"type": "string", "enum": words})
    }
}

impl Setting for CredentialValue {
    fn read(field: Field) -> Result<Self, FieldError> {
        if field.is_scalar() {
            return Ok(Self::Literal(Secret::from(field.text()?.trim().to_owned())));
        }
        let mut fields = field.fields(&["prompt", "persistInSession"])?;
        if !fields.require("prompt", Field::boolean)? {
            return Err(fields.fail("prompt must be true; write a string instead of a prompt"));
        }
        let persist_in_session = fields.read("persistInSession", Field::boolean)?.unwrap_or_default();
        Ok(Self::Prompt { persist_in_session })
    }

    fn write(&self) -> Option<Value> {
        match self {
            Self::Literal(secret) => Some(Value::from(secret.expose())),
            Self::Prompt { persist_in_session } => {
                let mut members = Object::from([("prompt".to_owned(), Value::Bool(true))]);
                if *persist_in_session {
                    members.insert("persistInSession".to_owned(), Value::Bool(true));
                }
                Some(Value::Object(members))
            }
        }
    }

    fn schema(_: &mut Definitions) -> Json {
        json!({"oneOf": [
            {"type": ["string", "number", "boolean"]},
            {
                "type": "object",
                "additionalProperties": false,
                "required": ["prompt"],
                "properties": {
                    "prompt": {"const": true},
                    "persistInSession": {"type": "boolean"},
                },
            },
        ]})
    }
}

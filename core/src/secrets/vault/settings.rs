//! The settings of a Vault store.

use std::fmt;

use http::{HeaderName, HeaderValue};

use super::VaultError;
use crate::proxy::Proxy;
use crate::secrets::Secret;
use crate::transport::TlsSettings;

/// The place of the secrets, and the login.
#[derive(Clone, Debug)]
pub struct VaultSettings {
    /// URL of the server, http or https. Its path is put before that of the API.
    pub address: String,
    /// Mount path of the key/value engine.
    pub mount: String,
    /// Path inside the engine that contains all secrets; empty for the root of the engine.
    pub path_prefix: String,
    /// Version of the key/value engine.
    pub kv_version: KvVersion,
    /// Vault namespace, for servers that support namespaces.
    pub namespace: Option<String>,
    /// The login.
    pub auth: VaultAuth,
    /// Trusted CAs and the client certificate.
    pub tls: TlsSettings,
    /// The proxy for connections to the server.
    pub proxy: Proxy,
}

/// Version of a key/value engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KvVersion {
    /// Keeps only the latest value.
    V1,
    /// Keeps several versions, including deleted ones.
    #[default]
    V2,
}

/// A login method.
#[derive(Clone, Debug)]
pub enum VaultAuth {
    /// A token from elsewhere. It is used unchanged; the issuer has to renew it.
    Token(Secret),
    /// User and password.
    Userpass {
        /// Mount path of the login method, by convention `userpass`.
        mount: String,
        /// The user.
        username: String,
        /// The password.
        password: Secret,
    },
    /// Role id and secret id.
    AppRole {
        /// Mount path of the login method, by convention `approle`.
        mount: String,
        /// The id of the role.
        role_id: Secret,
        /// The secret id that authorises the use of the role.
        secret_id: Secret,
    },
}

impl VaultSettings {
    /// Returns settings for a version 2 engine at `secret`, without prefix, namespace and proxy, and with the CAs of
    /// the system.
    pub fn new(address: impl Into<String>, auth: VaultAuth) -> Self {
        Self {
            address: address.into(),
            mount: "secret".to_owned(),
            path_prefix: String::new(),
            kv_version: KvVersion::default(),
            namespace: None,
            auth,
            tls: TlsSettings::default(),
            proxy: Proxy::default(),
        }
    }
}

impl KvVersion {
    /// Returns the version for a number in a file or object; 0 selects the default.
    pub fn from_number(number: i64) -> Result<Self, VaultError> {
        match number {
            1 => Ok(Self::V1),
            0 | 2 => Ok(Self::V2),
            other => Err(refuse("kvVersion", format!("must be 1 or 2, not {other}"))),
        }
    }
}

impl fmt::Display for KvVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1 => "1",
            Self::V2 => "2",
        })
    }
}

impl VaultAuth {
    /// Returns the credentials, for redaction.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &Secret> {
        let (first, second) = match self {
            Self::Token(token) => (token, None),
            Self::Userpass { password, .. } => (password, None),
            Self::AppRole { role_id, secret_id, .. } => (role_id, Some(secret_id)),
        };
        [first].into_iter().chain(second)
    }

    /// Returns the name of the method for messages.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Token(_) => "token",
            Self::Userpass { .. } => "userpass",
            Self::AppRole { .. } => "AppRole",
        }
    }
}

/// Returns a path inside Vault without surrounding slashes. Its segments are neither empty, `.` nor `..`, so it
/// cannot leave its parent.
pub(super) fn plain_path(setting: &'static str, text: &str) -> Result<String, VaultError> {
    let path = text.trim().trim_matches('/');
    if path.split('/').any(|segment| matches!(segment, "" | "." | "..")) {
        return Err(refuse(setting, format!("{text:?} is empty or has an empty, . or .. segment")));
    }
    Ok(path.to_owned())
}

/// Returns the header with the namespace, if any.
pub(super) fn namespace(text: Option<&str>) -> Result<Option<(HeaderName, HeaderValue)>, VaultError> {
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else { return Ok(None) };
    let path = plain_path("namespace", text)?;
    let header = HeaderValue::try_from(path);
    let header = header.map(|path| Some((HeaderName::from_static("x-vault-namespace"), path)));
    header.map_err(|_| refuse("namespace", format!("{text:?} cannot be sent in a header")))
}

/// Returns a credential without the white space around it.
pub(super) fn credential<'a>(setting: &'static str, secret: &'a Secret) -> Result<&'a str, VaultError> {
    let text = secret.expose().trim();
    if text.is_empty() { Err(refuse(setting, "must not be empty".to_owned())) } else { Ok(text) }
}

pub(super) fn refuse(setting: &'static str, reason: String) -> VaultError {
    VaultError::Setting { setting, reason }
}

//! What a store needs to know about its Vault.

use std::fmt;

use http::HeaderValue;

use super::VaultError;
use crate::proxy::Proxy;
use crate::secrets::Secret;
use crate::transport::TlsSettings;

/// Where the secrets are, and who asks for them.
#[derive(Clone, Debug)]
pub struct VaultSettings {
    /// URL of the server, http or https. A path in it comes before that of the API.
    pub address: String,
    /// Mount path of the key/value engine.
    pub mount: String,
    /// Path inside the engine that all secrets are below; empty for its root.
    pub path_prefix: String,
    /// Version of the key/value engine.
    pub kv_version: KvVersion,
    /// Namespace that everything is in, for servers that have them.
    pub namespace: Option<String>,
    /// How to log in.
    pub auth: VaultAuth,
    /// Whom to trust, and the client certificate.
    pub tls: TlsSettings,
    /// The way to the server.
    pub proxy: Proxy,
}

/// Version of a key/value engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KvVersion {
    /// Keeps the latest value.
    V1,
    /// Keeps versions, also of what was deleted.
    #[default]
    V2,
}

/// How to log in.
#[derive(Clone, Debug)]
pub enum VaultAuth {
    /// A token from elsewhere, which is used as it is: whoever issued it renews it.
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
        /// Identifies the role.
        role_id: Secret,
        /// Proves that we may have the role.
        secret_id: Secret,
    },
}

impl VaultSettings {
    /// A version 2 engine at `secret`, without prefix, namespace and proxy, trusting the system's authorities.
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
    /// The version that a file or object names; 0 stands for the default.
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
    /// What must not appear in any text.
    pub(super) fn secrets(&self) -> Vec<&Secret> {
        match self {
            Self::Token(token) => vec![token],
            Self::Userpass { password, .. } => vec![password],
            Self::AppRole { role_id, secret_id, .. } => vec![role_id, secret_id],
        }
    }

    /// What it is called.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Token(_) => "token",
            Self::Userpass { .. } => "userpass",
            Self::AppRole { .. } => "AppRole",
        }
    }
}

/// A path inside Vault without slashes around it; its segments are plain, so that it leads nowhere else.
pub(super) fn plain_path(setting: &'static str, text: &str) -> Result<String, VaultError> {
    let path = text.trim().trim_matches('/');
    if path.split('/').any(|segment| matches!(segment, "" | "." | "..")) {
        return Err(refuse(setting, format!("{text:?} is empty or has an empty, . or .. segment")));
    }
    Ok(path.to_owned())
}

/// The header with the namespace, if there is one.
pub(super) fn namespace(text: Option<&str>) -> Result<Option<HeaderValue>, VaultError> {
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else { return Ok(None) };
    let path = plain_path("namespace", text)?;
    let header = HeaderValue::try_from(path);
    header.map(Some).map_err(|_| refuse("namespace", format!("{text:?} cannot be sent in a header")))
}

/// A credential without white space around it.
pub(super) fn credential<'a>(setting: &'static str, secret: &'a Secret) -> Result<&'a str, VaultError> {
    let text = secret.expose().trim();
    if text.is_empty() { Err(refuse(setting, "must not be empty".to_owned())) } else { Ok(text) }
}

pub(super) fn refuse(setting: &'static str, reason: String) -> VaultError {
    VaultError::Setting { setting, reason }
}

//! The answers of Vault.

use std::time::Duration;

use http::StatusCode;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};
use zeroize::Zeroizing;

use super::VaultError;
use crate::secrets::Secret;

/// A successful answer.
pub(in crate::secrets) struct Answer {
    pub(in crate::secrets) action: String,
    pub(in crate::secrets) path: String,
    pub(in crate::secrets) body: Zeroizing<Vec<u8>>,
}

impl Answer {
    /// Parses the body. The parser's message is dropped, because it may quote the body.
    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, VaultError> {
        serde_json::from_slice(&self.body).map_err(|error| VaultError::Answer {
            action: self.action.clone(),
            path: self.path.clone(),
            reason: format!(
                "it is not an answer of Vault (line {}, column {})",
                error.line(),
                error.column()
            ),
        })
    }

    /// Checks that the answer came from Vault, which sends an empty body or JSON.
    pub(super) fn acknowledged(&self) -> Result<(), VaultError> {
        if self.body.is_empty() { Ok(()) } else { self.json::<IgnoredAny>().map(drop) }
    }
}

#[derive(Deserialize)]
pub(super) struct Envelope<T> {
    pub(super) data: T,
}

#[derive(Deserialize)]
pub(super) struct StoredV2 {
    /// `null` after the secret was deleted.
    pub(super) data: Option<StoredV1>,
}

#[derive(Deserialize)]
pub(super) struct StoredV1 {
    pub(super) value: Option<serde_json::Value>,
}

#[derive(Deserialize)]
pub(super) struct Mount {
    pub(super) path: Option<String>,
    #[serde(rename = "type")]
    pub(super) kind: String,
    options: Option<MountOptions>,
}

#[derive(Deserialize)]
struct MountOptions {
    version: Option<String>,
}

impl Mount {
    /// Returns the version. Engines from before versions existed have none.
    pub(super) fn version(&self) -> &str {
        self.options.as_ref().and_then(|options| options.version.as_deref()).unwrap_or("1")
    }
}

/// Vault's information about a token.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct TokenInfo {
    /// The remaining lifetime; `None` if the token does not expire.
    #[serde(deserialize_with = "ttl")]
    pub ttl: Option<Duration>,
    /// Whether the lifetime can be extended.
    #[serde(default)]
    pub renewable: bool,
    /// The names of its policies.
    #[serde(default)]
    pub policies: Vec<String>,
}

fn ttl<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    Ok(Some(u64::deserialize(deserializer)?).filter(|seconds| *seconds > 0).map(Duration::from_secs))
}

/// The answer to a login or a renewal.
#[derive(Deserialize)]
pub(super) struct LoginAnswer {
    pub(super) auth: Option<Granted>,
}

#[derive(Deserialize)]
pub(super) struct Granted {
    #[serde(default, deserialize_with = "secret")]
    pub(super) client_token: Option<Secret>,
    #[serde(default)]
    pub(super) lease_duration: u64,
    #[serde(default)]
    pub(super) renewable: bool,
}

fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Secret>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?.map(Secret::from);
    Ok(text.filter(|text| !text.expose().is_empty()))
}

/// The body of an error.
#[derive(Default, Deserialize)]
struct Complaint {
    #[serde(default)]
    errors: Vec<String>,
    #[serde(default)]
    warnings: Option<Vec<String>>,
}

/// Returns the first message in the body of an error; `None` if the body is not JSON of Vault.
pub(super) fn complaint(body: &[u8]) -> Option<String> {
    let Complaint { errors, warnings } = serde_json::from_slice(body).unwrap_or_default();
    let text = errors.into_iter().chain(warnings.unwrap_or_default()).find(|text| !text.trim().is_empty())?;
    // Some messages of Vault have several lines.
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Returns the reason to show if Vault states none.
pub(super) fn silence(status: StatusCode) -> String {
    status.canonical_reason().unwrap_or("no reason is given").to_lowercase()
}

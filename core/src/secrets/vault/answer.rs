//! What Vault answers.

use std::time::Duration;

use http::StatusCode;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};
use zeroize::Zeroizing;

use super::VaultError;
use crate::secrets::Secret;

/// An answer that is no error.
pub(in crate::secrets) struct Answer {
    pub(in crate::secrets) action: String,
    pub(in crate::secrets) path: String,
    pub(in crate::secrets) body: Zeroizing<Vec<u8>>,
}

impl Answer {
    /// Reads it. What a parser says about the text is not repeated, as it may quote it.
    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, VaultError> {
        serde_json::from_slice(&self.body).map_err(|error| VaultError::Answer {
            action: self.action.clone(),
            path: self.path.clone(),
            reason: format!(
                "it is not what Vault answers (line {}, column {})",
                error.line(),
                error.column()
            ),
        })
    }

    /// Makes sure that it came from Vault, which says nothing or answers in JSON.
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
    /// `null` once it was deleted.
    pub(super) data: Option<StoredV1>,
}

#[derive(Deserialize)]
pub(super) struct StoredV1 {
    pub(super) value: Option<serde_json::Value>,
}

#[derive(Deserialize)]
pub(super) struct Entries {
    pub(super) keys: Vec<String>,
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
    /// Engines from before there were versions have none.
    pub(super) fn version(&self) -> &str {
        self.options.as_ref().and_then(|options| options.version.as_deref()).unwrap_or("1")
    }
}

/// What Vault says about a token.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct TokenInfo {
    /// How long it is still valid; `None` for one that does not expire.
    #[serde(deserialize_with = "ttl")]
    pub ttl: Option<Duration>,
    /// Whether that can be prolonged.
    #[serde(default)]
    pub renewable: bool,
    /// The names of its policies.
    #[serde(default)]
    pub policies: Vec<String>,
}

fn ttl<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    Ok(Some(u64::deserialize(deserializer)?).filter(|seconds| *seconds > 0).map(Duration::from_secs))
}

/// What a login or a renewal gives.
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

/// What an error says.
#[derive(Default, Deserialize)]
struct Complaint {
    #[serde(default)]
    errors: Vec<String>,
    #[serde(default)]
    warnings: Option<Vec<String>>,
}

/// The first thing that the body of an error complains about. A body that is no JSON of Vault's says nothing.
pub(super) fn complaint(body: &[u8]) -> Option<String> {
    let Complaint { errors, warnings } = serde_json::from_slice(body).unwrap_or_default();
    let text = errors.into_iter().chain(warnings.unwrap_or_default()).find(|text| !text.trim().is_empty())?;
    // Vault writes some on several lines.
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// What is said where Vault says nothing.
pub(super) fn silence(status: StatusCode) -> String {
    status.canonical_reason().unwrap_or("no reason is given").to_lowercase()
}

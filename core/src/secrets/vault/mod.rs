//! Secrets in a key/value engine, version 1 or 2, of Vault or its fork `OpenBao`: one Vault secret per key, with the
//! value in its field `value`.
//!
//! `vaultrs` describes the API: the requests of logins, tokens and engines are its types. They are sent by our own
//! transport, because its client reads answers of any size, logs errors of Vault before they are redacted, and drops
//! `Retry-After`. The test `client_of_vaultrs` shows this.

mod address;
mod answer;
mod call;
mod error;
mod place;
mod session;
mod settings;

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::StatusCode;
use vaultrs::api::kv2::responses::ListSecretsResponse;

use super::{Secret, SecretKey};
use answer::{Envelope, Mount, StoredV1, StoredV2};
use place::Place;
use session::Sessions;

#[cfg(test)]
pub(super) use answer::Answer;
pub use answer::TokenInfo;
pub use error::VaultError;
pub use settings::{KvVersion, VaultAuth, VaultSettings};

/// The number of folders that are listed at the same time.
const LISTINGS: usize = 8;

/// The longest string in JSON that Vault accepts by default, in bytes.
const DEFAULT_VALUE_LIMIT: usize = 1 << 20;

/// The deepest nesting of folders that is listed.
const DEEPEST_FOLDER: usize = 128;

/// The secrets below one path of one engine.
///
/// Vault is not contacted before the first call, which logs in. Calls may run concurrently. They share connections
/// and one login, which is renewed or repeated before it expires. An unused login expires by itself. All calls except
/// logins are repeated after temporary failures, like requests to a managed server.
pub struct VaultStore {
    sessions: Sessions,
    place: Place,
    /// Whether Vault, or a proxy in front of it, does not support the method LIST.
    lists_by_get: AtomicBool,
}

impl VaultStore {
    /// Checks the settings and prepares connections.
    pub fn new(settings: VaultSettings) -> Result<Self, VaultError> {
        let place = Place::new(&settings)?;
        Ok(Self { sessions: Sessions::new(settings)?, place, lists_by_get: AtomicBool::new(false) })
    }

    /// Checks that the login works and that the mount is a key/value engine of the configured version.
    pub async fn init(&self) -> Result<(), VaultError> {
        self.lookup_self().await?;
        let call = self.place.describe_mount()?;
        let mount: Envelope<Mount> = self.sessions.call(&call).await?.json()?;
        self.place.check(&mount.data)
    }

    /// Returns Vault's information about the current token, which shows that the token is valid.
    pub async fn lookup_self(&self) -> Result<TokenInfo, VaultError> {
        let looked_up: Envelope<TokenInfo> = self.sessions.lookup_self().await?.json()?;
        Ok(looked_up.data)
    }

    /// Fails if Vault cannot store a secret under this key. It is not contacted.
    pub fn check(&self, key: &SecretKey) -> Result<(), VaultError> {
        self.place.path(key).map(|_| ())
    }

    /// Stores a secret and replaces the current one; a version 2 engine adds a version. Vault limits the length of
    /// values, by default to 1 MiB.
    pub async fn set(&self, key: &SecretKey, value: &Secret) -> Result<(), VaultError> {
        let call = self.place.write(key, value)?;
        let length = value.expose().len();
        match self.sessions.call(&call).await {
            Err(VaultError::Status { status, reason, .. }) if is_size(status, length) => {
                Err(VaultError::Size { key: key.clone(), length, status, reason })
            }
            answer => answer?.acknowledged(),
        }
    }

    /// Returns a secret.
    pub async fn get(&self, key: &SecretKey) -> Result<Secret, VaultError> {
        let call = self.place.read(key)?;
        let absent = || VaultError::NotFound { key: key.clone(), path: call.path.clone() };
        let answer = match self.sessions.call(&call).await {
            Err(VaultError::Absent { .. }) => return Err(absent()),
            answer => answer?,
        };
        let value = match self.place.version() {
            KvVersion::V1 => answer.json::<Envelope<StoredV1>>()?.data.value,
            KvVersion::V2 => answer.json::<Envelope<StoredV2>>()?.data.data.ok_or_else(absent)?.value,
        };
        match value {
            Some(serde_json::Value::String(text)) => Ok(Secret::from(text)),
            Some(_) => Err(VaultError::NotText { key: key.clone(), path: call.path.clone() }),
            None => Err(VaultError::NoValue { key: key.clone(), path: call.path.clone() }),
        }
    }

    /// Deletes a secret. An absent secret is not an error. A version 2 engine keeps the old versions until they are
    /// destroyed, and [`VaultStore::list`] still returns the key.
    pub async fn delete(&self, key: &SecretKey) -> Result<(), VaultError> {
        let call = self.place.delete(key)?;
        match self.sessions.call(&call).await {
            Err(VaultError::Absent { .. }) => Ok(()),
            answer => answer?.acknowledged(),
        }
    }

    /// Returns the keys below the configured path, sorted. Secrets of other programs whose names are not a
    /// [`SecretKey`] are left out.
    pub async fn list(&self) -> Result<Vec<SecretKey>, VaultError> {
        let mut keys = BTreeSet::new();
        let mut visited = HashSet::new();
        let mut level = vec![String::new()];
        // List level by level, because a folder only names its own entries.
        for _ in 0..DEEPEST_FOLDER {
            let listings = stream::iter(level.drain(..)).map(|folder| self.entries(folder));
            let listed: Vec<(String, Vec<String>)> =
                listings.buffer_unordered(LISTINGS).try_collect().await?;
            for (folder, entries) in listed {
                for entry in entries {
                    let name = format!("{folder}{entry}");
                    let folder = name.strip_suffix('/');
                    // Parsing changes the text if the entry is not a key, or leaves its folder.
                    let plain = folder.unwrap_or(&name);
                    let Some(key) = SecretKey::parse(plain).ok().filter(|key| key.as_str() == plain) else {
                        continue;
                    };
                    if folder.is_none() {
                        keys.insert(key);
                    } else if visited.insert(name.clone()) {
                        level.push(name);
                    }
                }
            }
            if level.is_empty() {
                return Ok(keys.into_iter().collect());
            }
        }
        Err(VaultError::Unsupported {
            action: "list secrets".to_owned(),
            path: self.place.to_string(),
            reason: format!("folders are nested deeper than {DEEPEST_FOLDER} levels"),
        })
    }

    /// Returns the entries of a folder: names of secrets, and names of folders with a trailing slash.
    async fn entries(&self, folder: String) -> Result<(String, Vec<String>), VaultError> {
        let call = self.place.list(&folder)?;
        let answer = if self.lists_by_get.load(Ordering::Relaxed) {
            self.sessions.call(&call.by_get()?).await
        } else {
            match self.sessions.call(&call).await {
                Err(VaultError::Status {
                    status: StatusCode::BAD_REQUEST | StatusCode::METHOD_NOT_ALLOWED,
                    ..
                }) => {
                    let answer = self.sessions.call(&call.by_get()?).await;
                    self.lists_by_get.store(answer.is_ok(), Ordering::Relaxed);
                    answer
                }
                answer => answer,
            }
        };
        match answer {
            Err(VaultError::Absent { .. }) => Ok((folder, Vec::new())),
            answer => Ok((folder, answer?.json::<Envelope<ListSecretsResponse>>()?.data.keys)),
        }
    }
}

impl fmt::Debug for VaultStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("VaultStore").field(&format_args!("{}", self.place)).finish()
    }
}

/// Whether a rejected value was too long. Vault answers 400 or 500 if a string exceeds its limit for JSON.
fn is_size(status: StatusCode, length: usize) -> bool {
    match status {
        StatusCode::PAYLOAD_TOO_LARGE => true,
        StatusCode::BAD_REQUEST | StatusCode::INTERNAL_SERVER_ERROR => length > DEFAULT_VALUE_LIMIT,
        _ => false,
    }
}

#[cfg(test)]
mod tests;

//! The place of secrets in Vault, and the calls about it.

use std::fmt;

use serde_json::json;
use vaultrs::api::kv1::requests as kv1;
use vaultrs::api::kv2::requests as kv2;

use super::answer::Mount;
use super::call::Call;
use super::settings::{plain_path, refuse};
use super::{KvVersion, VaultError, VaultSettings};
use crate::secrets::{Secret, SecretKey};

/// A path inside an engine.
pub(super) struct Place {
    mount: String,
    /// Empty, or with a trailing slash.
    prefix: String,
    version: KvVersion,
}

impl Place {
    pub(super) fn new(settings: &VaultSettings) -> Result<Self, VaultError> {
        let prefix = match settings.path_prefix.trim().trim_matches('/') {
            "" => String::new(),
            prefix => plain_path("pathPrefix", prefix)? + "/",
        };
        Ok(Self { mount: plain_path("mount", &settings.mount)?, prefix, version: settings.kv_version })
    }

    pub(super) fn version(&self) -> KvVersion {
        self.version
    }

    pub(super) fn read(&self, key: &SecretKey) -> Result<Call, VaultError> {
        let (mount, path, action) = (self.mount.clone(), self.path(key)?, format!("read secret {key}"));
        match self.version {
            KvVersion::V1 => Call::new(&kv1::GetSecretRequest { mount, path }, action, "read"),
            KvVersion::V2 => {
                Call::new(&kv2::ReadSecretRequest { mount, path, version: None }, action, "read")
            }
        }
    }

    pub(super) fn write(&self, key: &SecretKey, value: &Secret) -> Result<Call, VaultError> {
        let (mount, path, action) = (self.mount.clone(), self.path(key)?, format!("write secret {key}"));
        let data = json!({"value": value.expose()});
        match self.version {
            KvVersion::V1 => {
                let data = data.to_string().into_bytes();
                Call::write(&kv1::SetSecretRequest { mount, path, data }, action, value)
            }
            KvVersion::V2 => {
                Call::write(&kv2::SetSecretRequest { mount, path, data, options: None }, action, value)
            }
        }
    }

    pub(super) fn delete(&self, key: &SecretKey) -> Result<Call, VaultError> {
        let (mount, path, action) = (self.mount.clone(), self.path(key)?, format!("delete secret {key}"));
        match self.version {
            KvVersion::V1 => Call::new(&kv1::DeleteSecretRequest { mount, path }, action, "delete"),
            KvVersion::V2 => {
                Call::new(&kv2::DeleteLatestSecretVersionRequest { mount, path }, action, "delete")
            }
        }
    }

    /// `folder` is empty or has a trailing slash.
    pub(super) fn list(&self, folder: &str) -> Result<Call, VaultError> {
        let (mount, path) = (self.mount.clone(), format!("{}{folder}", self.prefix));
        match self.version {
            KvVersion::V1 => Call::new(&kv1::ListSecretRequest { mount, path }, "list secrets", "list"),
            KvVersion::V2 => Call::new(&kv2::ListSecretsRequest { mount, path }, "list secrets", "list"),
        }
    }

    /// Returns the call that describes the mount. Any token with a permission in the mount may send it.
    pub(super) fn describe_mount(&self) -> Result<Call, VaultError> {
        // `vaultrs` has no type for this request, which is as plain as a read of a version 1 secret.
        let (mount, path) = ("sys/internal/ui/mounts".to_owned(), self.mount.clone());
        Call::new(&kv1::GetSecretRequest { mount, path }, "find the secrets engine", "read")
    }

    /// Returns the path of a secret in the engine. Fails for keys that Vault rejects on all of them, because Vault's
    /// own errors do not name the key.
    pub(super) fn path(&self, key: &SecretKey) -> Result<String, VaultError> {
        if let Some(obstacle) = obstacle(key.as_str()) {
            return Err(VaultError::Key { key: key.clone(), obstacle });
        }
        Ok(format!("{}{key}", self.prefix))
    }

    /// Checks that the mounted engine matches the settings.
    pub(super) fn check(&self, found: &Mount) -> Result<(), VaultError> {
        let mount = &self.mount;
        let at = found.path.as_deref().unwrap_or(mount).trim_matches('/');
        if at != mount {
            return Err(refuse("mount", format!("the engine is mounted at {at:?}, not at {mount:?}")));
        }
        if !matches!(found.kind.as_str(), "kv" | "generic") {
            return Err(refuse(
                "mount",
                format!("{mount:?} is not a key/value engine; its type is {}", found.kind),
            ));
        }
        let version = found.version();
        if version != self.version.to_string() {
            return Err(refuse(
                "kvVersion",
                format!("{mount:?} is a version {version} engine; set {version}"),
            ));
        }
        Ok(())
    }
}

/// Returns what Vault does not allow in a path: two dots in a row, and characters that Go does not treat as
/// printable. The only printable white space is the space.
fn obstacle(key: &str) -> Option<&'static str> {
    if key.contains("..") {
        return Some("two dots in a row");
    }
    // `escape_debug` escapes characters that are not printable. The letter in front keeps it from escaping combining
    // marks.
    let escaped =
        |character: char| ['a', character].iter().collect::<String>().escape_debug().nth(2).is_some();
    key.chars()
        .any(|character| !character.is_ascii_graphic() && character != ' ' && escaped(character))
        .then_some("control or invisible characters")
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.mount, self.prefix)
    }
}

//! SecretStore: the store with the secrets that desired state refers to.

use std::path::{Path, PathBuf};

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    BasicAuth, Conditions, FieldErrors, Limits, Proxy, SecretKeyRef, Storage, Tls, conditions_schema,
    validation,
};

/// The store that secrets are read from: exactly one of vault and file.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "declarest.io",
    version = "v1alpha1",
    kind = "SecretStore",
    plural = "secretstores",
    shortname = "sst",
    category = "declarest",
    namespaced,
    status = "SecretStoreStatus",
    derive = "PartialEq",
    doc = "The store with the values of secret placeholders in a ResourceRepository.",
    printcolumn = r#"{"name": "Provider", "type": "string", "jsonPath": ".status.provider"}"#,
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Status", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].message", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("has(self.vault) != has(self.file)", "set exactly one of vault and file"))]
pub struct SecretStoreSpec {
    /// A HashiCorp Vault or OpenBao server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vault: Option<VaultStore>,
    /// An encrypted file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileStore>,
}

/// A key/value engine of a Vault server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VaultStore {
    /// URL of the server, http or https.
    #[schemars(
        regex(pattern = validation::HTTP_URL),
        extend("x-kubernetes-validations" = validation::without_credentials())
    )]
    pub address: String,
    /// Mount path of the key/value engine.
    #[serde(default = "default_mount")]
    #[schemars(length(min = 1))]
    pub mount: String,
    /// Path in the engine below which all secrets are; by default its root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_prefix: Option<String>,
    /// Namespace of the login and the engine, for servers that have namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Version of the key/value engine, 1 or 2.
    #[serde(default = "default_kv_version")]
    #[schemars(range(min = 1, max = 2))]
    pub kv_version: i32,
    /// Login at the server.
    pub auth: VaultAuth,
    /// TLS settings; by default the system's certificate authorities are trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// Proxy for connections to the server; by default that of the operator's environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
}

/// The login at Vault: exactly one of token, userpass and appRole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "(has(self.token) ? 1 : 0) + (has(self.userpass) ? 1 : 0) + (has(self.appRole) ? 1 : 0) == 1",
    "set exactly one of token, userpass and appRole"
))]
pub struct VaultAuth {
    /// A token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<VaultToken>,
    /// A user name and a password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub userpass: Option<VaultUserpass>,
    /// An AppRole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_role: Option<VaultAppRole>,
}

/// A Vault token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VaultToken {
    /// Secret key that holds the token.
    pub secret_ref: SecretKeyRef,
}

/// A login with Vault's userpass method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VaultUserpass {
    #[serde(flatten)]
    pub credentials: BasicAuth,
    /// Mount path of the login method.
    #[serde(default = "default_userpass_mount")]
    #[schemars(length(min = 1))]
    pub mount: String,
}

/// A login with Vault's AppRole method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VaultAppRole {
    /// Secret key that holds the role id.
    #[serde(rename = "roleIDRef")]
    pub role_id_ref: SecretKeyRef,
    /// Secret key that holds the secret id.
    #[serde(rename = "secretIDRef")]
    pub secret_id_ref: SecretKeyRef,
    /// Mount path of the login method.
    #[serde(default = "default_approle_mount")]
    #[schemars(length(min = 1))]
    pub mount: String,
}

/// An encrypted file that only this object uses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileStore {
    /// Path of the file, relative to the operator's directory for this object.
    #[schemars(length(min = 1))]
    pub path: String,
    /// How the file is encrypted.
    pub encryption: FileEncryption,
    /// Volume for the file. Without storage and seedRef, the store is lost if the operator's state directory is
    /// lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,
    /// Secret key that holds the encrypted file. When its content changes, it replaces the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed_ref: Option<SecretKeyRef>,
}

/// The encryption of a file store: exactly one of keyRef and passphraseRef.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "has(self.keyRef) != has(self.passphraseRef)",
    "set exactly one of keyRef and passphraseRef"
))]
pub struct FileEncryption {
    /// Secret key that holds the encryption key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_ref: Option<SecretKeyRef>,
    /// Secret key that holds a passphrase, from which the encryption key is derived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passphrase_ref: Option<SecretKeyRef>,
}

/// The observed state of the store.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SecretStoreStatus {
    /// The metadata.generation that this status describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Kind of store: `vault` or `file`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Path of the file in the operator; only for file stores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved_path: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Conditions,
}

fn default_mount() -> String {
    "secret".to_owned()
}

fn default_userpass_mount() -> String {
    "userpass".to_owned()
}

fn default_approle_mount() -> String {
    "approle".to_owned()
}

const fn default_kv_version() -> i32 {
    2
}

impl SecretStoreSpec {
    /// Returns the kind of store, as in `status.provider` and metrics; `None` if the spec is invalid.
    pub const fn provider(&self) -> Option<&'static str> {
        match (&self.vault, &self.file) {
            (Some(_), None) => Some("vault"),
            (None, Some(_)) => Some("file"),
            _ => None,
        }
    }

    /// Checks all rules of the spec, after expansion.
    pub fn validate(&self, limits: &Limits) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        if self.provider().is_none() {
            errors.push("spec", "set exactly one of vault and file");
        }
        if let Some(vault) = &self.vault {
            vault.check(&mut errors);
        }
        if let Some(file) = &self.file {
            file.check(limits, &mut errors);
        }
        errors.check_secret_refs(self);
        errors.into_result()
    }
}

impl VaultStore {
    fn check(&self, errors: &mut FieldErrors) {
        errors.check("spec.vault.address", validation::http_url(&self.address));
        errors.check("spec.vault.mount", vault_path(&self.mount));
        for (field, path) in [("pathPrefix", &self.path_prefix), ("namespace", &self.namespace)] {
            if let Some(path) = path.as_deref().filter(|path| !path.is_empty()) {
                errors.check(&format!("spec.vault.{field}"), vault_path(path));
            }
        }
        if !matches!(self.kv_version, 1 | 2) {
            errors.push("spec.vault.kvVersion", "must be 1 or 2");
        }
        let modes = [self.auth.token.is_some(), self.auth.userpass.is_some(), self.auth.app_role.is_some()];
        if modes.into_iter().filter(|set| *set).count() != 1 {
            errors.push("spec.vault.auth", "set exactly one of token, userpass and appRole");
        }
        if let Some(userpass) = &self.auth.userpass {
            errors.check("spec.vault.auth.userpass.mount", vault_path(&userpass.mount));
        }
        if let Some(app_role) = &self.auth.app_role {
            errors.check("spec.vault.auth.appRole.mount", vault_path(&app_role.mount));
        }
        if let Some(tls) = &self.tls {
            tls.check("spec.vault.tls", errors);
        }
        if let Some(proxy) = &self.proxy {
            proxy.check("spec.vault.proxy", errors);
        }
    }
}

/// Checks that a path in Vault has only plain segments, so that it cannot leave its mount.
fn vault_path(text: &str) -> Result<(), String> {
    let path = text.trim().trim_matches('/');
    if path.is_empty() {
        return Err("must not be empty".to_owned());
    }
    if path.split('/').any(|segment| matches!(segment, "" | "." | "..")) {
        return Err(format!("{text:?} has an empty, . or .. segment"));
    }
    Ok(())
}

impl FileStore {
    /// Returns the path of the file relative to the directory of its object. An absolute path below the base
    /// directory of all file stores becomes relative to it. Any other absolute path and `..` are errors.
    pub fn relative_path(&self, limits: &Limits) -> Result<PathBuf, String> {
        validation::confined(&limits.secrets_base_dir, Path::new(self.path.trim())).ok_or_else(|| {
            format!("{:?} is outside of the store's directory; write a relative path", self.path)
        })
    }

    fn check(&self, limits: &Limits, errors: &mut FieldErrors) {
        errors.check("spec.file.path", self.relative_path(limits));
        if self.encryption.key_ref.is_some() == self.encryption.passphrase_ref.is_some() {
            errors.push("spec.file.encryption", "set exactly one of keyRef and passphraseRef");
        }
        if let Some(storage) = &self.storage {
            storage.check("spec.file.storage", errors);
        }
    }
}

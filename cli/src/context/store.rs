//! The secret store of a context.

use std::path::Path;

use declarest_core::secrets::file::{
    FileStore as EncryptedFile, FileStoreError, FileStoreSettings, Kdf as Argon2, KeyMaterial,
};
use declarest_core::secrets::vault::{KvVersion, VaultAuth as Login, VaultSettings, VaultStore as Vault};
use declarest_core::secrets::{Secret, SecretReader, SecretStore};

use super::error::CatalogueError;
use super::model::{FileStore, Kdf, VaultAuth, VaultStore};
use super::resolve::{ProxiedComponent, ResolvedContext, tls_files};
use super::value::{Count, Text};
use crate::error::Failure;
use crate::output::Messages;

impl ResolvedContext {
    /// Returns a reader of the secret store. A context without a store can be used as long as there are no placeholders.
    /// Messages hide the secrets that are read.
    pub fn secret_reader(&self) -> Result<SecretReader, Failure> {
        let store = self.context.secret_store.as_ref().map(|_| self.open_secret_store()).transpose()?;
        let reader = SecretReader::new(store);
        self.messages.hide_read(&reader);
        Ok(reader)
    }

    /// Returns the secret store, without reading from it.
    pub fn open_secret_store(&self) -> Result<SecretStore, Failure> {
        let settings = self.secret_store()?;
        if let Some(vault) = &settings.vault {
            return Ok(Vault::new(self.vault(vault)?)?.into());
        }
        let Some(file) = &settings.file else {
            return Err(self.setting("secretStore", "needs file or vault").into());
        };
        warn_if_open(Path::new(&file.path.0), &self.messages);
        let settings = FileStoreSettings {
            beneath: None,
            path: (&*file.path.0).into(),
            key: self.key_material(file)?,
            kdf: argon2(file.kdf.as_ref())?,
        };
        Ok(EncryptedFile::new(settings).into())
    }

    fn vault(&self, vault: &VaultStore) -> Result<VaultSettings, Failure> {
        let version = vault.kv_version.as_ref().map_or(0, |version| version.0);
        Ok(VaultSettings {
            mount: or(vault.mount.as_ref(), "secret"),
            path_prefix: vault.path_prefix.clone().unwrap_or_default(),
            namespace: vault.namespace.as_ref().map(|namespace| namespace.0.clone()),
            kv_version: KvVersion::from_number(version.into())?,
            tls: tls_files(vault.tls.as_ref()).into(),
            proxy: self.proxy_to(ProxiedComponent::Vault, [vault.address.0.as_str()].into_iter())?,
            ..VaultSettings::new(&*vault.address.0, self.vault_login(&vault.auth)?)
        })
    }

    /// Returns the login. The catalogue has exactly one of the three methods.
    fn vault_login(&self, auth: &VaultAuth) -> Result<Login, Failure> {
        if let Some(token) = &auth.token {
            return Ok(Login::Token(token.0.clone()));
        }
        if let Some(password) = &auth.password {
            let login = self.credentials.login(&password.credentials_ref.name.0)?;
            return Ok(Login::Userpass {
                mount: or(password.mount.as_ref(), "userpass"),
                username: login.username.expose().to_owned(),
                password: login.password,
            });
        }
        let Some(role) = &auth.app_role else {
            return Err(self.setting("secretStore.vault.auth", "needs token, password or appRole").into());
        };
        Ok(Login::AppRole {
            mount: or(role.mount.as_ref(), "approle"),
            role_id: Secret::from(role.role_id.0.clone()),
            secret_id: role.secret_id.0.clone(),
        })
    }

    /// Returns the key. The catalogue has exactly one of the four fields.
    fn key_material(&self, file: &FileStore) -> Result<KeyMaterial, CatalogueError> {
        let (field, material) = match (&file.key, &file.key_file, &file.passphrase, &file.passphrase_file) {
            (Some(key), _, _, _) => ("key", KeyMaterial::key(&key.0)),
            (_, Some(file), _, _) => ("keyFile", KeyMaterial::key_file(Path::new(&file.0))),
            (_, _, Some(passphrase), _) => ("passphrase", KeyMaterial::passphrase(&passphrase.0)),
            (_, _, _, Some(file)) => ("passphraseFile", KeyMaterial::passphrase_file(Path::new(&file.0))),
            (None, None, None, None) => ("key", Err(FileStoreError::EmptyKey("key"))),
        };
        material.map_err(|error| self.setting(&format!("secretStore.file.{field}"), &error.to_string()))
    }
}

fn or(text: Option<&Text>, default: &str) -> String {
    text.map_or(default, |text| &text.0).to_owned()
}

fn argon2(kdf: Option<&Kdf>) -> Result<Argon2, FileStoreError> {
    let count = |of: fn(&Kdf) -> Option<Count>| kdf.and_then(of).map_or(0, |count| i64::from(count.0));
    Argon2::new(count(|kdf| kdf.time), count(|kdf| kdf.memory), count(|kdf| kdf.threads))
}

/// Warns about a file that other users can access. Its mode is corrected when it is used.
#[cfg(unix)]
fn warn_if_open(file: &Path, messages: &Messages) {
    use std::os::unix::fs::PermissionsExt as _;
    let Ok(metadata) = std::fs::metadata(file) else { return };
    let mode = metadata.permissions().mode() & 0o777;
    if mode & !0o600 != 0 {
        messages.warn(&format!("{} has mode {mode:04o}; it is changed to 0600", file.display()));
    }
}

#[cfg(not(unix))]
fn warn_if_open(_file: &Path, _messages: &Messages) {}

//! Open secret stores, built from a spec and its Secrets. All policies that use a store share it.

use declarest_core::secrets::SecretStore;
use declarest_core::secrets::vault::{KvVersion, VaultAuth, VaultError, VaultSettings, VaultStore};

use super::connections;
use super::context::Context;
use super::error::Failure;
use super::identity::{Built, Identity};
use super::kind::{Key, Kind as _};
use super::outcome::Reason;
use super::references::SecretReader;
use super::seeds::{self, PlacedFile};
use crate::crd::{self, secret_store};

/// The stores in use.
#[derive(Default)]
pub struct Stores(Built<Opened>);

/// An open store.
#[derive(Clone)]
pub struct Opened {
    pub store: SecretStore,
    /// The file of an encrypted store.
    pub file: Option<PlacedFile>,
}

impl Stores {
    /// Returns the store of `object`, which is expanded. A login is kept until the spec or a Secret changes. Does not
    /// check that the store can be reached or decrypted.
    pub async fn open(&self, context: &Context, object: &crd::SecretStore) -> Result<Opened, Failure> {
        self.0.get(object.key(), Identity::of(context, object), build(context, object)).await
    }

    /// Forgets a store, so that it is built again when it is needed.
    pub fn forget(&self, key: &Key) {
        self.0.forget(key);
    }
}

async fn build(context: &Context, object: &crd::SecretStore) -> Result<Opened, Failure> {
    let mut secrets = SecretReader::new(&context.client, &object.key().namespace);
    match (&object.spec.vault, &object.spec.file) {
        (Some(spec), None) => {
            let store =
                VaultStore::new(settings(&mut secrets, spec).await?).map_err(|error| unusable(&error))?;
            Ok(Opened { store: SecretStore::from(store), file: None })
        }
        (None, Some(spec)) => {
            let (store, file) = seeds::open(context, object, spec, &mut secrets).await?;
            Ok(Opened { store: SecretStore::from(store), file: Some(file) })
        }
        _ => Err(Failure::spec_invalid("spec: set exactly one of vault and file")),
    }
}

async fn settings(
    secrets: &mut SecretReader,
    spec: &secret_store::VaultStore,
) -> Result<VaultSettings, Failure> {
    let version = KvVersion::from_number(spec.kv_version.into()).map_err(|error| unusable(&error))?;
    Ok(VaultSettings {
        mount: spec.mount.clone(),
        path_prefix: spec.path_prefix.clone().unwrap_or_default(),
        namespace: spec.namespace.clone(),
        kv_version: version,
        tls: connections::tls(secrets, "spec.vault.tls", spec.tls.as_ref()).await?.into(),
        proxy: connections::proxy(secrets, "spec.vault.proxy", spec.proxy.as_ref()).await?,
        ..VaultSettings::new(&spec.address, auth(secrets, &spec.auth).await?)
    })
}

async fn auth(secrets: &mut SecretReader, spec: &secret_store::VaultAuth) -> Result<VaultAuth, Failure> {
    let field = |name: &str| format!("spec.vault.auth.{name}");
    if let Some(token) = &spec.token {
        return Ok(VaultAuth::Token(secrets.value(&field("token.secretRef"), &token.secret_ref).await?));
    }
    if let Some(userpass) = &spec.userpass {
        let credentials = &userpass.credentials;
        let username = secrets.value(&field("userpass.usernameRef"), &credentials.username_ref).await?;
        return Ok(VaultAuth::Userpass {
            mount: userpass.mount.clone(),
            username: username.expose().to_owned(),
            password: secrets.value(&field("userpass.passwordRef"), &credentials.password_ref).await?,
        });
    }
    let Some(app_role) = &spec.app_role else {
        return Err(Failure::spec_invalid("spec.vault.auth: set exactly one of token, userpass and appRole"));
    };
    Ok(VaultAuth::AppRole {
        mount: app_role.mount.clone(),
        role_id: secrets.value(&field("appRole.roleIDRef"), &app_role.role_id_ref).await?,
        secret_id: secrets.value(&field("appRole.secretIDRef"), &app_role.secret_id_ref).await?,
    })
}

/// Returns the failure of invalid settings: `DependencyInvalid` for credentials, which come from Secrets, otherwise
/// `SpecInvalid`.
fn unusable(error: &VaultError) -> Failure {
    let from_secret = match error {
        VaultError::Setting { setting, .. } => {
            matches!(
                *setting,
                "auth.token" | "auth.userpass" | "auth.appRole.roleID" | "auth.appRole.secretID"
            )
        }
        _ => false,
    };
    let reason = if from_secret { Reason::DependencyInvalid } else { Reason::SpecInvalid };
    Failure::new(reason, format!("spec: {error}"))
}

/// Returns the failure of a Vault that cannot be used now. If it rejected the credentials, a Secret must be corrected.
/// Other faults may be corrected on the Vault server.
pub fn unavailable(error: &VaultError) -> Failure {
    match error {
        VaultError::Login { .. } => Failure::dependency_invalid(format!("spec.vault.auth: {error}")),
        VaultError::ProxyCredentials { .. } => {
            Failure::dependency_invalid(format!("spec.vault.proxy: {error}"))
        }
        _ => Failure::new(Reason::StoreUnavailable, error.to_string()),
    }
}

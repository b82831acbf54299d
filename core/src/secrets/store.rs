//! A secret store of any kind.

use std::sync::Arc;

use super::file::{FileStore, FileStoreError};
use super::vault::{VaultError, VaultStore};
use super::{Secret, SecretKey};
use crate::error::categories;

/// A secret store. Clones share one store, and any number of callers may use it concurrently.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SecretStore {
    /// An encrypted file.
    File(FileStore),
    /// A KV engine of Vault.
    Vault(Arc<VaultStore>),
}

/// A failed operation of a store. The message names the key and never contains a value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The error of an encrypted file.
    #[error(transparent)]
    File(#[from] FileStoreError),
    /// The error of a Vault.
    #[error(transparent)]
    Vault(#[from] VaultError),
}

categories!(StoreError {
    .0: File, Vault;
});

impl From<FileStore> for SecretStore {
    fn from(store: FileStore) -> Self {
        Self::File(store)
    }
}

impl From<VaultStore> for SecretStore {
    fn from(store: VaultStore) -> Self {
        Self::Vault(Arc::new(store))
    }
}

impl SecretStore {
    /// Creates the store if necessary, and checks that it can be used.
    pub async fn init(&self) -> Result<(), StoreError> {
        match self {
            Self::File(store) => Ok(store.init().await?),
            Self::Vault(store) => Ok(store.init().await?),
        }
    }

    /// Fails if the store cannot have this key, whatever its value. The store is neither read nor written.
    pub fn check(&self, key: &SecretKey) -> Result<(), StoreError> {
        match self {
            Self::File(_) => Ok(()),
            Self::Vault(store) => Ok(store.check(key)?),
        }
    }

    /// Stores a value and replaces the previous one of the key.
    pub async fn set(&self, key: &SecretKey, value: &Secret) -> Result<(), StoreError> {
        match self {
            Self::File(store) => Ok(store.set(key, value).await?),
            Self::Vault(store) => Ok(store.set(key, value).await?),
        }
    }

    /// Like [`SecretStore::set`] for several secrets. All keys are [checked](SecretStore::check) before the first is
    /// stored. A file store writes them in one change.
    pub async fn set_all(&self, entries: Vec<(SecretKey, Secret)>) -> Result<(), StoreError> {
        match self {
            Self::File(store) => Ok(store.set_all(entries).await?),
            Self::Vault(store) => {
                for (key, _) in &entries {
                    store.check(key)?;
                }
                for (key, value) in &entries {
                    store.set(key, value).await?;
                }
                Ok(())
            }
        }
    }

    /// Returns the value of a key. The error for an absent key has the category not-found.
    pub async fn get(&self, key: &SecretKey) -> Result<Secret, StoreError> {
        match self {
            Self::File(store) => Ok(store.get(key).await?),
            Self::Vault(store) => Ok(store.get(key).await?),
        }
    }

    /// Removes a key. An absent key is not an error.
    pub async fn delete(&self, key: &SecretKey) -> Result<(), StoreError> {
        match self {
            Self::File(store) => Ok(store.delete(key).await?),
            Self::Vault(store) => Ok(store.delete(key).await?),
        }
    }

    /// Returns all keys, sorted.
    pub async fn list(&self) -> Result<Vec<SecretKey>, StoreError> {
        match self {
            Self::File(store) => Ok(store.list().await?),
            Self::Vault(store) => Ok(store.list().await?),
        }
    }
}

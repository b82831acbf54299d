//! A place that keeps secrets, whichever it is.

use std::sync::Arc;

use super::file::{FileStore, FileStoreError};
use super::vault::{VaultError, VaultStore};
use super::{Secret, SecretKey};
use crate::error::{Categorized, Category};

/// A store of secrets. Clones are the same store, and any number of callers may use it at once.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SecretStore {
    /// An encrypted file.
    File(FileStore),
    /// A Vault.
    Vault(Arc<VaultStore>),
}

/// Why a store did not do what it was asked to. It names the key and never a value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// An encrypted file.
    #[error(transparent)]
    File(#[from] FileStoreError),
    /// A Vault.
    #[error(transparent)]
    Vault(#[from] VaultError),
}

impl Categorized for StoreError {
    fn category(&self) -> Category {
        match self {
            Self::File(error) => error.category(),
            Self::Vault(error) => error.category(),
        }
    }
}

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
    /// Makes the store ready for use, or proves that it is.
    pub async fn init(&self) -> Result<(), StoreError> {
        match self {
            Self::File(store) => Ok(store.init().await?),
            Self::Vault(store) => Ok(store.init().await?),
        }
    }

    /// Stores a value, which replaces the one of the same key.
    pub async fn set(&self, key: &SecretKey, value: &Secret) -> Result<(), StoreError> {
        match self {
            Self::File(store) => Ok(store.set(key, value).await?),
            Self::Vault(store) => Ok(store.set(key, value).await?),
        }
    }

    /// [`SecretStore::set`] for many, which a file takes in one change.
    pub async fn set_all(&self, entries: Vec<(SecretKey, Secret)>) -> Result<(), StoreError> {
        match self {
            Self::File(store) => Ok(store.set_all(entries).await?),
            Self::Vault(store) => {
                for (key, value) in &entries {
                    store.set(key, value).await?;
                }
                Ok(())
            }
        }
    }

    /// The value of a key. One that is not there is of the category not-found.
    pub async fn get(&self, key: &SecretKey) -> Result<Secret, StoreError> {
        match self {
            Self::File(store) => Ok(store.get(key).await?),
            Self::Vault(store) => Ok(store.get(key).await?),
        }
    }

    /// Removes a key. It need not be there.
    pub async fn delete(&self, key: &SecretKey) -> Result<(), StoreError> {
        match self {
            Self::File(store) => Ok(store.delete(key).await?),
            Self::Vault(store) => Ok(store.delete(key).await?),
        }
    }

    /// All keys, sorted.
    pub async fn list(&self) -> Result<Vec<SecretKey>, StoreError> {
        match self {
            Self::File(store) => Ok(store.list().await?),
            Self::Vault(store) => Ok(store.list().await?),
        }
    }
}

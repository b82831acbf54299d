//! Deletes resources from a store.

use super::Store;
use super::disk::remove;
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::repository::sidecar::beside;
use crate::repository::{RepositoryError, read_payload};

impl Store {
    /// Deletes the resources that [`Store::list`] finds in `scope`, and returns their paths, sorted. An empty scope
    /// is not an error.
    ///
    /// Of each resource the payload is deleted, and the sidecars that `sidecars` returns for the stored payload.
    /// Metadata, defaults and child resources that are not listed stay. Directories that become empty are removed.
    /// Everything is found before anything is deleted, so after an ambiguous directory or an error of `sidecars`
    /// nothing is deleted. If a payload cannot be decoded, its sidecars are unknown and stay.
    pub fn delete<E: From<RepositoryError>>(
        &self,
        scope: &LogicalPath,
        recursive: bool,
        mut sidecars: impl FnMut(&LogicalPath, &Value) -> Result<Vec<String>, E>,
    ) -> Result<Vec<LogicalPath>, E> {
        let resources = self.list(scope, recursive)?.whole()?;
        let (mut payloads, mut others, mut deleted) = (Vec::new(), Vec::new(), Vec::new());
        for file in resources {
            payloads.push(self.tree().place(&file.file)?);
            let named = match read_payload(self.tree(), &file) {
                Ok(payload) => sidecars(&file.path, &payload)?,
                Err(RepositoryError::Payload { .. } | RepositoryError::PayloadMissing { .. }) => Vec::new(),
                Err(error) => return Err(error.into()),
            };
            for sidecar in named {
                others.push(self.tree().place(&beside(&file.path, &sidecar)?)?);
            }
            deleted.push(file.path);
        }
        // Payloads are deleted first, so that none is left without its sidecars.
        payloads.append(&mut others);
        remove(self.tree(), &payloads)?;
        Ok(deleted)
    }
}

use super::Store;
use super::disk::remove;
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::repository::sidecar::beside;
use crate::repository::{RepositoryError, read_payload};

impl Store {
    /// Deletes what [`Store::list`] finds in `scope`, and returns its paths, sorted. Nothing there is fine.
    ///
    /// Of each resource its payload goes, and the sidecars that `sidecars` names when given the stored
    /// payload; metadata and defaults stay, and so do child resources that are not listed themselves.
    /// Directories that become empty go as well. Everything is found before anything is deleted, so an
    /// ambiguous directory or an error of `sidecars` deletes nothing. A payload that does not decode has no
    /// sidecars that are known, and is deleted alone.
    pub fn delete<E: From<RepositoryError>>(
        &self,
        scope: &LogicalPath,
        recursive: bool,
        mut sidecars: impl FnMut(&LogicalPath, &Value) -> Result<Vec<String>, E>,
    ) -> Result<Vec<LogicalPath>, E> {
        let listing = self.list(scope, recursive)?;
        if let Some((_, error)) = listing.broken.into_iter().next() {
            return Err(error.into());
        }
        let (mut payloads, mut others, mut deleted) = (Vec::new(), Vec::new(), Vec::new());
        for file in listing.resources {
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
        // No payload may be left without its sidecars.
        payloads.append(&mut others);
        remove(self.tree(), &payloads)?;
        Ok(deleted)
    }
}

//! Finds declared resources that are one resource on the server.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher as _};

use super::address::stated_addresses;
use crate::path::LogicalPath;
use crate::sync::model::{Resource, SyncError, Wanted};

/// The names and addresses of declared resources. A name must be unique in a collection, and an address that metadata
/// states must be unique in the repository.
#[derive(Default)]
pub struct Names {
    /// The hashes of all of them.
    seen: HashSet<u64>,
    /// The hashes of the current part, with the first path of each.
    part: HashMap<u64, LogicalPath>,
    /// Resources of this part that share a name or an address with the other one.
    twins: HashMap<LogicalPath, LogicalPath>,
}

impl Names {
    /// Adds a resource. Fails if another one has its id, its alias or its addresses.
    pub fn add(&mut self, desired: &Resource) -> Result<(), SyncError> {
        let wanted = Wanted::of(desired);
        let parent = desired.path.parent();
        let names = wanted.claimed().map(|(kind, name)| (kind, hashed(&(&parent, kind, name))));
        let address = stated_addresses(desired).map(|addresses| ("address", hashed(&addresses)));
        for (kind, hash) in names.chain(address) {
            if !self.seen.insert(hash) {
                let twin = self.part.get(&hash).cloned();
                let other = twin.as_ref().map(ToString::to_string);
                let other = other.unwrap_or_else(|| format!("another resource with this {kind}"));
                self.twins.extend(twin.map(|twin| (twin, desired.path.clone())));
                return Err(SyncError::Claimed(desired.path.clone(), other));
            }
            self.part.insert(hash, desired.path.clone());
        }
        Ok(())
    }

    /// Ends a part. Returns errors for its resources whose name or address [`Self::add`] has found again.
    pub fn end_part(&mut self) -> HashMap<LogicalPath, SyncError> {
        self.part.clear();
        let twins = std::mem::take(&mut self.twins).into_iter();
        twins.map(|(path, other)| (path.clone(), SyncError::Claimed(path, other.to_string()))).collect()
    }
}

fn hashed(value: &impl Hash) -> u64 {
    let mut hash = DefaultHasher::new();
    value.hash(&mut hash);
    hash.finish()
}

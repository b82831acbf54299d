//! Finds declared resources that are one resource on the server.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher as _};

use super::address::stated_addresses;
use crate::path::LogicalPath;
use crate::sync::model::{Resource, SyncError, Wanted};

/// The names and addresses of declared resources, and where the server has them. A name must be unique in a collection. An
/// address that metadata states, and a place on the server, must be unique in the repository.
#[derive(Default)]
pub struct Names {
    /// The hashes of all of them.
    seen: HashSet<u64>,
    /// The hashes of the current part, with the first path of each.
    part: HashMap<u64, LogicalPath>,
    /// Resources of this part that share a name or an address with the other one.
    twins: HashMap<LogicalPath, LogicalPath>,
    /// Resources of this part that the server has at the place of the other one.
    found: HashMap<LogicalPath, String>,
}

impl Names {
    /// Adds a resource. Fails if another one has its id, its alias or its addresses.
    pub fn add(&mut self, desired: &Resource) -> Result<(), SyncError> {
        let wanted = Wanted::of(desired);
        let parent = desired.path.parent();
        let names = wanted.claimed().map(|(kind, name)| (kind, hashed(&(&parent, kind, name))));
        let address = stated_addresses(desired).map(|addresses| ("address", hashed(&addresses)));
        for (kind, hash) in names.chain(address) {
            if let Err(twin) = self.insert(hash, &desired.path) {
                let other = twin.as_ref().map(ToString::to_string);
                let other = other.unwrap_or_else(|| format!("another resource with this {kind}"));
                self.twins.extend(twin.map(|twin| (twin, desired.path.clone())));
                return Err(SyncError::Claimed(desired.path.clone(), other));
            }
        }
        Ok(())
    }

    /// Adds the place of a resource on the server, at which another one may be found, too.
    pub fn found(&mut self, path: &LogicalPath, place: &(String, String)) {
        let Err(twin) = self.insert(hashed(&("place", place)), path) else { return };
        let other = twin.as_ref().map_or_else(|| "another resource".to_owned(), ToString::to_string);
        self.found.extend(twin.map(|twin| (twin, path.to_string())));
        self.found.insert(path.clone(), other);
    }

    /// Inserts a hash. Fails if another resource has it, and returns the path of that, if it belongs to this part.
    fn insert(&mut self, hash: u64, path: &LogicalPath) -> Result<(), Option<LogicalPath>> {
        if !self.seen.insert(hash) {
            return Err(self.part.get(&hash).cloned());
        }
        self.part.insert(hash, path.clone());
        Ok(())
    }

    /// Returns errors for the resources of this part that [the server has](Self::found) at one place. They count only for
    /// writes: each would overwrite the other one.
    pub fn take_found(&mut self) -> HashMap<LogicalPath, SyncError> {
        let found = std::mem::take(&mut self.found).into_iter();
        found.map(|(path, other)| (path.clone(), SyncError::Claimed(path, other))).collect()
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

//! Records what servers do not show: which values of write-only attributes were written last, which created resources no
//! run finds, and which collections have the resources of another one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use parking_lot::Mutex;
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize};

use super::Resource;
use crate::digest::hex;
use crate::lock;
use crate::metadata::Rules;
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::payload::pointer::Pointer;
use crate::repository::{Mode, write_atomically};

/// How long a process waits for others that save their records.
const PATIENCE: Duration = Duration::from_secs(10);

/// Remembers HMACs of the write-only attributes of resources in a file. The values cannot be computed from it.
///
/// Also remembers the ids of created resources that no run finds by their names, and collections whose resources the server
/// also deletes in another collection.
///
/// A lost or damaged file is not an error: each resource with write-only attributes is updated once.
#[derive(Debug)]
pub struct WrittenValues {
    file: PathBuf,
    /// The address of the server.
    server: String,
    records: Mutex<Records>,
}

/// The content of the file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Records {
    /// Identifies the record to other processes, in hexadecimal digits.
    #[serde(default)]
    id: String,
    /// The key of the HMACs, in hexadecimal digits.
    key: String,
    /// The HMACs by server and path, then by the pointer of the attribute.
    values: BTreeMap<String, BTreeMap<String, String>>,
    /// The names of values that the server may no longer have: the outcome of a later write is unknown.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    doubted: BTreeSet<String>,
    /// Created resources that no run finds, by server and path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    lost: BTreeMap<String, Created>,
    /// A resource that a deletion in a collection deleted in another collection, too, by the server, the collection and the
    /// digest of its metadata.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    shared: BTreeMap<String, String>,
    /// The names of the values that are not in the file yet.
    #[serde(skip)]
    changed: BTreeSet<String>,
}

/// A created resource that no run finds, although the server shows it at its id.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Created {
    /// Its id, unless that is a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    /// The HMAC of the metadata and the payload from which it was created.
    from: String,
}

impl WrittenValues {
    /// The name of the file in its directory.
    const FILE: &str = "written.json";

    /// Reads the records in `directory`, for resources of the server at this address. Blocks.
    pub fn open(directory: &Path, server: String) -> Self {
        let file = directory.join(Self::FILE);
        let records = Mutex::new(Records::read(&file).unwrap_or_default());
        Self { file, server, records }
    }

    /// Returns the id of the record, and makes a new one unless it is `known` as that of the last run: a run of another
    /// process may have written other values than those in the record, which are discarded. Blocks.
    pub fn identified(&self, known: Option<&str>) -> String {
        let mut records = self.records.lock();
        if Some(records.id.as_str()) == known {
            return records.id.clone();
        }
        records.id = format!("{:016x}", fastrand::u64(..));
        records.values.clear();
        records.doubted.clear();
        // If it fails, the file keeps its old id, and the next process discards its values.
        if let Err(error) = self.write(&records) {
            tracing::warn!(%error, file = %self.file.display(), "cannot write the record of write-only attributes");
        }
        records.id.clone()
    }

    fn write(&self, records: &Records) -> io::Result<()> {
        if let Some(directory) = self.file.parent() {
            fs::create_dir_all(directory)?;
        }
        write_atomically(&self.file, &serde_json::to_vec(records)?, Mode::Private)
    }

    /// Whether `value` was written last as this write-only attribute of `desired`; `None` if that is unknown.
    pub(crate) fn is_current(&self, desired: &Resource, attribute: &Pointer, value: &Value) -> Option<bool> {
        let (name, records) = (self.name(&desired.path), self.records.lock());
        let recorded = records.values.get(&name)?.get(&attribute.to_string())?;
        let is_recorded = records.digest(&name, attribute, value)? == *recorded;
        (!is_recorded || !records.doubted.contains(&name)).then_some(is_recorded)
    }

    /// Records that the values of the resource at `path` may be replaced from now on.
    pub(crate) fn doubt(&self, path: &LogicalPath) {
        let name = self.name(path);
        let mut records = self.records.lock();
        if records.values.contains_key(&name) && records.doubted.insert(name.clone()) {
            records.changed.insert(name);
        }
    }

    /// Records that the write-only attributes of `desired` were written, except those at `unsent`.
    pub(crate) fn note(&self, desired: &Resource, unsent: &[Pointer]) {
        let name = self.name(&desired.path);
        let mut records = self.records.lock();
        // Without a key, the values are not recorded, and written again.
        if !records.has_key() {
            return;
        }
        let digests = desired.write_only().filter_map(|(attribute, value)| {
            let at = attribute.to_string();
            let digest = if unsent.contains(attribute) {
                records.values.get(&name)?.get(&at)?.clone()
            } else {
                records.digest(&name, attribute, value)?
            };
            Some((at, digest))
        });
        let digests = digests.collect();
        records.values.insert(name.clone(), digests);
        records.doubted.remove(&name);
        records.changed.insert(name);
    }

    /// Removes the record of a resource that was deleted, because another one may get its path.
    pub(crate) fn forget(&self, path: &LogicalPath) {
        let name = self.name(path);
        let mut records = self.records.lock();
        let was_lost = records.lost.remove(&name).is_some();
        if records.values.remove(&name).is_some() || was_lost {
            records.doubted.remove(&name);
            records.changed.insert(name);
        }
    }

    /// Records that the server created `desired` with this id, and that no run finds it. The file does not contain secret ids.
    pub(crate) fn lose(&self, desired: &Resource, id: &str) {
        let name = self.name(&desired.path);
        let mut records = self.records.lock();
        if records.has_key()
            && let Some(from) = records.source(&name, desired)
        {
            let id = (!desired.rules.has_secret_id()).then(|| id.to_owned());
            records.lost.insert(name.clone(), Created { id, from });
            records.changed.insert(name);
        }
    }

    /// Records that the resource at `path` is found, or that it no longer exists.
    pub(crate) fn find(&self, path: &LogicalPath) {
        let name = self.name(path);
        let mut records = self.records.lock();
        if records.lost.remove(&name).is_some() {
            records.changed.insert(name);
        }
    }

    /// Whether no run found the resource that was created for this path.
    pub(crate) fn has_lost(&self, path: &LogicalPath) -> bool {
        self.records.lock().lost.contains_key(&self.name(path))
    }

    /// Returns the resource that the server created for the path of `desired`, and that no run found, and whether it was
    /// created from the same payload and metadata.
    pub(crate) fn lost(&self, desired: &Resource) -> Option<(Created, bool)> {
        let (name, records) = (self.name(&desired.path), self.records.lock());
        let created = records.lost.get(&name)?;
        Some((created.clone(), records.source(&name, desired)? == created.from))
    }

    /// Returns the path and the id of a resource beside the one at `path` that the server created and that no run found. Leaves
    /// out secret ids.
    pub(crate) fn lost_beside(&self, path: &LogicalPath) -> Option<(LogicalPath, String)> {
        let (collection, records) = (path.parent()?, self.records.lock());
        let first = self.name(&collection);
        let beside = records.lost.range(first.clone()..).take_while(|(name, _)| name.starts_with(&first));
        let mut beside = beside.filter_map(|(name, lost)| {
            let path = LogicalPath::parse(name.strip_prefix(&self.server)?.trim_start()).ok()?;
            (path.parent().as_ref() == Some(&collection)).then_some((path, lost.id.clone()?))
        });
        beside.next()
    }

    /// Records that the deletion of the resource at `path`, which has these rules, deleted the one at `twin`, too.
    pub(crate) fn share(&self, path: &LogicalPath, rules: &Rules, twin: &LogicalPath) {
        if let Some(name) = self.collection(path, rules) {
            let mut records = self.records.lock();
            if records.has_key() {
                records.shared.insert(name.clone(), twin.to_string());
                records.changed.insert(name);
            }
        }
    }

    /// Returns the path of a resource of another collection that a deletion beside the resource at `path` deleted, too.
    pub(crate) fn shared(&self, path: &LogicalPath, rules: &Rules) -> Option<String> {
        self.records.lock().shared.get(&self.collection(path, rules)?).cloned()
    }

    /// Writes the records that changed to the file. Those that other processes wrote stay. Blocks.
    pub(crate) fn save(&self) -> io::Result<()> {
        let mut records = self.records.lock();
        if records.changed.is_empty() {
            return Ok(());
        }
        if let Some(directory) = self.file.parent() {
            fs::create_dir_all(directory)?;
        }
        let file = lock::open(&self.file.with_extension("lock"))?;
        lock::lock(&file, PATIENCE)?;
        if let Some(stored) =
            Records::read(&self.file).filter(|stored| stored.key == records.key && stored.id == records.id)
        {
            let mut own = std::mem::replace(&mut *records, stored);
            for name in own.changed {
                match own.values.remove(&name) {
                    Some(digests) => records.values.insert(name.clone(), digests),
                    None => records.values.remove(&name),
                };
                match own.lost.remove(&name) {
                    Some(lost) => records.lost.insert(name.clone(), lost),
                    None => records.lost.remove(&name),
                };
                if let Some(twin) = own.shared.remove(&name) {
                    records.shared.insert(name.clone(), twin);
                }
                if own.doubted.remove(&name) {
                    records.doubted.insert(name.clone());
                } else {
                    records.doubted.remove(&name);
                }
                records.changed.insert(name);
            }
        }
        self.write(&records)?;
        records.changed.clear();
        Ok(())
    }

    fn name(&self, path: &LogicalPath) -> String {
        format!("{} {path}", self.server)
    }

    fn collection(&self, path: &LogicalPath, rules: &Rules) -> Option<String> {
        Some(format!("{} {}", self.name(&path.parent()?), hex(rules.digest())))
    }
}

impl Records {
    fn read(file: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(file).ok()?).ok()
    }

    /// Makes the key of the HMACs, if there is none. Returns whether there is one.
    fn has_key(&mut self) -> bool {
        let mut key = [0; 32];
        if self.key.is_empty() && SystemRandom::new().fill(&mut key).is_ok() {
            self.key = hex(&key);
        }
        !self.key.is_empty()
    }

    /// Returns the HMAC of the metadata and the payload of the resource `name`; `None` if they cannot be encoded.
    fn source(&self, name: &str, desired: &Resource) -> Option<String> {
        let name = format!("{name} {}", hex(desired.rules.digest()));
        self.digest(&name, &Pointer::default(), &desired.payload)
    }

    /// Returns the HMAC of an attribute of the resource `name`; `None` if it cannot be encoded.
    fn digest(&self, name: &str, attribute: &Pointer, value: &Value) -> Option<String> {
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.key.as_bytes());
        let text = serde_json::to_vec(&(name, attribute, value)).ok()?;
        Some(hex(hmac::sign(&key, &text).as_ref()))
    }
}

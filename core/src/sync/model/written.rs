//! Records which values of write-only attributes were written last, because servers do not show these attributes.

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
use crate::path::LogicalPath;
use crate::payload::Value;
use crate::payload::pointer::Pointer;
use crate::repository::{Mode, write_atomically};

/// How long a process waits for others that save their records.
const PATIENCE: Duration = Duration::from_secs(10);

/// Remembers HMACs of the write-only attributes of resources in a file. The values cannot be computed from it.
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
    /// The key of the HMACs, in hexadecimal digits.
    key: String,
    /// The HMACs by server and path, then by the pointer of the attribute.
    values: BTreeMap<String, BTreeMap<String, String>>,
    /// The names of values that the server may no longer have: the outcome of a later write is unknown.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    doubted: BTreeSet<String>,
    /// The names of the values that are not in the file yet.
    #[serde(skip)]
    changed: BTreeSet<String>,
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

    /// Records that the write-only attributes of `desired` were written.
    pub(crate) fn note(&self, desired: &Resource) {
        let name = self.name(&desired.path);
        let mut records = self.records.lock();
        if records.key.is_empty() {
            let mut key = [0; 32];
            // Without a key, the values are not recorded, and written again.
            if SystemRandom::new().fill(&mut key).is_err() {
                return;
            }
            records.key = hex(&key);
        }
        let digests = desired.write_only().filter_map(|(attribute, value)| {
            Some((attribute.to_string(), records.digest(&name, attribute, value)?))
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
        if records.values.remove(&name).is_some() {
            records.doubted.remove(&name);
            records.changed.insert(name);
        }
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
        if let Some(stored) = Records::read(&self.file).filter(|stored| stored.key == records.key) {
            let mut own = std::mem::replace(&mut *records, stored);
            for name in own.changed {
                match own.values.remove(&name) {
                    Some(digests) => records.values.insert(name.clone(), digests),
                    None => records.values.remove(&name),
                };
                if own.doubted.remove(&name) {
                    records.doubted.insert(name.clone());
                } else {
                    records.doubted.remove(&name);
                }
                records.changed.insert(name);
            }
        }
        write_atomically(&self.file, &serde_json::to_vec(&*records)?, Mode::Private)?;
        records.changed.clear();
        Ok(())
    }

    fn name(&self, path: &LogicalPath) -> String {
        format!("{} {path}", self.server)
    }
}

impl Records {
    fn read(file: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(file).ok()?).ok()
    }

    /// Returns the HMAC of an attribute of the resource `name`; `None` if it cannot be encoded.
    fn digest(&self, name: &str, attribute: &Pointer, value: &Value) -> Option<String> {
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.key.as_bytes());
        let text = serde_json::to_vec(&(name, attribute, value)).ok()?;
        Some(hex(hmac::sign(&key, &text).as_ref()))
    }
}

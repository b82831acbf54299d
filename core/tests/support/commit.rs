//! A directory that claims to be a commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use declarest_core::repository::{Entry, RepositoryError, Revision, Tree};

pub struct Commit {
    pub files: Arc<dyn Tree>,
    pub revision: Revision,
    /// The number of payloads that were read.
    pub read: Arc<AtomicUsize>,
}

impl Commit {
    /// The commit with this number. Counts the payloads that are read.
    pub fn numbered(files: Arc<dyn Tree>, number: u32, read: Arc<AtomicUsize>) -> Arc<dyn Tree> {
        Arc::new(Self { files, revision: format!("{number:040x}").parse().unwrap(), read })
    }
}

impl Tree for Commit {
    fn entries(&self, directory: &str) -> Result<Option<Vec<Entry>>, RepositoryError> {
        self.files.entries(directory)
    }

    fn read_within(&self, file: &str, limit: u64) -> Result<Option<Vec<u8>>, RepositoryError> {
        self.read.fetch_add(usize::from(file.ends_with("resource.json")), Ordering::Relaxed);
        self.files.read_within(file, limit)
    }

    fn revision(&self) -> Option<&Revision> {
        Some(&self.revision)
    }
}

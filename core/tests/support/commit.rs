//! A directory that claims to be a commit, and counts how often it is looked at.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use declarest_core::repository::{Entry, RepositoryError, Revision, Tree};

/// How often the repository was looked at.
#[derive(Default)]
pub struct Looks {
    pub read: AtomicUsize,
    pub listed: AtomicUsize,
}

pub struct Commit {
    pub files: Arc<dyn Tree>,
    pub revision: Revision,
    pub looks: Arc<Looks>,
}

impl Commit {
    /// The commit with this number.
    pub fn numbered(files: Arc<dyn Tree>, number: u32, looks: Arc<Looks>) -> Arc<dyn Tree> {
        Arc::new(Self { files, revision: format!("{number:040x}").parse().unwrap(), looks })
    }
}

impl Tree for Commit {
    fn entries(&self, directory: &str) -> Result<Option<Vec<Entry>>, RepositoryError> {
        self.looks.listed.fetch_add(1, Ordering::Relaxed);
        self.files.entries(directory)
    }

    fn read(&self, file: &str) -> Result<Option<Vec<u8>>, RepositoryError> {
        self.looks.read.fetch_add(1, Ordering::Relaxed);
        self.files.read(file)
    }

    fn revision(&self) -> Option<&Revision> {
        Some(&self.revision)
    }
}

//! A directory that claims to be a commit.

use std::sync::Arc;

use declarest_core::repository::{Entry, RepositoryError, Revision, Tree};

pub struct Commit {
    pub files: Arc<dyn Tree>,
    pub revision: Revision,
}

impl Commit {
    /// The commit with this number.
    pub fn numbered(files: Arc<dyn Tree>, number: u32) -> Arc<dyn Tree> {
        Arc::new(Self { files, revision: format!("{number:040x}").parse().unwrap() })
    }
}

impl Tree for Commit {
    fn entries(&self, directory: &str) -> Result<Option<Vec<Entry>>, RepositoryError> {
        self.files.entries(directory)
    }

    fn read(&self, file: &str) -> Result<Option<Vec<u8>>, RepositoryError> {
        self.files.read(file)
    }

    fn revision(&self) -> Option<&Revision> {
        Some(&self.revision)
    }
}

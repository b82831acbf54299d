//! Trees in memory.

use std::collections::HashMap;

use super::tree::{check_size, join, segments};
use super::{Entry, EntryKind, RepositoryError, Revision, Tree};

/// A copy of another tree, independent of later changes to the original.
#[derive(Clone, Debug, Default)]
pub struct MemoryTree {
    directories: HashMap<String, Vec<Entry>>,
    files: HashMap<String, Vec<u8>>,
}

impl MemoryTree {
    /// Returns the number of bytes of all files.
    pub fn size(&self) -> usize {
        self.files.values().map(Vec::len).sum()
    }

    /// Copies the directories of `tree`, and the files whose names `keep` accepts. Fails if the files have more than
    /// `limit` bytes together, and if another process removes a file or directory meanwhile.
    pub fn copy(tree: &dyn Tree, keep: impl Fn(&str) -> bool, limit: u64) -> Result<Self, RepositoryError> {
        let mut copy = Self::default();
        let (mut pending, mut size) = (vec![String::new()], 0);
        while let Some(directory) = pending.pop() {
            let vanished = |name: &str| RepositoryError::Vanished(name.to_owned());
            let mut entries = tree.entries(&directory)?.ok_or_else(|| vanished(&directory))?;
            entries.retain(|entry| entry.kind != EntryKind::File || keep(&entry.name));
            for entry in &entries {
                let name = join(&directory, &entry.name);
                let content = match entry.kind {
                    EntryKind::Directory => {
                        pending.push(name);
                        continue;
                    }
                    EntryKind::File => Some(tree.read(&name)?.ok_or_else(|| vanished(&name))?),
                    // It may be a link to a file.
                    EntryKind::Other if keep(&entry.name) => tree.read(&name)?,
                    EntryKind::Other | EntryKind::NotUtf8 { .. } => None,
                };
                if let Some(content) = content {
                    size += content.len() as u64;
                    check_size("(all metadata documents)", size, limit)?;
                    copy.files.insert(name, content);
                }
            }
            copy.directories.insert(directory, entries);
        }
        Ok(copy)
    }
}

impl Tree for MemoryTree {
    fn entries(&self, directory: &str) -> Result<Option<Vec<Entry>>, RepositoryError> {
        segments(directory)?;
        Ok(self.directories.get(directory).cloned())
    }

    fn read_within(&self, file: &str, limit: u64) -> Result<Option<Vec<u8>>, RepositoryError> {
        segments(file)?;
        let Some(content) = self.files.get(file) else { return Ok(None) };
        check_size(file, content.len() as u64, limit)?;
        Ok(Some(content.clone()))
    }

    fn revision(&self) -> Option<&Revision> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::dir;
    use super::*;

    #[test]
    fn a_copy_does_not_depend_on_its_original() {
        let (root, tree) = dir(&[("a/_/metadata.yaml", "x"), ("a/b/resource.json", "{}"), ("c.txt", "")]);
        let copy = MemoryTree::copy(&tree, |name| name.starts_with("metadata."), 1 << 20).unwrap();
        drop(root);
        assert_eq!(copy.read("a/_/metadata.yaml").unwrap().as_deref(), Some(b"x".as_slice()));
        assert_eq!(copy.read("a/b/resource.json").unwrap(), None);
        let names = |directory| -> Option<Vec<String>> {
            let entries = copy.entries(directory).unwrap()?;
            Some(entries.into_iter().map(|entry| entry.name).collect())
        };
        assert_eq!(names(""), Some(vec!["a".to_owned()]));
        assert_eq!(names("a"), Some(vec!["_".to_owned(), "b".to_owned()]));
        assert_eq!(names("a/b"), Some(Vec::new()));
        assert_eq!(names("d"), None);
        assert!(copy.read("../x").is_err());
    }
}

//! Trees and repositories for the tests of this module.

use std::collections::BTreeMap;
use std::fs;

use git2::{Oid, Repository, Signature, Time};

use super::tree::segments;
use super::{DirTree, Entry, EntryKind, RepositoryError, Revision, Tree};

/// Returns a directory tree with these files.
pub fn dir(files: &[(&str, &str)]) -> (tempfile::TempDir, DirTree) {
    let root = tempfile::tempdir().unwrap();
    for (file, content) in files {
        let place = root.path().join(file);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, content).unwrap();
    }
    let tree = DirTree::open(root.path()).unwrap();
    (root, tree)
}

/// Regular files in memory, for tests that need many trees.
pub struct MemoryTree<'a>(pub &'a BTreeMap<&'a str, &'a str>);

impl Tree for MemoryTree<'_> {
    fn entries(&self, directory: &str) -> Result<Option<Vec<Entry>>, RepositoryError> {
        segments(directory)?;
        let prefix = if directory.is_empty() { String::new() } else { format!("{directory}/") };
        let below = self.0.keys().filter_map(|file| file.strip_prefix(&prefix));
        let kinds: BTreeMap<&str, EntryKind> = below
            .map(|rest| match rest.split_once('/') {
                Some((name, _)) => (name, EntryKind::Directory),
                None => (rest, EntryKind::File),
            })
            .collect();
        let entries = kinds.into_iter().map(|(name, kind)| Entry { name: name.to_owned(), kind });
        let entries: Vec<Entry> = entries.collect();
        Ok((!entries.is_empty() || directory.is_empty()).then_some(entries))
    }

    fn read_within(&self, file: &str, _: u64) -> Result<Option<Vec<u8>>, RepositoryError> {
        Ok(self.0.get(file).map(|text| text.as_bytes().to_vec()))
    }

    fn revision(&self) -> Option<&Revision> {
        None
    }
}

/// A bare repository that is used as the remote.
pub struct Origin {
    directory: tempfile::TempDir,
    repository: Repository,
}

/// One file of a commit.
pub enum File<'a> {
    Text(&'a str),
    Executable(&'a str),
    Link(&'a str),
    Submodule,
}

impl Origin {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let repository = Repository::init_bare(directory.path()).unwrap();
        Self { directory, repository }
    }

    pub fn url(&self) -> String {
        format!("file://{}", self.directory.path().display())
    }

    /// Creates a commit with exactly these files, `at` seconds after the epoch, on no branch.
    pub fn commit_at(&self, at: i64, parents: &[&Revision], files: &[(&str, File<'_>)]) -> Revision {
        let mut index = git2::Index::new().unwrap();
        for (path, file) in files {
            let (mode, id) = match file {
                File::Text(text) => (0o100_644, self.blob(text)),
                File::Executable(text) => (0o100_755, self.blob(text)),
                File::Link(target) => (0o120_000, self.blob(target)),
                File::Submodule => (0o160_000, Oid::from_str(&"1".repeat(40)).unwrap()),
            };
            let mut entry = blank_entry();
            (entry.mode, entry.id, entry.path) = (mode, id, path.as_bytes().to_vec());
            index.add(&entry).unwrap();
        }
        let tree = self.repository.find_tree(index.write_tree_to(&self.repository).unwrap()).unwrap();
        let who = Signature::new("a", "a@example.org", &Time::new(at, 0)).unwrap();
        let parents: Vec<_> =
            parents.iter().map(|id| self.repository.find_commit(id.oid().unwrap()).unwrap()).collect();
        let parents: Vec<_> = parents.iter().collect();
        let message = format!("at {at}");
        Revision::of(self.repository.commit(None, &who, &who, &message, &tree, &parents).unwrap())
    }

    /// Creates a commit without files whose message has 2 MiB.
    pub fn large_commit(&self, parents: &[&Revision]) -> Revision {
        let tree =
            self.repository.find_tree(git2::Index::new().unwrap().write_tree_to(&self.repository).unwrap());
        let who = Signature::new("a", "a@example.org", &Time::new(1_000_000_000, 0)).unwrap();
        let parents: Vec<_> =
            parents.iter().map(|id| self.repository.find_commit(id.oid().unwrap()).unwrap()).collect();
        let parents: Vec<_> = parents.iter().collect();
        let message = "x".repeat(2 << 20);
        Revision::of(self.repository.commit(None, &who, &who, &message, &tree.unwrap(), &parents).unwrap())
    }

    /// Creates a commit with a directory that has these names, which are the same directory with these names, and so on.
    /// Each of these `levels` has the file.
    pub fn nested_commit(
        &self,
        parent: &Revision,
        names: &[&str],
        levels: usize,
        file: Option<&str>,
    ) -> Revision {
        let blob = self.blob("{}");
        let mut tree = None;
        for _ in 0..levels {
            let mut builder = self.repository.treebuilder(None).unwrap();
            for name in names {
                if let Some(tree) = tree {
                    builder.insert(name, tree, 0o040_000).unwrap();
                }
            }
            if let Some(file) = file {
                builder.insert(file, blob, 0o100_644).unwrap();
            }
            tree = Some(builder.write().unwrap());
        }
        let tree = self.repository.find_tree(tree.unwrap()).unwrap();
        let who = Signature::new("a", "a@example.org", &Time::new(2_000_000_000, 0)).unwrap();
        let parent = self.repository.find_commit(parent.oid().unwrap()).unwrap();
        Revision::of(self.repository.commit(None, &who, &who, "nested", &tree, &[&parent]).unwrap())
    }

    /// Creates a commit of text files one second after its newest parent.
    pub fn commit(&self, parents: &[&Revision], files: &[(&str, &str)]) -> Revision {
        let time = |id: &&Revision| self.repository.find_commit(id.oid().unwrap()).unwrap().time().seconds();
        let at = parents.iter().map(time).max().unwrap_or(1_000_000_000) + 1;
        let files: Vec<_> = files.iter().map(|(path, text)| (*path, File::Text(text))).collect();
        self.commit_at(at, parents, &files)
    }

    /// Moves a branch by force.
    pub fn branch(&self, name: &str, to: &Revision) {
        let reference = format!("refs/heads/{name}");
        self.repository.reference(&reference, to.oid().unwrap(), true, "test").unwrap();
    }

    fn blob(&self, text: &str) -> Oid {
        self.repository.blob(text.as_bytes()).unwrap()
    }
}

fn blank_entry() -> git2::IndexEntry {
    git2::IndexEntry {
        ctime: git2::IndexTime::new(0, 0),
        mtime: git2::IndexTime::new(0, 0),
        dev: 0,
        ino: 0,
        mode: 0,
        uid: 0,
        gid: 0,
        file_size: 0,
        id: Oid::ZERO_SHA1,
        flags: 0,
        flags_extended: 0,
        path: Vec::new(),
    }
}

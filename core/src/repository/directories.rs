//! A compact cache of the directories of commits.

use std::collections::HashMap;
use std::sync::Arc;

use git2::Oid;
use parking_lot::Mutex;

use super::EntryKind;

/// An entry of a directory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub id: Oid,
    pub kind: EntryKind,
}

/// One directory. libgit2 would parse a large one again for each lookup of a name.
#[derive(Debug)]
pub(super) struct Directory {
    /// All names, concatenated.
    names: Box<[u8]>,
    /// The entries, sorted by the bytes of their names.
    entries: Box<[Named]>,
}

#[derive(Debug)]
struct Named {
    start: u32,
    end: u32,
    found: Found,
}

impl Directory {
    pub fn of(tree: &git2::Tree<'_>) -> Self {
        let mut names = Vec::new();
        let mut end = 0;
        let mut entries: Vec<Named> = Vec::with_capacity(tree.len());
        for entry in tree {
            let start = end;
            names.extend_from_slice(entry.name_bytes());
            // Git does not write trees of this size. A name beyond the limit would not be found.
            end = u32::try_from(names.len()).unwrap_or(u32::MAX);
            let found = Found { id: entry.id(), kind: entry_kind(entry.filemode()) };
            entries.push(Named { start, end, found });
        }
        let mut directory = Self { names: names.into_boxed_slice(), entries: entries.into_boxed_slice() };
        // Git sorts directories as if their names ended in a slash.
        let names = &directory.names;
        directory.entries.sort_unstable_by(|a, b| named(names, a).cmp(named(names, b)));
        directory
    }

    pub fn get(&self, name: &[u8]) -> Option<Found> {
        let place = self.entries.binary_search_by(|entry| named(&self.names, entry).cmp(name));
        place.ok().and_then(|place| self.entries.get(place)).map(|entry| entry.found)
    }

    /// Returns the names and their entries, sorted by the bytes of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Found)> {
        self.entries.iter().map(|entry| (named(&self.names, entry), entry.found))
    }

    /// Returns the memory that it needs, in entries.
    fn size(&self) -> usize {
        self.entries.len() + 4
    }
}

fn named<'n>(names: &'n [u8], entry: &Named) -> &'n [u8] {
    names.get(entry.start as usize..entry.end as usize).unwrap_or_default()
}

/// Returns the kind for a file mode of Git. Modes other than tree and regular blob are links or submodules.
pub(super) fn entry_kind(mode: i32) -> EntryKind {
    match mode & 0o170_000 {
        0o040_000 => EntryKind::Directory,
        0o100_000 => EntryKind::File,
        _ => EntryKind::Other,
    }
}

/// The entries in one of the two generations, about 3 MiB. A walk reads most directories two or three times within a
/// short time, and the directory of a collection once for each member.
const KEPT: usize = 1 << 16;

/// Directories by their ids. Those without recent use are removed.
#[derive(Debug, Default)]
pub(super) struct Directories(Mutex<Generations>);

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<Oid, Arc<Directory>>,
    old: HashMap<Oid, Arc<Directory>>,
    /// The size of the young generation.
    size: usize,
}

impl Directories {
    pub fn get(&self, id: Oid) -> Option<Arc<Directory>> {
        let mut generations = self.0.lock();
        if let Some(directory) = generations.young.get(&id) {
            return Some(Arc::clone(directory));
        }
        let directory = generations.old.remove(&id)?;
        generations.keep(id, Arc::clone(&directory));
        Some(directory)
    }

    pub fn keep(&self, id: Oid, directory: Arc<Directory>) {
        self.0.lock().keep(id, directory);
    }
}

impl Generations {
    fn keep(&mut self, id: Oid, directory: Arc<Directory>) {
        if self.size + directory.size() > KEPT {
            self.old = std::mem::take(&mut self.young);
            self.size = 0;
        }
        let size = directory.size();
        if self.young.insert(id, directory).is_none() {
            self.size += size;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> Oid {
        Oid::from_str(&format!("{number:040x}")).unwrap()
    }

    fn empty() -> Arc<Directory> {
        Arc::new(Directory { names: Box::default(), entries: Box::default() })
    }

    #[test]
    fn used_directories_stay_and_unused_ones_are_removed() {
        let directories = Directories::default();
        directories.keep(id(0), empty());
        directories.keep(id(1), empty());
        for number in 2..KEPT {
            directories.keep(id(number), empty());
            assert!(directories.get(id(0)).is_some(), "used all the time");
        }
        assert!(directories.get(id(1)).is_none(), "not used since");
        let generations = directories.0.lock();
        assert!(generations.young.len() + generations.old.len() <= KEPT / 2);
    }

    #[test]
    fn a_directory_above_the_limit_is_kept_while_it_is_used() {
        let directories = Directories::default();
        let names: Box<[u8]> = Box::from(*b"x");
        let named = || Named { start: 0, end: 1, found: Found { id: id(0), kind: EntryKind::File } };
        let entries = (0..=KEPT).map(|_| named()).collect();
        directories.keep(id(0), Arc::new(Directory { names, entries }));
        for number in 1..100 {
            directories.keep(id(number), empty());
            assert!(directories.get(id(0)).is_some());
        }
    }
}

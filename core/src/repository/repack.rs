//! Replaces packs of a mirror with one: many small ones, because each look-up of an object searches all of them, and, if
//! the mirror is full, all of them with one that has only what refs reach.

use std::collections::{BTreeSet, HashSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use git2::{ObjectType, Odb, Oid, PackBuilder, Repository};

use super::handles::Handles;
use super::objects::{size_of, tips};
use super::{MAX_PAYLOAD, RepositoryError};

/// The number of small packs that are replaced with one.
const MANY: usize = 50;

/// The size of all objects of a pack, up to which the pack is small. A pack is built in memory, and the content of a
/// repository must not determine the time and memory for that.
const SMALL: u64 = 1 << 20;

/// The most objects of a full mirror that are written to one pack: each one needs some 200 bytes of memory.
const MOST: usize = 500_000;

/// The format of an index (gitformat-pack, version 2): its first bytes, the number of objects at the end of a table of 256
/// entries, and their ids.
const INDEX: &[u8] = b"\xfftOc\0\0\0\x02";
const COUNT_AT: usize = 8 + 255 * 4;
const IDS_AT: usize = COUNT_AT + 4;
const ID: usize = 20;

/// The state of the packs between two calls.
#[derive(Debug, Default)]
pub(super) struct Repacking {
    /// The indexes of packs that are not small.
    large: HashSet<PathBuf>,
    /// The indexes of packs whose objects are in a new one, and that were in use.
    replaced: Vec<PathBuf>,
    /// The commits of all refs at the last removal of other objects.
    kept: BTreeSet<Oid>,
}

impl Repacking {
    /// Replaces small packs if there are many. All of their objects stay, because a run may read a commit that the branch
    /// no longer has. No fetch may run at the same time.
    pub fn run(&mut self, handles: &Handles) -> Result<(), RepositoryError> {
        // Write.
        if self.replaced.is_empty() {
            self.replaced = handles.with(|repository| self.replace(repository))?;
        }
        // Remove. If the packs are in use for too long, the next call removes them.
        let Self { replaced, .. } = self;
        if replaced.is_empty() {
            return Ok(());
        }
        handles.without_readers(|| {
            while let Some(index) = replaced.pop() {
                remove(index)?;
            }
            Ok(())
        })
    }

    /// Removes all objects that no ref reaches, such as commits that forced pushes have replaced. Returns whether it has
    /// removed packs: it does nothing if the refs are the same as the last time, or while a tree is in use, which may be
    /// that of such a commit. No fetch may run at the same time.
    pub fn prune(&mut self, handles: &Handles) -> Result<bool, RepositoryError> {
        // Write.
        let (commits, former) = handles.with(|repository| {
            let commits = tips(repository).map_err(RepositoryError::git("read the refs of the mirror"))?;
            let former = if commits == self.kept { HashSet::new() } else { rewrite(repository, &commits)? };
            Ok((commits, former))
        })?;
        // Remove.
        let mut is_done = false;
        handles.without_readers(|| {
            if former.is_empty() || handles.has_trees() {
                return Ok(());
            }
            self.replaced.clear();
            former.into_iter().try_for_each(remove)?;
            is_done = true;
            Ok(())
        })?;
        if is_done {
            self.kept = commits;
        }
        Ok(is_done)
    }

    /// Writes a pack with the objects of small ones. Returns their indexes, or nothing if there are not many.
    fn replace(&mut self, repository: &Repository) -> Result<Vec<PathBuf>, RepositoryError> {
        let directory = repository.path().join("objects/pack");
        let failed = || RepositoryError::git("write a pack of the mirror");
        let indexes = indexes(&directory).map_err(RepositoryError::io("read", &directory))?;
        self.large.retain(|index| indexes.contains(index));
        if indexes.len() - self.large.len() < MANY {
            return Ok(Vec::new());
        }
        let objects = repository.odb().map_err(failed())?;
        let mut small = Vec::new();
        let candidates: Vec<PathBuf> = indexes.difference(&self.large).take(MANY).cloned().collect();
        for index in candidates {
            let ids = ids(&fs::read(&index).map_err(RepositoryError::io("read", &index))?);
            if is_small(&objects, &ids) {
                small.push((index, ids));
            } else {
                self.large.insert(index);
            }
        }
        if small.len() < MANY {
            return Ok(Vec::new());
        }
        let written = write(repository, &directory, |builder| {
            let mut ids = small.iter().flat_map(|(_, ids)| ids);
            ids.try_for_each(|id| builder.insert_object(*id, None))
        })?;
        Ok(small.into_iter().map(|(index, _)| index).filter(|index| *index != written).collect())
    }
}

/// Writes a pack with the history of these commits, unless that is too large. Returns the indexes of all other packs.
fn rewrite(repository: &Repository, commits: &BTreeSet<Oid>) -> Result<HashSet<PathBuf>, RepositoryError> {
    let reachable = reachable(repository, commits);
    let reachable = reachable.map_err(RepositoryError::git("read the objects of the mirror"))?;
    let Some(reachable) = reachable else { return Ok(HashSet::new()) };
    let directory = repository.path().join("objects/pack");
    let mut former = indexes(&directory).map_err(RepositoryError::io("read", &directory))?;
    let written = write(repository, &directory, |builder| {
        reachable.iter().try_for_each(|id| builder.insert_object(*id, None))
    })?;
    former.remove(&written);
    Ok(former)
}

/// Returns the objects of the history of these commits; `None` if there are too many, or if one is too large to be read as a
/// whole. It uses an explicit stack, because trees may be deep.
fn reachable(repository: &Repository, commits: &BTreeSet<Oid>) -> Result<Option<HashSet<Oid>>, git2::Error> {
    let mut found = HashSet::new();
    let mut pending: Vec<(Oid, ObjectType)> = commits.iter().map(|id| (*id, ObjectType::Commit)).collect();
    while let Some((id, kind)) = pending.pop() {
        if !found.insert(id) {
            continue;
        }
        if found.len() > MOST || size_of(repository, id)? > MAX_PAYLOAD {
            return Ok(None);
        }
        match kind {
            ObjectType::Commit => {
                let commit = repository.find_commit(id)?;
                pending.push((commit.tree_id(), ObjectType::Tree));
                pending.extend(commit.parent_ids().map(|parent| (parent, ObjectType::Commit)));
            }
            ObjectType::Tree => {
                let tree = repository.find_tree(id)?;
                // The commits of submodules are in other repositories.
                let own = tree.iter().filter_map(|entry| Some((entry.id(), entry.kind()?)));
                pending.extend(own.filter(|(_, kind)| *kind != ObjectType::Commit));
            }
            _ => {}
        }
    }
    Ok(Some(found))
}

/// Writes a pack with the objects that `insert` selects. Returns its index.
fn write(
    repository: &Repository,
    directory: &Path,
    insert: impl FnOnce(&mut PackBuilder<'_>) -> Result<(), git2::Error>,
) -> Result<PathBuf, RepositoryError> {
    let failed = || RepositoryError::git("write a pack of the mirror");
    let mut builder = repository.packbuilder().map_err(failed())?;
    builder.set_threads(1);
    insert(&mut builder).map_err(failed())?;
    builder.write(directory, 0o444).map_err(failed())?;
    let name = builder.name().map_err(failed())?.unwrap_or_default();
    let written = directory.join(format!("pack-{name}.idx"));
    // The former packs are the only copy until the new one is on the disk.
    for file in [&written.with_extension("pack"), &written, directory] {
        let flushed = File::open(file).and_then(|file| file.sync_all());
        flushed.map_err(RepositoryError::io("write", file))?;
    }
    Ok(written)
}

/// Removes a pack. An index without its pack has no effect.
fn remove(index: PathBuf) -> Result<(), RepositoryError> {
    for file in [index.with_extension("pack"), index] {
        fs::remove_file(&file).map_err(RepositoryError::io("remove", &file))?;
    }
    Ok(())
}

/// Returns the indexes of all packs.
fn indexes(directory: &Path) -> io::Result<HashSet<PathBuf>> {
    let files = fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path()));
    files
        .filter(|file| file.as_ref().map_or(true, |file| file.extension().is_some_and(|it| it == "idx")))
        .collect()
}

/// Whether the objects of a pack are small together. An index of another format has none.
fn is_small(objects: &Odb<'_>, ids: &[Oid]) -> bool {
    let mut left = SMALL;
    let fits = |id: &Oid| {
        let size = objects.read_header(*id).map_or(u64::MAX, |(size, _)| size as u64);
        let rest = left.checked_sub(size);
        left = rest.unwrap_or_default();
        rest.is_some()
    };
    !ids.is_empty() && ids.iter().all(fits)
}

/// Returns the ids in an index; none if it has another format.
fn ids(index: &[u8]) -> Vec<Oid> {
    let count =
        index.get(COUNT_AT..IDS_AT).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes);
    let end = (count as usize).saturating_mul(ID).saturating_add(IDS_AT);
    let Some(ids) = index.get(IDS_AT..end).filter(|_| index.starts_with(INDEX)) else { return Vec::new() };
    ids.chunks_exact(ID).filter_map(|id| Oid::from_bytes(id).ok()).collect()
}

//! The local copy of a remote repository: bare, one branch, complete history.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use git2::{Oid, Repository, RepositoryInitOptions};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::connection::{self, Purpose};
use super::deadline::Deadline;
use super::fetch::Quota;
use super::git_tree::root_of;
use super::handles::{Handles, found, open};
use super::history::{self, Undeclared};
use super::objects::{check_history, commit, size_of};
use super::repack::Repacking;
use super::{FileChange, GitTree, MAX_PAYLOAD, Remote, RepositoryError, Revision, diff, fetch};
use crate::atomic::{Mode, write_atomically};
use crate::error::with_causes;
use crate::path::LogicalPath;

/// The commit of the branch at the last successful fetch. The ref is the same for every branch name, so a change of
/// the branch leaves no stale ref.
const TIP: &str = "refs/declarest/tip";

/// A bare mirror of one branch. Clones share it, and all threads may use it.
#[derive(Clone, Debug)]
pub struct Mirror {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    handles: Arc<Handles>,
    /// Held during a fetch.
    fetching: Mutex<Repacking>,
}

impl Mirror {
    /// Opens the mirror in `directory`, or creates an empty one.
    ///
    /// `binding` identifies the owner of the mirror (the URL and the uid of the owner). A mirror with another binding
    /// is discarded, and so is a damaged or unfinished one. Only the names `git` and `binding` below `directory` are
    /// touched. The mirror must not be open elsewhere.
    pub fn open(directory: &Path, binding: &str) -> Result<Self, RepositoryError> {
        let place = Place::at(directory, binding);
        if !place.is_sound() {
            place.discard()?;
            place.create()?;
        }
        let handles = Arc::new(Handles::new(place.repository));
        Ok(Self { inner: Arc::new(Inner { handles, fetching: Mutex::default() }) })
    }

    /// Like [`Mirror::open`], but always discards the content of the directory.
    pub fn open_empty(directory: &Path, binding: &str) -> Result<Self, RepositoryError> {
        Place::at(directory, binding).discard()?;
        Self::open(directory, binding)
    }

    /// Fails if the mirror is known to be damaged, or its tip cannot be read. A damaged mirror fails in every call
    /// and does not recover: call [`Mirror::open_empty`].
    pub fn verify(&self) -> Result<(), RepositoryError> {
        let Some(tip) = self.tip()? else { return Ok(()) };
        self.with(|repository| {
            // The ref exists, so an absent commit is damage, too.
            has_tree(repository, tip.oid()?)
        })
    }

    /// Reads all objects that are not too large to be used, and fails if one is damaged. This takes as long as reading the
    /// whole history.
    pub fn examine(&self) -> Result<(), RepositoryError> {
        self.with(|repository| {
            let damaged = || RepositoryError::damaged(repository, "read all objects".to_owned());
            let objects = repository.odb().map_err(damaged())?;
            let mut failed = None;
            let walked = objects.foreach(|id| {
                let read = size_of(repository, *id).and_then(|size| match size {
                    0..=MAX_PAYLOAD => objects.read(*id).map(drop),
                    _ => Ok(()),
                });
                failed = read.err();
                failed.is_none()
            });
            // If the callback ends the walk, the walk's own error has no cause.
            failed.map_or(walked, Err).map_err(damaged())
        })
    }

    /// Whether damage was found since the mirror was opened.
    pub fn is_damaged(&self) -> bool {
        self.inner.handles.damage().is_some()
    }

    /// Removes the mirror in `directory`, and the directory itself if nothing else is in it. The mirror must not be
    /// open.
    pub fn remove(directory: &Path) -> Result<(), RepositoryError> {
        let place = Place::at(directory, "");
        place.discard()?;
        place.remove_directory();
        Ok(())
    }

    /// Fetches the branch with its complete history and returns its commit.
    ///
    /// One fetch runs at a time. A failed fetch does not change the mirror. Rejected credentials are sent only once.
    /// At `deadline` the fetch fails, even if the remote is silent.
    pub fn fetch(&self, remote: &Remote, deadline: Instant) -> Result<Revision, RepositoryError> {
        self.fetch_within(remote, &deadline.into(), Quota::default())
    }

    /// Like [`Mirror::fetch`], with limits of what is received and stored. If the mirror is full, removes what neither the
    /// branch nor a pin needs. While a pack for that is written, the mirror may occupy twice its limit.
    pub fn fetch_within(
        &self,
        remote: &Remote,
        deadline: &Deadline,
        quota: Quota,
    ) -> Result<Revision, RepositoryError> {
        let mut repacking = self.inner.fetching.lock();
        let receive = || {
            connection::on_thread(remote, Purpose::Fetch, || {
                self.with(|repository| fetch::fetch(repository, remote, TIP, deadline.clone(), quota))
            })
        };
        let fetched = match receive() {
            Err(full) if full.is_full_mirror() => match repacking.prune(&self.inner.handles) {
                Ok(true) => receive(),
                Ok(false) => Err(full),
                Err(error) => {
                    tracing::warn!(error = %with_causes(&error), "cannot remove unused objects of a mirror");
                    Err(full)
                }
            },
            other => other,
        }?;
        if let Err(error) = repacking.run(&self.inner.handles) {
            // The packs are usable, and the next fetch tries again.
            tracing::warn!(error = %with_causes(&error), "cannot combine the packs of a mirror");
        }
        Ok(fetched)
    }

    /// Returns the commit of the branch at the last successful fetch.
    pub fn tip(&self) -> Result<Option<Revision>, RepositoryError> {
        self.with(|repository| {
            let tip = found(repository.refname_to_id(TIP));
            Ok(tip.map_err(RepositoryError::git("read the tip of the mirror"))?.map(Revision::of))
        })
    }

    /// Returns the files of a commit.
    pub fn tree(&self, revision: &Revision) -> Result<GitTree, RepositoryError> {
        GitTree::open(Arc::clone(&self.inner.handles), revision)
    }

    /// Returns the changes from `base` to `target`, sorted by name, without rename detection.
    pub fn diff(&self, base: &Revision, target: &Revision) -> Result<Vec<FileChange>, RepositoryError> {
        self.with(|repository| {
            let (old, new) = (root_of(repository, base)?, root_of(repository, target)?);
            diff::between(repository, &old, &new, None)
        })
    }

    /// Whether `target` is `base` or a descendant of it. False after a force-push, or if `base` is not in the mirror.
    pub fn descends(&self, target: &Revision, base: &Revision) -> Result<bool, RepositoryError> {
        self.with(|repository| history::descends(repository, target, base))
    }

    /// Returns the resources in `scope` that one of the revisions `seen` declares and `target` does not, sorted by
    /// path. `seen` is ordered newest first, and each resource comes with the newest revision that declares it. Other
    /// revisions are ignored, even if they are between these.
    pub fn undeclared(
        &self,
        seen: &[Revision],
        target: &Revision,
        scope: &LogicalPath,
    ) -> Result<Vec<Undeclared>, RepositoryError> {
        let tree = self.tree(target)?;
        self.with(|repository| history::undeclared(repository, seen, target, &tree, scope))
    }

    /// Runs `work` with a handle of the repository.
    pub(super) fn with<T>(
        &self,
        work: impl FnOnce(&Repository) -> Result<T, RepositoryError>,
    ) -> Result<T, RepositoryError> {
        self.inner.handles.with(work)
    }
}

/// The location of a mirror on disk, and its binding.
struct Place {
    directory: PathBuf,
    repository: PathBuf,
    /// Written last and removed first: if it exists, the mirror is complete.
    binding: PathBuf,
    bound_to: String,
}

impl Place {
    fn at(directory: &Path, binding: &str) -> Self {
        Self {
            directory: directory.to_owned(),
            repository: directory.join("git"),
            binding: directory.join("binding"),
            // The binding may name a user of the remote, so only its digest is stored.
            bound_to: STANDARD.encode(Sha256::digest(binding)),
        }
    }

    /// Whether the mirror has this binding, is finished and readable. Removes the locks and temporary packs of a
    /// killed process, which no process uses.
    fn is_sound(&self) -> bool {
        fs::read_to_string(&self.binding).is_ok_and(|text| text == self.bound_to)
            && remove_leftovers(&self.repository).is_ok()
            && distrust(&self.repository).is_ok()
            && open(&self.repository).is_ok_and(|repository| {
                remove_refs_to_large_commits(&repository).is_ok() && refs_are_readable(&repository)
            })
    }

    fn discard(&self) -> Result<(), RepositoryError> {
        let absent = |result: std::io::Result<()>| match result {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
        absent(fs::remove_file(&self.binding)).map_err(RepositoryError::io("remove", &self.binding))?;
        absent(fs::remove_dir_all(&self.repository)).map_err(RepositoryError::io("remove", &self.repository))
    }

    /// Removes the directory if it is empty.
    fn remove_directory(&self) {
        let _ = fs::remove_dir(&self.directory);
    }

    fn create(&self) -> Result<(), RepositoryError> {
        fs::create_dir_all(&self.directory).map_err(RepositoryError::io("create", &self.directory))?;
        let mut options = RepositoryInitOptions::new();
        options.bare(true).no_reinit(true).external_template(false).initial_head("none");
        Repository::init_opts(&self.repository, &options)
            .map_err(RepositoryError::git(format!("create the mirror {}", self.repository.display())))?;
        fs::write(&self.binding, &self.bound_to).map_err(RepositoryError::io("write", &self.binding))
    }
}

/// The configuration of every mirror.
/// Several objects are in memory at the same time when a pack is written.
const CONFIG: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n\
                      [pack]\n\twindowMemory = 32m\n";

/// Removes the effect of files that other writers of a volume may have changed: the configuration is written again, and
/// hooks and references to objects of other repositories are removed. Fails if the repository or a directory in it that
/// is written is a symbolic link.
fn distrust(repository: &Path) -> std::io::Result<()> {
    for directory in ["", "objects", "objects/pack", "objects/info", "refs"] {
        match fs::symlink_metadata(repository.join(directory)) {
            Ok(metadata) if metadata.is_dir() => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Ok(_) => return Err(std::io::Error::other("a directory of the mirror is not a directory")),
            Err(error) => return Err(error),
        }
    }
    write_atomically(&repository.join("config"), CONFIG.as_bytes(), Mode::Private)?;
    for file in ["objects/info/alternates", "objects/info/http-alternates", "commondir", "info/grafts"] {
        match fs::remove_file(repository.join(file)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    match fs::symlink_metadata(repository.join("hooks")) {
        Ok(hooks) if hooks.is_dir() => fs::remove_dir_all(repository.join("hooks")),
        Ok(_) => fs::remove_file(repository.join("hooks")),
        Err(_) => Ok(()),
    }
}

/// Removes lock files of refs and unfinished packs; libgit2 marks its temporary files with `_git2_`.
fn remove_leftovers(repository: &Path) -> std::io::Result<()> {
    let mut files = files_in(repository, false)?;
    files.extend(files_in(&repository.join("refs"), true)?);
    files.extend(files_in(&repository.join("objects/pack"), false)?);
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".lock") || name.contains("_git2_") {
            fs::remove_file(&file)?;
        }
    }
    Ok(())
}

/// Removes the refs whose history has a commit that is too large to be read: a former version of this program, or another
/// writer of the volume, may have left them. The other ones stay, because not all of their commits can be fetched again.
fn remove_refs_to_large_commits(repository: &Repository) -> Result<(), RepositoryError> {
    let failed = || RepositoryError::git("read the refs of the mirror");
    let references = repository.references().and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let mut checked = BTreeSet::new();
    for mut reference in references.map_err(failed())? {
        let Some(id) = reference.target() else { continue };
        match check_history(repository, id, &checked) {
            Err(error @ RepositoryError::CommitTooLarge { .. }) => {
                let name = String::from_utf8_lossy(reference.name_bytes()).into_owned();
                tracing::warn!(%error, name, "removing a ref of a mirror");
                reference.delete().map_err(failed())?;
            }
            other => {
                other?;
                checked.insert(id);
            }
        }
    }
    Ok(())
}

/// Whether every ref leads to a commit with a readable tree. A list of refs omits damaged ones, so their files are
/// checked, too.
fn refs_are_readable(repository: &Repository) -> bool {
    let readable = |reference: Result<git2::Reference<'_>, git2::Error>| {
        let id = reference.ok().and_then(|reference| reference.target());
        id.is_some_and(|id| has_tree(repository, id).is_ok())
    };
    let loose = files_in(&repository.path().join("refs"), true).is_ok_and(|files| {
        files.iter().all(|file| {
            let name = file.strip_prefix(repository.path()).ok().and_then(Path::to_str);
            name.is_some_and(|name| readable(repository.find_reference(name)))
        })
    });
    loose && repository.references().is_ok_and(|mut references| references.all(readable))
}

/// Fails if a commit or its root tree is absent or cannot be read. Does not inflate the tree, because it may be of any size.
fn has_tree(repository: &Repository, id: Oid) -> Result<(), RepositoryError> {
    let damaged = || RepositoryError::damaged(repository, format!("read revision {id}"));
    match commit(repository, id, damaged)? {
        Some(commit) => size_of(repository, commit.tree_id()).map(drop).map_err(damaged()),
        None => Err(damaged()(git2::Error::from_str("the commit is absent"))),
    }
}

/// Returns the files in a directory, including subdirectories if `deep`.
fn files_in(directory: &Path, deep: bool) -> std::io::Result<Vec<PathBuf>> {
    let (mut files, mut pending) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            if !entry.file_type()?.is_dir() {
                files.push(entry.path());
            } else if deep {
                pending.push(entry.path());
            }
        }
    }
    Ok(files)
}

#[cfg(test)]
#[path = "mirror_tests.rs"]
mod tests;

//! The local copy of a remote repository: bare, one branch, whole history.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use git2::{ErrorCode, Repository, RepositoryInitOptions};
use sha2::{Digest, Sha256};

use super::connection::{self, Purpose};
use super::git_tree::root_of;
use super::handles::{Handles, open};
use super::history::{self, Undeclared};
use super::{FileChange, GitTree, Remote, RepositoryError, Revision, diff, fetch};
use crate::path::LogicalPath;

/// The commit of the branch as of the last successful fetch. One ref whatever the branch is called, so that
/// a change of branch leaves nothing stale behind.
const TIP: &str = "refs/declarest/tip";

/// Commits that must stay readable whatever happens to the branch.
const PINS: &str = "refs/declarest/pins/";

/// Fetches that may hang in silent connections before no more are started.
const MOST_HANGING: usize = 16;

/// A bare mirror of one branch. Clones share the same mirror; any thread may use it.
#[derive(Clone, Debug)]
pub struct Mirror {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    handles: Arc<Handles>,
    fetching: Mutex<()>,
    running: AtomicUsize,
}

/// Counts a fetch as running until it is dropped, whatever becomes of its thread.
struct Running(Arc<Inner>);

impl Running {
    fn start(inner: Arc<Inner>) -> Self {
        inner.running.fetch_add(1, Ordering::SeqCst);
        Self(inner)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Mirror {
    /// Opens the mirror in `directory`, or makes an empty one.
    ///
    /// `binding` names what the mirror belongs to (the URL and the uid of the owner). A mirror with another
    /// binding is discarded, and so is one that is damaged or was never finished. Only the names `git` and
    /// `binding` below `directory` are touched. Nobody else may have the mirror open.
    pub fn open(directory: &Path, binding: &str) -> Result<Self, RepositoryError> {
        let place = Place::at(directory, binding);
        if !place.is_sound() {
            place.discard()?;
            place.create()?;
        }
        let handles = Arc::new(Handles::new(place.repository));
        Ok(Self {
            inner: Arc::new(Inner { handles, fetching: Mutex::default(), running: AtomicUsize::new(0) }),
        })
    }

    /// Fetches the branch with its whole history and returns the commit that it is at.
    ///
    /// One fetch runs at a time. A failed fetch leaves the mirror as it was. Rejected credentials are
    /// offered only once. At `deadline` the fetch is given up, even if it hangs in a connection that stays
    /// silent; that connection then holds a thread of its own until it ends.
    pub fn fetch(&self, remote: &Remote, deadline: Instant) -> Result<Revision, RepositoryError> {
        let _only = self.inner.fetching.lock().unwrap_or_else(PoisonError::into_inner);
        let hanging = self.inner.running.load(Ordering::SeqCst);
        if hanging >= MOST_HANGING {
            return Err(RepositoryError::Hanging { url: remote.url.to_string(), count: hanging });
        }
        let (job, running) = (remote.clone(), Running::start(Arc::clone(&self.inner)));
        connection::until(deadline, remote, Purpose::Fetch, move || {
            running.0.handles.with(|repository| fetch::fetch(repository, &job, TIP, deadline))
        })
    }

    /// The commit that the branch was at in the last successful fetch.
    pub fn tip(&self) -> Result<Option<Revision>, RepositoryError> {
        self.inner.handles.with(|repository| match repository.refname_to_id(TIP) {
            Ok(id) => Ok(Some(Revision::of(id))),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(RepositoryError::git("read the tip of the mirror")(error)),
        })
    }

    /// The files of a commit.
    pub fn tree(&self, revision: &Revision) -> Result<GitTree, RepositoryError> {
        GitTree::open(Arc::clone(&self.inner.handles), revision)
    }

    /// What changed from `base` to `target`, sorted by name, without rename detection.
    pub fn diff(&self, base: &Revision, target: &Revision) -> Result<Vec<FileChange>, RepositoryError> {
        self.inner.handles.with(|repository| {
            let (old, new) = (root_of(repository, base)?, root_of(repository, target)?);
            diff::between(repository, &old, &new, None)
        })
    }

    /// Whether `target` is `base` or one of its descendants. False after a force-push, and if `base` is not
    /// in the mirror.
    pub fn descends(&self, target: &Revision, base: &Revision) -> Result<bool, RepositoryError> {
        self.inner.handles.with(|repository| history::descends(repository, target, base))
    }

    /// Keeps `revision` readable under `name`, whatever later fetches and garbage collections do. A pin of
    /// that name moves.
    pub fn pin(&self, name: &str, revision: &Revision) -> Result<(), RepositoryError> {
        let reference = pin_ref(name)?;
        self.inner.handles.with(|repository| {
            root_of(repository, revision)?;
            repository
                .reference(&reference, revision.oid()?, true, "pin")
                .map_err(RepositoryError::git(format!("pin revision {revision} as {name}")))?;
            Ok(())
        })
    }

    /// Removes a pin; one that does not exist is fine.
    pub fn unpin(&self, name: &str) -> Result<(), RepositoryError> {
        let reference = pin_ref(name)?;
        self.inner.handles.with(|repository| {
            let removed = repository.find_reference(&reference).and_then(|mut found| found.delete());
            match removed {
                Err(error) if error.code() != ErrorCode::NotFound => {
                    Err(RepositoryError::git(format!("remove the pin {name}"))(error))
                }
                _ => Ok(()),
            }
        })
    }

    /// All pins, sorted by name.
    pub fn pins(&self) -> Result<Vec<(String, Revision)>, RepositoryError> {
        self.inner.handles.with(|repository| {
            let failed = || RepositoryError::git("list the pins of the mirror");
            let mut pins = Vec::new();
            for reference in repository.references_glob(&format!("{PINS}*")).map_err(failed())? {
                let reference = reference.map_err(failed())?;
                let name = String::from_utf8_lossy(reference.name_bytes());
                if let (Some(name), Some(id)) = (name.strip_prefix(PINS), reference.target()) {
                    pins.push((name.to_owned(), Revision::of(id)));
                }
            }
            pins.sort();
            Ok(pins)
        })
    }

    /// What in `scope` was declared by `base` or a commit between it and `target`, and is not declared by
    /// `target`, sorted by path. Each comes with the last commit that declared it, whose payload can still
    /// be read.
    ///
    /// After a force-push the commits of the branch that do not descend from `base` count as well.
    pub fn undeclared_since(
        &self,
        base: &Revision,
        target: &Revision,
        scope: &LogicalPath,
    ) -> Result<Vec<Undeclared>, RepositoryError> {
        let tree = self.tree(target)?;
        self.inner.handles.with(|repository| history::undeclared(repository, base, target, &tree, scope))
    }
}

/// The ref of a pin.
fn pin_ref(name: &str) -> Result<String, RepositoryError> {
    let reference = format!("{PINS}{name}");
    if git2::Reference::is_valid_name(&reference) {
        Ok(reference)
    } else {
        Err(RepositoryError::InvalidPin { name: name.to_owned() })
    }
}

/// Where a mirror is on disk, and what it is bound to.
struct Place {
    directory: PathBuf,
    repository: PathBuf,
    /// Written last and removed first, so that its presence says that the mirror is whole.
    binding: PathBuf,
    bound_to: String,
}

impl Place {
    fn at(directory: &Path, binding: &str) -> Self {
        Self {
            directory: directory.to_owned(),
            repository: directory.join("git"),
            binding: directory.join("binding"),
            // The binding may name a user of the remote; a digest is all that is needed to compare.
            bound_to: STANDARD.encode(Sha256::digest(binding)),
        }
    }

    /// Whether the mirror is ours, finished and readable. A killed process leaves locks and temporary
    /// packs behind; nobody holds them any more.
    fn is_sound(&self) -> bool {
        fs::read_to_string(&self.binding).is_ok_and(|text| text == self.bound_to)
            && remove_leftovers(&self.repository).is_ok()
            && open(&self.repository).is_ok_and(|repository| refs_are_readable(&repository))
    }

    fn discard(&self) -> Result<(), RepositoryError> {
        let absent = |result: std::io::Result<()>| match result {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
        absent(fs::remove_file(&self.binding)).map_err(RepositoryError::io("remove", &self.binding))?;
        absent(fs::remove_dir_all(&self.repository)).map_err(RepositoryError::io("remove", &self.repository))
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

/// Whether every ref leads to a commit whose files can be listed. Listing refs leaves out damaged ones, so
/// their files are looked at, too.
fn refs_are_readable(repository: &Repository) -> bool {
    let readable = |reference: Result<git2::Reference<'_>, git2::Error>| {
        reference.and_then(|reference| reference.peel_to_commit()?.tree()).is_ok()
    };
    let loose = files_in(&repository.path().join("refs"), true).is_ok_and(|files| {
        files.iter().all(|file| {
            let name = file.strip_prefix(repository.path()).ok().and_then(Path::to_str);
            name.is_some_and(|name| readable(repository.find_reference(name)))
        })
    });
    loose && repository.references().is_ok_and(|mut references| references.all(readable))
}

/// The files in a directory, those of its directories included if `deep`.
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

//! The directories of the operator. Each object has its own directory, `<base>/<plural>/<namespace>/<name>`, so
//! that objects of different kinds or namespaces never share one.

use std::collections::HashSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use declarest_core::lock;

/// The longest wait for the lock of a state directory.
const LOCK_PATIENCE: Duration = Duration::from_secs(3);

/// A directory or file could not be created, read or removed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct DirectoryError {
    action: &'static str,
    path: PathBuf,
    source: io::Error,
}

/// An object that may own directories.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    /// Plural of the kind, lower case.
    pub plural: String,
    pub namespace: String,
    pub name: String,
}

impl Owner {
    pub fn new(plural: &str, namespace: &str, name: &str) -> Self {
        Self { plural: plural.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// Returns the directory of the object below `base`.
    pub fn below(&self, base: &Path) -> PathBuf {
        base.join(&self.plural).join(&self.namespace).join(&self.name)
    }
}

/// The result of a sweep.
#[derive(Debug, Default)]
pub struct Swept {
    pub removed: Vec<PathBuf>,
    /// The directories that could not be listed or removed. The next sweep tries again.
    pub failed: Vec<DirectoryError>,
}

/// The directory of downloaded bundles in the cache directory.
const BUNDLES: &str = "bundles";

/// The base directories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directories {
    repositories: PathBuf,
    cache: PathBuf,
    bundle_cache: PathBuf,
    secrets: PathBuf,
    volumes: PathBuf,
    bundles: PathBuf,
}

impl Directories {
    /// Reads the base directories from environment variables; `variable` looks one up.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let directory = |name: &str, default: &str| {
            variable(name)
                .filter(|value| !value.is_empty())
                .map_or_else(|| PathBuf::from(default), PathBuf::from)
        };
        let cache = directory("DECLAREST_OPERATOR_CACHE_BASE_DIR", "/tmp/declarest-operator/cache");
        let in_cache = cache.join(BUNDLES).to_string_lossy().into_owned();
        Self {
            bundle_cache: directory("DECLAREST_BUNDLE_CACHE_DIR", &in_cache),
            cache,
            repositories: directory("DECLAREST_OPERATOR_REPO_BASE_DIR", "/tmp/declarest-operator/repos"),
            secrets: directory("DECLAREST_OPERATOR_SECRETS_BASE_DIR", "/tmp/declarest-operator/secrets"),
            volumes: directory("DECLAREST_OPERATOR_VOLUMES_DIR", "/var/lib/declarest/volumes"),
            bundles: directory("DECLAREST_OPERATOR_BUNDLE_DIR", "/var/lib/declarest/bundles"),
        }
    }

    /// Puts all base directories below one directory, as in standalone mode.
    pub fn below(state: &Path) -> Self {
        Self {
            repositories: state.join("repos"),
            cache: state.join("cache"),
            bundle_cache: state.join("cache").join(BUNDLES),
            secrets: state.join("secrets"),
            volumes: state.join("volumes"),
            bundles: state.join("bundles"),
        }
    }

    /// Returns the directory of a ResourceRepository's mirror that is not on a claim.
    pub fn repository(&self, owner: &Owner) -> PathBuf {
        owner.below(&self.repositories)
    }

    /// Returns the directory of an object's files that can be fetched or computed again.
    pub fn cache(&self, owner: &Owner) -> PathBuf {
        owner.below(&self.cache)
    }

    /// Returns the directory of the bundles that an object downloaded.
    pub fn bundle_cache(&self, owner: &Owner) -> PathBuf {
        owner.below(&self.bundle_cache)
    }

    /// Returns the mount point of a claim, if the administrator mounted it.
    pub fn claim(&self, namespace: &str, claim: &str) -> PathBuf {
        self.volumes.join(namespace).join(claim)
    }

    /// Returns the base directory of file stores.
    pub fn secrets(&self) -> &Path {
        &self.secrets
    }

    /// Returns the directory of local metadata bundles.
    pub fn bundles(&self) -> &Path {
        &self.bundles
    }

    /// Creates the base directories that the operator writes to, so that a read-only file system fails at startup.
    pub fn prepare(&self) -> Result<(), DirectoryError> {
        [&self.repositories, &self.cache, &self.bundle_cache, &self.secrets]
            .into_iter()
            .try_for_each(|base| ensure_private(base))
    }

    /// Removes the directories of objects that no longer exist. File stores are kept, because they may be the only copy
    /// of their secrets.
    ///
    /// Call it only after leadership has started and before the controllers run: they use the same directories.
    pub fn sweep(&self, alive: &HashSet<Owner>) -> Swept {
        let mut swept = Swept::default();
        for base in [&self.repositories, &self.cache, &self.bundle_cache] {
            for kind in swept.subdirectories(base) {
                if kind == self.bundle_cache {
                    continue;
                }
                for namespace in swept.subdirectories(&kind) {
                    for object in swept.subdirectories(&namespace) {
                        let owner = Owner::new(&last(&kind), &last(&namespace), &last(&object));
                        if !alive.contains(&owner) {
                            swept.remove(object);
                        }
                    }
                }
            }
        }
        swept
    }
}

impl Swept {
    fn subdirectories(&mut self, path: &Path) -> Vec<PathBuf> {
        subdirectories(path).unwrap_or_else(|error| {
            self.failed.push(error);
            Vec::new()
        })
    }

    fn remove(&mut self, path: PathBuf) {
        match remove(&path) {
            Ok(()) => self.removed.push(path),
            Err(error) => self.failed.push(error),
        }
    }
}

/// Creates a directory and its parents, accessible to this user only.
pub fn ensure_private(path: &Path) -> Result<(), DirectoryError> {
    let failed = |source| DirectoryError { action: "create directory", path: path.to_owned(), source };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
    let mode = fs::metadata(path).map_err(failed)?.permissions().mode();
    // A mount point may belong to another user. Then its mode cannot be changed, which is not an error.
    if mode & 0o077 != 0 && fs::set_permissions(path, fs::Permissions::from_mode(0o700)).is_err() {
        tracing::warn!(path = %path.display(), "other users can access the directory, and its mode cannot be changed");
    }
    Ok(())
}

/// Locks a state directory until the result is dropped. An operator that is just ending may still hold the lock, so
/// this waits for it for a moment. Blocks.
pub fn lock(state: &Path) -> Result<File, DirectoryError> {
    let failed = |source| DirectoryError { action: "lock", path: state.to_owned(), source };
    let held = lock::open(&state.join("lock")).map_err(failed)?;
    match lock::lock(&held, LOCK_PATIENCE) {
        Ok(()) => Ok(held),
        Err(TryLockError::Error(source)) => Err(failed(source)),
        Err(TryLockError::WouldBlock) => Err(failed(io::Error::other(
            "another operator uses it; end that operator, or choose another --state-dir",
        ))),
    }
}

/// Removes a directory and its content. A directory that does not exist is not an error.
pub fn remove(path: &Path) -> Result<(), DirectoryError> {
    match fs::remove_dir_all(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(DirectoryError { action: "remove directory", path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}

/// Lists real directories only. A symbolic link could lead to files that are not the operator's.
fn subdirectories(path: &Path) -> Result<Vec<PathBuf>, DirectoryError> {
    let failed = |source| DirectoryError { action: "list directory", path: path.to_owned(), source };
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        if entry.file_type().map_err(failed)?.is_dir() {
            found.push(entry.path());
        }
    }
    Ok(found)
}

fn last(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_variable_changes_one_base_only() {
        let directories = Directories::from_environment(|name| {
            (name == "DECLAREST_OPERATOR_REPO_BASE_DIR").then(|| "/data/repos".to_owned())
        });
        let owner = Owner::new("resourcerepositories", "team", "config");
        assert_eq!(directories.repository(&owner), Path::new("/data/repos/resourcerepositories/team/config"));
        assert_eq!(
            directories.cache(&owner),
            Path::new("/tmp/declarest-operator/cache/resourcerepositories/team/config")
        );
        assert_eq!(directories.claim("team", "c"), Path::new("/var/lib/declarest/volumes/team/c"));
    }

    #[test]
    fn directories_are_private() {
        let state = tempfile::tempdir().unwrap();
        let directories = Directories::below(state.path());
        directories.prepare().unwrap();
        for base in ["repos", "cache", "secrets"] {
            let mode = fs::metadata(state.path().join(base)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700, "{base}");
        }
    }

    #[test]
    fn a_sweep_removes_orphans_only() {
        let state = tempfile::tempdir().unwrap();
        let directories = Directories::below(state.path());
        let alive = Owner::new("resourcerepositories", "team", "alive");
        let orphan = Owner::new("resourcerepositories", "team", "orphan");
        // Same name, other kind: it is removed although its namesake is alive.
        let namesake = Owner::new("managedservers", "team", "alive");
        for owner in [&alive, &orphan, &namesake] {
            ensure_private(&directories.repository(owner)).unwrap();
        }
        let store = state.path().join("secrets/secretstores/team/gone");
        ensure_private(&store).unwrap();
        let elsewhere = state.path().join("elsewhere");
        ensure_private(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, state.path().join("repos/resourcerepositories/team/link"))
            .unwrap();

        let mut swept = directories.sweep(&HashSet::from([alive.clone()]));
        swept.removed.sort();
        assert_eq!(swept.removed, [directories.repository(&namesake), directories.repository(&orphan)]);
        assert!(swept.failed.is_empty(), "{:?}", swept.failed);
        assert!(directories.repository(&alive).is_dir());
        assert!(store.is_dir());
        assert!(elsewhere.is_dir());
    }

    #[test]
    fn a_sweep_goes_on_after_a_failure() {
        let state = tempfile::tempdir().unwrap();
        let directories = Directories::below(state.path());
        let orphan = Owner::new("managedservers", "team", "orphan");
        ensure_private(&directories.cache(&orphan)).unwrap();
        fs::write(state.path().join("repos"), "").unwrap();
        let swept = directories.sweep(&HashSet::new());
        assert_eq!(swept.removed, [directories.cache(&orphan)]);
        let [error] = swept.failed.as_slice() else { panic!("{:?}", swept.failed) };
        let expected = format!("cannot list directory {}: ", state.path().join("repos").display());
        assert!(error.to_string().starts_with(&expected), "{error}");
    }

    #[test]
    fn removing_a_missing_directory_succeeds() {
        let state = tempfile::tempdir().unwrap();
        remove(&state.path().join("absent")).unwrap();
    }
}

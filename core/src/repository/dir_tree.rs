//! A directory on disk as a tree.

use std::fs;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use super::tree::{check_size, segments};
use super::{Entry, EntryKind, RepositoryError, Revision, Tree};

/// A directory as a [`Tree`], for the CLI.
///
/// Symbolic links in the name of a file are resolved, and rejected if they lead outside of the root. A directory behind a
/// link is absent, as in a commit. The view changes if another program writes to the directory.
#[derive(Debug)]
pub struct DirTree {
    root: PathBuf,
}

impl DirTree {
    /// Returns a view of the directory `root`, which must exist.
    pub fn open(root: &Path) -> Result<Self, RepositoryError> {
        let directory = || root.display().to_string();
        let root = match root.canonicalize() {
            Ok(root) => root,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(RepositoryError::RootMissing(directory()));
            }
            Err(error) => return Err(RepositoryError::io("open", root)(error)),
        };
        if !root.is_dir() {
            return Err(RepositoryError::RootNotDirectory(directory()));
        }
        Ok(Self { root })
    }

    /// Returns the directory, with all links resolved.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the place on disk where a regular file can be written or removed. Links in existing directories are
    /// resolved, and the file itself is not followed. Directories may be missing.
    pub(super) fn place(&self, file: &str) -> Result<PathBuf, RepositoryError> {
        let in_the_way = |file: &str, reason| RepositoryError::InTheWay { file: file.to_owned(), reason };
        let names = segments(file)?;
        let Some((name, directories)) = names.split_last() else {
            return Err(in_the_way(file, "it is the root directory, and a file is needed"));
        };
        let mut place = self.root.clone();
        for (depth, directory) in directories.iter().enumerate() {
            place.push(directory);
            let above = || names[..=depth].join("/");
            match self.resolve(&above())? {
                Some(real) if real.is_dir() => place = real,
                // It does not exist, unless another thread has just created it.
                None if !place.is_symlink() => {}
                _ => return Err(in_the_way(&above(), "it is not a directory, and a directory is needed")),
            }
        }
        // Rejects a link that leads outside.
        if self.resolve(file)?.is_some_and(|real| real.is_dir()) {
            return Err(in_the_way(file, "it is a directory, and a file is needed"));
        }
        place.push(name);
        Ok(place)
    }

    /// Returns the first link in the name of a directory, if any.
    pub(super) fn link_in(&self, directory: &str) -> Result<Option<String>, RepositoryError> {
        let (names, mut place) = (segments(directory)?, self.root.clone());
        let at = names.iter().position(|name| {
            place.push(name);
            place.is_symlink()
        });
        Ok(at.map(|at| names[..=at].join("/")))
    }

    /// Returns the place on disk with all links resolved; `None` if it does not exist.
    fn resolve(&self, file: &str) -> Result<Option<PathBuf>, RepositoryError> {
        let place = self.root.join(segments(file)?.iter().collect::<PathBuf>());
        match place.canonicalize() {
            Ok(place) if place.strip_prefix(&self.root).is_ok_and(|inner| !is_of_git(inner)) => {
                Ok(Some(place))
            }
            Ok(_) => Err(RepositoryError::SymlinkEscape(file.to_owned())),
            Err(error) if is_absence(&error) => Ok(None),
            Err(error) => Err(RepositoryError::io("resolve", &place)(error)),
        }
    }
}

/// Whether a path is in the directory `.git`, which holds credentials, and hooks that Git runs. File systems may ignore case.
fn is_of_git(path: &Path) -> bool {
    path.components().any(|name| name.as_os_str().eq_ignore_ascii_case(".git"))
}

/// Whether a name does not exist, including names below a file.
fn is_absence(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn kind_of(file_type: fs::FileType) -> EntryKind {
    if file_type.is_dir() {
        EntryKind::Directory
    } else if file_type.is_file() {
        EntryKind::File
    } else {
        EntryKind::Other
    }
}

impl Tree for DirTree {
    fn entries(&self, directory: &str) -> Result<Option<Vec<Entry>>, RepositoryError> {
        let Some(place) = self.resolve(directory)? else { return Ok(None) };
        if self.link_in(directory)?.is_some() {
            return Ok(None);
        }
        let listing = match fs::read_dir(&place) {
            Ok(listing) => listing,
            Err(error) if is_absence(&error) => return Ok(None),
            Err(error) => return Err(RepositoryError::io("list", &place)(error)),
        };
        let mut entries = Vec::new();
        for item in listing {
            let item = item.map_err(RepositoryError::io("list", &place))?;
            let kind = kind_of(item.file_type().map_err(RepositoryError::io("inspect", &item.path()))?);
            entries.push(Entry::new(item.file_name().as_encoded_bytes(), kind));
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Some(entries))
    }

    fn read_within(&self, file: &str, limit: u64) -> Result<Option<Vec<u8>>, RepositoryError> {
        let Some(place) = self.resolve(file)? else { return Ok(None) };
        if !place.is_file() {
            return Ok(None);
        }
        let read = || {
            let opened = fs::File::open(&place)?;
            let size = opened.metadata()?.len();
            // The file may grow while it is read.
            let mut content = Vec::with_capacity(usize::try_from(size.min(limit)).unwrap_or_default());
            opened.take(limit + 1).read_to_end(&mut content)?;
            Ok((size.max(content.len() as u64), content))
        };
        match read() {
            Ok((size, content)) => check_size(file, size, limit).map(|()| Some(content)),
            Err(error) if is_absence(&error) => Ok(None),
            Err(error) => Err(RepositoryError::io("read", &place)(error)),
        }
    }

    fn revision(&self) -> Option<&Revision> {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    use super::*;

    fn tree() -> (tempfile::TempDir, DirTree) {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("root");
        fs::create_dir_all(root.join("shops/rio")).unwrap();
        fs::write(root.join("shops/rio/resource.yaml"), "a: 1").unwrap();
        fs::write(outer.path().join("secret"), "outside").unwrap();
        symlink("../secret", root.join("escape")).unwrap();
        symlink("shops/rio/resource.yaml", root.join("inside")).unwrap();
        symlink("..", root.join("up")).unwrap();
        let tree = DirTree::open(&root).unwrap();
        (outer, tree)
    }

    #[test]
    fn lists_in_byte_order_without_following_links() {
        let (_outer, tree) = tree();
        let entries = tree.entries("").unwrap().unwrap();
        let seen: Vec<_> = entries.iter().map(|entry| (entry.name.as_str(), entry.kind)).collect();
        let expected = [
            ("escape", EntryKind::Other),
            ("inside", EntryKind::Other),
            ("shops", EntryKind::Directory),
            ("up", EntryKind::Other),
        ];
        assert_eq!(seen, expected);
        symlink("shops", tree.root().join("other")).unwrap();
        for absent in ["none", "other", "other/rio"] {
            assert_eq!(tree.entries(absent).unwrap(), None);
        }
        assert_eq!(tree.entries("shops/rio/resource.yaml").unwrap(), None);
    }

    #[test]
    fn reads_only_regular_files_inside_of_the_root() {
        let (_outer, tree) = tree();
        assert_eq!(tree.read("shops/rio/resource.yaml").unwrap().unwrap(), b"a: 1");
        assert_eq!(tree.read("inside").unwrap().unwrap(), b"a: 1");
        assert_eq!(tree.read("shops").unwrap(), None);
        assert_eq!(tree.read("shops/rio/resource.yaml/x").unwrap(), None);
        for file in ["escape", "up/secret"] {
            assert_eq!(tree.read(file), Err(RepositoryError::SymlinkEscape(file.into())));
        }
        for file in ["../secret", "/etc/passwd", "shops//rio", "shops/./rio"] {
            assert_eq!(tree.read(file), Err(RepositoryError::OutsidePath(file.into())));
        }
    }

    /// Git's files hold credentials, and hooks that Git runs.
    #[test]
    fn links_into_git_are_not_followed() {
        let (_outer, tree) = tree();
        fs::create_dir(tree.root().join(".git")).unwrap();
        fs::write(tree.root().join(".git/config"), "token").unwrap();
        symlink("../.git", tree.root().join("shops/git")).unwrap();
        symlink(".git/config", tree.root().join("config")).unwrap();
        for file in ["config", "shops/git/config", ".git/config", ".git"] {
            assert_eq!(tree.read(file), Err(RepositoryError::SymlinkEscape(file.into())));
        }
        let refused = Err(RepositoryError::SymlinkEscape("shops/git".into()));
        assert_eq!(tree.place("shops/git/config"), refused);
    }

    #[test]
    fn names_that_are_not_utf8_are_marked() {
        let (outer, tree) = tree();
        let name = std::ffi::OsStr::from_bytes(b"caf\xe9");
        fs::create_dir(outer.path().join("root/shops").join(name)).unwrap();
        let entries = tree.entries("shops").unwrap().unwrap();
        assert_eq!(
            entries[0],
            Entry { name: "caf\u{fffd}".into(), kind: EntryKind::NotUtf8 { directory: true } }
        );
    }

    #[test]
    fn the_root_must_be_a_directory() {
        let (outer, _tree) = tree();
        let missing = DirTree::open(&outer.path().join("none")).unwrap_err();
        assert!(matches!(missing, RepositoryError::RootMissing(_)));
        let file = DirTree::open(&outer.path().join("secret")).unwrap_err();
        assert!(matches!(file, RepositoryError::RootNotDirectory(_)));
    }
}

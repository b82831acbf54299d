//! Files on volumes that other users can write: symbolic links below a root are not followed, so they cannot lead to
//! files of the process or of another user.

use std::fs::File;
use std::io;
use std::path::{Component, Path};

use rustix::fs::{Mode, OFlags, ResolveFlags};

/// Opens the file `relative` below the directory `root` with these flags. Fails if a part of `relative` is a symbolic
/// link, or leaves `root`. Links in `root` itself are followed. A new file has mode 0600. Blocks.
pub fn open(root: &Path, relative: &Path, flags: OFlags) -> io::Result<File> {
    let root = directory(root)?;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let mode = if flags.contains(OFlags::CREATE) { Mode::RUSR | Mode::WUSR } else { Mode::empty() };
    Ok(File::from(rustix::fs::openat2(&root, relative, flags | OFlags::CLOEXEC, mode, resolve)?))
}

/// Opens the directory `relative` below `root`, for calls that take a directory.
fn below(root: &Path, relative: &Path) -> io::Result<File> {
    if relative.as_os_str().is_empty() {
        return directory(root);
    }
    open(root, relative, OFlags::RDONLY | OFlags::DIRECTORY)
}

fn directory(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Creates the directory `relative` below `root` and its parents below `root`, accessible to this user only.
pub fn create_directories(root: &Path, relative: &Path) -> io::Result<()> {
    let mut parent = directory(root)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for component in relative.components() {
        let Component::Normal(name) = component else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a path below the directory"));
        };
        match rustix::fs::mkdirat(&parent, name, Mode::RWXU) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        parent = File::from(rustix::fs::openat(&parent, name, flags, Mode::empty())?);
    }
    Ok(())
}

/// Renames the file `from` to `to`, both below `root`, and flushes the directory of `to`. An existing file is replaced,
/// and so is a symbolic link, which is not followed.
pub fn rename(root: &Path, from: &Path, to: &Path) -> io::Result<()> {
    let (old, new) = (parent_of(root, from)?, parent_of(root, to)?);
    let name = |path: &Path| path.file_name().map(ToOwned::to_owned).ok_or(io::ErrorKind::InvalidInput);
    rustix::fs::renameat(&old, name(from)?, &new, name(to)?)?;
    new.sync_all()
}

/// Removes the file `relative` below `root`. A symbolic link is removed, not followed.
pub fn remove(root: &Path, relative: &Path) -> io::Result<()> {
    let name = relative.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let parent = parent_of(root, relative)?;
    Ok(rustix::fs::unlinkat(&parent, name, rustix::fs::AtFlags::empty())?)
}

fn parent_of(root: &Path, relative: &Path) -> io::Result<File> {
    below(root, relative.parent().unwrap_or(Path::new("")))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::file("link")]
    #[case::directory("links/secret")]
    #[case::inside("own")]
    #[case::parent("../outside/secret")]
    #[case::absolute("/etc/hostname")]
    fn links_and_paths_to_the_outside_are_refused(#[case] path: &str) {
        let directory = tempfile::tempdir().unwrap();
        let (root, outside) = (directory.path().join("root"), directory.path().join("outside"));
        fs::create_dir_all(&root).unwrap();
        fs::create_dir_all(&outside).unwrap();
        fs::write(outside.join("secret"), "s").unwrap();
        fs::write(root.join("plain"), "p").unwrap();
        symlink(outside.join("secret"), root.join("link")).unwrap();
        symlink(&outside, root.join("links")).unwrap();
        symlink("plain", root.join("own")).unwrap();
        open(&root, Path::new("plain"), OFlags::RDONLY).unwrap();
        for flags in [OFlags::RDONLY, OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC] {
            assert!(open(&root, Path::new(path), flags).is_err());
        }
        assert_eq!(fs::read_to_string(outside.join("secret")).unwrap(), "s");
    }

    #[test]
    fn directories_are_created_without_following_links() {
        let directory = tempfile::tempdir().unwrap();
        let (root, outside) = (directory.path().join("root"), directory.path().join("outside"));
        fs::create_dir_all(&root).unwrap();
        fs::create_dir_all(&outside).unwrap();
        create_directories(&root, Path::new("a/b")).unwrap();
        create_directories(&root, Path::new("a/b")).unwrap();
        symlink(&outside, root.join("a/link")).unwrap();
        assert!(create_directories(&root, Path::new("a/link/c")).is_err());
        assert!(create_directories(&root, Path::new("../c")).is_err());
        assert!(!outside.join("c").exists());
        fs::write(root.join("a/new"), "1").unwrap();
        rename(&root, Path::new("a/new"), Path::new("a/link")).unwrap();
        assert_eq!(fs::read_to_string(root.join("a/link")).unwrap(), "1");
        remove(&root, Path::new("a/link")).unwrap();
    }
}

//! Writes files atomically: readers see the old or the new content, never a part of it.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The prefix of temporary files. They are never part of desired state.
const TEMPORARY: &str = ".declarest-";

/// The prefix of temporary files with secrets.
const TEMPORARY_SECRET: &str = ".declarest-secret-";

/// The number of random letters and digits in the name of a temporary file.
const RANDOM: usize = 6;

/// Whether a file has the name of a temporary file, which stays if the process is killed.
pub(crate) fn is_temporary(name: &str) -> bool {
    let random = [TEMPORARY_SECRET, TEMPORARY].into_iter().find_map(|prefix| name.strip_prefix(prefix));
    random.is_some_and(|random| {
        random.len() == RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

/// The access rights of a written file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// An existing file keeps its permissions; a new one gets 0644 less the umask.
    Shared,
    /// Only the owner has access (0600), regardless of the previous mode.
    Private,
}

/// Replaces or creates `file` with `content`.
///
/// The content is written to a temporary file in the same directory, which must exist, flushed to the disk, and
/// renamed. After a failure the temporary file is removed and `file` is unchanged. If the process is killed, `file`
/// is unchanged, too, but a file `.declarest-*` may stay. A symbolic link is replaced, not followed. Blocks.
pub fn write_atomically(file: &Path, content: &[u8], mode: Mode) -> io::Result<()> {
    replace(file, TEMPORARY, mode, |temporary| temporary.write_all(content))
}

/// Like [`write_atomically`], for a file that a user names. A symbolic link is followed. A pipe or a device is written
/// to, because a rename would replace it.
pub fn write_through(file: &Path, content: &[u8], mode: Mode) -> io::Result<()> {
    let is_special = |found: fs::Metadata| !found.is_file() && !found.is_dir();
    if fs::metadata(file).is_ok_and(is_special) {
        return OpenOptions::new().write(true).open(file)?.write_all(content);
    }
    write_atomically(&followed(file), content, mode)
}

/// Returns the file that a symbolic link leads to; other files, and links to nothing, are returned as they are.
pub(crate) fn followed(file: &Path) -> PathBuf {
    match fs::symlink_metadata(file) {
        Ok(found) if found.is_symlink() => fs::canonicalize(file).unwrap_or_else(|_| file.to_owned()),
        _ => file.to_owned(),
    }
}

/// Like [`write_atomically`], for a file that only the owner may read and that must survive a power failure after
/// this returns: the directory is flushed, too. Temporary files are named `.declarest-secret-*`.
pub fn write_secret_file(file: &Path, content: &[u8]) -> io::Result<()> {
    replace(file, TEMPORARY_SECRET, Mode::Private, |temporary| temporary.write_all(content))?;
    File::open(directory_of(file))?.sync_all()
}

/// Returns the directory for temporary files, on the same file system as `file`.
fn directory_of(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn replace(
    file: &Path,
    prefix: &str,
    mode: Mode,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let kept = match mode {
        Mode::Shared => permissions_of(file)?,
        Mode::Private => None,
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix).rand_bytes(RANDOM);
    if mode == Mode::Shared {
        share(&mut builder);
    }
    // Every error drops it, which removes the file.
    let mut temporary = builder.tempfile_in(directory_of(file)).map_err(without_path)?;
    if let Some(permissions) = kept {
        temporary.as_file().set_permissions(permissions)?;
    }
    write(temporary.as_file_mut())?;
    temporary.as_file().sync_all()?;
    temporary.persist(file).map_err(|failed| failed.error)?;
    Ok(())
}

/// Returns the error without the path of the temporary file, which means nothing to users.
fn without_path(error: io::Error) -> io::Error {
    // The crate adds it to the text, and does not give access to the original error.
    match error.to_string().rsplit_once(" at path ") {
        Some((text, _)) => io::Error::new(error.kind(), text.to_owned()),
        None => error,
    }
}

/// Returns the permissions to keep; `None` if the file does not exist.
fn permissions_of(file: &Path) -> io::Result<Option<Permissions>> {
    match fs::symlink_metadata(file) {
        Ok(metadata) => Ok(metadata.is_file().then(|| metadata.permissions())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Makes the temporary file readable, which is private by default. The system applies the umask.
#[cfg(unix)]
fn share(builder: &mut tempfile::Builder<'_, '_>) {
    use std::os::unix::fs::PermissionsExt;
    builder.permissions(Permissions::from_mode(0o644));
}

/// On other systems a file inherits the permissions of its directory.
#[cfg(not(unix))]
fn share(_builder: &mut tempfile::Builder<'_, '_>) {}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use rstest::rstest;

    use super::*;

    fn mode_of(file: &Path) -> u32 {
        fs::metadata(file).unwrap().permissions().mode() & 0o777
    }

    fn names(directory: &Path) -> Vec<String> {
        let names = fs::read_dir(directory).unwrap();
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[rstest]
    #[case::new(None)]
    #[case::existing(Some("old and longer than the new content"))]
    fn only_the_new_content_is_left(#[case] old: Option<&str>) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a");
        old.inspect(|old| fs::write(&file, old).unwrap());
        write_atomically(&file, b"new", Mode::Shared).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(names(directory.path()), ["a"]);
    }

    #[test]
    fn errors_do_not_name_the_temporary_file() {
        let directory = tempfile::tempdir().unwrap();
        let error = write_atomically(&directory.path().join("none/a"), b"new", Mode::Shared).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert_eq!(error.to_string(), "No such file or directory (os error 2)");
    }

    #[rstest]
    #[case(Mode::Shared, 0o640, 0o640)]
    #[case(Mode::Shared, 0o755, 0o755)]
    #[case(Mode::Private, 0o644, 0o600)]
    fn an_existing_file_keeps_its_permissions_unless_it_is_private(
        #[case] mode: Mode,
        #[case] before: u32,
        #[case] after: u32,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a");
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(before)).unwrap();
        write_atomically(&file, b"new", mode).unwrap();
        assert_eq!(mode_of(&file), after);
    }

    #[test]
    fn a_new_file_gets_0644_less_the_umask() {
        let directory = tempfile::tempdir().unwrap();
        let (ours, private) = (directory.path().join("ours"), directory.path().join("private"));
        write_atomically(&ours, b"", Mode::Shared).unwrap();
        write_atomically(&private, b"", Mode::Private).unwrap();
        // The system creates files with 0666 less the umask.
        let plain = directory.path().join("plain");
        fs::write(&plain, "").unwrap();
        assert_eq!(mode_of(&ours), mode_of(&plain) & 0o644);
        assert_eq!(mode_of(&private), 0o600);
    }

    #[test]
    fn a_failed_write_keeps_the_old_file_and_no_temporary_one() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a");
        fs::write(&file, "old").unwrap();
        let full = replace(&file, TEMPORARY, Mode::Shared, |temporary| {
            temporary.write_all(b"ha")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        });
        assert_eq!(full.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(&file).unwrap(), b"old");
        assert_eq!(names(directory.path()), ["a"]);
    }

    #[test]
    fn a_failed_rename_leaves_no_temporary_file() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("a/b")).unwrap();
        write_atomically(&directory.path().join("a"), b"new", Mode::Shared).unwrap_err();
        assert_eq!(names(directory.path()), ["a"]);
        assert_eq!(names(&directory.path().join("a")), ["b"]);
    }

    #[test]
    fn a_link_is_replaced_and_its_target_stays() {
        let directory = tempfile::tempdir().unwrap();
        let (target, link) = (directory.path().join("target"), directory.path().join("link"));
        fs::write(&target, "old").unwrap();
        symlink(&target, &link).unwrap();
        write_atomically(&link, b"new", Mode::Shared).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"old");
        assert!(fs::symlink_metadata(&link).unwrap().is_file());
    }
}

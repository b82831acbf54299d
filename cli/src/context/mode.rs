//! The modes of private files and directories.

use std::path::Path;

/// Sets the mode of a file or a directory, if it exists and has another mode.
#[cfg(unix)]
pub fn protect(path: &Path, mode: u32) -> std::io::Result<()> {
    use std::fs::{Permissions, metadata, set_permissions};
    use std::os::unix::fs::PermissionsExt as _;
    match metadata(path) {
        Ok(metadata) if metadata.permissions().mode() & 0o777 != mode => {
            set_permissions(path, Permissions::from_mode(mode))
        }
        _ => Ok(()),
    }
}

/// On Windows, the access rights of the user's directory apply.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "on Unix, this can fail")]
pub fn protect(_path: &Path, _mode: u32) -> std::io::Result<()> {
    Ok(())
}

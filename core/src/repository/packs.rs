//! Detects that other programs have changed files of a mirror, before libgit2 reads them.
//!
//! libgit2 always maps packs into memory. Reading a page beyond the end of a file that was truncated in the meantime
//! would kill the process, so the packs are checked before each use.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
#[cfg(unix)]
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// The time for which a check is valid. A change within this time is not detected before the next use.
const FRESH: Duration = Duration::from_millis(5);

/// The time between two checks is at least this multiple of the duration of a check, but at most [`MOST`].
const SHARE: u32 = 20;

/// The longest time for which a check is valid. A check on a busy machine takes longer than its system calls.
const MOST: Duration = Duration::from_millis(100);

/// The packs of one repository at the last check.
#[derive(Debug, Default)]
pub(super) struct Packs {
    seen: HashMap<OsString, Stamp>,
    /// The end of the validity of the last check.
    fresh_until: Option<Instant>,
}

/// Attributes that change when a file is overwritten in place. Git never does that to a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

/// The result of a check.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// No pack changed, or packs were added.
    Sound,
    /// A pack was removed or replaced, for example by `git gc`. Open handles must be closed.
    Replaced,
    /// A change that Git does not make.
    Damaged(String),
}

impl Packs {
    /// Checks the packs of the bare repository in `directory`, unless the last check is still valid.
    pub fn look(&mut self, directory: &Path) -> Look {
        let started = Instant::now();
        if self.fresh_until.is_some_and(|until| started < until) {
            return Look::Sound;
        }
        let look = self.compare(directory).unwrap_or_else(|error| Look::Damaged(error.to_string()));
        self.fresh_until = Some(Instant::now() + (started.elapsed() * SHARE).clamp(FRESH, MOST));
        look
    }

    fn compare(&mut self, directory: &Path) -> std::io::Result<Look> {
        let mut now = HashMap::new();
        for entry in fs::read_dir(directory.join("objects/pack"))? {
            let entry = entry?;
            let name = entry.file_name();
            // libgit2 is still writing these files.
            if name.to_string_lossy().contains("_git2_") {
                continue;
            }
            match entry.metadata() {
                Ok(metadata) => now.insert(name, Stamp::of(&metadata)),
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
        }
        fs::metadata(directory.join("HEAD"))?;
        let mut look = Look::Sound;
        for (name, before) in &self.seen {
            match now.get(name) {
                Some(stamp) if stamp == before => {}
                Some(stamp) if stamp.inode == before.inode => {
                    let name = name.to_string_lossy();
                    return Ok(Look::Damaged(format!("{name} was changed after it was written")));
                }
                _ => look = Look::Replaced,
            }
        }
        self.seen = now;
        Ok(look)
    }
}

impl Stamp {
    #[cfg(unix)]
    fn of(metadata: &fs::Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }

    /// Windows prevents that a mapped file is truncated. Its files have no inode.
    #[cfg(not(unix))]
    fn of(metadata: &fs::Metadata) -> Self {
        let modified = metadata.modified().ok();
        let modified = modified.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        let modified = modified.unwrap_or_default();
        let seconds = i64::try_from(modified.as_secs()).unwrap_or(i64::MAX);
        Self { inode: 0, size: metadata.len(), modified: (seconds, i64::from(modified.subsec_nanos())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A check that does not depend on the last one.
    fn look(packs: &mut Packs, directory: &Path) -> Look {
        packs.fresh_until = None;
        packs.look(directory)
    }

    #[test]
    fn only_changes_in_place_are_damage() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let pack = directory.join("objects/pack");
        fs::create_dir_all(&pack).unwrap();
        fs::write(directory.join("HEAD"), "").unwrap();
        let mut packs = Packs::default();
        assert_eq!(look(&mut packs, directory), Look::Sound);
        fs::write(pack.join("pack-a.pack"), "12345").unwrap();
        fs::write(pack.join("pack_git2_x"), "1").unwrap();
        assert_eq!(look(&mut packs, directory), Look::Sound, "a pack was added");
        fs::write(pack.join("pack_git2_x"), "12").unwrap();
        assert_eq!(look(&mut packs, directory), Look::Sound);
        fs::write(pack.join("new"), "12345").unwrap();
        assert_eq!(look(&mut packs, directory), Look::Sound);
        fs::rename(pack.join("new"), pack.join("pack-a.pack")).unwrap();
        assert_eq!(look(&mut packs, directory), Look::Replaced);
        assert_eq!(look(&mut packs, directory), Look::Sound);
        fs::File::options().write(true).open(pack.join("pack-a.pack")).unwrap().set_len(2).unwrap();
        packs.fresh_until = Some(Instant::now() + Duration::from_hours(1));
        assert_eq!(packs.look(directory), Look::Sound, "the last check is still valid");
        let damaged = Look::Damaged("pack-a.pack was changed after it was written".to_owned());
        assert_eq!(look(&mut packs, directory), damaged);
        fs::remove_dir_all(directory.join("objects")).unwrap();
        assert!(matches!(look(&mut packs, directory), Look::Damaged(_)));
    }
}

//! The status of a checkout.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use git2::{Oid, Repository, RepositoryState, Status, StatusEntry, StatusOptions, Statuses};
use serde::{Serialize, Serializer};

use super::super::RepositoryError;
use super::super::payload_name::{is_defaults, is_metadata, is_payload};
use super::Worktree;
use super::origin::tracking_ref;
use crate::atomic::is_temporary;

/// The relation of a checkout to its remote and its last commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorktreeStatus {
    /// The relation of the branch to that of the remote.
    pub state: SyncState,
    /// Commits that only the local branch has.
    pub ahead: usize,
    /// Commits that only the remote's branch has.
    pub behind: usize,
    /// Uncommitted files, sorted by path. Untracked files are included, ignored ones are not.
    pub files: Vec<FileStatus>,
}

impl WorktreeStatus {
    /// Whether there are uncommitted files.
    pub fn has_uncommitted(&self) -> bool {
        !self.files.is_empty()
    }
}

/// The relation of a branch to the same branch of the remote. A missing branch counts as one without commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum SyncState {
    /// Both are at the same commit.
    UpToDate,
    /// Only the local branch has further commits.
    Ahead,
    /// Only the remote's branch has further commits.
    Behind,
    /// Both branches have further commits.
    Diverged,
    /// No remote is configured.
    NoRemote,
}

impl SyncState {
    /// Returns the name of the state, as status output spells it.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    fn of(ahead: usize, behind: usize) -> Self {
        match (ahead, behind) {
            (0, 0) => Self::UpToDate,
            (_, 0) => Self::Ahead,
            (0, _) => Self::Behind,
            _ => Self::Diverged,
        }
    }
}

/// A file that differs from HEAD.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileStatus {
    /// The file relative to the checkout; bytes that are not UTF-8 are replaced by U+FFFD.
    pub path: String,
    /// The difference between index and HEAD.
    pub staging: FileState,
    /// The difference between the file on disk and the index.
    pub worktree: FileState,
}

/// The kind of a difference. It is serialised as its [`code`](FileState::code).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileState {
    /// There is no difference.
    Unmodified,
    /// Content or mode changed.
    Modified,
    /// The file was added.
    Added,
    /// The file was deleted.
    Deleted,
    /// A file became a link, or a link became a file.
    TypeChanged,
    /// The file is not tracked.
    Untracked,
    /// The file has an unresolved merge conflict.
    Unmerged,
}

impl FileState {
    /// Returns the letter of git-status(1), short format.
    pub const fn code(self) -> char {
        match self {
            Self::Unmodified => ' ',
            Self::Modified => 'M',
            Self::Added => 'A',
            Self::Deleted => 'D',
            Self::TypeChanged => 'T',
            Self::Untracked => '?',
            Self::Unmerged => 'U',
        }
    }

    /// Returns the states in index and checkout. Rename detection is off, so a rename is a removed and an added file.
    fn of(status: Status) -> (Self, Self) {
        let first = |states: [(Status, Self); 4]| {
            let found = states.into_iter().find(|(flag, _)| status.contains(*flag));
            found.map_or(Self::Unmodified, |(_, state)| state)
        };
        if status.contains(Status::CONFLICTED) {
            return (Self::Unmerged, Self::Unmerged);
        }
        if status == Status::WT_NEW {
            return (Self::Untracked, Self::Untracked);
        }
        let staging = first([
            (Status::INDEX_NEW, Self::Added),
            (Status::INDEX_DELETED, Self::Deleted),
            (Status::INDEX_TYPECHANGE, Self::TypeChanged),
            (Status::INDEX_MODIFIED, Self::Modified),
        ]);
        let worktree = first([
            (Status::WT_NEW, Self::Untracked),
            (Status::WT_DELETED, Self::Deleted),
            (Status::WT_TYPECHANGE, Self::TypeChanged),
            (Status::WT_MODIFIED, Self::Modified),
        ]);
        (staging, worktree)
    }
}

impl Serialize for FileState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_char(self.code())
    }
}

impl Worktree {
    /// Fetches the branch of the remote, if there is one, and returns the status. Neither files nor local branches
    /// change.
    pub fn status(&self, deadline: Instant) -> Result<WorktreeStatus, RepositoryError> {
        let repository = self.repository()?;
        if let Some(remote) = &self.remote {
            self.fetch_origin(&repository, remote, deadline)?;
        }
        self.compare(&repository)
    }

    /// Like [`Worktree::status`] without a fetch: compares with the last known commit of the remote.
    pub fn status_offline(&self) -> Result<WorktreeStatus, RepositoryError> {
        let repository = self.repository()?;
        self.record_origin(&repository)?;
        self.compare(&repository)
    }

    /// Fails if there are uncommitted changes, or a merge has not ended. Does nothing before the first commit. The remote
    /// is not contacted.
    pub fn require_clean(&self) -> Result<(), RepositoryError> {
        if self.head()?.is_none() { Ok(()) } else { self.require_clean_except(&[]) }
    }

    /// Fails if other files than those in `own` have uncommitted changes, or a merge has not ended. Call it before a
    /// change that is committed automatically, so that the commit contains nothing else. Before the first commit, it may
    /// also contain the files that declare resources and metadata, the document of the API, and those of Git. The remote is
    /// not contacted.
    pub fn require_clean_except(&self, own: &[String]) -> Result<(), RepositoryError> {
        let repository = self.repository()?;
        self.require_finished(&repository)?;
        let is_first = self.head_commit(&repository)?.is_none();
        let files = self.uncommitted(&repository)?.into_iter().map(|file| file.path);
        let others = files.filter(|file| !(own.contains(file) || is_first && is_of_repository(file)));
        let files: Vec<String> = others.collect();
        if files.is_empty() {
            return Ok(());
        }
        let directory = self.shown();
        Err(if is_first {
            RepositoryError::BeforeFirstCommit { directory, files }
        } else {
            RepositoryError::Uncommitted { directory, files }
        })
    }

    /// Returns the paths of the uncommitted files, relative to the checkout and sorted.
    pub fn changed_files(&self) -> Result<Vec<String>, RepositoryError> {
        let files = self.uncommitted(&self.repository()?)?;
        Ok(files.into_iter().map(|file| file.path).collect())
    }

    /// Fails if a commit would not contain one of `files`, which are relative to the checkout: Git ignores and does not
    /// track it, or it belongs to another repository, such as a submodule.
    pub fn require_committable<'f>(
        &self,
        files: impl IntoIterator<Item = &'f str>,
    ) -> Result<(), RepositoryError> {
        let repository = self.repository()?;
        let index = repository.index().map_err(self.git("read the index of"))?;
        for file in files {
            let is_other = |above: &&Path| {
                !above.as_os_str().is_empty() && self.directory.join(above).join(".git").exists()
            };
            let ignored = repository.is_path_ignored(file).map_err(self.git("read the ignored files of"))?;
            let reason = match Path::new(file).ancestors().skip(1).find(is_other) {
                Some(above) => format!("{} is another Git repository", above.display()),
                None if ignored && index.get_path(Path::new(file), 0).is_none() => {
                    "Git ignores it; change the pattern in .gitignore that matches it".to_owned()
                }
                None => continue,
            };
            return Err(RepositoryError::NotCommittable {
                directory: self.shown(),
                file: file.to_owned(),
                reason,
            });
        }
        Ok(())
    }

    /// Fails during a merge, rebase, cherry-pick or revert, while files have conflicts, as after `git stash pop`, and in a
    /// sparse checkout.
    pub(super) fn require_finished(&self, repository: &Repository) -> Result<(), RepositoryError> {
        let index = repository.index().map_err(self.git("read the index of"))?;
        let skipped = git2::IndexEntryExtendedFlag::SKIP_WORKTREE.bits();
        if index.iter().any(|entry| entry.flags_extended & skipped != 0) {
            return Err(RepositoryError::Sparse(self.shown()));
        }
        match repository.state() {
            RepositoryState::Clean | RepositoryState::Bisect if !index.has_conflicts() => Ok(()),
            _ => Err(RepositoryError::Unfinished(self.shown())),
        }
    }

    fn compare(&self, repository: &Repository) -> Result<WorktreeStatus, RepositoryError> {
        let files = self.uncommitted(repository)?;
        let Some(remote) = &self.remote else {
            return Ok(WorktreeStatus { state: SyncState::NoRemote, ahead: 0, behind: 0, files });
        };
        let local = match self.tip(repository, &format!("refs/heads/{}", remote.branch))? {
            Some(tip) => Some(tip),
            None => self.head_commit(repository)?.map(|commit| commit.id()),
        };
        let seen = self.tip(repository, &tracking_ref(&remote.branch))?;
        let (ahead, behind) = self.distance(repository, local, seen)?;
        Ok(WorktreeStatus { state: SyncState::of(ahead, behind), ahead, behind, files })
    }

    /// Returns the numbers of commits that only `local` and only `remote` has.
    pub(super) fn distance(
        &self,
        repository: &Repository,
        local: Option<Oid>,
        remote: Option<Oid>,
    ) -> Result<(usize, usize), RepositoryError> {
        let all = |tip: Oid| -> Result<usize, git2::Error> {
            let mut walk = repository.revwalk()?;
            walk.push(tip)?;
            walk.try_fold(0, |count, commit| commit.map(|_| count + 1))
        };
        let distance = match (local, remote) {
            (Some(local), Some(remote)) => repository.graph_ahead_behind(local, remote),
            (Some(local), None) => all(local).map(|count| (count, 0)),
            (None, Some(remote)) => all(remote).map(|count| (0, count)),
            (None, None) => Ok((0, 0)),
        };
        distance.map_err(self.git("compare with its remote"))
    }

    /// Returns the states of the uncommitted files.
    pub(super) fn statuses<'r>(&self, repository: &'r Repository) -> Result<Statuses<'r>, RepositoryError> {
        let mut options = StatusOptions::new();
        options.include_untracked(true).recurse_untracked_dirs(true).include_ignored(false);
        repository.statuses(Some(&mut options)).map_err(self.git("read the status of"))
    }

    /// Returns the uncommitted files, sorted by path, without the temporary files of writes that did not end.
    pub(super) fn uncommitted(&self, repository: &Repository) -> Result<Vec<FileStatus>, RepositoryError> {
        let found = self.statuses(repository)?;
        let files = found.iter().filter(|entry| !is_temporary_entry(entry)).map(|entry| {
            let (staging, worktree) = FileState::of(entry.status());
            let path = String::from_utf8_lossy(entry.path_bytes()).into_owned();
            FileStatus { path, staging, worktree }
        });
        let mut files: Vec<FileStatus> = files.collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }

    /// Returns the temporary files of writes that did not end, relative to the checkout.
    pub(super) fn temporary(&self, repository: &Repository) -> Result<HashSet<PathBuf>, RepositoryError> {
        let found = self.statuses(repository)?;
        let files = found.iter().filter(is_temporary_entry);
        Ok(files.map(|entry| String::from_utf8_lossy(entry.path_bytes()).into_owned().into()).collect())
    }
}

/// Whether a file is a temporary one of a write that did not end. One that is committed is like other files.
fn is_temporary_entry(entry: &StatusEntry<'_>) -> bool {
    let name = entry.path_bytes().rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    entry.status() == Status::WT_NEW && std::str::from_utf8(name).is_ok_and(is_temporary)
}

/// Whether a file declares a resource or metadata, describes the API, or is one of Git. Directories that had files before
/// `autoInit` created the checkout may also hold private files.
fn is_of_repository(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    is_payload(name)
        || is_metadata(name)
        || is_defaults(name)
        || matches!(name, ".gitignore" | ".gitattributes")
        || matches!(file, "openapi.json" | "openapi.yaml")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(0, 0, "up_to_date")]
    #[case(2, 0, "ahead")]
    #[case(0, 2, "behind")]
    #[case(1, 1, "diverged")]
    fn states(#[case] ahead: usize, #[case] behind: usize, #[case] expected: &str) {
        let state = SyncState::of(ahead, behind);
        assert_eq!(state.as_str(), expected);
        assert_eq!(serde_json::to_value(state).unwrap(), expected);
        assert_eq!(serde_json::to_value(SyncState::NoRemote).unwrap(), SyncState::NoRemote.as_str());
    }

    #[rstest]
    #[case(Status::WT_NEW, "??")]
    #[case(Status::WT_MODIFIED, " M")]
    #[case(Status::WT_DELETED, " D")]
    #[case(Status::WT_TYPECHANGE, " T")]
    #[case(Status::INDEX_NEW, "A ")]
    #[case(Status::INDEX_NEW | Status::WT_MODIFIED, "AM")]
    #[case(Status::INDEX_MODIFIED, "M ")]
    #[case(Status::INDEX_TYPECHANGE, "T ")]
    #[case(Status::INDEX_DELETED, "D ")]
    #[case(Status::INDEX_DELETED | Status::WT_NEW, "D?")]
    #[case(Status::CONFLICTED, "UU")]
    fn codes(#[case] status: Status, #[case] expected: &str) {
        let (staging, worktree) = FileState::of(status);
        let shown: String = [staging.code(), worktree.code()].into_iter().collect();
        assert_eq!(shown, expected);
        let file = FileStatus { path: "a".into(), staging, worktree };
        let (first, second) = expected.split_at(1);
        let json = serde_json::json!({"path": "a", "staging": first, "worktree": second});
        assert_eq!(serde_json::to_value(file).unwrap(), json);
    }
}

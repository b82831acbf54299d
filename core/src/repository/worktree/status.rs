//! Where a checkout stands.

use std::time::Instant;

use git2::{Oid, Repository, Status, StatusOptions};
use serde::{Serialize, Serializer};

use super::super::RepositoryError;
use super::Worktree;
use super::origin::tracking_ref;

/// Where a checkout stands towards its remote and its last commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorktreeStatus {
    /// How the branch relates to that of the remote.
    pub state: SyncState,
    /// Commits that only the local branch has.
    pub ahead: usize,
    /// Commits that only the remote's branch has.
    pub behind: usize,
    /// What is not committed, sorted by path. Ignored files do not count, untracked ones do.
    pub files: Vec<FileStatus>,
}

impl WorktreeStatus {
    /// Whether anything is not committed.
    pub fn has_uncommitted(&self) -> bool {
        !self.files.is_empty()
    }
}

/// How a branch relates to the same branch of the remote. A missing branch counts as one without commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SyncState {
    /// Both are at the same commit.
    UpToDate,
    /// Only the local branch has commits of its own.
    Ahead,
    /// Only the remote's branch has commits of its own.
    Behind,
    /// Both have.
    Diverged,
    /// There is nothing to compare with.
    NoRemote,
}

impl SyncState {
    /// The state's name, as status output spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UpToDate => "up_to_date",
            Self::Ahead => "ahead",
            Self::Behind => "behind",
            Self::Diverged => "diverged",
            Self::NoRemote => "no_remote",
        }
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
    /// How the index differs from HEAD.
    pub staging: FileState,
    /// How the file on disk differs from the index.
    pub worktree: FileState,
}

/// How a file differs. It serialises as its [`code`](FileState::code).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileState {
    /// Not at all.
    Unmodified,
    /// In its content or mode.
    Modified,
    /// It is new.
    Added,
    /// It is gone.
    Deleted,
    /// It became a link, or a link became a file.
    TypeChanged,
    /// Git does not know it.
    Untracked,
    /// A merge left it undecided.
    Unmerged,
}

impl FileState {
    /// The letter of git-status(1), short format.
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

    /// Index and disk. Rename detection is off, so a rename is a removed and an added file.
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
    /// Fetches the branch of the remote, if there is one, and says where the checkout stands. Neither files
    /// nor local branches change.
    pub fn status(&self, deadline: Instant) -> Result<WorktreeStatus, RepositoryError> {
        let repository = self.repository()?;
        if let Some(remote) = &self.remote {
            self.fetch_origin(&repository, remote, deadline)?;
        }
        self.compare(&repository)
    }

    /// Like [`Worktree::status`] without a fetch: compares with where the remote was last seen.
    pub fn status_offline(&self) -> Result<WorktreeStatus, RepositoryError> {
        let repository = self.repository()?;
        self.record_origin(&repository)?;
        self.compare(&repository)
    }

    /// Whether everything is committed or ignored. Looks at the disk only.
    pub fn is_clean(&self) -> Result<bool, RepositoryError> {
        Ok(self.uncommitted(&self.repository()?)?.is_empty())
    }

    /// Fails if something is not committed, unless nothing was ever committed. To be called before a change
    /// that is committed by itself, so that the commit holds nothing else. Looks at the disk only.
    pub fn require_clean(&self) -> Result<(), RepositoryError> {
        let repository = self.repository()?;
        if self.head_commit(&repository)?.is_none() {
            return Ok(());
        }
        let files = self.uncommitted(&repository)?;
        if files.is_empty() {
            return Ok(());
        }
        let files = files.into_iter().map(|file| file.path).collect();
        Err(RepositoryError::Uncommitted { directory: self.shown(), files })
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

    /// How many commits each side has that the other lacks.
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

    /// What is not committed, sorted by path.
    pub(super) fn uncommitted(&self, repository: &Repository) -> Result<Vec<FileStatus>, RepositoryError> {
        let mut options = StatusOptions::new();
        options.include_untracked(true).recurse_untracked_dirs(true).include_ignored(false);
        let found = repository.statuses(Some(&mut options)).map_err(self.git("read the status of"))?;
        let files = found.iter().map(|entry| {
            let (staging, worktree) = FileState::of(entry.status());
            let path = String::from_utf8_lossy(entry.path_bytes()).into_owned();
            FileStatus { path, staging, worktree }
        });
        let mut files: Vec<FileStatus> = files.collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }
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

use git2::{Delta, DiffFile, DiffOptions, Repository, Tree};

use super::git_tree::entry_kind;
use super::{EntryKind, RepositoryError};

/// One name that differs between two trees. A renamed file is one removal and one addition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The name relative to the root; bytes that are not UTF-8 are replaced by U+FFFD.
    pub path: String,
    /// What happened to it.
    pub status: ChangeStatus,
    /// What it named before.
    pub old: Option<EntryKind>,
    /// What it names now.
    pub new: Option<EntryKind>,
}

/// What happened to a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeStatus {
    /// It is new.
    Added,
    /// Its content changed.
    Modified,
    /// It is gone.
    Deleted,
    /// It names another kind of thing, such as a symbolic link instead of a regular file.
    TypeChanged,
    /// Only the executable bit changed.
    ModeOnly,
}

/// The differences from `old` to `new`, sorted by name; below the directory `scope` only, if it is given.
/// `None` stands for the empty tree.
pub(super) fn between(
    repository: &Repository,
    old: Option<&Tree<'_>>,
    new: Option<&Tree<'_>>,
    scope: Option<&str>,
) -> Result<Vec<FileChange>, RepositoryError> {
    let mut options = DiffOptions::new();
    options.include_typechange(true).skip_binary_check(true);
    if let Some(scope) = scope.filter(|scope| !scope.is_empty()) {
        options.pathspec(scope).disable_pathspec_match(true);
    }
    let diff = repository
        .diff_tree_to_tree(old, new, Some(&mut options))
        .map_err(RepositoryError::git("compare two revisions"))?;
    Ok(diff
        .deltas()
        .filter_map(|delta| change(delta.status(), &delta.old_file(), &delta.new_file()))
        .collect())
}

fn change(delta: Delta, old: &DiffFile<'_>, new: &DiffFile<'_>) -> Option<FileChange> {
    let status = match delta {
        Delta::Added => ChangeStatus::Added,
        Delta::Deleted => ChangeStatus::Deleted,
        Delta::Typechange => ChangeStatus::TypeChanged,
        Delta::Modified if old.id() == new.id() => ChangeStatus::ModeOnly,
        Delta::Modified => ChangeStatus::Modified,
        // The rest only comes from indexes, work trees and rename detection.
        _ => return None,
    };
    let name = if status == ChangeStatus::Deleted { old } else { new };
    let kind = |file: &DiffFile<'_>| entry_kind(u32::from(file.mode()).cast_signed());
    Some(FileChange {
        path: String::from_utf8_lossy(name.path_bytes()?).into_owned(),
        status,
        old: (status != ChangeStatus::Added).then(|| kind(old)),
        new: (status != ChangeStatus::Deleted).then(|| kind(new)),
    })
}

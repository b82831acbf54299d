//! Looking back.

use std::path::Path;

use git2::{Commit, Repository, Signature, Sort};

use super::super::{RepositoryError, Revision};
use super::Worktree;

/// Which commits to list. Everything that is set has to fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryFilter {
    /// Part of `name email` of the author, whatever its case.
    pub author: Option<String>,
    /// Part of the message, whatever its case.
    pub grep: Option<String>,
    /// The earliest time of the commit, in seconds since 1970-01-01T00:00:00Z, inclusive.
    pub since: Option<i64>,
    /// The latest time of the commit, likewise.
    pub until: Option<i64>,
    /// Files or directories, relative to the checkout, of which the commit changed any. The empty path and
    /// `/` are the whole checkout.
    pub paths: Vec<String>,
    /// At most so many, the newest ones that fit the rest.
    pub max_count: Option<usize>,
    /// Lists the oldest of them first.
    pub reverse: bool,
}

/// A commit as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedCommit {
    /// Its id.
    pub revision: Revision,
    /// Who wrote it, and when.
    pub author: Author,
    /// When it was committed, in seconds since 1970-01-01T00:00:00Z; what the list is sorted by.
    pub committed_at: i64,
    /// The first paragraph of the message, on one line.
    pub subject: String,
    /// The rest of the message, without blank lines around it.
    pub body: String,
}

/// Who wrote a commit, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    /// The name.
    pub name: String,
    /// The address.
    pub email: String,
    /// Seconds since 1970-01-01T00:00:00Z.
    pub at: i64,
    /// The offset of the author's clock from UTC, in minutes.
    pub offset_minutes: i32,
}

impl Worktree {
    /// The commits that HEAD leads to, the newest first by the time of the commit. Empty before the first
    /// one.
    pub fn history(&self, filter: &HistoryFilter) -> Result<Vec<LoggedCommit>, RepositoryError> {
        let repository = self.repository()?;
        let Some(head) = self.head_commit(&repository)? else { return Ok(Vec::new()) };
        let selection = Selection::of(filter);
        let mut found = Vec::new();
        let mut walk = repository.revwalk().map_err(self.git("read the history of"))?;
        walk.set_sorting(Sort::TIME)
            .and_then(|()| walk.push(head.id()))
            .map_err(self.git("read the history of"))?;
        for id in walk {
            if filter.max_count.is_some_and(|most| found.len() >= most) {
                break;
            }
            let commit = id.and_then(|id| repository.find_commit(id));
            let commit = commit.map_err(self.git("read the history of"))?;
            if selection.fits(&repository, &commit).map_err(self.git("read the history of"))? {
                found.push(LoggedCommit::of(&commit));
            }
        }
        if filter.reverse {
            found.reverse();
        }
        Ok(found)
    }
}

/// A filter with its texts prepared for comparison.
struct Selection<'f> {
    filter: &'f HistoryFilter,
    author: Option<String>,
    grep: Option<String>,
    paths: Vec<&'f str>,
}

impl<'f> Selection<'f> {
    fn of(filter: &'f HistoryFilter) -> Self {
        let lower = |text: &Option<String>| text.as_ref().map(|text| text.to_lowercase());
        let paths = filter.paths.iter().map(|path| path.trim_matches('/')).collect();
        Self { filter, author: lower(&filter.author), grep: lower(&filter.grep), paths }
    }

    fn fits(&self, repository: &Repository, commit: &Commit<'_>) -> Result<bool, git2::Error> {
        let time = commit.time().seconds();
        let in_time = self.filter.since.is_none_or(|since| since <= time)
            && self.filter.until.is_none_or(|until| time <= until);
        let holds = |text: &dyn Fn() -> String, part: &Option<String>| {
            part.as_ref().is_none_or(|part| text().to_lowercase().contains(part))
        };
        let author = || {
            let author = commit.author();
            format!("{} {}", lossy(author.name_bytes()), lossy(author.email_bytes()))
        };
        let fits =
            in_time && holds(&author, &self.author) && holds(&|| lossy(commit.message_bytes()), &self.grep);
        Ok(fits && self.touches(repository, commit)?)
    }

    /// Whether the commit changed any of the paths. A merge did only where it differs from all its parents.
    fn touches(&self, repository: &Repository, commit: &Commit<'_>) -> Result<bool, git2::Error> {
        if self.paths.is_empty() {
            return Ok(true);
        }
        let tree = commit.tree()?;
        let parents: Vec<_> = commit.parent_ids().collect();
        // A shallow clone lacks the parents of its oldest commits; those count as the first ones.
        let parents: Vec<_> = parents.iter().filter_map(|id| repository.find_commit(*id).ok()).collect();
        let parents = parents.iter().map(Commit::tree).collect::<Result<Vec<_>, _>>()?;
        Ok(self.paths.iter().any(|path| {
            let now = entry(&tree, path);
            if parents.is_empty() { now.is_some() } else { parents.iter().all(|old| entry(old, path) != now) }
        }))
    }
}

/// What a tree has at a path: its id, which stands for everything below, and its mode.
fn entry(tree: &git2::Tree<'_>, path: &str) -> Option<(git2::Oid, i32)> {
    if path.is_empty() {
        return (!tree.is_empty()).then(|| (tree.id(), 0));
    }
    tree.get_path(Path::new(path)).ok().map(|entry| (entry.id(), entry.filemode()))
}

impl LoggedCommit {
    fn of(commit: &Commit<'_>) -> Self {
        let message = lossy(commit.message_bytes());
        let message = message.trim();
        let (subject, body) = message.split_once("\n\n").unwrap_or((message, ""));
        Self {
            revision: Revision::of(commit.id()),
            author: Author::of(&commit.author()),
            committed_at: commit.time().seconds(),
            subject: subject.lines().map(str::trim).collect::<Vec<_>>().join(" "),
            body: body.trim().to_owned(),
        }
    }
}

impl Author {
    fn of(signature: &Signature<'_>) -> Self {
        Self {
            name: lossy(signature.name_bytes()),
            email: lossy(signature.email_bytes()),
            at: signature.when().seconds(),
            offset_minutes: signature.when().offset_minutes(),
        }
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

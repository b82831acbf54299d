//! Lists commits.

use std::path::Path;

use git2::{Commit, Oid, Repository, Signature, Sort, Tree};

use super::super::{RepositoryError, Revision};
use super::Worktree;

/// A filter for commits. All conditions that are set must be true.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryFilter {
    /// A part of `name email` of the author, in any letter case.
    pub author: Option<String>,
    /// A part of the message, in any letter case.
    pub grep: Option<String>,
    /// The earliest time of the commit, in seconds since 1970-01-01T00:00:00Z, inclusive.
    pub since: Option<i64>,
    /// The latest time of the commit, inclusive, in the same unit.
    pub until: Option<i64>,
    /// Beginnings of the paths of files, relative to the checkout; the commit must have changed a file with one of them.
    /// The empty path and `/` are the whole checkout.
    pub paths: Vec<String>,
    /// The largest number of commits. The newest ones are listed.
    pub max_count: Option<usize>,
    /// Lists the oldest commit first.
    pub reverse: bool,
}

/// A listed commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedCommit {
    /// The id.
    pub revision: Revision,
    /// The author and the time of authoring.
    pub author: Author,
    /// The time of the commit, in seconds since 1970-01-01T00:00:00Z. The list is sorted by it.
    pub committed_at: i64,
    /// The first paragraph of the message, on one line.
    pub subject: String,
    /// The rest of the message, without blank lines around it.
    pub body: String,
}

/// The author of a commit, and the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    /// The name.
    pub name: String,
    /// The email address.
    pub email: String,
    /// Seconds since 1970-01-01T00:00:00Z.
    pub at: i64,
    /// The author's offset from UTC, in minutes.
    pub offset_minutes: i32,
}

impl Worktree {
    /// Returns the commits that are reachable from HEAD, newest first by commit time, and no commit before one that
    /// follows it; empty before the first commit.
    pub fn history(&self, filter: &HistoryFilter) -> Result<Vec<LoggedCommit>, RepositoryError> {
        let repository = self.repository()?;
        let Some(head) = self.head_commit(&repository)? else { return Ok(Vec::new()) };
        let selection = Selection::of(filter);
        let mut found = Vec::new();
        let mut walk = repository.revwalk().map_err(self.git("read the history of"))?;
        // Commits of the same second have no order by time alone.
        walk.set_sorting(Sort::TOPOLOGICAL | Sort::TIME)
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
        let paths = filter.paths.iter().map(|path| path.trim_start_matches('/')).collect();
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

    /// Whether the commit changed any of the paths. A merge commit must differ from all its parents.
    fn touches(&self, repository: &Repository, commit: &Commit<'_>) -> Result<bool, git2::Error> {
        if self.paths.is_empty() {
            return Ok(true);
        }
        let tree = commit.tree()?;
        let parents: Vec<_> = commit.parent_ids().collect();
        // In a shallow clone the parents of the oldest commits are absent; these count as first commits.
        let parents: Vec<_> = parents.iter().filter_map(|id| repository.find_commit(*id).ok()).collect();
        let parents = parents.iter().map(Commit::tree).collect::<Result<Vec<_>, _>>()?;
        Ok(self.paths.iter().any(|path| {
            let now = entries(repository, &tree, path);
            let differs = |old| entries(repository, old, path) != now;
            if parents.is_empty() { !now.is_empty() } else { parents.iter().all(differs) }
        }))
    }
}

/// Returns the entries of a tree whose paths begin with `path`: the names, ids and modes. The id of a directory covers
/// everything below it.
fn entries(repository: &Repository, tree: &Tree<'_>, path: &str) -> Vec<(Vec<u8>, Oid, i32)> {
    let (directory, beginning) = path.rsplit_once('/').unwrap_or(("", path));
    let listed = |tree: &Tree<'_>| {
        let entries = tree.iter().filter(|entry| entry.name_bytes().starts_with(beginning.as_bytes()));
        entries.map(|entry| (entry.name_bytes().to_vec(), entry.id(), entry.filemode())).collect()
    };
    if directory.is_empty() {
        return listed(tree);
    }
    let below = tree.get_path(Path::new(directory)).and_then(|entry| repository.find_tree(entry.id()));
    below.map(|tree| listed(&tree)).unwrap_or_default()
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

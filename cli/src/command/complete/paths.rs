//! Logical paths for completion: the next level below a path, from the server and the repository.

use std::collections::BTreeSet;
use std::time::Duration;

use declarest_core::metadata::Api;
use declarest_core::metadata::inference::children;
use declarest_core::path::LogicalPath;
use declarest_core::repository::{EntryKind, Tree};

use crate::error::Failure;
use crate::interrupt::block_on;
use crate::invocation::Invocation;
use crate::workspace::Workspace;

/// The time for requests to the server.
const PATIENCE: Duration = Duration::from_secs(2);
/// The maximum number of candidates.
const MOST: usize = 256;

/// The order of the sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The server; the repository if the server has nothing.
    ServerFirst,
    /// The repository; the server if the repository has nothing.
    RepositoryFirst,
    /// Only the repository.
    Repository,
    /// Both.
    Both,
}

/// The level of paths to complete.
struct Level<'w> {
    /// The path above.
    parent: LogicalPath,
    /// The start of the next segment.
    partial: &'w str,
    /// Whether `_` is a candidate.
    wildcards: bool,
}

/// Returns the paths that start with `word`, one level below its last slash, sorted. A path with paths below it ends
/// with a slash.
pub fn candidates(
    word: &str,
    order: Order,
    wildcards: bool,
    invocation: &Invocation,
) -> Result<Vec<String>, Failure> {
    let word = if word.is_empty() { "/" } else { word };
    let Some((above, partial)) = word.rsplit_once('/') else { return Ok(Vec::new()) };
    let parent = if above.is_empty() { LogicalPath::root() } else { LogicalPath::parse(above)? };
    let level = Level { parent, partial, wildcards };
    let mut found = BTreeSet::new();
    block_on(async {
        if order == Order::Repository || order == Order::RepositoryFirst {
            let workspace = Workspace::local(invocation).await?;
            level.of_repository(&workspace, &mut found)?;
        }
        if order == Order::Repository || (order == Order::RepositoryFirst && !found.is_empty()) {
            return Ok(());
        }
        let remote = tokio::time::timeout(PATIENCE, level.of_server(invocation, &mut found)).await;
        let failed = !matches!(remote, Ok(Ok(())));
        if order == Order::Both || failed || found.is_empty() {
            let workspace = Workspace::local(invocation).await?;
            level.of_repository(&workspace, &mut found)?;
        }
        Ok(())
    })?;
    Ok(distinct(found))
}

impl Level<'_> {
    /// Adds the directories of the repository, and the collections that metadata describes.
    fn of_repository(&self, workspace: &Workspace<'_>, found: &mut BTreeSet<String>) -> Result<(), Failure> {
        let tree = workspace.tree.as_ref();
        for name in directories(tree, &self.parent)? {
            let below = self
                .parent
                .child(&name)
                .map(|path| directories(tree, &path).is_ok_and(|names| !names.is_empty()));
            // A reserved name, such as "_", is not a resource.
            if let Ok(below) = below {
                self.add(found, &name, below);
            }
        }
        self.of_metadata(workspace, found)
    }

    fn of_metadata(&self, workspace: &Workspace<'_>, found: &mut BTreeSet<String>) -> Result<(), Failure> {
        let metadata = &workspace.metadata;
        // The metadata of a repository also knows declared resources.
        for name in metadata.child_collections(&self.parent)? {
            let Ok(path) = self.parent.child(&name) else { continue };
            let below = metadata.has_wildcard_child(&path)? || !metadata.child_collections(&path)?.is_empty();
            self.add(found, &name, below);
        }
        if let Some(document) = workspace.metadata.api().map(Api::document) {
            for name in children(document, &self.parent) {
                self.add(found, name, true);
            }
        }
        self.add_wildcard(workspace, found)
    }

    fn add_wildcard(&self, workspace: &Workspace<'_>, found: &mut BTreeSet<String>) -> Result<(), Failure> {
        if self.wildcards && workspace.metadata.has_wildcard_child(&self.parent)? {
            self.add(found, "_", true);
        }
        Ok(())
    }

    /// Adds the members of the collection on the server, and the collections that metadata and the `OpenAPI` document
    /// describe.
    async fn of_server(&self, invocation: &Invocation, found: &mut BTreeSet<String>) -> Result<(), Failure> {
        let workspace = Workspace::connected(invocation).await?;
        // The members of a collection come from the server. The metadata of a repository also knows declared members.
        if workspace.metadata.has_wildcard_child(&self.parent)? {
            self.add_wildcard(&workspace, found)?;
        } else {
            self.of_metadata(&workspace, found)?;
        }
        // The root is a list of collections on few servers only.
        if self.parent.is_root() {
            return Ok(());
        }
        let members = workspace.remote()?.list(&self.parent).await?;
        for path in members.entries.into_keys() {
            if let Some(name) = self.parent.child_of(&path) {
                let below = !workspace.metadata.child_collections(&path)?.is_empty();
                self.add(found, name, below);
            }
        }
        Ok(())
    }

    fn add(&self, found: &mut BTreeSet<String>, name: &str, below: bool) {
        if name.starts_with(self.partial) {
            let parent = self.parent.as_str().trim_end_matches('/');
            found.insert(format!("{parent}/{name}{}", if below { "/" } else { "" }));
        }
    }
}

/// Returns the candidates. A path that is found with and without a slash has one.
fn distinct(mut found: BTreeSet<String>) -> Vec<String> {
    let with_slash: Vec<String> = found.iter().filter(|path| path.ends_with('/')).cloned().collect();
    for path in with_slash {
        found.remove(path.trim_end_matches('/'));
    }
    found.into_iter().take(MOST).collect()
}

/// Returns the names of the directories at a path that may contain resources.
fn directories(tree: &dyn Tree, path: &LogicalPath) -> Result<Vec<String>, Failure> {
    let entries = tree.entries(path.relative())?.unwrap_or_default().into_iter();
    let directories = entries.filter(|entry| entry.kind == EntryKind::Directory);
    let names = directories.map(|entry| entry.name).filter(|name| !name.starts_with('.') && name != "_");
    Ok(names.collect())
}

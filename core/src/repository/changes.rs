//! Maps changed files to the affected resources.
//!
//! A superfluous target costs only requests, but a missing one leaves the server behind Git. A change that is not
//! understood therefore requires a full sync.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;

use super::metadata_files::{glob_matches, is_wildcard};
use super::payload_name::{is_defaults, is_inert, is_metadata, is_payload, is_reserved_directory};
use super::tree::join;
use super::walk::Walk;
use super::{ChangeStatus, EntryKind, FileChange, RepositoryError, Tree};
use crate::path::{LogicalPath, Selector};

/// The effect of a set of changed files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changes {
    /// The effect of a file is unknown, so everything in scope must be checked.
    Full {
        /// The file relative to the root.
        file: String,
        /// The reason why its effect is unknown.
        rule: FullRule,
    },
    /// Only these paths are affected; both lists may be empty.
    Targets {
        /// Paths to bring to their desired state, parents first. None of them is below a recursive one.
        apply: Vec<ApplyTarget>,
        /// Resources that are no longer declared, children first.
        prune: Vec<LogicalPath>,
    },
}

/// A path to bring to its desired state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplyTarget {
    /// The path.
    pub path: LogicalPath,
    /// Whether all resources below it are included.
    pub recursive: bool,
}

/// The reason why the effect of a changed file is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullRule {
    /// `.gitattributes` or `.gitmodules`.
    GitSettings,
    /// A symbolic link, a submodule, or a change between file, directory and link.
    FileType,
    /// A name that is not UTF-8 or cannot be part of a logical path.
    Unaddressable,
    /// A file below `_` that is neither metadata nor defaults.
    CollectionFile,
    /// A metadata directory whose glob is invalid.
    BadSelector,
    /// A payload, metadata or defaults file in the root directory.
    RootFile,
    /// A name starting with `defaults` that is not the name of a defaults file.
    DefaultsFile,
    /// A file that does not belong to a resource.
    UnknownFile,
}

impl fmt::Display for FullRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::GitSettings => "a Git settings file",
            Self::FileType => "a symbolic link, a submodule or a change of file type",
            Self::Unaddressable => "a name that cannot be part of a logical path",
            Self::CollectionFile => "an unknown file of a collection",
            Self::BadSelector => "a selector that is not a valid pattern",
            Self::RootFile => "a resource file in the root directory",
            Self::DefaultsFile => "an unknown kind of defaults file",
            Self::UnknownFile => "a file that belongs to no resource",
        })
    }
}

/// Returns the effect of the `changes` from `base` to `target` on a recursive `scope`.
///
/// A target without resources in `target` is left out. Targets are always inside `scope`: metadata above it affects
/// the scope itself, and payloads above it are ignored. The cost depends on the number of changes and not on the size
/// of the trees, except that metadata lists the directories that its selector matches.
///
/// A changed file beside a resource may hold the content of an attribute. The attributes are defined by metadata,
/// possibly elsewhere, so all resources above the file are targets, not only the nearest.
pub fn classify(
    changes: &[FileChange],
    base: &dyn Tree,
    target: &dyn Tree,
    scope: &LogicalPath,
) -> Result<Changes, RepositoryError> {
    let mut classifier = Classifier {
        base,
        target,
        scope,
        reshaped: reshaped(changes),
        declared: HashMap::new(),
        apply: BTreeMap::new(),
        prune: BTreeSet::new(),
    };
    // Stage 1: collect targets. The first file with an unknown effect ends the search.
    for change in changes {
        if let Some(rule) = classifier.add(change)? {
            return Ok(Changes::Full { file: change.path.clone(), rule });
        }
    }
    // Stage 2: remove superfluous targets.
    classifier.finish()
}

/// Returns names that are a file in one tree and a directory in the other.
fn reshaped(changes: &[FileChange]) -> HashSet<&str> {
    let names =
        |status| changes.iter().filter(move |change| change.status == status).map(|c| c.path.as_str());
    let (added, deleted): (HashSet<_>, HashSet<_>) =
        (names(ChangeStatus::Added).collect(), names(ChangeStatus::Deleted).collect());
    let above = |file: &'_ str, files: &HashSet<&str>| directories(file).any(|name| files.contains(name));
    let became_file = added.iter().filter(|file| above(file, &deleted));
    let became_directory = deleted.iter().filter(|file| above(file, &added));
    became_file.chain(became_directory).copied().collect()
}

/// Returns the directories above a file, without the root, nearest first.
fn directories(file: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(file.rsplit_once('/'), |(above, _)| above.rsplit_once('/')).map(|(above, _)| above)
}

struct Classifier<'a> {
    base: &'a dyn Tree,
    target: &'a dyn Tree,
    scope: &'a LogicalPath,
    reshaped: HashSet<&'a str>,
    /// Whether a directory holds a payload in the base or in the target.
    declared: HashMap<String, bool>,
    /// Whether each path is recursive.
    apply: BTreeMap<LogicalPath, bool>,
    prune: BTreeSet<LogicalPath>,
}

impl Classifier<'_> {
    /// Adds one change. Returns the rule that makes its effect unknown, if any. The first matching rule applies.
    fn add(&mut self, change: &FileChange) -> Result<Option<FullRule>, RepositoryError> {
        let file = change.path.as_str();
        let (directory, name) = file.rsplit_once('/').unwrap_or(("", file));
        if let Some(rule) = self.unknown_by_itself(change, name) {
            return Ok(Some(rule));
        }
        if change.status == ChangeStatus::ModeOnly {
            return Ok(None);
        }
        if directory.split('/').any(|segment| segment == "_") {
            return self.add_below_collection(directory, name);
        }
        let Some(path) = logical(directory) else {
            // Git's own files are ignored, even in a copied repository.
            let ignored = directory.split('/').any(is_reserved_directory);
            return Ok((!ignored).then_some(FullRule::Unaddressable));
        };
        let known = is_payload(name) || is_metadata(name) || is_defaults(name);
        if known && path.is_root() {
            return Ok(Some(FullRule::RootFile));
        }
        if is_payload(name) {
            self.add_payload(path)?;
        } else if known {
            self.apply_metadata(path);
        } else {
            return self.add_other(file, &path, name);
        }
        Ok(None)
    }

    fn unknown_by_itself(&self, change: &FileChange, name: &str) -> Option<FullRule> {
        let regular = |kind: Option<EntryKind>| matches!(kind, None | Some(EntryKind::File));
        if matches!(name, ".gitattributes" | ".gitmodules") {
            Some(FullRule::GitSettings)
        } else if !regular(change.old) || !regular(change.new) || self.reshaped.contains(&*change.path) {
            Some(FullRule::FileType)
        } else if change.path.contains(char::REPLACEMENT_CHARACTER) {
            Some(FullRule::Unaddressable)
        } else {
            None
        }
    }

    /// Adds a file with a `_` above it: metadata of the collections that its directory selects.
    fn add_below_collection(
        &mut self,
        directory: &str,
        name: &str,
    ) -> Result<Option<FullRule>, RepositoryError> {
        let collection = match directory.rsplit_once('/') {
            Some((above, "_")) => Some(above),
            None => Some(""),
            Some(_) => None,
        };
        let Some(collection) = collection.filter(|_| is_metadata(name) || is_defaults(name)) else {
            let prefix = directory.split('/').take_while(|segment| !is_wildcard(segment));
            let prefix: Vec<&str> = prefix.collect();
            let affects = logical(&prefix.join("/")).is_none_or(|prefix| prefix.overlaps(self.scope));
            return Ok(affects.then_some(FullRule::CollectionFile));
        };
        if Selector::of_directory(collection).is_err() {
            return Ok(Some(FullRule::BadSelector));
        }
        for path in self.selected(collection)? {
            self.apply_metadata(path);
        }
        Ok(None)
    }

    /// Returns the directories of the target that match the selector and overlap the scope. Directories are listed
    /// only for wildcards below the scope.
    fn selected(&self, selector: &str) -> Result<Vec<LogicalPath>, RepositoryError> {
        let mut paths = vec![LogicalPath::root()];
        let in_scope: Vec<&str> = self.scope.segments().collect();
        let mut walk = Walk::below(self.scope.relative());
        for (depth, pattern) in selector.split('/').filter(|segment| !segment.is_empty()).enumerate() {
            let mut matching = Vec::new();
            for path in paths {
                let names = match in_scope.get(depth) {
                    Some(name) => vec![(*name).to_owned()],
                    None if is_wildcard(pattern) => self.directories_in(&path)?,
                    None => vec![pattern.to_owned()],
                };
                let names = names.iter().filter(|name| matches_segment(pattern, name));
                for child in names.filter_map(|name| path.child(name).ok()) {
                    walk.enter(child.relative())?;
                    matching.push(child);
                }
            }
            paths = matching;
        }
        Ok(paths)
    }

    fn directories_in(&self, path: &LogicalPath) -> Result<Vec<String>, RepositoryError> {
        let entries = self.target.entries(path.relative())?.unwrap_or_default();
        let directories = entries
            .into_iter()
            .filter(|entry| entry.kind == EntryKind::Directory && !is_reserved_directory(&entry.name));
        Ok(directories.map(|entry| entry.name).collect())
    }

    /// Adds a payload. If the resource has another payload file, the change is one of format, not a deletion.
    fn add_payload(&mut self, path: LogicalPath) -> Result<(), RepositoryError> {
        if !path.is_within(self.scope) {
            return Ok(());
        }
        if holds_payload(self.target, path.relative())? {
            self.apply.entry(path).or_insert(false);
        } else {
            self.prune.insert(path);
        }
        Ok(())
    }

    fn apply_metadata(&mut self, path: LogicalPath) {
        if path.is_within(self.scope) {
            self.apply.insert(path, true);
        } else if self.scope.is_within(&path) {
            self.apply.insert(self.scope.clone(), true);
        }
    }

    /// Adds a file whose name has no meaning: part of a resource, without effect, or unknown.
    fn add_other(
        &mut self,
        file: &str,
        path: &LogicalPath,
        name: &str,
    ) -> Result<Option<FullRule>, RepositoryError> {
        let in_scope = path.is_within(self.scope);
        if name.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("defaults")) {
            return Ok(in_scope.then_some(FullRule::DefaultsFile));
        }
        let mut owned = false;
        for directory in directories(file) {
            if self.is_declared(directory)? {
                owned = true;
                if let Some(owner) = logical(directory).filter(|owner| owner.is_within(self.scope)) {
                    self.apply.entry(owner).or_insert(false);
                }
            }
        }
        let inert = is_inert(name) || path.segments().any(|segment| segment.starts_with('.'));
        Ok((!owned && !inert && in_scope).then_some(FullRule::UnknownFile))
    }

    fn is_declared(&mut self, directory: &str) -> Result<bool, RepositoryError> {
        if let Some(declared) = self.declared.get(directory) {
            return Ok(*declared);
        }
        let declared = holds_payload(self.target, directory)? || holds_payload(self.base, directory)?;
        self.declared.insert(directory.to_owned(), declared);
        Ok(declared)
    }

    /// Removes targets that another target covers or that are empty. Both lists are in the order of execution.
    fn finish(self) -> Result<Changes, RepositoryError> {
        let covered =
            |path: &LogicalPath| path.ancestors().any(|above| self.apply.get(&above) == Some(&true));
        let mut apply = Vec::new();
        for (path, recursive) in &self.apply {
            if !covered(path) && holds_resource(self.target, path, *recursive)? {
                apply.push(ApplyTarget { path: path.clone(), recursive: *recursive });
            }
        }
        Ok(Changes::Targets { apply, prune: self.prune.into_iter().rev().collect() })
    }
}

/// Returns the path of a directory; `None` if one of its names is not a valid segment.
fn logical(directory: &str) -> Option<LogicalPath> {
    directory
        .split('/')
        .filter(|segment| !segment.is_empty())
        .try_fold(LogicalPath::root(), |path, segment| path.child(segment).ok())
}

fn matches_segment(pattern: &str, name: &str) -> bool {
    pattern == "_" || pattern == name || glob_matches(pattern, name)
}

fn holds_payload(tree: &dyn Tree, directory: &str) -> Result<bool, RepositoryError> {
    let entries = tree.entries(directory)?.unwrap_or_default();
    Ok(entries.iter().any(|entry| entry.kind == EntryKind::File && is_payload(&entry.name)))
}

/// Whether a resource is declared at `path` or, if recursive, below it. Stops at the first one.
fn holds_resource(tree: &dyn Tree, path: &LogicalPath, recursive: bool) -> Result<bool, RepositoryError> {
    let (mut pending, mut walk) = (vec![path.relative().to_owned()], Walk::below(path.relative()));
    while let Some(directory) = pending.pop() {
        let entries = tree.entries(&directory)?.unwrap_or_default();
        let is_root = directory.is_empty();
        if !is_root && entries.iter().any(|entry| entry.kind == EntryKind::File && is_payload(&entry.name)) {
            return Ok(true);
        }
        if recursive {
            let below = entries
                .iter()
                .filter(|entry| entry.kind == EntryKind::Directory && !is_reserved_directory(&entry.name));
            for entry in below {
                let name = join(&directory, &entry.name);
                walk.enter(&name)?;
                pending.push(name);
            }
        }
    }
    Ok(false)
}

#[cfg(test)]
#[path = "changes_tests.rs"]
mod tests;

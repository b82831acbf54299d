//! Finds the metadata documents for a path, without reading them.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;

use super::payload_name::{is_metadata, is_reserved_directory};
use super::tree::join;
use super::walk::Walk;
use super::{Entry, EntryKind, RepositoryError, Tree};
use crate::path::{LogicalPath, Selector};

/// A metadata document that may apply to a path.
#[derive(Clone, Debug)]
pub struct MetadataDocument {
    /// The file relative to the root of the tree.
    pub file: Arc<str>,
    /// The number of segments of the paths that it describes: those of its collection, or of its resource.
    pub depth: usize,
    /// Whether its place alone makes it apply.
    pub reach: MetadataReach,
}

/// The relation of a metadata document to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataReach {
    /// The root's document, that of the path's own collection (`/shops/_` for `/shops` and its children), or the
    /// path's own resource document. It applies.
    Direct,
    /// The document of a collection further up. It applies only if it has `selector.descendants: true`.
    Descendants,
}

/// The most directories that match one path at one level.
const MOST_MATCHING: usize = 1000;

/// Finds metadata documents. Directory listings are cached, so one value serves all paths of one tree.
#[derive(Debug, Default)]
pub struct MetadataFiles {
    directories: Mutex<HashMap<String, Arc<Directory>>>,
}

/// The entries of a directory that are relevant for metadata.
#[derive(Debug, Default)]
struct Directory {
    /// The names of its subdirectories.
    subdirectories: HashSet<Box<str>>,
    /// The subdirectories that match more than one segment, sorted.
    wildcards: Vec<Wildcard>,
    /// The collection document, in `_`.
    collection_document: Option<Arc<str>>,
    /// The resource document.
    resource_document: Option<Arc<str>>,
}

impl MetadataFiles {
    /// Returns the documents that may apply to `path` in `tree`, in the order in which they merge. The root's
    /// document is first and that of the resource itself is last. Between them they are sorted by depth. At one depth
    /// those whose last segment is a wildcard (`_` or a glob) precede those whose last segment is literal, and then
    /// their segments are compared from the first on, wildcards (lexicographically) before literals.
    ///
    /// Only directories along `path` and their wildcards are listed. In one directory `metadata.yaml` takes
    /// precedence over `metadata.json`. An invalid glob is an error only if its directory holds a document.
    pub fn documents(
        &self,
        tree: &dyn Tree,
        path: &LogicalPath,
    ) -> Result<Vec<MetadataDocument>, RepositoryError> {
        let mut documents = Vec::new();
        let depth = path.segments().count();
        let root = self.directory(tree, "", path.is_root())?;
        documents.extend(root.collection_document(0, depth));
        let mut level = vec![(String::new(), root)];
        for (place, segment) in (1..).zip(path.segments()) {
            let alone = (place == depth).then_some(path.relative());
            let below = self.below(tree, &level, segment, alone)?;
            let ends_wild = |name: &str| is_wildcard(name.rsplit('/').next().unwrap_or(name));
            for wild in [true, false] {
                for (_, directory) in below.iter().filter(|(name, _)| ends_wild(name) == wild) {
                    documents.extend(directory.collection_document(place, depth));
                }
            }
            level = below;
        }
        let own = level.iter().find(|(name, _)| !path.is_root() && name == path.relative());
        if let Some(file) = own.and_then(|(_, directory)| directory.resource_document.clone()) {
            documents.push(MetadataDocument { file, depth, reach: MetadataReach::Direct });
        }
        Ok(documents)
    }

    /// Returns the literal names of directories below `path` and below wildcards that match it, sorted.
    pub fn child_collections(
        &self,
        tree: &dyn Tree,
        path: &LogicalPath,
    ) -> Result<Vec<String>, RepositoryError> {
        Ok(literal_names(self.level(tree, path)?.iter()))
    }

    /// Returns the literal names of directories below `path` itself, sorted.
    pub fn own_child_collections(
        &self,
        tree: &dyn Tree,
        path: &LogicalPath,
    ) -> Result<Vec<String>, RepositoryError> {
        let level = self.level(tree, path)?;
        Ok(literal_names(level.iter().filter(|(name, _)| name == path.relative())))
    }

    /// Whether a directory below `path`, or below a wildcard that matches it, is `_` or a glob.
    pub fn has_wildcard_child(&self, tree: &dyn Tree, path: &LogicalPath) -> Result<bool, RepositoryError> {
        let level = self.level(tree, path)?;
        Ok(level.iter().any(|(_, directory)| !directory.wildcards.is_empty()))
    }

    /// Returns the directories that match `path`.
    fn level(
        &self,
        tree: &dyn Tree,
        path: &LogicalPath,
    ) -> Result<Vec<(String, Arc<Directory>)>, RepositoryError> {
        let mut level = vec![(String::new(), self.directory(tree, "", false)?)];
        for segment in path.segments() {
            level = self.below(tree, &level, segment, None)?;
        }
        Ok(level)
    }

    /// Returns the subdirectories of `level` that match `segment`. The listing of `alone` is not cached.
    fn below(
        &self,
        tree: &dyn Tree,
        level: &[(String, Arc<Directory>)],
        segment: &str,
        alone: Option<&str>,
    ) -> Result<Vec<(String, Arc<Directory>)>, RepositoryError> {
        let (mut below, mut walk) = (Vec::new(), Walk::within("", MOST_MATCHING));
        for (parent, directory) in level {
            for name in directory.matching(segment) {
                let child = join(parent, name);
                walk.enter(&child)?;
                let found = self.directory(tree, &child, alone == Some(child.as_str()))?;
                below.push((child, found));
            }
        }
        Ok(below)
    }

    /// Returns the entries of `directory`. The listing is cached unless only one path (`alone`) needs it, because
    /// there may be many such paths.
    fn directory(
        &self,
        tree: &dyn Tree,
        directory: &str,
        alone: bool,
    ) -> Result<Arc<Directory>, RepositoryError> {
        if let Some(known) = self.directories.lock().get(directory) {
            return Ok(Arc::clone(known));
        }
        let found = Arc::new(Directory::look(tree, directory)?);
        if !alone {
            self.directories.lock().insert(directory.to_owned(), Arc::clone(&found));
        }
        Ok(found)
    }
}

/// Returns the literal names in directories of metadata, sorted.
fn literal_names<'d>(directories: impl Iterator<Item = &'d (String, Arc<Directory>)>) -> Vec<String> {
    let names = directories.flat_map(|(_, directory)| &directory.subdirectories);
    let literal = names.filter(|name| !is_wildcard(name) && !is_reserved_directory(name));
    let distinct: BTreeSet<&str> = literal.map(|name| &**name).collect();
    distinct.into_iter().map(str::to_owned).collect()
}

impl Directory {
    fn look(tree: &dyn Tree, directory: &str) -> Result<Self, RepositoryError> {
        let entries = tree.entries(directory)?.unwrap_or_default();
        let mut found = Self { resource_document: document_in(&entries, directory)?, ..Self::default() };
        if entries.iter().any(|entry| entry.kind == EntryKind::Other && entry.name == "_") {
            let reason = "it is a link or another special file, so its metadata would have no effect; replace it with \
                          a directory";
            return Err(RepositoryError::InTheWay { file: join(directory, "_"), reason });
        }
        for entry in entries.into_iter().filter(|entry| entry.kind == EntryKind::Directory) {
            if is_wildcard(&entry.name) {
                found.wildcards.push(Wildcard::new(&entry.name));
            }
            found.subdirectories.insert(entry.name.into_boxed_str());
        }
        if found.subdirectories.contains("_") {
            let reserved = join(directory, "_");
            let entries = tree.entries(&reserved)?.unwrap_or_default();
            found.collection_document = document_in(&entries, &reserved)?;
        }
        if found.collection_document.is_some() {
            Selector::of_directory(directory).map_err(|source| RepositoryError::DirectoryName {
                directory: directory.to_owned(),
                source,
            })?;
        }
        Ok(found)
    }

    /// Returns the collection document, `place` segments deep, for a path of `depth` segments.
    fn collection_document(&self, place: usize, depth: usize) -> Option<MetadataDocument> {
        let file = self.collection_document.clone()?;
        Some(MetadataDocument { file, depth: place, reach: reach(place, depth) })
    }

    /// Returns the subdirectories that match `segment`, wildcards first.
    fn matching<'a>(&'a self, segment: &'a str) -> impl Iterator<Item = &'a str> {
        let fitting = self.wildcards.iter().filter(move |wildcard| wildcard.matches(segment));
        let fitting = fitting.map(|wildcard| &*wildcard.name);
        fitting.chain(self.subdirectories.contains(segment).then_some(segment))
    }
}

/// A directory that matches any segment, or the segments of a glob.
#[derive(Debug)]
struct Wildcard {
    name: String,
    glob: Option<Selector>,
}

impl Wildcard {
    /// An invalid glob matches every segment, so that its document, if any, causes an error for the paths that it may
    /// describe.
    fn new(name: &str) -> Self {
        let glob = (name != "_").then(|| Selector::parse(&format!("/{name}")).ok()).flatten();
        Self { name: name.to_owned(), glob }
    }

    fn matches(&self, segment: &str) -> bool {
        let Some(glob) = &self.glob else { return true };
        LogicalPath::root().child(segment).is_ok_and(|path| glob.matches(&path))
    }
}

pub(super) fn is_wildcard(name: &str) -> bool {
    name == "_" || name.contains(['*', '?', '['])
}

/// Returns the reach of a collection document `level` segments deep for a path of `depth` segments.
fn reach(level: usize, depth: usize) -> MetadataReach {
    if level == 0 || level + 1 >= depth { MetadataReach::Direct } else { MetadataReach::Descendants }
}

/// Whether a directory called `name` is a glob that matches `segment`.
pub(super) fn glob_matches(name: &str, segment: &str) -> bool {
    name != "_" && is_wildcard(name) && Wildcard::new(name).matches(segment)
}

/// Returns the place of the metadata of a collection and its members, for messages. Below a resource this is not a file,
/// because one document usually applies to the collections of all such resources, and a further one would replace its
/// lists.
pub fn metadata_place(collection: &LogicalPath) -> String {
    match collection.segments().count() {
        0 | 1 => join(collection.relative(), "_/metadata.yaml"),
        _ => format!("the metadata of {collection}"),
    }
}

/// Returns the metadata document among the entries of `directory`. A document that is not a regular file is an error,
/// because rules such as `onRemove: keep` would not apply.
fn document_in(entries: &[Entry], directory: &str) -> Result<Option<Arc<str>>, RepositoryError> {
    if let Some(other) =
        entries.iter().find(|entry| entry.kind == EntryKind::Other && is_metadata(&entry.name))
    {
        let reason = "it is a link or another special file, so its metadata would have no effect; replace it with a file";
        return Err(RepositoryError::InTheWay { file: join(directory, &other.name), reason });
    }
    let has = |name: &str| entries.iter().any(|entry| entry.kind == EntryKind::File && entry.name == name);
    let name = ["metadata.yaml", "metadata.json"].into_iter().find(|name| has(name));
    Ok(name.map(|name| join(directory, name).into()))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::dir;
    use super::MetadataReach::{Descendants, Direct};
    use super::*;

    fn found(files: &[(&str, &str)], path: &str) -> Vec<(String, MetadataReach)> {
        let (_root, tree) = dir(files);
        let documents =
            MetadataFiles::default().documents(&tree, &LogicalPath::parse(path).unwrap()).unwrap();
        documents.into_iter().map(|document| (document.file.to_string(), document.reach)).collect()
    }

    #[test]
    fn wildcard_children_are_found_below_matching_directories() {
        let files = [
            ("shops/_/metadata.yaml", ""),
            ("regions/_/shops/_/metadata.yaml", ""),
            ("globs/x*/_/metadata.yaml", ""),
            ("plain/x/resource.json", "{}"),
        ];
        let (_root, tree) = dir(&files);
        let has = |path: &str| {
            let path = LogicalPath::parse(path).unwrap();
            MetadataFiles::default().has_wildcard_child(&tree, &path).unwrap()
        };
        for path in ["/shops", "/regions", "/regions/eu/shops", "/globs"] {
            assert!(has(path), "{path}");
        }
        for path in ["/shops/rio", "/regions/eu", "/regions/eu/shops/rio", "/plain", "/none"] {
            assert!(!has(path), "{path}");
        }
    }

    #[test]
    fn documents_merge_from_the_root_down_wildcards_first() {
        let files = [
            ("_/metadata.yaml", ""),
            ("_/_/metadata.yaml", ""),
            ("shops/_/metadata.json", ""),
            ("shops/_/metadata.yaml", ""),
            ("shops/_/_/metadata.yaml", ""),
            ("shops/r*/_/metadata.yaml", ""),
            ("shops/x*/_/metadata.yaml", ""),
            ("shops/_/tills/_/metadata.yaml", ""),
            ("shops/rio/_/metadata.yaml", ""),
            ("shops/rio/metadata.yaml", ""),
            ("shops/rio/tills/metadata.json", ""),
        ];
        let rio = [
            ("_/metadata.yaml", Direct),
            ("_/_/metadata.yaml", Direct),
            ("shops/_/metadata.yaml", Direct),
            ("shops/_/_/metadata.yaml", Direct),
            ("shops/r*/_/metadata.yaml", Direct),
            ("shops/rio/_/metadata.yaml", Direct),
            ("shops/rio/metadata.yaml", Direct),
        ];
        assert_eq!(found(&files, "/shops/rio"), rio.map(|(file, reach)| (file.to_owned(), reach)));
        let tills = [
            ("_/metadata.yaml", Direct),
            ("_/_/metadata.yaml", Descendants),
            ("shops/_/metadata.yaml", Descendants),
            ("shops/_/_/metadata.yaml", Direct),
            ("shops/r*/_/metadata.yaml", Direct),
            ("shops/rio/_/metadata.yaml", Direct),
            ("shops/_/tills/_/metadata.yaml", Direct),
            ("shops/rio/tills/metadata.json", Direct),
        ];
        assert_eq!(found(&files, "/shops/rio/tills"), tills.map(|(file, reach)| (file.to_owned(), reach)));
        assert_eq!(found(&files, "/"), [("_/metadata.yaml".to_owned(), Direct)]);
    }

    #[test]
    fn at_one_depth_a_last_wildcard_precedes_a_last_literal() {
        let files = ["_/_", "_/Z", "a/_", "a/Z", "a/Y*", "a/[YZ]"]
            .map(|directory| (format!("{directory}/_/metadata.yaml"), ""));
        let files: Vec<(&str, &str)> =
            files.iter().map(|(file, content)| (file.as_str(), *content)).collect();
        let order: Vec<String> = found(&files, "/a/Z/x").into_iter().map(|(file, _)| file).collect();
        let expected = ["_/_", "a/[YZ]", "a/_", "_/Z", "a/Z"].map(|name| format!("{name}/_/metadata.yaml"));
        assert_eq!(order, expected);
    }

    #[test]
    fn an_invalid_glob_fails_the_paths_that_its_document_may_describe() {
        let (_root, tree) = dir(&[("shops/[/_/metadata.yaml", ""), ("tills/[/resource.yaml", "")]);
        let documents = |path| {
            MetadataFiles::default()
                .documents(&tree, &LogicalPath::parse(path).unwrap())
                .map(|found| found.len())
        };
        assert!(matches!(documents("/shops/rio"), Err(RepositoryError::DirectoryName { .. })));
        assert_eq!(documents("/tills/t1").unwrap(), 0);
    }

    #[test]
    fn a_path_without_metadata_has_no_documents() {
        assert_eq!(found(&[("shops/rio/resource.yaml", "")], "/shops/rio"), []);
    }
}

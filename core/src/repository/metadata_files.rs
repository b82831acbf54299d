//! Which metadata documents speak about a path, found without reading any of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::tree::join;
use super::{EntryKind, RepositoryError, Tree};
use crate::path::{LogicalPath, Selector};

/// A metadata document that may govern a path.
#[derive(Clone, Debug)]
pub struct MetadataDocument {
    /// The file relative to the root of the tree.
    pub file: String,
    /// The paths it speaks about, as its place in the tree says.
    pub selector: Selector,
    /// Whether it governs the path by its place alone.
    pub reach: MetadataReach,
}

/// How a metadata document reaches the path that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataReach {
    /// The root's document, the one of the path's own collection (`/shops/_` for `/shops` and its
    /// children), or the path's own resource document. It applies.
    Direct,
    /// The document of a collection further up. It applies only if it says `selector.descendants: true`.
    Descendants,
}

/// Finds metadata documents. What a directory holds by way of wildcards is looked up once and kept, so one
/// value serves all paths of one tree.
#[derive(Debug, Default)]
pub struct MetadataFiles {
    wildcards: Mutex<HashMap<String, Arc<[String]>>>,
}

impl MetadataFiles {
    /// The documents that may govern `path` in `tree`, in the order in which they merge: the root's, then
    /// by depth those found through wildcards (`_` and globs, lexicographically) before the literal one,
    /// then the document of the resource itself.
    ///
    /// Only directories along `path` and its wildcards are listed. In one directory `metadata.yaml` wins
    /// over `metadata.json`. A glob that does not compile is an error only where it holds a document.
    pub fn documents(
        &self,
        tree: &dyn Tree,
        path: &LogicalPath,
    ) -> Result<Vec<MetadataDocument>, RepositoryError> {
        let mut documents = Vec::new();
        let depth = path.segments().count();
        let mut directories = vec![String::new()];
        collect(tree, &directories, reach(0, depth), &mut documents)?;
        for (level, segment) in (1..).zip(path.segments()) {
            let mut matching = Vec::new();
            for directory in &directories {
                let wildcards = self.wildcards(tree, directory)?;
                let fitting = wildcards.iter().filter(|name| *name == "_" || glob_matches(name, segment));
                matching.extend(fitting.map(|name| join(directory, name)));
                matching.push(join(directory, segment));
            }
            directories = matching;
            collect(tree, &directories, reach(level, depth), &mut documents)?;
        }
        if let Some(file) = document_in(tree, path.relative())?.filter(|_| !path.is_root()) {
            let selector = selector_of(path.relative(), path.as_str())?;
            documents.push(MetadataDocument { file, selector, reach: MetadataReach::Direct });
        }
        Ok(documents)
    }

    /// The names of subdirectories that stand for more than one segment, sorted.
    fn wildcards(&self, tree: &dyn Tree, directory: &str) -> Result<Arc<[String]>, RepositoryError> {
        let mut known = self.wildcards.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(names) = known.get(directory) {
            return Ok(Arc::clone(names));
        }
        let entries = tree.entries(directory)?.unwrap_or_default();
        let names: Arc<[String]> = entries
            .into_iter()
            .filter(|entry| entry.kind == EntryKind::Directory)
            .filter(|entry| entry.name == "_" || entry.name.contains(['*', '?', '[']))
            .map(|entry| entry.name)
            .collect();
        known.insert(directory.to_owned(), Arc::clone(&names));
        Ok(names)
    }
}

/// How a collection document `level` segments deep reaches a path of `depth` segments.
fn reach(level: usize, depth: usize) -> MetadataReach {
    if level == 0 || level + 1 >= depth { MetadataReach::Direct } else { MetadataReach::Descendants }
}

/// Whether a directory called `name` is a glob that stands for `segment`.
pub(super) fn glob_matches(name: &str, segment: &str) -> bool {
    name.contains(['*', '?', '['])
        && LogicalPath::root()
            .child(segment)
            .is_ok_and(|path| Selector::parse(&format!("/{name}")).is_ok_and(|glob| glob.matches(&path)))
}

fn collect(
    tree: &dyn Tree,
    directories: &[String],
    reach: MetadataReach,
    documents: &mut Vec<MetadataDocument>,
) -> Result<(), RepositoryError> {
    for directory in directories {
        if let Some(file) = document_in(tree, &join(directory, "_"))? {
            let selector = Selector::of_directory(directory)
                .map_err(|source| RepositoryError::DirectoryName { directory: directory.clone(), source })?;
            documents.push(MetadataDocument { file, selector, reach });
        }
    }
    Ok(())
}

fn selector_of(directory: &str, selector: &str) -> Result<Selector, RepositoryError> {
    Selector::parse(selector)
        .map_err(|source| RepositoryError::DirectoryName { directory: directory.to_owned(), source })
}

/// The metadata document in `directory`.
fn document_in(tree: &dyn Tree, directory: &str) -> Result<Option<String>, RepositoryError> {
    let Some(entries) = tree.entries(directory)? else { return Ok(None) };
    let has = |name: &str| entries.iter().any(|entry| entry.kind == EntryKind::File && entry.name == name);
    Ok(["metadata.yaml", "metadata.json"]
        .into_iter()
        .find(|name| has(name))
        .map(|name| join(directory, name)))
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
        documents.into_iter().map(|document| (document.file, document.reach)).collect()
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
    fn a_selector_on_disk_matches_what_it_governs() {
        let (_root, tree) = dir(&[("shops/_/_/metadata.yaml", "")]);
        let documents =
            MetadataFiles::default().documents(&tree, &LogicalPath::parse("/shops/rio").unwrap()).unwrap();
        assert_eq!(documents[0].selector.document_stem(), "shops/_/_/metadata");
    }

    #[test]
    fn an_undocumented_path_has_none() {
        assert_eq!(found(&[("shops/rio/resource.yaml", "")], "/shops/rio"), []);
    }
}

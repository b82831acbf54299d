//! Finds a declared resource by its names on the server.

use crate::metadata::{Metadata, is_named};
use crate::path::LogicalPath;
use crate::repository::{self, RepositoryError, Tree};
use crate::sync::model::{Resource, SyncError};

/// Returns the declared resource at exactly `path`. If there is none and metadata states the names of the collection,
/// returns the sibling whose alias, remote id or well-known member is the last segment. Use the path of the result
/// from then on.
///
/// Fails with [`RepositoryError::ResourceMissing`] if there is none and with [`SyncError::AmbiguousName`] if
/// there are several. A sibling that cannot be read fails the search, because it may be the resource. Blocks.
pub fn lookup(tree: &dyn Tree, metadata: &Metadata, path: &LogicalPath) -> Result<Resource, SyncError> {
    if path.is_root() {
        return Err(RepositoryError::RootResource.into());
    }
    if let Some(file) = repository::resource_file(tree, path)? {
        return Resource::declared(tree, metadata, file);
    }
    let missing = || SyncError::from(RepositoryError::ResourceMissing(path.clone()));
    if !metadata.rules(path)?.identity().any_explicit() {
        return Err(missing());
    }
    let mut found = Vec::new();
    for file in repository::members(tree, &path.collection())?.whole()? {
        let sibling = Resource::declared(tree, metadata, file)?;
        let (names, name) = (&sibling.identity, path.name());
        if names.alias == name || names.remote_id == name || is_named(&sibling.payload, name) {
            found.push(sibling);
        }
    }
    if found.len() > 1 {
        let paths = found.into_iter().map(|sibling| sibling.path).collect();
        return Err(SyncError::AmbiguousName(path.clone(), paths));
    }
    found.pop().ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use rstest::rstest;

    use super::*;
    use crate::error::{Categorized as _, Category};
    use crate::repository::DirTree;

    const NAMES: &str = "resource: {id: /uid, alias: /name}";

    fn write(root: &Path, file: &str, content: &str) {
        let file = root.join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    }

    /// The path of the resource that is found for `path` in a repository of these files.
    fn look(files: &[(&str, &str)], path: &str) -> Result<String, SyncError> {
        let root = tempfile::tempdir().unwrap();
        for (file, content) in files {
            write(root.path(), file, content);
        }
        let tree = Arc::new(DirTree::open(root.path()).unwrap());
        let metadata = Metadata::new(Arc::clone(&tree) as Arc<dyn Tree>);
        let found = lookup(tree.as_ref(), &metadata, &LogicalPath::parse(path).unwrap())?;
        Ok(found.path.to_string())
    }

    const RIO: (&str, &str) = ("shops/rio/resource.json", r#"{"uid":"u1","name":"Rio","key":7}"#);
    const LIMA: (&str, &str) = ("shops/lima/resource.yaml", "uid: u2\nclientId: ' l '\n");

    #[rstest]
    #[case::exact("/shops/rio", "/shops/rio")]
    #[case::alias("/shops/Rio", "/shops/rio")]
    #[case::id("/shops/u1", "/shops/rio")]
    #[case::well_known("/shops/7", "/shops/rio")]
    #[case::trimmed("/shops/l", "/shops/lima")]
    fn finds(#[case] path: &str, #[case] expected: &str) {
        let files = [RIO, LIMA, ("shops/_/metadata.yaml", NAMES)];
        assert_eq!(look(&files, path).unwrap(), expected);
    }

    #[test]
    fn the_exact_path_wins_over_names() {
        let other = ("shops/u1/resource.json", r#"{"uid":"u3"}"#);
        let files = [RIO, other, ("shops/_/metadata.yaml", NAMES)];
        assert_eq!(look(&files, "/shops/u1").unwrap(), "/shops/u1");
    }

    #[test]
    fn defaults_take_part_in_names() {
        let metadata = "resource: {alias: '{{/city}}-{{/kind}}', defaults: {value: {kind: shop}}}";
        let files = [("shops/a/resource.json", r#"{"city":"rio"}"#), ("shops/_/metadata.yaml", metadata)];
        assert_eq!(look(&files, "/shops/rio-shop").unwrap(), "/shops/a");
    }

    #[test]
    fn a_collection_that_is_a_resource_has_siblings_too() {
        let files = [RIO, ("shops/resource.json", "{}"), ("shops/_/metadata.yaml", NAMES)];
        assert_eq!(look(&files, "/shops/Rio").unwrap(), "/shops/rio");
    }

    #[rstest]
    #[case::absent(&[RIO, ("shops/_/metadata.yaml", NAMES)], "/shops/absent")]
    #[case::names_are_not_stated(&[RIO], "/shops/Rio")]
    #[case::not_below(&[RIO, ("shops/_/metadata.yaml", NAMES)], "/shops/x/Rio")]
    #[case::nothing_declared(&[("shops/_/metadata.yaml", NAMES)], "/shops/Rio")]
    fn missing(#[case] files: &[(&str, &str)], #[case] path: &str) {
        let error = look(files, path).unwrap_err();
        assert_eq!(error.to_string(), format!("resource {path} not found in the repository"));
        assert_eq!(error.category(), Category::NotFound);
    }

    #[test]
    fn several_are_a_conflict() {
        let other = ("shops/lima/resource.json", r#"{"uid":"u2","alias":"Rio"}"#);
        let error = look(&[RIO, other, ("shops/_/metadata.yaml", NAMES)], "/shops/Rio").unwrap_err();
        assert_eq!(error.category(), Category::Conflict);
        assert_eq!(
            error.to_string(),
            "/shops/Rio is ambiguous: /shops/lima and /shops/rio have the name \"Rio\"; use the path of one of them"
        );
    }

    #[test]
    fn a_sibling_that_cannot_be_read_fails_the_search() {
        let broken = ("shops/lima/resource.json", "{");
        let error = look(&[RIO, broken, ("shops/_/metadata.yaml", NAMES)], "/shops/Rio").unwrap_err();
        assert!(error.to_string().contains("shops/lima/resource.json"), "{error}");
        assert_eq!(error.category(), Category::Validation);
    }

    #[test]
    fn the_root_is_not_a_resource() {
        assert_eq!(look(&[RIO], "/").unwrap_err().category(), Category::Validation);
    }
}

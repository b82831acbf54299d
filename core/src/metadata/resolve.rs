//! Finding the rules that govern a resource.

use std::sync::Arc;

use super::{MetadataError, Rules};
use crate::path::LogicalPath;
use crate::payload::{Descriptor, Value, decode};
use crate::repository::{MetadataDocument, MetadataFiles, MetadataReach, RepositoryError, Tree};

/// The rules of one revision. What is found once is shared by all resources; clones of the `Arc`s it
/// hands out stay valid after it is gone.
pub struct Metadata {
    tree: Arc<dyn Tree>,
    files: MetadataFiles,
    conventions: Arc<Rules>,
}

impl Metadata {
    /// The metadata that `tree` holds.
    pub fn new(tree: Arc<dyn Tree>) -> Self {
        Self { tree, files: MetadataFiles::default(), conventions: Self::conventions() }
    }

    /// The rules where no document exists.
    pub fn conventions() -> Arc<Rules> {
        Arc::new(Rules::conventions())
    }

    /// The rules that govern `path`. Blocks while it looks for documents.
    pub fn rules(&self, path: &LogicalPath) -> Result<Arc<Rules>, MetadataError> {
        let lookup = |source| MetadataError::Lookup { path: path.clone(), source };
        for document in self.files.documents(self.tree.as_ref(), path).map_err(lookup)? {
            if self.applies(&document).map_err(lookup)? {
                return Err(MetadataError::DocumentUnsupported {
                    path: path.clone(),
                    file: document.file.to_string(),
                });
            }
        }
        Ok(Arc::clone(&self.conventions))
    }

    /// A document further up counts only if it asks for descendants.
    fn applies(&self, document: &MetadataDocument) -> Result<bool, RepositoryError> {
        if document.reach == MetadataReach::Direct {
            return Ok(true);
        }
        let content = self.tree.read(&document.file)?.unwrap_or_default();
        let extension = document.file.rsplit_once('.').map_or("", |(_, extension)| extension);
        let parsed = decode(Descriptor::from_extension(extension).payload_type, &content);
        // A document that does not parse might have asked for them.
        let Ok(parsed) = parsed else { return Ok(true) };
        let asked = parsed.get("selector").and_then(|selector| selector.get("descendants"));
        Ok(matches!(asked, Some(Value::Bool(true))))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::repository::DirTree;

    #[rstest]
    #[case("shops/_/metadata.yaml", "{}", "/shops/rio", false)]
    #[case("shops/_/metadata.yaml", "{}", "/shops/rio/tills/t1", true)]
    #[case("shops/_/metadata.yaml", "selector: {descendants: true}", "/shops/rio/tills/t1", false)]
    #[case("shops/_/metadata.yaml", "selector: [", "/shops/rio/tills/t1", false)]
    #[case("shops/_/tills/_/metadata.json", "{}", "/shops/rio/tills/t1", false)]
    #[case("shops/rio/metadata.yaml", "{}", "/shops/rio", false)]
    #[case("shops/rio/metadata.yaml", "{}", "/shops/ava", true)]
    #[case("_/metadata.yaml", "{}", "/shops/ava", false)]
    #[case("shops/r*/_/metadata.yaml", "{}", "/shops/rio", false)]
    #[case("README.md", "", "/shops/rio", true)]
    fn a_governing_document_is_never_ignored(
        #[case] file: &str,
        #[case] content: &str,
        #[case] path: &str,
        #[case] by_convention: bool,
    ) {
        let root = tempfile::tempdir().unwrap();
        let target = root.path().join(file);
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::write(target, content).unwrap();
        let metadata = Metadata::new(Arc::new(DirTree::open(root.path()).unwrap()));
        let rules = metadata.rules(&LogicalPath::parse(path).unwrap());
        assert_eq!(rules.is_ok(), by_convention, "{:?}", rules.err());
    }
}

//! Tests of finding and merging documents, and the fixtures of other tests of rules.

use std::fs;

use rstest::rstest;
use tempfile::TempDir;

use super::*;
use crate::error::{Categorized, Category, with_causes};
use crate::metadata::{OperationName, Rules};
use crate::payload::{PayloadType, Value, decode};
use crate::repository::{DirTree, Entry, RepositoryError, Revision};

/// Returns a directory with these files, which must be kept while its tree is used.
pub fn tree(files: &[(&str, &str)]) -> (TempDir, Arc<dyn Tree>) {
    let root = tempfile::tempdir().unwrap();
    for (file, content) in files {
        let target = root.path().join(file);
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::write(target, content).unwrap();
    }
    let tree = Arc::new(DirTree::open(root.path()).unwrap());
    (root, tree)
}

pub fn path(text: &str) -> LogicalPath {
    LogicalPath::parse(text).unwrap()
}

pub fn yaml(text: &str) -> Value {
    decode(PayloadType::Yaml, text.as_bytes()).unwrap()
}

/// Returns the effective rules of `target` with the documents in `files`.
pub fn rules(files: &[(&str, &str)], target: &str) -> Arc<Rules> {
    let (_root, tree) = tree(files);
    Metadata::new(tree).rules(&path(target)).unwrap()
}

const BUNDLE: [(&str, &str); 2] = [
    (
        "_/metadata.yaml",
        "operations: {defaults: {transforms: [{excludeAttributes: /etag}]}, get: {headers: {X-Trace: on}}}",
    ),
    (
        "shops/_/metadata.yaml",
        "resource: {id: /uid, alias: /name, secretAttributes: [/pin]}
operations: {update: {method: PATCH}, get: {headers: {X-View: full}}}",
    ),
];
const LOCAL: [(&str, &str); 2] = [
    ("shops/r*/_/metadata.yaml", "operations: {defaults: {transforms: []}, get: {headers: {X-View: brief}}}"),
    (
        "shops/rio/metadata.yaml",
        "resource: {secretAttributes: []}\noperations: {get: {query: {deep: \"1\"}}}",
    ),
];

/// A tree whose files are removed after they were listed.
struct Emptied(Arc<dyn Tree>);

impl Tree for Emptied {
    fn entries(&self, directory: &str) -> Result<Option<Vec<Entry>>, RepositoryError> {
        self.0.entries(directory)
    }

    fn read_within(&self, _: &str, _: u64) -> Result<Option<Vec<u8>>, RepositoryError> {
        Ok(None)
    }

    fn revision(&self) -> Option<&Revision> {
        None
    }
}

#[test]
fn a_document_that_was_listed_and_is_missing_is_an_error() {
    let (_root, tree) = tree(&LOCAL);
    let metadata = Metadata::new(Arc::new(Emptied(tree)));
    let error = metadata.rules(&path("/shops/rio")).unwrap_err();
    assert_eq!(
        with_causes(&error),
        "cannot read the metadata document shops/r*/_/metadata.yaml: \"shops/r*/_/metadata.yaml\" was removed while \
         the files were read; try again"
    );
    metadata.rules(&path("/banks/rio")).unwrap();
}

fn layered(target: &str) -> Arc<Rules> {
    let ((_bundle, bundle), (_local, local)) = (tree(&BUNDLE), tree(&LOCAL));
    let metadata = Metadata::layered(vec![
        Source::shared(bundle, "bundle shops 1.0.0").into(),
        Source::repository(local).into(),
    ]);
    metadata.rules(&path(target)).unwrap()
}

#[test]
fn four_layers_are_merged() {
    let rules = layered("/shops/rio");
    let resolved = rules.resolved();
    assert_eq!((resolved.id.as_deref(), resolved.alias.as_deref()), (Some("/uid"), Some("/name")));
    assert_eq!((resolved.secret_attributes.len(), resolved.transforms.len()), (0, 0));
    assert_eq!(resolved.operation(OperationName::Update).method.as_deref(), Some("PATCH"));
    let get = resolved.operation(OperationName::Get);
    let headers: Vec<(&str, &str)> = get.headers.iter().collect();
    assert_eq!(headers, [("X-Trace", "on"), ("X-View", "brief")]);
    assert_eq!(get.query.iter().collect::<Vec<_>>(), [(&"deep".to_owned(), &"1".to_owned())]);
    assert_eq!(get.path, None);
    let documents = [
        "bundle shops 1.0.0: _/metadata.yaml",
        "bundle shops 1.0.0: shops/_/metadata.yaml",
        "shops/r*/_/metadata.yaml",
        "shops/rio/metadata.yaml",
    ];
    assert_eq!(rules.documents(), documents);
}

#[test]
fn only_the_first_layer_applies_to_grandchildren() {
    let rules = layered("/shops/rio/tills/t1");
    assert_eq!(rules.documents(), ["bundle shops 1.0.0: _/metadata.yaml"]);
    assert_eq!(rules.resolved().transforms.len(), 1);
}

#[rstest]
#[case("shops/_/metadata.yaml", "{}", "/shops/rio", 1)]
#[case("shops/_/metadata.yaml", "{}", "/shops", 1)]
#[case("shops/_/metadata.yaml", "{}", "/shops/rio/tills/t1", 0)]
#[case("shops/_/metadata.yaml", "selector: {descendants: true}", "/shops/rio/tills/t1", 1)]
#[case("shops/_/tills/_/metadata.json", "{}", "/shops/rio/tills/t1", 1)]
#[case("shops/rio/metadata.yaml", "{}", "/shops/rio", 1)]
#[case("shops/rio/metadata.yaml", "{}", "/shops/ava", 0)]
#[case("_/metadata.yaml", "{}", "/shops/ava", 1)]
#[case("_/metadata.yaml", "{}", "/", 1)]
#[case("shops/r*/_/metadata.yaml", "{}", "/shops/rio", 1)]
#[case("shops/rio/_/metadata.yaml", "{}", "/shops/rio/tills", 1)]
#[case("README.md", "", "/shops/rio", 0)]
fn which_documents_apply(
    #[case] file: &str,
    #[case] content: &str,
    #[case] target: &str,
    #[case] expected: usize,
) {
    assert_eq!(rules(&[(file, content)], target).documents().len(), expected);
}

#[test]
fn rules_are_compiled_once_per_set_of_documents() {
    let (_root, tree) = tree(&[("shops/_/metadata.yaml", ""), ("shops/ava/metadata.yaml", "")]);
    let metadata = Metadata::new(tree);
    let rules = |target| metadata.rules(&path(target)).unwrap();
    assert!(Arc::ptr_eq(&rules("/shops/rio"), &rules("/shops/leo")));
    assert!(!Arc::ptr_eq(&rules("/shops/rio"), &rules("/shops/ava")));
}

#[rstest]
#[case(
    "resource: {ids: /a}",
    "shops/_/metadata.yaml: line 1, column 12: unknown key \"ids\" in resource; did you mean \"id\"?"
)]
#[case("operations: {get: {path: \"{{\"}}", "shops/_/metadata.yaml: line 1, column 20: operations.get.path:")]
#[case(
    "operations: {get: {transforms: [{jqExpression: \".a |\"}]}}",
    "shops/_/metadata.yaml: line 1, column 34: operations.get.transforms[0].jqExpression:"
)]
#[case(
    "resource: {defaults: {useProfiles: [x]}}",
    "shops/_/metadata.yaml: line 1, column 23: resource.defaults.useProfiles: unknown profile \"x\""
)]
#[case(
    "resource: {defaults: {value: \"{{include defaults.yaml}}\"}}",
    "shops/_/metadata.yaml: line 1, column 23: resource.defaults.value: cannot include defaults.yaml"
)]
#[case(
    "operations: {get: {headers: {\"X Y\": \"1\"}}}",
    "shops/_/metadata.yaml: line 1, column 30: operations.get.headers.X Y: is not a header name"
)]
fn an_invalid_document_fails_the_paths_that_it_governs(#[case] content: &str, #[case] expected: &str) {
    let (_root, tree) = tree(&[("shops/_/metadata.yaml", content)]);
    let metadata = Metadata::new(tree);
    let error = metadata.rules(&path("/shops/rio")).unwrap_err();
    assert_eq!(error.category(), Category::Validation);
    assert!(error.to_string().starts_with(expected), "{error}");
    assert!(metadata.rules(&path("/orders/o1")).is_ok());
}

#[test]
fn included_defaults_are_read_next_to_their_document() {
    let files = [
        ("shops/_/metadata.yaml", "resource: {defaults: {value: \"{{include defaults.json}}\"}}"),
        ("shops/_/defaults.json", r#"{"tier": "silver"}"#),
    ];
    let rules = rules(&files, "/shops/rio");
    let complete = rules.resolved().with_defaults(yaml("{name: Rio}")).unwrap();
    assert_eq!(complete, yaml("{name: Rio, tier: silver}"));
}

#[test]
fn child_collections_of_all_sources_are_merged() {
    let ((_bundle, bundle), (_local, local)) = (
        tree(&[("shops/_/tills/_/metadata.yaml", ""), ("shops/_/_/staff/_/metadata.yaml", "")]),
        tree(&[("shops/rio/hooks/_/metadata.yaml", "")]),
    );
    let metadata =
        Metadata::layered(vec![Source::shared(bundle, "bundle").into(), Source::repository(local).into()]);
    assert_eq!(metadata.child_collections(&path("/shops/rio")).unwrap(), ["hooks", "tills"]);
    assert_eq!(metadata.child_collections(&path("/shops/rio/tills")).unwrap(), ["staff"]);
    assert_eq!(metadata.child_collections(&path("/")).unwrap(), ["shops"]);
}

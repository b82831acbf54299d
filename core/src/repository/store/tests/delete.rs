//! Tests of deleting resources.

use std::fs;
use std::os::unix::fs::symlink;

use rstest::rstest;

use super::super::*;
use super::{files, path, store};
use crate::error::{Categorized, Category};

const FILES: &[(&str, &str)] = &[
    ("_/metadata.yaml", ""),
    ("shops/_/metadata.yaml", ""),
    ("shops/_/defaults.yaml", ""),
    ("shops/rio/resource.yaml", "name: Rio"),
    ("shops/rio/metadata.yaml", ""),
    ("shops/rio/defaults-prod.properties", ""),
    ("shops/rio/scripts/open.sh", ""),
    ("shops/rio/scripts/other.sh", ""),
    ("shops/rio/tills/t1/resource.xml", "<t/>"),
    ("shops/rio/tills/t1/open.sh", ""),
    ("shops/ava/resource.json", "{}"),
    ("shops/ava/scripts/open.sh", ""),
    ("regions/eu/shops/x/resource.json", "{"),
];

/// The sidecars of all resources except plain text.
fn sidecars(path: &LogicalPath, payload: &Value) -> Vec<String> {
    match payload {
        Value::Object(_) => vec!["scripts/open.sh".to_owned()],
        _ if path.name() == "t1" => vec!["open.sh".to_owned(), "missing.sh".to_owned()],
        _ => panic!("{path} has no payload"),
    }
}

#[rstest]
#[case::resource("/shops/rio", false, &["/shops/rio"], &["shops/rio/resource.yaml", "shops/rio/scripts/open.sh"])]
#[case::resource_and_below(
    "/shops/rio",
    true,
    &["/shops/rio", "/shops/rio/tills/t1"],
    &["shops/rio/resource.yaml", "shops/rio/scripts/open.sh", "shops/rio/tills/t1/open.sh", "shops/rio/tills/t1/resource.xml"]
)]
#[case::children(
    "/shops",
    false,
    &["/shops/ava", "/shops/rio"],
    &["shops/ava/resource.json", "shops/ava/scripts/open.sh", "shops/rio/resource.yaml", "shops/rio/scripts/open.sh"]
)]
#[case::descendants(
    "/shops",
    true,
    &["/shops/ava", "/shops/rio", "/shops/rio/tills/t1"],
    &[
        "shops/ava/resource.json", "shops/ava/scripts/open.sh", "shops/rio/resource.yaml",
        "shops/rio/scripts/open.sh", "shops/rio/tills/t1/open.sh", "shops/rio/tills/t1/resource.xml",
    ]
)]
#[case::undecodable("/regions/eu", true, &["/regions/eu/shops/x"], &["regions/eu/shops/x/resource.json"])]
#[case::no_children("/regions", false, &[], &[])]
#[case::nothing_there("/none/at/all", true, &[], &[])]
#[case::a_directory_without_resources("/shops/rio/scripts", true, &[], &[])]
fn deleting(#[case] scope: &str, #[case] recursive: bool, #[case] paths: &[&str], #[case] removed: &[&str]) {
    let (_root, store) = store(FILES);
    let mut expected = files(&store);
    let deleted = store
        .delete(&path(scope), recursive, |path, payload| Ok::<_, RepositoryError>(sidecars(path, payload)))
        .unwrap();
    assert_eq!(deleted.iter().map(LogicalPath::as_str).collect::<Vec<_>>(), paths);
    for file in removed {
        expected.remove(*file).unwrap();
    }
    // Empty directories would be listed.
    assert_eq!(files(&store), expected);
}

#[test]
fn deleting_everything_keeps_the_root() {
    let (root, store) = store(&[("a/b/c/resource.json", "{}"), ("d/resource.yaml", ""), ("e/f/x", "")]);
    fs::create_dir(root.path().join("empty")).unwrap();
    store.delete(&LogicalPath::root(), true, |_, _| Ok::<_, RepositoryError>(Vec::new())).unwrap();
    // A directory that was empty before stays.
    assert_eq!(files(&store).into_keys().collect::<Vec<_>>(), ["e/f/x", "empty/"]);
    assert_eq!(store.check(), Ok(()));
}

#[rstest]
#[case::ambiguous(Category::Conflict)]
#[case::no_metadata(Category::Auth)]
#[case::bad_sidecar(Category::Validation)]
#[case::sidecar_outside(Category::Validation)]
fn after_an_error_nothing_is_deleted(#[case] expected: Category) {
    let several = [("shops/two/resource.yaml", ""), ("shops/two/resource.json", "")];
    let files_before =
        if expected == Category::Conflict { [FILES, &several].concat() } else { FILES.to_vec() };
    let (root, store) = store(&files_before);
    symlink("/etc", root.path().join("shops/rio/outside")).unwrap();
    let names = || {
        let listing = store.list(&path("/"), true).unwrap();
        listing.resources.into_iter().map(|file| file.file).collect::<Vec<_>>()
    };
    let before = names();
    let last = |path: &LogicalPath, _: &Value| match expected {
        Category::Auth if path.name() == "rio" => {
            Err(RepositoryError::CredentialsRejected("of metadata".to_owned()))
        }
        Category::Validation if path.name() == "rio" => Ok(vec!["outside/x".to_owned()]),
        _ => Ok(vec!["scripts/open.sh".to_owned()]),
    };
    let error = store.delete(&path("/shops"), true, last).unwrap_err();
    assert_eq!(error.category(), expected);
    assert_eq!(names(), before);
}

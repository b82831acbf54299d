//! Tests of the search for payloads.

use rstest::rstest;

use super::super::fixtures::dir;
use super::*;
use crate::error::{Categorized, Category};
use crate::payload::PayloadType;

fn path(text: &str) -> LogicalPath {
    LogicalPath::parse(text).unwrap()
}

const FILES: &[(&str, &str)] = &[
    ("resource.yaml", "root: never"),
    ("_/metadata.yaml", ""),
    ("shops/_/metadata.yaml", ""),
    ("shops/_/resource.yaml", "reserved"),
    ("shops/rio/resource.yaml", "name: Rio"),
    ("shops/rio/metadata.yaml", ""),
    ("shops/rio/scripts/open.sh", ""),
    ("shops/rio/tills/t1/resource.xml", "<t/>"),
    ("shops/ava/resource.JSON", "{}"),
    ("shops/São Paulo 1.5/resource.bin", "x"),
    ("shops/two/resource.yaml", ""),
    ("shops/two/resource.yaml.bak", ""),
    ("shops/two/below/resource.txt", ""),
    ("shops/.hidden/resource.txt", "legal"),
    ("shops/.git/refs/resource.x", ""),
    (".GIT/refs/heads/resource.x", ""),
];

#[rstest]
#[case::all_below("/shops", true, &["/shops/.hidden", "/shops/São Paulo 1.5", "/shops/ava", "/shops/rio", "/shops/rio/tills/t1", "/shops/two/below"])]
#[case::direct_children("/shops", false, &["/shops/.hidden", "/shops/São Paulo 1.5", "/shops/ava", "/shops/rio"])]
#[case::a_resource_and_below("/shops/rio", true, &["/shops/rio", "/shops/rio/tills/t1"])]
#[case::only_the_resource("/shops/rio", false, &["/shops/rio"])]
#[case::missing("/none", true, &[])]
#[case::a_file("/shops/rio/scripts/open.sh", true, &[])]
fn lists(#[case] scope: &str, #[case] recursive: bool, #[case] expected: &[&str]) {
    let (_root, tree) = dir(FILES);
    let listing = resources(&tree, &path(scope), recursive).unwrap();
    let mut expected: Vec<_> = expected.iter().map(|text| path(text)).collect();
    expected.sort();
    let paths: Vec<_> = listing.resources.into_iter().map(|file| file.path).collect();
    assert_eq!(paths, expected);
}

#[test]
fn an_ambiguous_directory_is_reported_and_does_not_stop_the_others() {
    let (_root, tree) = dir(FILES);
    let listing = resources(&tree, &LogicalPath::root(), true).unwrap();
    assert_eq!(listing.resources.len(), 6);
    let [(broken, error)] = &listing.broken[..] else { panic!("{:?}", listing.broken) };
    assert_eq!(broken, &path("/shops/two"));
    assert_eq!(error.category(), Category::Conflict);
    insta::assert_snapshot!(error, @"resource /shops/two has several payload files (shops/two/resource.yaml, shops/two/resource.yaml.bak); keep one of them");
    assert_eq!(resource_file(&tree, &path("/shops/two")).unwrap_err(), *error);
}

#[test]
fn the_root_is_never_a_resource() {
    let (_root, tree) = dir(FILES);
    assert_eq!(resource_file(&tree, &LogicalPath::root()).unwrap(), None);
}

#[test]
fn extensions_are_looked_up_in_any_case() {
    let (_root, tree) = dir(FILES);
    let file = resource_file(&tree, &path("/shops/ava")).unwrap().unwrap();
    assert_eq!(
        (file.file.as_str(), file.descriptor.payload_type),
        ("shops/ava/resource.JSON", PayloadType::Json)
    );
    assert_eq!(read_payload(&tree, &file).unwrap(), Value::Object(crate::payload::Object::new()));
}

#[test]
fn the_error_for_a_bad_payload_names_its_file() {
    let (_root, tree) = dir(&[("a/resource.json", "{\n\"x\": }")]);
    let file = resource_file(&tree, &path("/a")).unwrap().unwrap();
    let error = read_payload(&tree, &file).unwrap_err();
    assert_eq!(error.category(), Category::Validation);
    assert!(error.to_string().starts_with("\"a/resource.json\": "), "{error}");
    assert!(error.to_string().contains("line 2"), "{error}");
}

#[test]
fn directories_that_are_not_valid_segments_are_reported() {
    let (_root, tree) = dir(&[("a/b\\c/resource.json", "{}"), ("a/d/resource.json", "{}")]);
    let listing = resources(&tree, &path("/a"), true).unwrap();
    assert_eq!(listing.resources.len(), 1);
    assert!(
        matches!(&listing.broken[..], [(at, RepositoryError::DirectoryName { .. })] if *at == path("/a"))
    );
}

#[test]
fn names_that_are_not_utf8_are_reported() {
    use std::os::unix::ffi::OsStrExt;
    let (root, tree) = dir(&[("a/d/resource.json", "{}")]);
    let bad = std::ffi::OsStr::from_bytes(b"\xff");
    std::fs::create_dir(root.path().join("a").join(bad)).unwrap();
    let listing = resources(&tree, &path("/a"), true).unwrap();
    assert_eq!(listing.resources.len(), 1);
    assert!(matches!(&listing.broken[..], [(_, RepositoryError::NameNotUtf8 { .. })]));
}

#[test]
fn pointers_of_git_lfs_are_rejected() {
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n";
    let (_root, tree) = dir(&[("certs/a/resource.txt", pointer), ("certs/a/chain.pem", pointer)]);
    let file = resource_file(&tree, &path("/certs/a")).unwrap().unwrap();
    let payload = read_payload(&tree, &file).unwrap_err();
    let sidecar = crate::repository::read_sidecar(&tree, &path("/certs/a"), "chain.pem").unwrap_err();
    for (error, file) in [(payload, "certs/a/resource.txt"), (sidecar, "certs/a/chain.pem")] {
        assert!(error.to_string().starts_with(&format!("{file} is a pointer of Git LFS")), "{error}");
        assert_eq!(error.category(), Category::Validation);
    }
}

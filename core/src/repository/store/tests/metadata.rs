//! Tests of stored metadata documents and defaults files.

use std::fs;
use std::os::unix::fs::symlink;

use rstest::rstest;

use super::super::*;
use super::{files, files_of, store};
use crate::error::{Categorized, Category};
use crate::path::Selector;
use crate::payload::PayloadType;

fn selector(text: &str) -> Selector {
    Selector::parse(text).unwrap()
}

fn defaults(name: &str, content: &str, obsolete: &[&str]) -> DefaultsEdit {
    let file = DefaultsFile { name: name.to_owned(), content: content.as_bytes().to_vec() };
    DefaultsEdit { write: Some(file), obsolete: obsolete.iter().map(|name| (*name).to_owned()).collect() }
}

#[rstest]
#[case("/", "_/metadata.yaml")]
#[case("/_", "_/metadata.yaml")]
#[case("/shops/", "shops/_/metadata.yaml")]
#[case("/shops/_", "shops/_/metadata.yaml")]
#[case("/shops/rio", "shops/rio/metadata.yaml")]
#[case("/shops/_/tills", "shops/_/tills/_/metadata.yaml")]
#[case("/shops/r*", "shops/r*/_/metadata.yaml")]
fn a_document_is_written_to_the_place_of_its_selector(#[case] text: &str, #[case] file: &str) {
    let (_root, store) = store(&[]);
    let selector = selector(text);
    let missing = store.read_metadata(&selector).unwrap_err();
    assert_eq!(
        (missing.category(), missing.to_string()),
        (Category::NotFound, format!("metadata \"{file}\" not found in the repository"))
    );
    assert_eq!(store.write_metadata(&selector, b"a: 1", &DefaultsEdit::default()).unwrap(), file);
    assert_eq!(files(&store), files_of(&[(file, "a: 1\n")]));
    let document =
        DocumentFile { file: file.to_owned(), format: PayloadType::Yaml, content: b"a: 1\n".to_vec() };
    assert_eq!(store.read_metadata(&selector).unwrap(), document);
    store.delete_metadata(&selector, &[]).unwrap();
    assert_eq!(files(&store), files_of(&[]));
    assert_eq!(store.delete_metadata(&selector, &[]).unwrap_err().category(), Category::NotFound);
}

#[test]
fn yaml_takes_precedence_over_json_and_replaces_it() {
    let (_root, store) = store(&[("a/metadata.json", "{}"), ("a/metadata.yml", "inert")]);
    let a = selector("/a");
    assert_eq!(store.read_metadata(&a).unwrap().format, PayloadType::Json);
    fs::write(store.tree().root().join("a/metadata.yaml"), "x: 1").unwrap();
    assert_eq!(store.read_metadata(&a).unwrap().file, "a/metadata.yaml");
    store.write_metadata(&a, b"y: 1\n", &DefaultsEdit::default()).unwrap();
    assert_eq!(files(&store), files_of(&[("a/metadata.yaml", "y: 1\n"), ("a/metadata.yml", "inert")]));
    fs::write(store.tree().root().join("a/metadata.json"), "{}").unwrap();
    store.delete_metadata(&a, &[]).unwrap();
    assert_eq!(files(&store), files_of(&[("a/metadata.yml", "inert")]));
}

#[test]
fn defaults_files_follow_the_document() {
    let (_root, store) = store(&[
        ("shops/_/defaults.json", "{}"),
        ("shops/_/defaults-prod.json", "{}"),
        ("shops/rio/resource.json", "{}"),
    ]);
    let shops = selector("/shops/");
    assert_eq!(store.read_defaults(&shops, "defaults.json").unwrap(), Some(b"{}".to_vec()));
    assert_eq!(store.read_defaults(&shops, "defaults.yml").unwrap(), None);
    // A file that is written is not obsolete.
    let edit = defaults("defaults.yaml", "a: 1\n", &["defaults.json", "defaults.yaml", "defaults.yml"]);
    store.write_metadata(&shops, b"resource: {}\n", &edit).unwrap();
    let rest = [("shops/rio/resource.json", "{}"), ("shops/_/defaults-prod.json", "{}")];
    let written = [("shops/_/defaults.yaml", "a: 1\n"), ("shops/_/metadata.yaml", "resource: {}\n")];
    assert_eq!(files(&store), files_of(&[rest, written].concat()));
    store.delete_metadata(&shops, &["defaults.yaml".to_owned()]).unwrap();
    assert_eq!(files(&store), files_of(&rest));
}

#[rstest]
#[case("defaults.toml")]
#[case("defaults-/x.yaml")]
#[case("../defaults.yaml")]
#[case("metadata.yaml")]
#[case("resource.yaml")]
#[case("")]
fn other_files_are_not_defaults(#[case] name: &str) {
    let (_root, store) = store(&[("a/metadata.yaml", "")]);
    let (a, before) = (selector("/a"), files(&store));
    let obsolete = DefaultsEdit { write: None, obsolete: vec![name.to_owned()] };
    let failures = [
        store.read_defaults(&a, name).unwrap_err(),
        store.write_metadata(&a, b"x", &defaults(name, "", &[])).unwrap_err(),
        store.write_metadata(&a, b"x", &obsolete).unwrap_err(),
        store.delete_metadata(&a, &[name.to_owned()]).unwrap_err(),
    ];
    for error in failures {
        assert_eq!(error, RepositoryError::DefaultsName(name.to_owned()));
        assert_eq!(error.category(), Category::Validation);
    }
    assert_eq!(files(&store), before);
}

#[test]
fn a_link_that_leads_outside_is_rejected() {
    let (outside, _) = store(&[("metadata.yaml", "secret")]);
    let (root, store) = store(&[("a/resource.json", "{}")]);
    symlink(outside.path().join("metadata.yaml"), root.path().join("a/metadata.yaml")).unwrap();
    let a = selector("/a");
    for error in [
        store.read_metadata(&a).unwrap_err(),
        store.write_metadata(&a, b"x", &DefaultsEdit::default()).unwrap_err(),
        store.delete_metadata(&a, &[]).unwrap_err(),
    ] {
        assert_eq!(error, RepositoryError::SymlinkEscape("a/metadata.yaml".to_owned()));
    }
    assert_eq!(fs::read(outside.path().join("metadata.yaml")).unwrap(), b"secret");
}

//! Tests of reading, and helpers for all tests of stores.

mod delete;
mod metadata;
mod save;

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;

use rstest::rstest;

use super::*;
use crate::error::{Categorized, Category};
use crate::payload::PayloadType;

pub fn path(text: &str) -> LogicalPath {
    LogicalPath::parse(text).unwrap()
}

pub fn yaml(text: &str) -> Value {
    crate::payload::decode(PayloadType::Yaml, text.as_bytes()).unwrap()
}

/// A store with these files.
pub fn store(files: &[(&str, &str)]) -> (tempfile::TempDir, Store) {
    let (root, _) = crate::repository::fixtures::dir(files);
    let store = Store::open(root.path()).unwrap();
    (root, store)
}

/// All regular files of a store; no other kind may exist. Empty directories end in a slash.
pub fn files(store: &Store) -> BTreeMap<String, String> {
    let (mut found, mut pending) = (BTreeMap::new(), vec![String::new()]);
    while let Some(directory) = pending.pop() {
        let entries = store.tree().entries(&directory).unwrap().unwrap();
        if entries.is_empty() && !directory.is_empty() {
            found.insert(format!("{directory}/"), String::new());
        }
        for Entry { name, kind } in entries {
            let name = join(&directory, &name);
            match kind {
                EntryKind::Directory => pending.push(name),
                EntryKind::File => {
                    let content = store.tree().read(&name).unwrap().unwrap();
                    found.insert(name, String::from_utf8_lossy(&content).into_owned());
                }
                _ => panic!("{name} is {kind:?}"),
            }
        }
    }
    found
}

pub fn files_of(expected: &[(&str, &str)]) -> BTreeMap<String, String> {
    expected.iter().map(|(file, content)| ((*file).to_owned(), (*content).to_owned())).collect()
}

const FILES: &[(&str, &str)] = &[
    ("resource.yaml", "root: never"),
    ("shops/_/metadata.yaml", ""),
    ("shops/_/tills/_/metadata.yaml", ""),
    ("shops/rio/resource.yaml", "name: Rio"),
    ("shops/rio/scripts/open.sh", "echo open"),
    ("shops/rio/tills/t1/resource.xml", "<t/>"),
    ("shops/ava/resource.json", "{\"name\": \"Ava\"}"),
    ("shops/two/resource.yaml", ""),
    ("shops/two/resource.yaml.bak", ""),
    ("shops-old/x.txt", ""),
    ("bad/resource.json", "{"),
    (".hidden/dir/resource.txt", "legal"),
    (".git/refs/heads/resource.x", ""),
    ("file", ""),
];

#[rstest]
#[case("/shops/rio", Ok("{name: Rio}"))]
#[case("/shops/ava", Ok("{name: Ava}"))]
#[case("/shops/rio/tills/t1", Ok("<t/>"))]
#[case("/.hidden/dir", Ok("legal"))]
#[case::root("/", Err(Category::Validation))]
#[case::no_directory("/none", Err(Category::NotFound))]
#[case::no_directory_below_one("/none/at/all", Err(Category::NotFound))]
#[case::not_a_directory("/file", Err(Category::NotFound))]
#[case::below_a_file("/file/x", Err(Category::NotFound))]
#[case::no_payload("/shops", Err(Category::NotFound))]
#[case::several("/shops/two", Err(Category::Conflict))]
#[case::undecodable("/bad", Err(Category::Validation))]
fn getting(#[case] resource: &str, #[case] expected: Result<&str, Category>) {
    let (_root, store) = store(FILES);
    let found = store.get(&path(resource)).map(|(_, value)| value).map_err(|error| error.category());
    assert_eq!(found, expected.map(yaml));
}

#[test]
fn the_error_names_the_missing_resource() {
    let (_root, store) = store(FILES);
    let error = store.get(&path("/none")).unwrap_err();
    insta::assert_snapshot!(error, @"resource /none not found in the repository");
    let error = store.read_sidecar(&path("/shops/rio"), "close.sh").unwrap_err();
    insta::assert_snapshot!(error, @r#"resource /shops/rio: file "shops/rio/close.sh" not found"#);
    insta::assert_snapshot!(store.get(&path("/")).unwrap_err(), @r#""/" cannot be a resource; use a path below it"#);
}

#[rstest]
#[case::resource("/shops/rio", true)]
#[case::directory("/shops", true)]
#[case::plain_directory("/shops-old", true)]
#[case::root("/", true)]
#[case::file("/file", false)]
#[case::nothing("/none", false)]
fn existing(#[case] at: &str, #[case] expected: bool) {
    let (_root, store) = store(FILES);
    assert_eq!(store.exists(&path(at)).unwrap(), expected);
}

#[rstest]
#[case::the_resource("/shops/rio", false, &["/shops/rio"])]
#[case::the_resource_and_below("/shops/rio", true, &["/shops/rio", "/shops/rio/tills/t1"])]
#[case::direct_children("/shops", false, &["/shops/ava", "/shops/rio"])]
#[case::descendants("/shops", true, &["/shops/ava", "/shops/rio", "/shops/rio/tills/t1"])]
#[case::nothing_there("/none", true, &[])]
#[case::root("/", false, &["/bad"])]
fn listing(#[case] scope: &str, #[case] recursive: bool, #[case] expected: &[&str]) {
    let (_root, store) = store(FILES);
    let listing = store.list(&path(scope), recursive).unwrap();
    let found: Vec<_> = listing.resources.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(found, expected);
}

#[test]
fn directories_exclude_hidden_and_reserved_ones() {
    let (root, store) = store(FILES);
    symlink("shops", root.path().join("link")).unwrap();
    let expected = [
        "bad", "shops", "shops-old", "shops/ava", "shops/rio", "shops/rio/scripts", "shops/rio/tills",
        "shops/rio/tills/t1", "shops/two",
    ];
    assert_eq!(store.directories().unwrap(), expected);
}

#[rstest]
#[case("scripts/open.sh", Ok("echo open"))]
#[case(" ./scripts//x/../open.sh", Ok("echo open"))]
#[case("scripts", Err(Category::NotFound))]
#[case("close.sh", Err(Category::NotFound))]
#[case("../ava/resource.json", Err(Category::Validation))]
#[case("/etc/passwd", Err(Category::Validation))]
#[case("resource.yaml", Err(Category::Validation))]
#[case("escape", Err(Category::Validation))]
fn sidecars(#[case] file: &str, #[case] expected: Result<&str, Category>) {
    let (root, store) = store(FILES);
    symlink("/etc/passwd", root.path().join("shops/rio/escape")).unwrap();
    let found = store.read_sidecar(&path("/shops/rio"), file).map_err(|error| error.category());
    assert_eq!(found, expected.map(|text| text.as_bytes().to_vec()));
}

#[test]
fn the_root_must_be_a_directory() {
    let (root, store) = store(FILES);
    let opened =
        |name: &str| Store::open(&root.path().join(name)).map(|_| ()).map_err(|error| error.category());
    assert_eq!(opened("none"), Err(Category::NotFound));
    assert_eq!(opened("file"), Err(Category::Validation));
    assert_eq!(Store::init(&root.path().join("file")).unwrap_err().category(), Category::Validation);
    assert_eq!(store.check(), Ok(()));
    let moved = root.path().with_extension("moved");
    std::fs::rename(root.path(), &moved).unwrap();
    assert_eq!(store.check().unwrap_err().category(), Category::NotFound);
    assert_eq!(store.directories().unwrap_or_default(), Vec::<String>::new());
    std::fs::rename(&moved, root.path()).unwrap();
}

#[test]
fn initialising_creates_the_root_once() {
    let outer = tempfile::tempdir().unwrap();
    let root = outer.path().join("a/b");
    for _ in 0..2 {
        let store = Store::init(&root).unwrap();
        store.save(&path("/x"), &yaml("{a: 1}"), &Save::default()).unwrap();
        assert!(store.exists(&path("/x")).unwrap());
    }
}

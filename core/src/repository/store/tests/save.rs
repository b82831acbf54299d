//! Tests of saving payloads.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

use proptest::prelude::*;
use rstest::rstest;

use super::super::*;
use super::{files, files_of, path, store, yaml};
use crate::error::{Categorized, Category};
use crate::payload::{Descriptor, Object, PayloadType};
use crate::repository::Sidecar;

fn sidecar(file: &str, content: &str) -> Sidecar {
    Sidecar { file: file.to_owned(), content: content.as_bytes().to_vec() }
}

fn failure(store: &Store, at: &str, value: &Value, save: &Save<'_>) -> (Category, String) {
    let error = store.save(&path(at), value, save).unwrap_err();
    (error.category(), error.to_string())
}

#[rstest]
#[case::explicit(Some(".yml"), Some("json"), Some("resource.json"), "{a: 1}", "resource.yml")]
#[case::metadata(None, Some("yaml"), Some("resource.json"), "{a: 1}", "resource.yaml")]
#[case::metadata_keeps_an_extension_of_its_type(
    None,
    Some("yaml"),
    Some("resource.yml"),
    "{a: 1}",
    "resource.yml"
)]
#[case::existing(None, None, Some("resource.props"), "{a: x}", "resource.props")]
#[case::existing_case(None, None, Some("resource.YAML"), "{a: 1}", "resource.YAML")]
#[case::one_name_where_case_is_ignored(Some(".yaml"), None, Some("resource.YAML"), "{a: 1}", "resource.YAML")]
#[case::default(None, None, None, "{a: 1}", "resource.json")]
#[case::default_for_text(None, None, None, "text", "resource.json")]
fn the_format_of_a_write(
    #[case] explicit: Option<&str>,
    #[case] metadata: Option<&str>,
    #[case] existing: Option<&str>,
    #[case] value: &str,
    #[case] expected: &str,
) {
    let existing = existing.map(|name| format!("shops/rio/{name}"));
    let existing: Vec<_> = existing.iter().map(|name| (name.as_str(), "")).collect();
    let (_root, store) = store(&existing);
    let descriptor = explicit.map(Descriptor::from_extension);
    let format = metadata.and_then(PayloadType::parse_name);
    let save = Save { descriptor: descriptor.as_ref(), format, ..Save::default() };
    let saved = store.save(&path("/shops/rio"), &yaml(value), &save).unwrap().unwrap();
    assert_eq!(saved.file, format!("shops/rio/{expected}"));
    // Only the new file is left.
    assert!(files(&store).into_keys().eq([saved.file.clone()]));
    assert_eq!(store.get(&path("/shops/rio")).unwrap(), (saved, yaml(value)));
}

#[rstest]
#[case::bytes(Value::Bytes(b"\xff".to_vec()), None, "resource.bin")]
#[case::unknown_extension_is_kept(Value::Bytes(b"x".to_vec()), Some(Descriptor::from_extension(".Foo")), "resource.Foo")]
#[case::type_and_unknown_extension(
    Value::Int(1),
    Some(Descriptor { extension: ".conf".into(), ..Descriptor::of(PayloadType::Yaml) }),
    "resource.yaml"
)]
#[case::several_dots(Value::Bytes(b"x".to_vec()), Some(Descriptor::from_extension(".tar.gz")), "resource.tar.gz")]
#[case::text(Value::from("a,b"), Some(Descriptor::from_extension(".csv")), "resource.csv")]
fn a_written_payload_is_read_back(
    #[case] value: Value,
    #[case] descriptor: Option<Descriptor>,
    #[case] expected: &str,
) {
    let (_root, store) = store(&[]);
    let save = Save { descriptor: descriptor.as_ref(), ..Save::default() };
    let saved = store.save(&path("/a/b"), &value, &save).unwrap().unwrap();
    assert_eq!(saved.file, format!("a/b/{expected}"));
    assert_eq!(store.get(&path("/a/b")).unwrap().1, value);
}

#[rstest]
#[case::root("/", "{}", None, "\"/\" cannot be a resource; use a path below it")]
#[case::several(
    "/two",
    "{}",
    None,
    "resource /two has several payload files (two/resource.json, two/resource.yaml); keep one of them"
)]
#[case::not_text(
    "/old",
    "{a: 1}",
    Some("xml"),
    "\"old/resource.xml\": cannot encode as xml, the whole document: a text payload needs a string, not an object"
)]
#[case::nested(
    "/old",
    "{a: {b: 1}}",
    Some("properties"),
    "\"old/resource.properties\": cannot encode as properties, \"/a\": an object is not allowed here"
)]
#[case::not_bytes(
    "/new/at/all",
    "text",
    Some("octet-stream"),
    "\"new/at/all/resource.bin\": cannot encode as octet-stream, the whole document: "
)]
#[case::a_file_in_the_way(
    "/file/x",
    "{}",
    None,
    "\"file\" cannot be used: it is not a directory, and a directory is needed"
)]
#[case::a_directory_in_the_way(
    "/dir",
    "{}",
    None,
    "\"dir/resource.json\" cannot be used: it is a directory, and a file is needed"
)]
fn rejected_payloads_do_not_change_the_store(
    #[case] at: &str,
    #[case] value: &str,
    #[case] format: Option<&str>,
    #[case] message: &str,
) {
    let (_root, store) = store(&[
        ("two/resource.json", "{}"),
        ("two/resource.yaml", ""),
        ("old/resource.json", "{\"old\": true}"),
        ("file", ""),
        ("dir/resource.json/x", ""),
    ]);
    let before = files(&store);
    let sidecars = [sidecar("new.sh", "x")];
    let format = format.and_then(PayloadType::parse_name);
    let save = Save { format, sidecars: &sidecars, ..Save::default() };
    let (category, text) = failure(&store, at, &yaml(value), &save);
    assert_eq!(category, if at == "/two" { Category::Conflict } else { Category::Validation });
    assert!(text.starts_with(message), "{text}");
    assert_eq!(files(&store), before);
}

#[rstest]
#[case(".a/../../b")]
#[case(".a\\b")]
#[case(".\0")]
#[case(".")]
fn extensions_stay_in_the_directory(#[case] extension: &str) {
    let (_root, store) = store(&[]);
    let descriptor = Descriptor::from_extension(extension);
    let save = Save { descriptor: Some(&descriptor), ..Save::default() };
    let (category, text) = failure(&store, "/a", &Value::Bytes(Vec::new()), &save);
    assert_eq!(category, Category::Validation);
    assert!(text.ends_with("cannot be the extension of a payload file"), "{text}");
    assert_eq!(files(&store), files_of(&[]));
}

#[rstest]
#[case::same("resource.yaml", "# by hand\nb:   2\na: 1.0\n", "{a: 1, b: 2}", true)]
#[case::other_value("resource.yaml", "# by hand\na: 1\n", "{a: 2}", false)]
#[case::strings_of_a_format_of_strings("resource.ini", "; by hand\na=1\n", "{a: 1}", true)]
#[case::properties("resource.properties", "a : 1\n", "{a: '1'}", true)]
#[case::nothing_left("resource.ini", "; by hand\n", "{}", true)]
#[case::undecodable("resource.json", "{", "{a: 1}", false)]
fn equal_values_keep_the_bytes(
    #[case] name: &str,
    #[case] content: &str,
    #[case] value: &str,
    #[case] untouched: bool,
) {
    let file = format!("a/{name}");
    let (_root, store) = store(&[(&file, content)]);
    store.save(&path("/a"), &yaml(value), &Save::default()).unwrap();
    assert_eq!(files(&store)[&file] == content, untouched);
}

#[test]
fn an_empty_object_is_a_resource() {
    let (_root, store) = store(&[]);
    for (at, name) in [("/a", "ini"), ("/b", "properties"), ("/c", "json"), ("/d", "yaml")] {
        let save = Save { format: PayloadType::parse_name(name), ..Save::default() };
        store.save(&path(at), &yaml("{}"), &save).unwrap();
        assert_eq!(store.get(&path(at)).unwrap().1, yaml("{}"), "{name}");
    }
    let expected = [
        ("a/resource.ini", ""),
        ("b/resource.properties", ""),
        ("c/resource.json", "{}"),
        ("d/resource.yaml", "{}\n"),
    ];
    assert_eq!(files(&store), files_of(&expected));
}

#[test]
fn null_removes_the_payload_and_its_sidecars_only() {
    let kept = [("shops/rio/metadata.yaml", ""), ("shops/rio/tills/t1/resource.xml", "<t/>")];
    let removed = [("shops/rio/resource.yaml", "a: 1"), ("shops/rio/scripts/open.sh", "x")];
    let (_root, store) = store(&[kept, removed].concat());
    let stale = ["scripts/open.sh".to_owned()];
    let save = Save { stale: &stale, ..Save::default() };
    assert_eq!(store.save(&path("/shops/rio"), &Value::Null, &save).unwrap(), None);
    assert_eq!(files(&store), files_of(&kept));
    assert_eq!(store.save(&path("/none/here"), &Value::Null, &Save::default()).unwrap(), None);
    assert_eq!(files(&store), files_of(&kept));
}

#[test]
fn sidecars_are_written_with_the_payload_and_stale_ones_removed() {
    let (_root, store) = store(&[
        ("a/resource.json", "{}"),
        ("a/run-0.sh", "old"),
        ("a/s/run-1.sh", "stale"),
        ("a/other.sh", "not declared"),
    ]);
    let sidecars = [sidecar("run-0.sh", "new"), sidecar("./t//run-2.sh", "added")];
    let stale = ["s/run-1.sh", "run-0.sh", "gone.sh", "t/run-2.sh"].map(str::to_owned);
    let descriptor = Descriptor::of(PayloadType::Yaml);
    let save = Save { descriptor: Some(&descriptor), sidecars: &sidecars, stale: &stale, ..Save::default() };
    store.save(&path("/a"), &yaml("{x: 1}"), &save).unwrap();
    let expected = [
        ("a/resource.yaml", "x: 1\n"),
        ("a/run-0.sh", "new"),
        ("a/t/run-2.sh", "added"),
        ("a/other.sh", "not declared"),
    ];
    assert_eq!(files(&store), files_of(&expected));
}

#[rstest]
#[case("../b/x")]
#[case("/x")]
#[case("metadata.yaml")]
#[case("s/Resource.json")]
#[case("_/x")]
#[case(".git/config")]
#[case("")]
fn a_sidecar_with_a_reserved_name_is_rejected(#[case] file: &str) {
    let (_root, store) = store(&[("a/resource.json", "{}")]);
    let before = files(&store);
    let sidecars = [sidecar("first.sh", ""), sidecar(file, "x")];
    let save = Save { sidecars: &sidecars, ..Save::default() };
    let (category, text) = failure(&store, "/a", &yaml("{a: 1}"), &save);
    assert_eq!(category, Category::Validation);
    assert!(text.starts_with(&format!("resource /a: file \"{file}\" ")), "{text}");
    let stale = [file.to_owned()];
    let save = Save { stale: &stale, ..Save::default() };
    assert_eq!(failure(&store, "/a", &yaml("{a: 1}"), &save).0, Category::Validation);
    assert_eq!(files(&store), before);
}

/// A store whose directory holds links that lead outside, to a directory with one payload.
fn with_links() -> (tempfile::TempDir, Store) {
    let outer = tempfile::tempdir().unwrap();
    let (root, outside) = (outer.path().join("root"), outer.path().join("outside"));
    fs::create_dir_all(root.join("a")).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("resource.json"), "{}").unwrap();
    symlink("../outside", root.join("up")).unwrap();
    symlink("../../outside", root.join("a/scripts")).unwrap();
    symlink("../../outside/resource.json", root.join("a/resource.json")).unwrap();
    symlink("../nowhere", root.join("dangling")).unwrap();
    let store = Store::open(&root).unwrap();
    (outer, store)
}

#[rstest]
#[case::directory("/up", None)]
#[case::below("/up/x", None)]
#[case::file("/a", None)]
#[case::dangling("/dangling/x", None)]
#[case::sidecar("/b", Some("../up/x.sh"))]
#[case::sidecar_directory("/a", Some("scripts/x.sh"))]
fn nothing_outside_is_written_or_read(#[case] at: &str, #[case] file: Option<&str>) {
    let (outer, store) = with_links();
    let sidecars: Vec<_> = file.map(|file| sidecar(file, "x")).into_iter().collect();
    // The payload has another extension, so that only the sidecar, if any, is rejected.
    let format = file.map(|_| PayloadType::Yaml);
    let save = Save { format, sidecars: &sidecars, ..Save::default() };
    assert_eq!(failure(&store, at, &yaml("{a: 1}"), &save).0, Category::Validation);
    let outside = fs::read_dir(outer.path().join("outside")).unwrap().count();
    assert_eq!(outside, 1);
    assert_eq!(fs::read(outer.path().join("outside/resource.json")).unwrap(), b"{}");
    assert!(!outer.path().join("nowhere").exists());
    let got = store.get(&path(at)).unwrap_err().category();
    assert!(matches!(got, Category::Validation | Category::NotFound), "{got}");
}

#[test]
fn links_inside_are_rejected_for_directories_and_replaced_for_files() {
    let (root, store) = store(&[("real/x.sh", "shared")]);
    symlink("real", root.path().join("link")).unwrap();
    symlink("x.sh", root.path().join("real/y.sh")).unwrap();
    let sidecars = [sidecar("y.sh", "own")];
    let save = Save { sidecars: &sidecars, ..Save::default() };
    let (category, _) = failure(&store, "/link", &yaml("{a: 1}"), &save);
    assert_eq!(category, Category::Validation);
    store.save(&path("/real"), &yaml("{a: 1}"), &save).unwrap();
    assert_eq!(store.get(&path("/real")).unwrap().1, yaml("{a: 1}"));
    assert_eq!(store.read_sidecar(&path("/real"), "x.sh").unwrap(), b"shared");
    assert_eq!(store.read_sidecar(&path("/real"), "y.sh").unwrap(), b"own");
}

#[test]
fn permissions_stay_and_new_files_get_the_default_ones() {
    let (root, store) = store(&[("a/resource.json", "{}"), ("plain", "")]);
    let old = root.path().join("a/resource.json");
    fs::set_permissions(&old, Permissions::from_mode(0o600)).unwrap();
    store.save(&path("/a"), &yaml("{a: 1}"), &Save::default()).unwrap();
    store.save(&path("/b"), &yaml("{a: 1}"), &Save::default()).unwrap();
    let mode = |name: &str| fs::metadata(root.path().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("a/resource.json"), 0o600);
    assert_eq!(mode("b/resource.json"), mode("plain") & 0o644);
    // `fs::create_dir` creates directories with 0777 less the umask.
    fs::create_dir(root.path().join("c")).unwrap();
    assert_eq!(mode("b"), mode("c") & 0o755);
}

/// A name that is too long for the disk fails at the same stage as a full disk, after the first sidecar.
#[test]
fn a_failed_write_leaves_the_old_payload_and_no_temporary_file() {
    let (_root, store) = store(&[("a/resource.json", "{\"old\": true}"), ("a/first.sh", "old")]);
    let long = "x".repeat(300);
    let sidecars = [sidecar("first.sh", "new"), sidecar(&long, "x")];
    let stale = ["stale.sh".to_owned()];
    let save = Save { sidecars: &sidecars, stale: &stale, ..Save::default() };
    let error = store.save(&path("/a"), &yaml("{new: true}"), &save).unwrap_err();
    assert_eq!(error.category(), Category::Internal);
    let after = files(&store);
    assert_eq!(after["a/resource.json"], "{\"old\": true}");
    assert!(after.keys().all(|name| !name.contains(".declarest-")), "{after:?}");
}

fn any_payload() -> impl Strategy<Value = Value> {
    let text = prop_oneof!["[a-z0-9 ]{0,6}", any::<String>()];
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        (-100_i32..100).prop_map(|number| Value::Float(f64::from(number) / 4.0)),
        text.clone().prop_map(Value::String),
    ];
    let tree = leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            prop::collection::btree_map("[a-c~/ ]{0,3}", inner, 0..4).prop_map(Value::Object),
        ]
    });
    let flat = prop::collection::btree_map("[a-z]{1,3}", text.clone().prop_map(Value::String), 0..4);
    prop_oneof![
        tree,
        flat.prop_map(|members: Object| Value::Object(members)),
        text.prop_map(Value::String),
        prop::collection::vec(any::<u8>(), 0..8).prop_map(Value::Bytes),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// In every format that can encode it, a saved payload is read back, regardless of the previous file. Otherwise
    /// the previous file stays.
    #[test]
    fn a_saved_payload_is_read_back(first in any_payload(), second in any_payload()) {
        for payload_type in PayloadType::ALL {
            let (_root, store) = store(&[]);
            let save = Save { format: Some(payload_type), ..Save::default() };
            let mut stored = None;
            for value in [&first, &second, &first] {
                let before = files(&store);
                match store.save(&path("/a"), value, &save) {
                    Ok(saved) => {
                        prop_assert_eq!(saved.unwrap().descriptor.payload_type, payload_type);
                        stored = Some(value);
                        let got = store.get(&path("/a")).unwrap().1;
                        // Formats that hold only strings decode scalars as their text.
                        if matches!(payload_type, PayloadType::Ini | PayloadType::Properties) {
                            store.save(&path("/a"), &got, &save).unwrap();
                            prop_assert_eq!(store.get(&path("/a")).unwrap().1, got);
                        } else {
                            prop_assert_eq!(&got, value);
                        }
                    }
                    Err(error) => {
                        prop_assert_eq!(error.category(), Category::Validation);
                        prop_assert_eq!(files(&store), before);
                    }
                }
            }
            prop_assert_eq!(store.get(&path("/a")).is_ok(), stored.is_some());
        }
    }
}

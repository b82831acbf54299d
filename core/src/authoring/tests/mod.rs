//! Tests of drafts and lists, and the fixture of all tests of authoring.

mod conceal;

use std::fs;

use rstest::rstest;

use super::*;
use crate::error::{Categorized, Category};
use crate::payload::decode;

/// A repository with metadata and resources.
pub(super) struct Fixture {
    pub root: tempfile::TempDir,
    pub store: Store,
    pub metadata: Metadata,
}

impl Fixture {
    pub fn new(files: &[(&str, &str)]) -> Self {
        let root = tempfile::tempdir().unwrap();
        for (file, content) in files {
            let place = root.path().join(file);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, content).unwrap();
        }
        let store = Store::open(root.path()).unwrap();
        let metadata = Metadata::new(Arc::new(crate::repository::DirTree::open(root.path()).unwrap()));
        Self { root, store, metadata }
    }

    fn save(&self, draft: Draft) -> Result<Option<ResourceFile>, AuthoringError> {
        Ok(Prepared::new(&self.store, &self.metadata, draft)?.write(&self.store)?)
    }

    pub fn read(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.root.path().join(file)).ok()
    }
}

pub(super) fn yaml(text: &str) -> Value {
    decode(PayloadType::Yaml, text.as_bytes()).unwrap()
}

pub(super) fn path(text: &str) -> LogicalPath {
    LogicalPath::parse(text).unwrap()
}

pub(super) fn draft(at: &str, payload: &str) -> Draft {
    Draft::new(path(at), yaml(payload))
}

#[test]
fn attributes_go_to_files_and_defaults_are_left_out() {
    let fixture = Fixture::new(&[
        (
            "shops/_/metadata.yaml",
            "resource: {format: yaml, defaults: {value: {tier: silver, limits: {cpu: 1}}}, externalizedAttributes: \
             [{path: /open, file: open.sh}, {path: /close, file: close.sh}]}",
        ),
        ("shops/rio/resource.yaml", "open: '{{include open.sh}}'\nclose: '{{include close.sh}}'\n"),
        ("shops/rio/open.sh", "old"),
        ("shops/rio/close.sh", "old"),
    ]);
    let payload = "{name: Rio, tier: silver, limits: {cpu: 2}, open: new}";
    let file = fixture.save(draft("/shops/rio", payload)).unwrap().unwrap();
    assert_eq!(file.file, "shops/rio/resource.yaml");
    let stored = fixture.read(&file.file).unwrap();
    assert_eq!(yaml(&stored), yaml("{name: Rio, limits: {cpu: 2}, open: '{{include open.sh}}'}"));
    assert_eq!(fixture.read("shops/rio/open.sh").as_deref(), Some("new"));
    assert_eq!(fixture.read("shops/rio/close.sh"), None);
}

#[rstest]
#[case("{tier: silver}", "{}")]
#[case("'{{secret .}}'", "'{{secret .}}'")]
fn values_that_equal_defaults_are_omitted(#[case] payload: &str, #[case] expected: &str) {
    let fixture = Fixture::new(&[("shops/_/metadata.yaml", "resource: {defaults: {value: {tier: silver}}}")]);
    let file = fixture.save(draft("/shops/rio", payload)).unwrap().unwrap();
    assert_eq!(yaml(&fixture.read(&file.file).unwrap()), yaml(expected));
}

#[test]
fn a_payload_that_cannot_have_defaults_is_not_written() {
    let fixture = Fixture::new(&[("shops/_/metadata.yaml", "resource: {defaults: {value: {tier: silver}}}")]);
    let error = fixture.save(draft("/shops/rio", "[1]")).unwrap_err();
    assert_eq!(error.category(), Category::Validation);
    assert!(!fixture.root.path().join("shops/rio").exists());
}

#[rstest]
#[case::array("[{name: b}, {name: a}]", &["/shops/a", "/shops/b"])]
#[case::items("{items: [{id: 7, name: a}], total: 1}", &["/shops/7"])]
#[case::blank_names_are_skipped("[{clientId: ' ', id: x}]", &["/shops/x"])]
#[case::client_id_first("[{id: 1, clientId: web}]", &["/shops/web"])]
#[case::own_path("[{LogicalPath: /other/x, Payload: {a: 1}}]", &["/other/x"])]
#[case::levels("[{name: eu/rio}]", &["/shops/eu/rio"])]
#[case::none("[]", &[])]
fn items(#[case] payload: &str, #[case] expected: &[&str]) {
    let drafts = drafts_of(&Fixture::new(&[]).metadata, &path("/shops"), &yaml(payload)).unwrap();
    assert_eq!(drafts.iter().map(|draft| draft.path.as_str()).collect::<Vec<_>>(), expected);
}

#[rstest]
#[case("[{name: rio, id: 7, code: x}]", "/shops/x")]
#[case("[{name: rio, uid: 9}]", "/shops/9")]
#[case("[{name: rio}]", "/shops/rio")]
fn metadata_names_items(#[case] payload: &str, #[case] expected: &str) {
    let fixture = Fixture::new(&[("shops/_/metadata.yaml", "resource: {alias: /code, id: /uid}")]);
    let drafts = drafts_of(&fixture.metadata, &path("/shops"), &yaml(payload)).unwrap();
    assert_eq!(drafts[0].path.as_str(), expected);
}

#[rstest]
#[case("{a: 1}", "not a list")]
#[case("{items: {a: 1}}", "not a list")]
#[case("[{size: 1}]", "item 0 for /shops has no name")]
#[case("[{name: a}, {name: a}]", "several items have the path /shops/a")]
#[case("[{name: ..}]", "\"..\"")]
#[case("[{LogicalPath: x, Payload: 1}]", "item 0 for /shops")]
fn bad_items(#[case] payload: &str, #[case] message: &str) {
    let error = drafts_of(&Fixture::new(&[]).metadata, &path("/shops"), &yaml(payload)).unwrap_err();
    assert_eq!(error.category(), Category::Validation);
    assert!(error.to_string().contains(message), "{error}");
}

#[rstest]
#[case("/a", Some("resource /a already exists; rerun with --force"))]
#[case("/broken", Some("resource /broken already exists; rerun with --force"))]
#[case("/dir", None)]
#[case("/none", None)]
fn existing_resources(#[case] at: &str, #[case] message: Option<&str>) {
    let fixture = Fixture::new(&[
        ("a/resource.json", "{}"),
        ("broken/resource.json", "{"),
        ("dir/x/resource.json", "{}"),
    ]);
    let error = check_absent(&fixture.store, [&path(at)]).err().map(|error| error.to_string());
    assert_eq!(error.is_some(), message.is_some());
    assert!(error.unwrap_or_default().starts_with(message.unwrap_or_default()));
}

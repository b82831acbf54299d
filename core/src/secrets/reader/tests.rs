//! Tests of the resolution of placeholders.

use rstest::rstest;

use super::*;
use crate::error::{Categorized, Category};
use crate::path::LogicalPath;
use crate::payload::decode;
use crate::secrets::file::{FileStore, FileStoreSettings, Kdf, KeyMaterial};

const STORED: [(&str, &str); 6] = [
    ("db/main:/users/0/pw", "pw-0"),
    ("db/main:ci", "{{secret .}}"),
    ("db/main:.", "{\"a\": 1}"),
    ("db/main:bad", "canary"),
    ("users/0/pw", "bare"),
    ("ci", "bare-ci"),
];

struct Fixture {
    _directory: tempfile::TempDir,
    file: std::path::PathBuf,
    reader: SecretReader,
}

async fn fixture() -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("secrets.json");
    let key = KeyMaterial::key(&Secret::from("k".repeat(32))).unwrap();
    let store =
        FileStore::new(FileStoreSettings { beneath: None, path: file.clone(), key, kdf: Kdf::default() });
    let stored = STORED.map(|(key, value)| (SecretKey::parse(key).unwrap(), Secret::from(value.to_owned())));
    store.set_all(stored.into()).await.unwrap();
    Fixture { _directory: directory, file, reader: SecretReader::new(Some(store.into())) }
}

fn yaml(text: &str) -> Arc<Value> {
    Arc::new(decode(PayloadType::Yaml, text.as_bytes()).unwrap())
}

fn main() -> Scope {
    Scope::Resource(LogicalPath::parse("/db/main").unwrap())
}

fn places(resolved: &Resolved) -> Vec<String> {
    resolved.secrets.iter().map(ToString::to_string).collect()
}

#[rstest]
#[case::both("{users: [{pw: '{{secret .}}'}], tok: '{{secret ci}}'}", "{users: [{pw: pw-0}], tok: '{{secret .}}'}", &["/tok", "/users/0/pw"])]
#[case::again("[{a: '{{secret ci}}'}, '{{secret \"ci\"}}']", "[{a: '{{secret .}}'}, '{{secret .}}']", &["/0/a", "/1"])]
#[case::descriptor("{t: '{{payload_type .}}', m: '{{payload_media_type .}}', e: '{{payload_extension .}}'}", "{t: yaml, m: application/yaml, e: .yml}", &[])]
#[case::whole("'{{secret .}}'", "{a: 1}", &[""])]
#[case::names("{'{{secret .}}': 1}", "{'{{secret .}}': 1}", &[])]
#[tokio::test]
async fn values_replace_placeholders(#[case] payload: &str, #[case] expected: &str, #[case] at: &[&str]) {
    let fixture = fixture().await;
    let descriptor = Descriptor::from_extension(".yml");
    let resolved = fixture.reader.resolve(&main(), Some(&descriptor), yaml(payload)).await.unwrap();
    assert_eq!(*resolved.payload, *yaml(expected));
    assert_eq!(places(&resolved), at);
    assert!(!format!("{resolved:?} {:?}", fixture.reader).contains("pw-0"));
}

#[tokio::test]
async fn keys_of_a_payload_without_resource_are_relative_to_the_payload() {
    let fixture = fixture().await;
    let payload = yaml("{users: [{pw: '{{secret .}}'}], tok: '{{secret ci}}'}");
    let resolved = fixture.reader.resolve(&Scope::Payload, None, payload).await.unwrap();
    assert_eq!(*resolved.payload, *yaml("{users: [{pw: bare}], tok: bare-ci}"));
}

#[tokio::test]
async fn binary_payloads_can_be_secrets() {
    let fixture = fixture().await;
    let payload = Arc::new(Value::Bytes(b"{{secret ci}}".to_vec()));
    let descriptor = Descriptor::from_extension(".p12");
    let resolved = fixture.reader.resolve(&main(), Some(&descriptor), payload).await.unwrap();
    assert_eq!(*resolved.payload, Value::Bytes(b"{{secret .}}".to_vec()));
}

#[tokio::test]
async fn a_payload_without_placeholders_is_not_copied() {
    let reader = SecretReader::new(None);
    let payload = yaml("{a: [x, '{{ other }}', 1], b: null}");
    let resolved = reader.resolve(&main(), None, Arc::clone(&payload)).await.unwrap();
    assert!(Arc::ptr_eq(&resolved.payload, &payload));
}

#[rstest]
#[case::missing(
    "{b: [{c: '{{secret none}}'}], d: '{{secret nothing}}'}",
    Category::NotFound,
    "/db/main: cannot read the secret db/main:none for \"/b/0/c\": secret db/main:none not found in "
)]
#[case::malformed(
    "{a: '{{secret}}', b: '{{secret none}}'}",
    Category::Validation,
    "/db/main: the value at \"/a\": the placeholder has no key"
)]
#[case::traversal(
    "{a: '{{secret x/../y}}'}",
    Category::Validation,
    "/db/main: the placeholder at \"/a\": secret key \"db/main:x/../y\""
)]
#[case::no_payload(
    "'{{secret bad}}'",
    Category::Validation,
    "/db/main: the secret db/main:bad is not the payload of a resource: it is not a valid json document"
)]
#[tokio::test]
async fn failures(#[case] payload: &str, #[case] category: Category, #[case] message: &str) {
    let error = fixture().await.reader.resolve(&main(), None, yaml(payload)).await.unwrap_err();
    assert_eq!(error.category(), category);
    let text = error.to_string();
    assert!(text.starts_with(message) && !text.contains("canary"), "{text}");
}

#[tokio::test]
async fn without_a_store_secret_placeholders_are_an_error() {
    let reader = SecretReader::new(None);
    let payload = yaml("{a: {b: '{{secret .}}'}, t: '{{payload_type .}}'}");
    let error = reader.resolve(&main(), None, payload).await.unwrap_err();
    assert_eq!(error.category(), Category::Validation);
    let expected = "/db/main: secret provider is not configured: the value at \"/a/b\" is a placeholder; \
                    configure a secret store";
    assert_eq!(error.to_string(), expected);
    let described = reader.resolve(&main(), None, yaml("'{{payload_type .}}'")).await.unwrap();
    assert_eq!(*described.payload, Value::from("json"));
}

#[tokio::test]
async fn a_key_is_read_once_in_a_run() {
    let fixture = fixture().await;
    let payload = || yaml("{a: '{{secret ci}}', b: '{{secret none}}'}");
    let first = fixture.reader.resolve(&main(), None, payload()).await.unwrap_err();
    // Values that were read do not change in the run, even if the store is removed.
    std::fs::remove_file(&fixture.file).unwrap();
    let scope = main();
    let all = (0..100).map(|_| fixture.reader.resolve(&scope, None, payload()));
    for again in futures::future::join_all(all).await {
        assert_eq!(again.unwrap_err().to_string(), first.to_string());
    }
    let known = fixture.reader.resolve(&main(), None, yaml("['{{secret ci}}']")).await.unwrap();
    assert_eq!(*known.payload, *yaml("['{{secret .}}']"));
    let next = SecretReader::new(fixture.reader.0.store.clone());
    assert!(next.resolve(&main(), None, yaml("['{{secret ci}}']")).await.is_err());
}

#[tokio::test]
async fn values_that_were_read_are_redacted() {
    let fixture = fixture().await;
    fixture.reader.resolve(&Scope::Payload, None, yaml("{tok: '{{secret ci}}'}")).await.unwrap();
    let redactor = fixture.reader.redactor();
    assert_eq!(redactor.redact("sent bare-ci and pw-0"), "sent <redacted> and pw-0");
}
